package experiment

import "persistencelab/scenarios"

// MountOf is the mount of c that an item's bytes lie in; nil for the
// container's own file system and for what is on no disk.
func MountOf(c scenarios.Container, it scenarios.Item) *scenarios.Mount {
	if !it.OnDisk() {
		return nil
	}
	return mountOver(c, it.Path)
}
