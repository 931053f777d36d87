//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder takes the run folder's lock, or fails when a living lab has it.
// The kernel lets go of it however that lab ends.
func lockFolder(folder string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
