package experiment

import "persistencelab/scenarios"

// MountOf is the mount of c that an item's bytes lie in; nil for the memory
// of process 1 and the container's own file system.
func MountOf(c scenarios.Container, it scenarios.Item) *scenarios.Mount {
	if it.Kind == scenarios.Memory {
		return nil
	}
	return mountOver(c, it.Path)
}
