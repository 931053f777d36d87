//go:build linux || darwin

package cli

import "syscall"

// freeSpace is what an ordinary user may still write below dir, in bytes.
func freeSpace(dir string) (uint64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return fs.Bavail * uint64(fs.Bsize), nil
}
