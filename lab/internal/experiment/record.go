package experiment

import (
	"time"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/vm"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// Record is all that was observed in one run of one variant: the evidence.
// Nothing in it is judged. It marshals to JSON as it stands.
type Record struct {
	RunID    string       `json:"run_id"`
	Scenario string       `json:"scenario"`
	Hash     string       `json:"scenario_hash"`
	Variant  string       `json:"variant"`
	Started  time.Time    `json:"started"`
	Ended    time.Time    `json:"ended"`
	Steps    []StepRecord `json:"steps"`
	// Fault is why the run ended before its last step; "" when it did not.
	// Everything not observed by then is unknown.
	Fault string `json:"fault,omitempty"`
	// Skipped is why this engine can't run the variant at all, with what it
	// needs; "" when it ran.
	Skipped string `json:"skipped,omitempty"`
	// Hung is set when the engine stopped answering in the middle of a
	// request: it is to be given up, with its store.
	Hung    string  `json:"hung,omitempty"`
	Cleanup Cleanup `json:"cleanup"`
	// Machine is what a virtual machine ran on; nil where none did.
	Machine *vm.Facts `json:"machine,omitempty"`
	// Services are the stores outside the containers, as they came up.
	Services []ServiceRecord `json:"services,omitempty"`
}

// ServiceRecord is one store.
type ServiceRecord struct {
	Name  string        `json:"name"`
	Store string        `json:"store"`    // its image, or its address without the password
	Ready time.Duration `json:"ready_ns"` // from when its container was started until it took requests; for several, from when the one before did
}

// StepRecord is one step as it happened.
type StepRecord struct {
	Index   int           `json:"index"` // from 1, as the scenario counts
	Verb    string        `json:"verb"`
	On      string        `json:"on,omitempty"`
	Label   string        `json:"label,omitempty"`   // read: the checkpoint
	Command string        `json:"command,omitempty"` // the podman line a person would type
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`
	Error   string        `json:"error,omitempty"`
	Proof   *Proof        `json:"proof,omitempty"`
	Others  []Proof       `json:"others,omitempty"` // of an event about several containers
	Items   []Observation `json:"items,omitempty"`
	Crashes []Crash       `json:"crashes,omitempty"` // crash during: every kill, in order
	Load    *LoadRecord   `json:"load,omitempty"`
}

// Crash is one kill in the middle of a write, and what was there afterwards.
// At a single point the container stays down: what is there then is seen by
// the read that follows, and Found is nil.
type Crash struct {
	Item  string `json:"item"`
	Nonce string `json:"nonce"` // what was being written
	How   string `json:"how"`   // ByPodman or ByProbe
	Point int    `json:"point"` // of Of, as they were asked for
	Of    int    `json:"of"`

	Where    *wire.Interrupted `json:"where,omitempty"` // where the write really was
	Old      *wire.Found       `json:"old,omitempty"`   // what was there before; nil at a single point
	Found    *wire.Found       `json:"found,omitempty"`
	Error    *wire.Error       `json:"error,omitempty"`
	ExitCode *int              `json:"exit_code,omitempty"` // of the container, where podman killed it
}

// Who sends the SIGKILL of a Crash.
const (
	ByPodman = "podman kill"                          // to the container: every process in it
	ByProbe  = "SIGKILL from process 1 to the writer" // to the writing process; the container lives
)

// Proof is the evidence that an event really happened.
type Proof struct {
	On        string    `json:"on,omitempty"` // Others: which container
	Before    *Identity `json:"before,omitempty"`
	After     *Identity `json:"after,omitempty"`
	OldIsGone string    `json:"old_is_gone,omitempty"` // the engine's words when asked for the removed container
	ExitCode  *int      `json:"exit_code,omitempty"`
	SameImage *bool     `json:"same_image,omitempty"`
	Refused   string    `json:"refused,omitempty"` // the engine's words, where the event was refused
	Made      string    `json:"made,omitempty"`    // the image, archive or volume that came of it
	Again     int       `json:"again,omitempty"`   // how often a played pod had to be started once more; see keepUp
}

// Identity tells one container, and one life of it, from another.
type Identity struct {
	ID       string    `json:"id"`
	ImageID  string    `json:"image_id,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	PID      int       `json:"pid,omitempty"`
	Instance string    `json:"instance,omitempty"` // the probe's own random id: a new process has a new one
	State    string    `json:"state,omitempty"`
	BootID   string    `json:"boot_id,omitempty"`  // of a virtual machine
	Hostname string    `json:"hostname,omitempty"` // of a virtual machine
}

// Observation is one item looked at once: after a write (the read-back), or
// at a checkpoint.
type Observation struct {
	Item  string      `json:"item"`
	Nonce string      `json:"nonce,omitempty"` // write: what this write put there
	Found *wire.Found `json:"found,omitempty"`
	Error *wire.Error `json:"error,omitempty"`
	Host  *HostLook   `json:"host,omitempty"`

	Rebuilt *Rebuilt       `json:"rebuilt,omitempty"` // a cache that was not there, and rebuilds by itself
	Health  *engine.Health `json:"health,omitempty"`  // a health item: Podman's answer; Found is made of its status
}

// Rebuilt is a cache made anew after it was found missing.
type Rebuilt struct {
	Took  time.Duration `json:"took_ns"` // as the probe measured it
	Found *wire.Found   `json:"found,omitempty"`
	Error *wire.Error   `json:"error,omitempty"`
}

// HostLook is the same place seen from outside the container.
type HostLook struct {
	Path    string `json:"path,omitempty"`
	Present bool   `json:"present"`
	SHA256  string `json:"sha256,omitempty"`
	Skipped string `json:"skipped,omitempty"` // why it could not be looked at
}

// Cleanup is what the run took away after itself, and what it could not.
type Cleanup struct {
	Removed []string `json:"removed"`
	Left    []string `json:"left,omitempty"` // with how to remove each
	Kept    bool     `json:"kept,omitempty"` // --keep
}

// Verdict is an outcome joined to its expectation: one row of the table.
type Verdict struct {
	Scenario   string            `json:"scenario"`
	Variant    string            `json:"variant"`
	Item       string            `json:"item"`
	Checkpoint string            `json:"checkpoint"`
	Written    bool              `json:"written"` // seen present right after it was written
	Outcome    scenarios.Outcome `json:"outcome"` // "" in Go is unknown; JSON and csv say "unknown"
	Expected   scenarios.Outcome `json:"expected"`
	Rule       string            `json:"rule,omitempty"` // the `when` that applied
	Judgement  Judgement         `json:"verdict"`
	Detail     string            `json:"detail"` // what exactly: "3 rows → 1", "no such file"
	Why        string            `json:"why"`    // one sentence

	// Violation says how the outcome is more than the item's owner can do
	// without; "" when it is not. The verdict is "violated" then, unless the
	// scenario shows it on purpose.
	Violation string `json:"violation,omitempty"`
	Kills     *Kills `json:"kills,omitempty"` // a sweep of crashes: the outcome is the worst of them
}

// Kills counts what was found after each crash of a sweep.
type Kills struct {
	Kills     int `json:"kills"`
	ByPodman  int `json:"by_podman"` // containers killed from outside; the rest: the writing process alone
	New       int `json:"survived_new"`
	Old       int `json:"survived_old"`
	Torn      int `json:"torn"`
	Lost      int `json:"lost"`
	Forgotten int `json:"forgotten"` // acknowledged to somebody, and not there
	Other     int `json:"other"`     // neither old nor new
	Unknown   int `json:"unknown"`   // could not be looked at
}

// Decision is a row of the durability decision table: what the owner of an
// item decided about it, and what was observed.
type Decision struct {
	Scenario       string        `json:"scenario"`
	Variant        string        `json:"variant"`
	Item           string        `json:"item"`
	Data           string        `json:"data"`            // what it is: "3 rows in SQLite"
	Where          string        `json:"where"`           // where it goes: path, and what that lies on
	Rebuild        string        `json:"rebuild"`         // auto, by hand, "" for not said
	RebuildTook    time.Duration `json:"rebuild_took_ns"` // measured; 0 when it was not rebuilt
	AcceptableLoss string        `json:"acceptable_loss"` // none, all, a time like 1m; "" for not said
	Observed       string        `json:"observed"`
	Verdict        string        `json:"verdict"` // DecisionKept, DecisionViolated or "unknown"
	Why            string        `json:"why,omitempty"`
}

// Verdicts of a Decision.
const (
	DecisionKept     = "kept"
	DecisionViolated = "violated"
	DecisionUnknown  = "unknown"
)

// Judgement says how an outcome relates to its expectation.
type Judgement string

// Judgements.
const (
	NotJudged  Judgement = "unknown" // the outcome is unknown
	AsExpected Judgement = "as expected"
	Surprised  Judgement = "surprised"
	Skipped    Judgement = "skipped"  // this engine can't; Why says what it needs
	Violated   Judgement = "violated" // an acceptable loss did not hold
)

// ReportVersion is the version of the JSON document a Report marshals to.
const ReportVersion = 1

// Report is everything a writer needs, for any number of scenarios on one
// engine.
type Report struct {
	Version   int               `json:"version"`
	Tool      string            `json:"tool"` // "lab 0.1.0"
	Started   time.Time         `json:"started"`
	Took      time.Duration     `json:"took_ns"`
	Engine    engine.Facts      `json:"engine"`
	Scenarios []ScenarioSummary `json:"scenarios"` // in the order they were asked for
	Results   []Verdict         `json:"results"`   // scenario, variant, checkpoint, item order
	Records   []Record          `json:"records"`   // one per variant run

	// Decisions is the durability decision table: a row for each variant
	// and item whose owner said what may be lost.
	Decisions []Decision `json:"decisions,omitempty"`
}

// ScenarioSummary is what the table's heading needs of a scenario.
type ScenarioSummary struct {
	Name     string           `json:"name"`
	Title    string           `json:"title"`
	Lesson   string           `json:"lesson,omitempty"`
	Question string           `json:"question,omitempty"`
	Hash     string           `json:"hash"`
	Items    []ItemSummary    `json:"items"`
	Variants []VariantSummary `json:"variants"`
	// Checkpoints in the order they are read.
	Checkpoints []string `json:"checkpoints"`
}

// ItemSummary describes a data item for people.
type ItemSummary struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Place string `json:"place"` // path, or "memory of process 1"
}

