//go:build linux

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"persistencelab/probeimage/wire"
)

const excerptBytes = 200

// Sizes of one write(2). A naive save goes to the disk in small pieces, and
// may be ended between any two of them.
const (
	pieceBytes      = 256 << 10
	naivePieceBytes = 4 << 10
)

// writeFile puts a note at item.Path the way item.Mode says. Missing folders
// are made.
func writeFile(item wire.Item) error {
	dir := filepath.Dir(item.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	switch item.Mode {
	case modeAtomic:
		return writeAside(dir, item, true, true)
	case modeFsyncRename:
		return writeAside(dir, item, true, false)
	case modeRename:
		return writeAside(dir, item, false, false)
	case modeAppend:
		return writeTo(item, os.O_APPEND, pieceBytes, false)
	case modeTruncate:
		return writeTo(item, os.O_TRUNC, naivePieceBytes, false)
	default:
		return writeTo(item, os.O_TRUNC, pieceBytes, item.Mode == modeFsync)
	}
}

func writeTo(item wire.Item, flag, piece int, sync bool) error {
	f, err := os.OpenFile(item.Path, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK|flag, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := mustBeRegular(f); err != nil {
		return err
	}
	if err := fill(f, item, piece); err != nil {
		return err
	}
	if sync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Close()
}

// writeAside writes to a temporary file and renames it to item.Path. With the
// file synced before and the folder after, what is at item.Path is the old
// content or the new, whenever it is interrupted, and the new once it is
// answered.
func writeAside(dir string, item wire.Item, syncFile, syncFolder bool) (err error) {
	f, err := createAside(dir, item)
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := fill(f, item, pieceBytes); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if syncFile {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), item.Path); err != nil || !syncFolder {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func createAside(dir string, item wire.Item) (*os.File, error) {
	return os.CreateTemp(dir, "."+filepath.Base(item.Path)+".*.tmp")
}

// beginFile opens a file as item.Mode says and writes the first item.UpTo
// bytes of the note.
func beginFile(item wire.Item) (f *os.File, err error) {
	dir := filepath.Dir(item.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	switch item.Mode {
	case modeAtomic, modeFsyncRename, modeRename:
		f, err = createAside(dir, item)
	case modeAppend:
		f, err = os.OpenFile(item.Path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	default:
		f, err = os.OpenFile(item.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	}
	if err != nil {
		return nil, err
	}
	var note bytes.Buffer
	if err = writeNote(&note, item.Nonce, item.Size); err == nil {
		_, err = f.Write(note.Bytes()[:min(item.UpTo, note.Len())])
	}
	if err != nil {
		f.Close()
	}
	return f, err
}

func fill(f *os.File, item wire.Item, piece int) error {
	w := bufio.NewWriterSize(f, piece)
	if err := writeNote(w, item.Nonce, item.Size); err != nil {
		return err
	}
	return w.Flush()
}

// readFile looks at the file at path. A missing one is an error that is
// fs.ErrNotExist.
func readFile(path string) (*wire.Found, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	found := &wire.Found{Present: true}
	seen := &head{limit: excerptBytes}
	all := io.TeeReader(f, io.MultiWriter(sum, seen))
	found.Nonces, found.Torn, err = parseNotes(all)
	if err == nil {
		_, err = io.Copy(io.Discard, all) // what the parser had no use for
	}
	if err != nil {
		return nil, err
	}
	found.SHA256 = hexSum(sum)
	found.Size = seen.size
	found.ZeroTail = seen.zeros
	found.Excerpt = strings.ToValidUTF8(string(seen.bytes), "\uFFFD")
	return found, nil
}

// head keeps the first bytes written to it and counts all, and the zeros at
// the end.
type head struct {
	limit int
	bytes []byte
	size  int64
	zeros int64
}

func (h *head) Write(p []byte) (int, error) {
	h.size += int64(len(p))
	if rest := bytes.TrimRight(p, "\x00"); len(rest) > 0 {
		h.zeros = int64(len(p) - len(rest))
	} else {
		h.zeros += int64(len(p))
	}
	if room := h.limit - len(h.bytes); room > 0 {
		h.bytes = append(h.bytes, p[:min(room, len(p))]...)
	}
	return len(p), nil
}

// openRegular opens a file for reading. It does not wait for the other end of
// a pipe, and refuses what has no end.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := mustBeRegular(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func mustBeRegular(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return &os.PathError{Op: "open", Path: f.Name(), Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return &os.PathError{Op: "open", Path: f.Name(), Err: errors.New("not a regular file")}
	}
	return nil
}
