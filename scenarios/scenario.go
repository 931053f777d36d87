// Package scenarios reads scenario files: what an author wrote, strictly
// parsed and validated, before anything runs.
//
// It promises three things. A file that parses is runnable: every item,
// container, checkpoint and expectation it names exists. Every fault is
// reported in one pass, each with file:line:col and a suggestion. And a
// hostile file costs nothing: size, nesting, anchors and aliases are bounded,
// and no path in a file can point outside the lab's own run folder unless the
// person at the command line allowed it.
//
// The package knows no engine and does no I/O beyond reading the file.
package scenarios

import "time"

// Position is a place in a scenario file; both fields count from 1. The zero
// value means "not from a file" (a scenario made by a program).
type Position struct {
	Line, Col int
}

// Scenario is one file: mounts, data, steps and expectations.
type Scenario struct {
	File    string // the name the file was read by; for errors and records
	Hash    string // SHA-256 of the source bytes, hex; ties an attempt to the text it answered
	Version int    // 1

	Name     string // [a-z0-9-]+, unique in the catalogue
	Title    string
	Machine  string // "" for containers, VirtualMachine
	Lesson   string // key of the lesson it belongs to, "" for none
	About    string // Markdown
	Question string
	Hints    []string // from gentle to plain

	Data       []Item      // in file order
	Services   []Service   // stores outside the containers
	Containers []Container // at least one; a plain scenario has the one named DefaultContainer
	Volumes    []Volume    // volumes that need more than a name
	Steps      []Step
	Expect     Expectations // for every variant; a variant's own entries win
	Variants   []Variant    // at least one

	// Ask is what learners predict: checkpoint → items. Empty: the lab
	// chooses.
	Ask map[string][]string

	Misconceptions []Misconception
}

// Options is what the person at the command line decided about a file.
type Options struct {
	// AllowHostPaths are the host paths a bind may name, each with all
	// below it (--allow-host-path).
	AllowHostPaths []string
}

// DefaultContainer names the container of a scenario that declares none.
const DefaultContainer = "app"

// ItemKind says what a data item is made of.
type ItemKind string

// Item kinds.
const (
	File   ItemKind = "file"   // bytes at Path
	SQLite ItemKind = "sqlite" // Rows rows in the SQLite database at Path
	Memory ItemKind = "memory" // a value held in the memory of process 1
	Fact   ItemKind = "fact"   // what the kernel says of itself, or a variable of the environment; a write notes it, nothing is written

	// Transcript: a conversation as JSON lines at Path; one write is one
	// turn, a question and its answer.
	Transcript ItemKind = "transcript"
	// Agent: a program that works through a list of tasks and knows of its
	// work only what it can read back; one write is a day. Its transcript is
	// at Path, its notes beside it; with Service, all of it is in that
	// collection.
	Agent ItemKind = "agent"
	// Cache: a file at Path that can be worked out again from its input.
	Cache ItemKind = "cache"
	// Health: what Podman's health check says of container Path. The write
	// is the first answer, a read compares with it.
	Health ItemKind = "health"
)

// OnDisk tells whether the item is bytes at a path.
func (i Item) OnDisk() bool {
	switch i.Kind {
	case Memory, Health, Fact:
		return false
	}
	return !i.InService()
}

// InTurns tells whether items of the kind are conversations, a turn each task
// or question.
func (k ItemKind) InTurns() bool { return k == Transcript || k == Agent }

// Item is one named thing that is written and looked for again.
type Item struct {
	Pos  Position
	Name string
	Kind ItemKind
	Path string // absolute path in the container; for Memory the variable's name, for Fact boot-id, hostname or env:NAME, for Health the container's
	Rows int    // SQLite, Row: rows one write adds; Agent: tasks it does a day
	Size int    // File, Cache: bytes to write, 0 for a short note; Transcript: bytes of an answer
	Mode WriteMode

	// SQLite: with either set, the database stays open from the first write
	// on, as a service keeps it; SQLite's own default for the other.
	Journal     string // "", wal, delete
	Synchronous string // "", off, normal, full, extra
	// Persist: a turn of a Transcript or Agent is saved "before" or "after"
	// its answer is shown.
	Persist string
	Tasks   string // Agent: path of the list of its tasks, a file of the image
	Work    int    // Cache: bytes hashed to work it out: what a rebuild costs

	// Seed: the item is content of the image, not written by the first
	// write: "survived" then means "as the image has it".
	Seed bool

	Service string // Row, Key, Object, Agent: the service it is in

	// On names the container the item is written in; "" for any.
	On string

	AcceptableLoss *Loss  // nil: not declared
	Rebuild        string // "", "auto" or "by hand"
}

