// Package wire is the protocol between the lab and its probe: one JSON object
// a line, a Request answered by one Reply with the same ID. The probe never
// speaks first, so a client may attach at any time and start asking.
//
// The protocol is versioned: a probe refuses a request of another Version
// with CodeVersion and the version it speaks. Unknown fields are ignored, so
// that fields can be added; an unknown Op is refused with CodeUnknownOp.
package wire

import "strings"

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
	Ping  Op = "ping"  // does the service named by Item.Service take requests: no Error is yes
	Drop  Op = "drop"  // remove the collection Item.Path from the service Item.Service
	Exit  Op = "exit"  // leave with code Request.Code, after answering; in a virtual machine: power off cleanly
	Crash Op = "crash" // leave at once without answering, code Request.Code

	Interrupt Op = "interrupt" // write Item in a process of its own, which ends at Request.Cut: Reply.Interrupted
	Rebuild   Op = "rebuild"   // cache: make it anew: Reply.Found and Reply.Took
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
	Cut  *Cut  `json:"cut,omitempty"` // interrupt
}

// Cut is where a write is interrupted: at point Point of Of, spread evenly
// over the write. Point 0 is before anything was touched, Point Of-1 when all
// was done and not yet answered; what lies between is bytes handed to the
// kernel, for SQLite rows inserted and then, by the clock, the commit.
type Cut struct {
	Point int `json:"point"`
	Of    int `json:"of"` // 3 to 10,000
	// Hold: the writer stops there and stays, for the caller to kill the
	// container. Otherwise process 1 sends it SIGKILL and looks at the item.
	// The commit of a database can't be held.
	Hold bool `json:"hold,omitempty"`
}

// Item says what to write or look for. The kinds and modes are the words of
// the scenario file (scenarios.ItemKind, scenarios.WriteMode).
type Item struct {
	Kind  string `json:"kind"`            // file, sqlite, transcript, cache, agent, memory, fact; in a service: row, key, object, agent
	Path  string `json:"path"`            // absolute path; memory: variable name; fact: boot-id, hostname or env:NAME; agent: its transcript; in a service: row, agent: collection; key, object: collection/id
	Nonce string `json:"nonce,omitempty"` // write: goes into the content, fresh for every write; 1 to 128 printable ASCII characters, no space
	Rows  int    `json:"rows,omitempty"`  // sqlite, row: rows to add; agent: tasks to do
	Size  int    `json:"size,omitempty"`  // file, cache: bytes this write puts there; less than the short note (0): the short note. transcript: bytes of an answer
	Mode  string `json:"mode,omitempty"`  // file, cache, transcript: plain (default), truncate, fsync, atomic, append, rename, fsync-rename

	// SQLite: with either set, the probe keeps the database open from the
	// first write on, as a service does.
	Journal     string `json:"journal,omitempty"`     // wal, delete
	Synchronous string `json:"synchronous,omitempty"` // off, normal, full, extra

	UpTo int `json:"up_to,omitempty"` // begin: bytes that are written

	Persist string `json:"persist,omitempty"` // transcript, agent: before (default) or after the answer is shown
	Tasks   string `json:"tasks,omitempty"`   // agent: path of the list of its tasks, one a line
	Work    int    `json:"work,omitempty"`    // cache: bytes hashed to make it
	// Service names the service the item is in. Its address is in the
	// container's environment (ServiceEnv).
	Service string `json:"service,omitempty"`
	// Seq numbers one record of many (sqlite, row; from 1): a write puts this
	// one only, and Found is about it alone.
	Seq int `json:"seq,omitempty"`
}

// Reply is one line from the probe. Exactly one of Error, Hello and Found is
// set, except that Exit, Sync, Begin and Reboot answer with none, and
// Interrupt with Interrupted and, unless the writer is held, Found.
type Reply struct {
	V     int       `json:"v"`
	ID    int64     `json:"id"`
	Error *Error    `json:"error,omitempty"`
	Hello *Greeting `json:"hello,omitempty"`
	Found *Found    `json:"found,omitempty"`

	Interrupted *Interrupted `json:"interrupted,omitempty"`
	Took        int64        `json:"took_ns,omitempty"` // rebuild: nanoseconds from the start of the work to the file in its place
}

// Interrupted is where a write was when its process ended, or where it is
// held. It is what the writer and process 1 saw, not what was asked for.
type Interrupted struct {
	Stage string `json:"stage"` // "before the write", "writing", "in the transaction", "in the commit", "after the write"
	// Byte and Total count bytes of this write handed to the kernel; for
	// SQLite rows inserted. In a commit Byte is the size of the write-ahead
	// log after the kill.
	Byte  int64 `json:"byte"`
	Total int64 `json:"total"`
	Delay int64 `json:"delay_ns,omitempty"` // in a commit: nanoseconds from its start to the SIGKILL
	// Acknowledged: by then the write had been reported to the outside as
	// done: a commit had returned, a file was in its place, a reader had
	// been shown the answer.
	Acknowledged bool `json:"acknowledged,omitempty"`
	Held         bool `json:"held,omitempty"`
	PID          int  `json:"pid"` // of the writer, in the container
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
	CodeDenied     Code = "denied"     // a service does not let this user in
	CodeIO         Code = "io"         // anything else the kernel said
)

// Error is why a request could not be carried out, in the kernel's words.
type Error struct {
	Code Code   `json:"code"`
	Text string `json:"text"`
}

func (e *Error) Error() string { return e.Text }

// ServiceEnv is the environment variable in which a container finds the
// address of a service, as a URL with user and password.
func ServiceEnv(service string) string {
	return strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(service)) + "_URL"
}

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
	Rows    int      `json:"rows,omitempty"`   // sqlite: rows; row: rows; transcript: whole turns; agent: tasks done
	Seqs    string   `json:"seqs,omitempty"`   // sqlite, row: the numbered records there, as ranges: 1-12,14 (Ranges)
	Nonces  []string `json:"nonces,omitempty"` // nonces recognised in the content, oldest first, at most 64, the last ones kept
	Torn    string   `json:"torn,omitempty"`   // why the content does not parse; "" when it does
	// ZeroTail counts the zero bytes at the end of a file: space that was
	// promised and never filled.
	ZeroTail int64  `json:"zero_tail,omitempty"`
	Excerpt  string `json:"excerpt,omitempty"` // the first 200 bytes, valid UTF-8, for people
}
