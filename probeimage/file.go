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
func writeFile(item wire.Item, c *cut) error {
	c.start(int64(noteSize(item.Nonce, item.Size)))
	err := save(item.Path, item.Mode, c, func(w io.Writer) error { return writeNote(w, item.Nonce, item.Size) })
	if err != nil {
		return err
	}
	c.acknowledge()
	c.end()
	return nil
}

// save puts what content writes into the file at path, the way mode says. c,
// when not nil, is where it ends instead.
func save(path, mode string, c *cut, content func(io.Writer) error) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	switch mode {
	case modeAtomic:
		return saveAside(dir, path, true, true, c, content)
	case modeFsyncRename:
		return saveAside(dir, path, true, false, c, content)
	case modeRename:
		return saveAside(dir, path, false, false, c, content)
	case modeAppend:
		return saveTo(path, os.O_APPEND, pieceBytes, false, c, content)
	case modeTruncate:
		return saveTo(path, os.O_TRUNC, naivePieceBytes, false, c, content)
	default:
		return saveTo(path, os.O_TRUNC, pieceBytes, mode == modeFsync, c, content)
	}
}

func saveTo(path string, flag, piece int, sync bool, c *cut, content func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK|flag, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := mustBeRegular(f); err != nil {
		return err
	}
	if err := fill(f, piece, c, content); err != nil {
		return err
	}
	if sync {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return f.Close()
}

// saveAside writes to a temporary file and renames it to path. With the file
// synced before and the folder after, what is at path is the old content or
// the new, whenever it is interrupted, and the new once it is answered.
func saveAside(dir, path string, syncFile, syncFolder bool, c *cut, content func(io.Writer) error) (err error) {
	f, err := createAside(dir, path)
	if err != nil {
		return err
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if err := fill(f, pieceBytes, c, content); err != nil {
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
	if err := os.Rename(f.Name(), path); err != nil || !syncFolder {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func createAside(dir, path string) (*os.File, error) {
	return os.CreateTemp(dir, "."+filepath.Base(path)+".*.tmp")
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
		f, err = createAside(dir, item.Path)
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

func fill(f *os.File, piece int, c *cut, content func(io.Writer) error) error {
	w := bufio.NewWriterSize(c.through(f), piece)
	if err := content(w); err != nil {
		return err
	}
	return w.Flush()
}

// readFile looks at the file at path with a parser that knows its content. A
// missing one is an error that is fs.ErrNotExist.
func readFile(path string, parse func(io.Reader) (nonces []string, torn string, err error)) (*wire.Found, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum := sha256.New()
	found := &wire.Found{Present: true}
	seen := &head{limit: excerptBytes}
	all := io.TeeReader(f, io.MultiWriter(sum, seen))
	found.Nonces, found.Torn, err = parse(all)
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