// WriteMode says how a file item reaches the disk.
type WriteMode string

// Write modes.
const (
	Plain    WriteMode = "plain"    // create or truncate, write, close
	Truncate WriteMode = "truncate" // rewrite in place: the naive save
	Fsync    WriteMode = "fsync"    // plain, then fsync of the file
	Atomic   WriteMode = "atomic"   // temporary file, fsync, rename, fsync of the folder
	Append   WriteMode = "append"   // add to the end

	Rename      WriteMode = "rename"       // temporary file, rename; nothing is synced
	FsyncRename WriteMode = "fsync-rename" // temporary file, fsync, rename; the folder is not synced
)

// Loss is how much of an item its owner can do without.
type Loss struct {
	All    bool          // losing everything is fine
	Within time.Duration // losing what was written in the last Within is fine; 0 and !All: nothing may be lost
}

// MountKind says what kind of storage a mount is. The words are Podman's own.
type MountKind string

// Mount kinds. The absence of a mount is the writable layer ("none").
const (
	None        MountKind = "none"
	VolumeMount MountKind = "volume"    // a named volume
	Anonymous   MountKind = "anonymous" // a volume without a name
	Bind        MountKind = "bind"      // a folder of the host
	Tmpfs       MountKind = "tmpfs"     // memory, behind a path
	ImageMount  MountKind = "image"     // another image's files
	EmptyDir    MountKind = "emptydir"  // Kubernetes' emptyDir: as long-lived as its pod
)

// Mount is one -v, --mount or --tmpfs of a container.
type Mount struct {
	Pos     Position
	Kind    MountKind
	Source  string   // volume name, bind folder name or absolute host path, image, emptyDir's name; "" for anonymous and tmpfs
	Target  string   // absolute path in the container
	Options []string // Podman's words: ro, nocopy, U, z, Z, O, rw …
	Subpath string   // volume: the folder inside the volume (Podman 5.4)
	Long    bool     // written as --mount rather than -v or --tmpfs; the same mount
}

// Volume is a named volume that needs more than being named by a mount.
type Volume struct {
	Pos     Position
	Name    string
	Create  bool              // made beforehand with `podman volume create`; otherwise the first run makes it
	Options map[string]string // driver options: type, device, o
}

// Container is one container of a scenario: the arguments of its `podman run`.
type Container struct {
	Pos    Position
	Name   string
	Image  *Image // nil: the probe image as it is
	Mounts []Mount
	Disks  []Disk // of a virtual machine, which has none of the rest

	ReadOnly      bool
	ReadOnlyTmpfs *bool  // nil: Podman's default (true)
	User          string // uid[:gid]
	Hostname      string
	Env           map[string]string
	Remove        bool   // --rm
	Restart       string // restart policy: "", no, on-failure[:N], always, unless-stopped
	ImageVolume   string // --image-volume: "", anonymous, tmpfs, ignore
	VolumesFrom   []string
	Secrets       []string // secrets mounted at /run/secrets/NAME
	Pod           string   // "" for none; else the pod's name
	Replicas      int      // how many of it there are; each is a Container of its own in a Variant
	Group         string   // the name it was declared under with replicas; "" otherwise
	Service       *Service // the service it is, and not a container of the probe; only in a Variant
	Deferred      bool     // not started by a bare `run`; needs `run: {on: NAME}`
	Health        *HealthCheck
}

// HealthCheck is the question Podman's health check asks in a container:
// whether the process answers or, with Ready, whether the state at that path
// is there.
type HealthCheck struct {
	Ready string // a path; "" for liveness
}

// Image is the probe image plus what a scenario adds to it. The lab makes
// such an image itself, offline.
type Image struct {
	Pos     Position
	Volumes []string          // VOLUME lines
	Files   map[string]string // path → content added on top of the probe image
	User    string            // USER line
	// Tag is the image's whole reference, for an image that changes under its
	// name. Set by a plan, not by a file; "" for a name made of the content.
	Tag string
}

