//go:build !linux && !darwin

package cli

import "errors"

func freeSpace(string) (uint64, error) {
	return 0, errors.New("free space is not told by this system")
}
