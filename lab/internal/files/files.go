// Package files writes files in one step.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace replaces a file in one step: whoever reads it finds the old content
// or the new, and the new is on disk when Replace returns. A symbolic link
// stays, and what it leads to is replaced; what is no file (/dev/stdout, a
// pipe) is written to.
func Replace(file string, b []byte) error {
	return ReplaceWith(file, func(w *os.File) error {
		_, err := w.Write(b)
		return err
	})
}

// ReplaceWith is Replace for content that write writes as it goes.
func ReplaceWith(file string, write func(*os.File) error) error {
	file, mode, special, err := look(file)
	if err != nil {
		return err
	}
	if special {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write %s: %w", file, err)
		}
		return errors.Join(write(f), f.Close())
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.Remove(tmp.Name())
	err = write(tmp)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

// Replaceable tells whether Replace could work, and changes nothing.
func Replaceable(file string) error {
	file, _, special, err := look(file)
	if err != nil || special {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, errors.Unwrap(err))
	}
	tmp.Close()
	return os.Remove(tmp.Name())
}

// look follows links, and tells the mode the file has, or is to have, and
// whether it is something else than a file.
func look(file string) (path string, mode fs.FileMode, special bool, err error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file, 0o644, false, nil
	case err != nil:
		return file, 0, false, err
	case info.IsDir():
		return file, 0, false, fmt.Errorf("write %s: it is a folder", file)
	case !info.Mode().IsRegular():
		return file, 0, true, nil
	}
	if path, err = filepath.EvalSymlinks(file); err != nil {
		path = file
	}
	return path, info.Mode().Perm(), false, nil
}