// Variant is one arrangement of mounts a scenario is run with.
type Variant struct {
	Pos     Position
	Name    string
	Explain string // why it came out as it did; shown after the run
	// Containers are the scenario's with this variant's changes applied; in
	// the scenario's order.
	Containers []Container
	Volumes    []Volume
	Steps      []Step       // the scenario's, unless the variant has its own
	Expect     Expectations // the scenario's merged with the variant's
}

// Step is one thing done. Which fields a verb reads stands in the verb table
// (Verbs).
type Step struct {
	Pos  Position
	Verb string
	On   string // container the step is about; "" for all that are not deferred: ask Variant.Targets

	Items   []string          // write, read: item names, in the scenario's order; read: empty for all (Scenario.ItemsOf)
	Label   string            // read: the checkpoint's name
	Volumes bool              // rm: also remove its anonymous volumes; prune: also volumes
	Signal  string            // kill: without SIG; "" for KILL
	Volume  string            // volume rm, volume export …: which volume
	Pod     string            // pod stop, pod rm …: which pod
	Path    string            // cp: path in the container
	To      string            // rename, commit, clone: the new name; export, cp, checkpoint …: what is made
	From    string            // import, cp, restore …: what an earlier step's To made
	Image   string            // run: an image that commit or import made, instead of the container's own
	Replace bool              // run: --replace
	Force   bool              // volume rm, kube down: --force
	Code    int               // crash: the exit code
	Amid    []string          // crash during: the items in the middle of whose write the container is killed; none: process 1 ends by itself
	Point   string            // crash at: before, mid, after, or every for a sweep over the write
	Points  int               // crash at every: how many
	Refused bool              // the event is expected to be refused by Podman; being refused is then what happened
	Files   map[string]string // rebuild: changed image content
	Delay   time.Duration     // wait, power-cut

	Requests int      // load: how many
	Kill     []string // load: killed in turn meanwhile
	Kills    int      // load: how many kills; 0 for one each
	Rolled   []string // load: replaced one after the other meanwhile

	Times   int    // write: how many times over; 0 for once
	Live    bool   // snapshot: memory and all, of a running machine
	Overlay bool   // snapshot: as a new file on top of the old one
	During  string // power-cut: the file item that is being written
	At      int    // power-cut: after how many bytes of it
}

// Outcome is what became of one item at one checkpoint.
type Outcome string

// Outcomes. Unknown is the zero value: what was not observed is never shown
// or counted as lost.
const (
	Unknown  Outcome = ""
	Survived Outcome = "survived" // byte for byte, row for row what was last acknowledged as written
	Lost     Outcome = "lost"     // the place could be looked at, and it is not there
	Changed  Outcome = "changed"  // there, but not what was last written
	Refused  Outcome = "refused"  // the write itself was not accepted
	Varies   Outcome = "varies"   // only ever an expectation: the engine itself is not deterministic here
)

// String gives the outcome's word; "unknown" for the zero value.
func (o Outcome) String() string {
	if o == Unknown {
		return "unknown"
	}
	return string(o)
}

// Expectations maps checkpoint → item → what is expected there.
type Expectations map[string]map[string]Expectation

// Expectation is a list of rules; the first whose When holds for the engine
// applies. A plain `note: lost` is one rule without a When.
type Expectation struct {
	Pos   Position
	Rules []Rule
}

// Rule is one expected outcome and the engines it holds for.
type Rule struct {
	When    string  // "podman < 5.1", "rootless", "podman >= 5 and rootful"; "" for always
	Outcome Outcome // never Unknown
	Because string  // the reason; required for Varies
	// Violated: the author knows that this outcome is more than the item's
	// owner can do without, and shows it on purpose.
	Violated bool
}

// Misconception ties a wrong prediction to the belief behind it. Empty
// Variant, Item and Checkpoint match any.
type Misconception struct {
	Pos                       Position
	ID                        string // short key, for the class table
	Variant, Item, Checkpoint string
	Predicted                 Outcome
	Belief                    string
	Answer                    string // one sentence
}
