package classroom

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/files"
	"persistencelab/scenarios"
)

// Kind and Version head every attempt file.
const (
	Kind    = "persistencelab attempt"
	Version = 1
)

// MaxFile bounds an attempt file, in bytes: a session through the whole
// catalogue, twice, is far below it.
const MaxFile = 4 << 20

// Attempt is one learner's session: predictions and what came of them.
type Attempt struct {
	Kind       string    `json:"kind"`
	Version    int       `json:"version"`
	Tool       string    `json:"tool"`
	Session    string    `json:"session"` // hex, random
	Learner    string    `json:"learner"`
	Identified bool      `json:"identified,omitempty"` // Learner is a name that was given
	Started    time.Time `json:"started"`
	Rounds     []Round   `json:"rounds"`
	Digest     string    `json:"digest"` // set by Encode
}

// Round is one scenario predicted, run and looked at once. Everything from
// Engine on, and each answer's Result, comes after the seal.
type Round struct {
	Scenario string   `json:"scenario"`
	Title    string   `json:"title,omitempty"`
	Lesson   string   `json:"lesson,omitempty"`
	Hash     string   `json:"hash"`
	Number   int      `json:"round"` // from 1, of this learner and scenario
	Answers  []Answer `json:"answers"`
	Hints    int      `json:"hints,omitempty"` // how many hints were asked for

	Sealed time.Time `json:"sealed"`
	Seal   string    `json:"seal"` // hex

	Engine   *Engine   `json:"engine,omitempty"`
	Finished time.Time `json:"finished,omitzero"` // zero: sealed, and not revealed yet
}

// Question is what one answer is about.
type Question struct {
	Variant    string `json:"variant"`
	Item       string `json:"item"`
	Checkpoint string `json:"checkpoint"`
}

// Answer is one prediction, and what came of it.
type Answer struct {
	Question
	Predicted scenarios.Outcome `json:"predicted"`
	Sure      *bool             `json:"sure,omitempty"` // nil: not said
	Result    *Result           `json:"result,omitempty"`
}

// Result is what really happened beside an answer.
type Result struct {
	Seen          string               `json:"seen,omitempty"` // an outcome's word as the learner saw it; "unknown": could not tell; "": not said
	Actual        scenarios.Outcome    `json:"actual"`
	Expected      scenarios.Outcome    `json:"expected"`
	Judgement     experiment.Judgement `json:"verdict"`
	Detail        string               `json:"detail,omitempty"`
	Misconception string               `json:"misconception,omitempty"` // id, where the prediction was wrong
	Belief        string               `json:"belief,omitempty"`        // its sentence
}

// Engine is what an attempt states of the engine: what bears on the outcome,
// and nothing that names a user or a host.
type Engine struct {
	Name          string `json:"name"`
	Version       string `json:"version"`
	Rootless      bool   `json:"rootless"`
	StorageDriver string `json:"storage_driver,omitempty"`
	Runtime       string `json:"runtime,omitempty"`
	Cgroups       string `json:"cgroups,omitempty"`
	SELinux       bool   `json:"selinux"`
	Kernel        string `json:"kernel,omitempty"`
	OS            string `json:"os,omitempty"`
}

// EngineOf leaves out of the facts what could name a user or a host: the
// address, the boot id, and the lab's notes.
func EngineOf(f engine.Facts) *Engine {
	return &Engine{
		Name: f.Name, Version: f.Version, Rootless: f.Rootless, StorageDriver: f.StorageDriver,
		Runtime: f.Runtime, Cgroups: f.Cgroups, SELinux: f.SELinux, Kernel: f.Kernel, OS: f.OS,
	}
}

// New starts an attempt. random gives n random bytes as hex.
func New(tool, learner string, identified bool, now time.Time, random func(n int) string) *Attempt {
	return &Attempt{
		Kind: Kind, Version: Version, Tool: tool, Session: random(8),
		Learner: learner, Identified: identified, Started: stamp(now),
	}
}

// stamp is a time as files keep it.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Seal adds a round whose answers are predictions, sealed at now.
func (a *Attempt) Seal(r Round, now time.Time) *Round {
	r.Sealed = stamp(now)
	r.Seal = SealOf(a, a.lastSeal(len(a.Rounds)), &r)
	a.Rounds = append(a.Rounds, r)
	return &a.Rounds[len(a.Rounds)-1]
}

// lastSeal is the seal before round i; "" before the first.
func (a *Attempt) lastSeal(i int) string {
	if i == 0 {
		return ""
	}
	return a.Rounds[i-1].Seal
}