// VariantSummary is a variant's name, its teaching text and its commands.
type VariantSummary struct {
	Name     string   `json:"name"`
	Explain  string   `json:"explain,omitempty"`
	Commands []string `json:"commands"` // the podman lines of its steps
	// Containers are how its containers are built: what a picture shows.
	Containers []ContainerSummary `json:"containers,omitempty"`
}

// ContainerSummary is what a container of a variant is made of.
type ContainerSummary struct {
	Name     string         `json:"name"`
	ReadOnly bool           `json:"read_only,omitempty"` // it has no writable layer
	Machine  bool           `json:"machine,omitempty"`   // it is a virtual machine: no layers, and disks for mounts
	Service  bool           `json:"service,omitempty"`   // it is a store, up before the first step
	Mounts   []MountSummary `json:"mounts,omitempty"`
	Places   []PlaceSummary `json:"places,omitempty"` // of the items that are written or looked for in it
}

// MountSummary is storage from outside a container, at a path in it.
type MountSummary struct {
	Kind    string   `json:"kind"`             // a mount kind; of a machine's, durable or instance-store
	Source  string   `json:"source,omitempty"` // the volume's or folder's name in the scenario, the image
	Target  string   `json:"target"`
	Options []string `json:"options,omitempty"`
	From    string   `json:"from,omitempty"` // the container whose mount it is (--volumes-from)
}

// PlaceSummary is where an item's bytes lie in a container.
type PlaceSummary struct {
	Item   string `json:"item"`
	Where  string `json:"where"`            // memory, layer, mount, service, or elsewhere: in none of them
	Target string `json:"target,omitempty"` // of the mount; the service's name
}
