//go:build unix

package bootprobe

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// maxFile bounds what is read of the file of an earlier run: a line is about
// 200 bytes, so that this is 80 000 runs, or not ours.
const maxFile = 16 << 20

// line is what one run leaves in the file.
type line struct {
	N      int       `json:"n"`
	Run    string    `json:"run"`
	At     time.Time `json:"at"`
	BootID string    `json:"boot_id"`
	// Before is the checksum of every byte before this line.
	Before string `json:"sha256_before"`
}

// addLine looks at the file and adds this run's line. The lock is held from
// the look to the end of the write, so that two runs at once count to two.
func addLine(out *File, r *Report, now func() time.Time) (err error) {
	f, made, err := openFile(out.Path)
	if err != nil {
		return readOnlyLook(out, now, err)
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	// Some network file systems have no locks; appending is then all there is.
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	content, before, err := lookAt(f, now)
	if err != nil {
		return err
	}
	before.Present = !made || before.Bytes > 0
	out.Before = before
	if before.Bytes > maxFile {
		return fmt.Errorf("%d bytes are there already, more than the probe reads: `lab probe --forget` starts anew", before.Bytes)
	}
	sum := sha256.Sum256(content)
	entry, err := json.Marshal(line{N: before.Runs + 1, Run: r.Run, At: r.At, BootID: r.BootID, Before: hex.EncodeToString(sum[:])})
	if err != nil {
		return err
	}
	entry = append(entry, '\n')
	if len(content) > 0 && content[len(content)-1] != '\n' {
		entry = append([]byte{'\n'}, entry...) // an earlier run was cut off: its half line stays
	}
	if _, err := f.Write(entry); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	content = append(content, entry...)
	sum = sha256.Sum256(content)
	out.Runs, out.Bytes, out.SHA256 = before.Runs+1, int64(len(content)), hex.EncodeToString(sum[:])
	return nil
}

// openFile opens the file for appending and tells whether it made it. A file
// of somebody else's in a shared folder can be opened but not created
// (fs.protected_regular, proc(5)), so that is tried first.
func openFile(path string) (f *os.File, made bool, err error) {
	const flags = os.O_RDWR | os.O_APPEND | syscall.O_NOFOLLOW | syscall.O_NONBLOCK
	for range 3 { // another run may make it between the two looks
		f, err = os.OpenFile(path, flags, 0)
		if !errors.Is(err, os.ErrNotExist) {
			return f, false, err
		}
		f, err = os.OpenFile(path, flags|os.O_CREATE|os.O_EXCL, 0o644)
		if !errors.Is(err, os.ErrExist) {
			return f, err == nil, err
		}
	}
	return nil, false, err
}

// readOnlyLook says what is there although nothing can be written; cause is
// why.
func readOnlyLook(out *File, now func() time.Time, cause error) error {
	f, err := os.OpenFile(out.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		out.Before = &Before{}
		return cause
	}
	if err != nil {
		return cause
	}
	defer f.Close()
	content, before, err := lookAt(f, now)
	if err != nil {
		return cause
	}
	before.Present = true
	out.Before, out.Runs, out.Bytes = before, before.Runs, int64(len(content))
	return cause
}

// lookAt reads what earlier runs left.
func lookAt(f *os.File, now func() time.Time) ([]byte, *Before, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("something that is not a regular file has the probe's name")
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, nil, err
	}
	b := &Before{Bytes: int64(len(content))}
	if len(content) == 0 {
		return content, b, nil
	}
	b.AgeSeconds = float64(now().Sub(info.ModTime()).Milliseconds()) / 1000
	readLines(content, b)
	return content, b, nil
}

// readLines checks the chain of lines.
func readLines(content []byte, b *Before) {
	sum := sha256.New()
	damage := func(format string, args ...any) {
		if b.Damage == "" {
			b.Damage = fmt.Sprintf(format, args...)
		}
	}
	for n := 1; len(content) > 0; n++ {
		text, rest, whole := bytes.Cut(content, []byte{'\n'})
		var l line
		switch err := json.Unmarshal(text, &l); {
		case !whole:
			damage("line %d was cut off", n)
		case err != nil || l.Run == "":
			damage("line %d is not the probe's", n)
		case l.Before != hex.EncodeToString(sum.Sum(nil)):
			damage("what stands before line %d is not what stood there when it was written", n)
			fallthrough
		default:
			b.Runs++
			b.Seen = append(b.Seen, l.Run)
		}
		sum.Write(content[:len(content)-len(rest)])
		content = rest
	}
	b.Seen = b.Seen[max(0, len(b.Seen)-seenRuns):]
	b.SHA256 = hex.EncodeToString(sum.Sum(nil))
}