// SealOf is the seal that a round's predictions must have, after a round with
// the seal before ("" for the first). Of a it reads the session and learner.
func SealOf(a *Attempt, before string, r *Round) string {
	var b []byte
	add := func(parts ...string) {
		for _, s := range parts {
			b = binary.AppendUvarint(b, uint64(len(s))) // so that no two lists read alike
			b = append(b, s...)
		}
	}
	add(before, a.Session, a.Learner, r.Scenario, r.Hash, fmt.Sprint(r.Number), r.Sealed.UTC().Format(time.RFC3339Nano))
	for _, q := range r.Answers {
		sure := ""
		if q.Sure != nil {
			sure = fmt.Sprint(*q.Sure)
		}
		add(q.Variant, q.Item, q.Checkpoint, q.Predicted.String(), sure)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ShortSeal is the part of a seal that is shown to people.
func ShortSeal(seal string) string { return seal[:min(len(seal), 8)] }

const digestPrefix = "sha256:"

// Encode gives the attempt's file and sets its digest.
func (a *Attempt) Encode() ([]byte, error) {
	a.Digest = ""
	if a.Rounds == nil {
		a.Rounds = []Round{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(a); err != nil {
		return nil, fmt.Errorf("write the attempt: %w", err)
	}
	flat := bytes.TrimRight(b.Bytes(), "\n")
	a.Digest = digestOf(flat)
	flat = append(bytes.TrimSuffix(flat, []byte(`""}`)), `"`+a.Digest+`"}`...)
	var out bytes.Buffer
	if err := json.Indent(&out, flat, "", " "); err != nil {
		return nil, fmt.Errorf("write the attempt: %w", err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// flatten takes the white space between tokens out of JSON. json.Compact would
// do, at the price of reading everything once more.
func flatten(b []byte) []byte {
	flat := make([]byte, 0, len(b))
	inString := false
	start := 0
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			inString = !inString
		case c == '\\' && inString:
			i++
		case !inString && (c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			flat = append(flat, b[start:i]...)
			start = i + 1
		}
	}
	return append(flat, b[start:]...)
}

// digestOf is the digest of a document without white space whose last member
// is an empty digest.
func digestOf(flat []byte) string {
	sum := sha256.Sum256(flat)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// Fault is the kind of thing that is wrong with a file.
type Fault string

// Faults.
const (
	Unreadable Fault = "unreadable" // the file system would not give it
	Foreign    Fault = "foreign"    // no attempt file of the lab, or of a version it does not know
	Truncated  Fault = "truncated"  // it breaks off
	Tampered   Fault = "tampered"   // it does not match its digest or a seal
)

// FileError says why a file is left out.
type FileError struct {
	File   string // "" where it did not come from a file
	Fault  Fault
	Reason string
}

func (e *FileError) Error() string {
	if e.File == "" {
		return e.Reason
	}
	return e.File + ": " + e.Reason
}

// Decode reads an attempt file and checks that it holds together. Every error
// is a *FileError.
func Decode(b []byte) (*Attempt, error) {
	bad := func(f Fault, format string, args ...any) (*Attempt, error) {
		return nil, &FileError{Fault: f, Reason: fmt.Sprintf(format, args...)}
	}
	if len(b) > MaxFile {
		return bad(Foreign, "not an attempt file: larger than %d MB", MaxFile>>20)
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return bad(Truncated, "the file is empty")
	}
	flat := flatten(b)
	var a Attempt
	err := json.Unmarshal(flat, &a)
	if syntax := new(json.SyntaxError); errors.As(err, &syntax) {
		if syntax.Offset >= int64(len(flat)) {
			return bad(Truncated, "the file is cut off after %d bytes", len(b))
		}
		return bad(Foreign, "not an attempt file: %v", err)
	}
	// What it is comes first: another version may have other types below.
	switch {
	case a.Kind != Kind:
		return bad(Foreign, "not an attempt file of the lab")
	case a.Version != Version:
		return bad(Foreign, "an attempt file of version %d; this lab reads version %d", a.Version, Version)
	}
	rest, ok := bytes.CutSuffix(flat, []byte(`"digest":"`+a.Digest+`"}`))
	if !ok || a.Digest != digestOf(append(rest, `"digest":""}`...)) {
		return bad(Tampered, "changed after it was written: it does not match its digest")
	}
	if err != nil {
		return bad(Foreign, "not an attempt file: %v", err)
	}
	for i := range a.Rounds {
		if r := &a.Rounds[i]; r.Seal != SealOf(&a, a.lastSeal(i), r) {
			return bad(Tampered, "round %d (%s): the predictions do not match their seal", i+1, r.Scenario)
		}
	}
	return &a, nil
}

// ReadFile reads and checks one attempt file. Every error is a *FileError.
func ReadFile(file string) (*Attempt, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, &FileError{File: file, Fault: Unreadable, Reason: reasonOf(err)}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, &FileError{File: file, Fault: Unreadable, Reason: reasonOf(err)}
	case !info.Mode().IsRegular():
		return nil, &FileError{File: file, Fault: Foreign, Reason: "not a file"}
	case info.Size() > MaxFile:
		return nil, &FileError{File: file, Fault: Foreign, Reason: fmt.Sprintf("not an attempt file: larger than %d MB", MaxFile>>20)}
	}
	b := make([]byte, info.Size())
	n, err := readFull(f, b)
	if err != nil {
		return nil, &FileError{File: file, Fault: Unreadable, Reason: reasonOf(err)}
	}
	a, err := Decode(b[:n])
	var bad *FileError
	if errors.As(err, &bad) {
		bad.File = file
	}
	return a, err
}

// WriteFile writes the attempt into dir in one step and gives the file's
// path. The file is on disk when it returns.
func (a *Attempt) WriteFile(dir string) (string, error) {
	b, err := a.Encode()
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, a.FileName())
	return file, files.Replace(file, b)
}

// FileName is what the attempt's file is called: a name in any file system,
// that says little of a learner who gave a name.
func (a *Attempt) FileName() string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)), r == '-':
			return unicode.ToLower(r)
		}
		return '_'
	}, a.Learner)
	return name[:min(len(name), 40)] + "-" + a.Session + ".json"
}
