//go:build linux

package main

import (
	"bufio"
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
		return writeAtomic(dir, item)
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

// writeAtomic leaves either the old content or the new at item.Path, whenever
// it is interrupted.
func writeAtomic(dir string, item wire.Item) (err error) {
	f, err := os.CreateTemp(dir, "."+filepath.Base(item.Path)+".*.tmp")
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
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), item.Path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
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
	found.Excerpt = strings.ToValidUTF8(string(seen.bytes), "\uFFFD")
	return found, nil
}

// head keeps the first bytes written to it and counts all.
type head struct {
	limit int
	bytes []byte
	size  int64
}

func (h *head) Write(p []byte) (int, error) {
	h.size += int64(len(p))
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
