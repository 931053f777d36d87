//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder takes the run folder's lock, or fails when a living lab has it.
// The kernel lets go of it however that lab ends. Unless make is set, a folder
// without a lock file stays as it is.
func lockFolder(folder string, make bool) (*os.File, error) {
	flags := os.O_RDWR | syscall.O_CLOEXEC
	if make {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(filepath.Join(folder, "lock"), flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := tryLock(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// tryLock takes the lock of an open file or folder, or fails at once.
func tryLock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
