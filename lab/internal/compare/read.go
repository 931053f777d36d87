// Package compare explains two reports of the boot-id probe: what happened
// between them, and which places kept what was written there.
//
// It promises:
//
//   - Survival is proved, not guessed: a place kept its data when the second
//     report found the first one's own line and row in it. A count alone says
//     so only for reports that have nothing else.
//   - What neither report can tell is unknown, never lost: two different
//     machines, a place only one of them looked at, a place that could not be
//     read.
//   - A hostname decides nothing.
//   - The order is checked. Reports given the wrong way round are turned, and
//     that is said.
//
// Read takes the report of `lab probe` and the output of the older Python
// probe whose fields are boot_id, hostname, cwd, deploy_id, tmp_file,
// home_file, sqlite_tmp and sqlite_home. Explain is a pure function of two
// reports; the writers only write.
package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"persistencelab/probeimage/bootprobe"
)

// maxReport bounds what Read takes; a report is a few kilobytes.
const maxReport = 8 << 20

// Side is one report as it was read.
type Side struct {
	Name   string // what to call it: the file's name
	Script bool   // the older Python probe's output
	bootprobe.Report
}

// Damaged: the file is no whole report, and why.
type Damaged struct {
	Name, Why string
}

func (e *Damaged) Error() string { return e.Name + " " + e.Why }

// Read reads a report. The error is *Damaged when r was read but holds none.
func Read(name string, r io.Reader) (*Side, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxReport+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	bad := func(format string, args ...any) (*Side, error) {
		return nil, &Damaged{name, fmt.Sprintf(format, args...)}
	}
	if len(b) > maxReport {
		return bad("is larger than a probe's report can be")
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return bad("is empty: the probe did not run, or its output went elsewhere")
	}
	var keys map[string]json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&keys); err != nil {
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && syntax.Offset >= int64(len(b)):
			return bad("ends in the middle, after %d bytes: whatever wrote it was cut off", len(b))
		case errors.As(err, &syntax):
			return bad("is not JSON at byte %d: %s", syntax.Offset, err)
		}
		return bad("holds no JSON object: %s", err)
	}
	if dec.More() {
		return bad("holds more than one report: give each a file of its own")
	}
	s := &Side{Name: name}
	switch {
	case keys["kind"] != nil:
		err = json.Unmarshal(b, &s.Report)
		switch {
		case s.Kind != bootprobe.Kind:
			return bad("is JSON, but a %q and no probe's report", s.Kind)
		case s.Version > bootprobe.Version:
			return bad("was made by a newer lab (report version %d, this lab reads %d)", s.Version, bootprobe.Version)
		}
	case keys["boot_id"] != nil && keys["sqlite_tmp"] != nil:
		s.Script = true
		s.Report, err = readScript(b)
	default:
		return bad("is JSON, but no probe's report: it has no boot_id beside its places")
	}
	if err != nil {
		return bad("does not fit: %s", err)
	}
	if s.BootID == "" {
		s.BootID = bootprobe.Unknown
	}
	return s, nil
}

// readScript reads the Python probe's output into the same form.
func readScript(b []byte) (bootprobe.Report, error) {
	type file struct {
		Writable bool
		Bytes    int64
		Error    string
	}
	type rows struct {
		Rows  int
		Error string
	}
	var out struct {
		BootID     string `json:"boot_id"`
		Hostname   string
		CWD        string
		DeployID   string `json:"deploy_id"`
		TmpFile    file   `json:"tmp_file"`
		HomeFile   file   `json:"home_file"`
		SQLiteTmp  rows   `json:"sqlite_tmp"`
		SQLiteHome rows   `json:"sqlite_home"`
	}
	err := json.Unmarshal(b, &out)
	r := bootprobe.Report{BootID: out.BootID, Hostname: out.Hostname, CWD: out.CWD, DeployID: out.DeployID}
	place := func(name, path string, f file, s rows) bootprobe.Place {
		if f.Error == "" && !f.Writable {
			f.Error = "not writable"
		}
		return bootprobe.Place{
			Names: []string{name}, Path: path,
			File:   &bootprobe.File{Bytes: f.Bytes, Error: f.Error},
			SQLite: &bootprobe.SQLite{Rows: s.Rows, Error: s.Error},
		}
	}
	// Its file is one it writes anew each time, so that only the rows can
	// tell anything.
	r.Places = []bootprobe.Place{
		place("temp", "the temp folder", out.TmpFile, out.SQLiteTmp),
		place("home", "the home folder", out.HomeFile, out.SQLiteHome),
	}
	return r, err
}

// when is the time of the report, in words.
func (s *Side) when() string {
	if s.At.IsZero() {
		return "it does not say when"
	}
	return s.At.UTC().Format(time.RFC3339)
}
