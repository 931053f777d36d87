// Package bootprobe looks at the machine, container or process it runs in and
// says, in one Report, what a later run needs to tell whether anything came
// back: which boot, which container, which life of process 1, and for each
// place what an earlier run left there.
//
// It promises:
//
//   - A run adds evidence and never takes any away: the file in a place gains
//     one line, the SQLite table one row, also when two runs do so at once.
//   - What can't be learned or written is a value in the report, never an end
//     of the run: the report always comes out.
//   - A place that isn't there is not made. A mistyped folder that comes into
//     being is how data ends up beside a mount.
//   - It leaves two files in each place, named FileName and DatabaseName;
//     Forget removes them and nothing else.
//
// It needs no container engine. The facts about the system are Linux's
// (proc(5)); on other systems they are said to be unknown.
package bootprobe

import "time"

// Kind and Version identify a report among JSON documents.
const (
	Kind    = "persistencelab boot probe"
	Version = 1
)

// What the probe leaves in a place.
const (
	FileName     = "persistencelab-probe.jsonl"
	DatabaseName = "persistencelab-probe.db"
)

// Words for what has no value.
const (
	Unknown = "unknown" // BootID, where it can't be read
	Unset   = "unset"   // DeployID, without DEPLOY_ID in the environment
)

// Report is one run. It marshals to the JSON document `lab probe` prints.
type Report struct {
	Kind    string    `json:"kind"`
	Version int       `json:"version"`
	Run     string    `json:"run"` // random; this run's name in what it left behind
	At      time.Time `json:"at"`

	BootID string `json:"boot_id"` // a new one for each boot of the kernel (random(4))
	// Machine stays the same from boot to boot: an id derived from
	// /etc/machine-id, which itself is not to be given away (machine-id(5)).
	// "" in a container, whose /etc is its image's.
	Machine  string `json:"machine,omitempty"`
	Hostname string `json:"hostname"`
	CWD      string `json:"cwd"`
	DeployID string `json:"deploy_id"` // DEPLOY_ID from the environment

	Process1  *Process   `json:"process_1"` // null when it can't be seen
	Container *Container `json:"container"` // null outside of one

	Places []Place  `json:"places"`
	Errors []string `json:"errors,omitempty"` // what of the above could not be learned, and why
}

// Process is one life of a process.
type Process struct {
	Name    string    `json:"name"`
	Started time.Time `json:"started"`
	// Ticks is the start in hundredths of a second since the boot. With the
	// boot id it tells one life from another exactly; Started can shift by a
	// second when the clock is set.
	Ticks int64 `json:"ticks"`
}

// Container is the container the probe runs in.
type Container struct {
	ID       string `json:"id,omitempty"` // as much of it as could be seen; "" when only its existence shows
	Engine   string `json:"engine,omitempty"`
	Evidence string `json:"evidence"` // what tells
}

// Place is one folder.
type Place struct {
	Names  []string `json:"names"` // temp, home, working, path: more than one when they are the same folder
	Path   string   `json:"path"`
	Error  string   `json:"error,omitempty"` // the folder can't be used at all
	Mount  *Mount   `json:"mount,omitempty"`
	File   *File    `json:"file,omitempty"`
	SQLite *SQLite  `json:"sqlite,omitempty"`
}

// Mount is the file system a place lies on (/proc/self/mountinfo, proc(5)).
type Mount struct {
	At       string  `json:"at"`   // where it is mounted
	Type     string  `json:"type"` // overlay, tmpfs, ext4, …
	Source   string  `json:"source"`
	Root     string  `json:"root"` // which folder of that file system is mounted
	ReadOnly bool    `json:"read_only"`
	Storage  Storage `json:"storage"`
	Volume   string  `json:"volume,omitempty"` // the volume's name
}

// Storage is what a mount is, in the lab's words.
type Storage string

// Storages.
const (
	WritableLayer   Storage = "writable layer"
	NamedVolume     Storage = "named volume"
	AnonymousVolume Storage = "anonymous volume"
	BindMount       Storage = "bind mount"
	Memory          Storage = "memory"
	Overlay         Storage = "overlay" // outside of any container the probe knows: a live system, perhaps
	Disk            Storage = "disk"
)

// File is the file in a place: one line per run, each with the checksum of
// all before it.
type File struct {
	Path   string  `json:"path"`
	Before *Before `json:"before,omitempty"` // null when it could not be looked at
	Runs   int     `json:"runs"`             // lines now, this run's included
	Bytes  int64   `json:"bytes"`
	SHA256 string  `json:"sha256,omitempty"`
	Error  string  `json:"error,omitempty"` // nothing was written, and why
}

// SQLite is the database in a place: one row per run.
type SQLite struct {
	Path   string  `json:"path"`
	Before *Before `json:"before,omitempty"`
	Rows   int     `json:"rows"` // rows now, this run's included
	SHA256 string  `json:"sha256,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// Before is what was found, before this run wrote anything.
type Before struct {
	Present bool   `json:"present"`
	Bytes   int64  `json:"bytes"`
	Runs    int    `json:"runs"` // runs that left a line or a row
	SHA256  string `json:"sha256,omitempty"`
	// AgeSeconds is the time since the last change; negative when the clock
	// went back.
	AgeSeconds float64 `json:"age_seconds,omitempty"`
	// Seen are the latest runs that were here, oldest first, at most
	// seenRuns of them: how a later report proves that it found an earlier
	// one's data, and not data like it.
	Seen []string `json:"seen,omitempty"`
	// Damage says what does not fit: a line that does not parse, a checksum
	// that does not hold. "" when all is as it was written.
	Damage string `json:"damage,omitempty"`
}

const seenRuns = 100
