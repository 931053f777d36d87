// Package wire is the protocol between the lab and its probe: one JSON object
// a line, a Request answered by one Reply with the same ID. The probe never
// speaks first, so a client may attach at any time and start asking.
//
// The protocol is versioned: a probe refuses a request of another Version
// with CodeVersion and the version it speaks. Unknown fields are ignored, so
// that fields can be added; an unknown Op is refused with CodeUnknownOp.
package wire

// Version of the protocol spoken by this tree.
const Version = 1

// MaxLine bounds one request or reply line, in bytes.
const MaxLine = 1 << 20

// Op names what is asked.
type Op string

// Operations. "exec" below means the operation is carried out by process 1.
const (
	Hello Op = "hello" // who are you: Reply.Hello
	Write Op = "write" // write Item, then answer: Reply.Found is a read-back made at once
	Read  Op = "read"  // look for Item: Reply.Found
	Erase Op = "erase" // take Item away: Reply.Found is a look made at once after
	Exit  Op = "exit"  // leave with code Request.Code, after answering; in a virtual machine: power off cleanly
	Crash Op = "crash" // leave at once without answering, code Request.Code
)

// Operations of a probe that is a virtual machine's init; any other answers
// CodeUnknownOp.
const (
	Sync   Op = "sync"   // put all that was written on the disks, as sync(2) does
	Begin  Op = "begin"  // write the first Item.UpTo bytes of Item, sync, and never finish: answered by neither Found nor Error
	Reboot Op = "reboot" // restart the machine cleanly, after answering
)

// Request is one line to the probe.
type Request struct {
	V    int   `json:"v"`
	ID   int64 `json:"id"`
	Op   Op    `json:"op"`
	Item *Item `json:"item,omitempty"`
	Code int   `json:"code,omitempty"`
}

// Item says what to write or look for. The kinds and modes are the words of
// the scenario file (scenarios.ItemKind, scenarios.WriteMode).
type Item struct {
	Kind  string `json:"kind"`            // file, sqlite, memory, fact
	Path  string `json:"path"`            // file, sqlite: absolute path; memory: variable name; fact: boot-id or hostname
	Nonce string `json:"nonce,omitempty"` // write: goes into the content, fresh for every write; 1 to 128 printable ASCII characters, no space
	Rows  int    `json:"rows,omitempty"`  // sqlite: rows to add
	Size  int    `json:"size,omitempty"`  // file: bytes this write puts there; less than the short note (0): the short note
	Mode  string `json:"mode,omitempty"`  // file: plain (default), truncate, fsync, atomic, append, rename, fsync-rename

	// SQLite: with either set, the probe keeps the database open from the
	// first write on, as a service does.
	Journal     string `json:"journal,omitempty"`     // wal, delete
	Synchronous string `json:"synchronous,omitempty"` // off, normal, full, extra

	UpTo int `json:"up_to,omitempty"` // begin: bytes that are written
}

// Reply is one line from the probe. Exactly one of Error, Hello and Found is
// set, except that Exit, Sync, Begin and Reboot answer with none.
type Reply struct {
	V     int       `json:"v"`
	ID    int64     `json:"id"`
	Error *Error    `json:"error,omitempty"`
	Hello *Greeting `json:"hello,omitempty"`
	Found *Found    `json:"found,omitempty"`
}

// Code classes an error by what it means for the item.
type Code string

// Codes.
const (
	CodeVersion    Code = "version"
	CodeUnknownOp  Code = "unknown-op"
	CodeBadRequest Code = "bad-request"
	CodeReadOnly   Code = "read-only"  // EROFS: refused
	CodePermission Code = "permission" // EACCES, EPERM: on write refused, on read unknown
	CodeNoSpace    Code = "no-space"   // ENOSPC, EDQUOT: refused
	CodeIO         Code = "io"         // anything else the kernel said
)

// Error is why a request could not be carried out, in the kernel's words.
type Error struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

func (e *Error) Error() string { return e.Text }

// Greeting is what a probe says of itself.
type Greeting struct {
	PID      int    `json:"pid"`
	Instance string `json:"instance"` // random, fresh for every process
	Started  int64  `json:"started"`  // start of this process, nanoseconds since 1970
	BootID   string `json:"boot_id"`  // "" when /proc can't be read
	Hostname string `json:"hostname"`
	UID      int    `json:"uid"`
	Version  string `json:"version"` // the probe's own build version
}

// Found is what is at an item's place.
type Found struct {
	Present bool     `json:"present"`
	SHA256  string   `json:"sha256,omitempty"` // hex; of the file's bytes, the rows in order, or the value
	Size    int64    `json:"size"`             // bytes; 0 for memory
	Rows    int      `json:"rows,omitempty"`   // sqlite
	Nonces  []string `json:"nonces,omitempty"` // nonces recognised in the content, oldest first, at most 64, the last ones kept
	Torn    string   `json:"torn,omitempty"`   // why the content does not parse; "" when it does
	// ZeroTail counts the zero bytes at the end of a file: space that was
	// promised and never filled.
	ZeroTail int64  `json:"zero_tail,omitempty"`
	Excerpt  string `json:"excerpt,omitempty"` // the first 200 bytes, valid UTF-8, for people
}
