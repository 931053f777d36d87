// Package audit says what a container that exists would lose if it were
// removed now and run again.
//
// It promises:
//
//   - Nothing is changed: Gather asks, reads folders and looks at files'
//     sizes and times, no more.
//   - Judge is a pure function of the facts and the policy, and the writers
//     only write.
//   - What could not be looked at is unknown. It is never counted as lost,
//     and never as safe.
//   - Files are counted all, and shown by folder: 100 000 of them are a line.
//
// "Removed and run again" is `podman rm` and the same `podman run` again. What
// goes earlier, at a stop or a restart, is said with it.
//
// The rules are those of Podman 4.3 to 5.8, seen on 4.3.1 and 5.4.2: the
// writable layer and anonymous volumes go with the container (an anonymous
// volume stays on the disk after a plain rm, but no new container finds it;
// rm -v and --rm delete it), named volumes and host folders stay, memory and
// overlays over mounts go at every stop.
package audit

import (
	"time"

	"persistencelab/lab/engine"
)

// Facts are all that was learned of one container.
type Facts struct {
	Holding engine.Holding
	At      time.Time
	Podman  string // the engine's version, "" when it was not told

	Layer Tree // the writable layer
	// Mounts are the contents of the mounts that go with the container, by
	// target: anonymous volumes, memory, overlays.
	Mounts map[string]Tree
	// Empty are the targets of mounts that stay and are known to hold
	// nothing.
	Empty map[string]bool
	// Resident is the memory of process 1 in bytes; 0 when it is not known.
	Resident int64
}

// Tree is what a folder was found to hold.
type Tree struct {
	Files   []File
	Deleted []string // layer: paths of the image that are gone
	// Shared are folders in which the image has something of its own too.
	// nil where that was not looked at.
	Shared map[string]bool
	// Bytes is the size of all, where the files do not tell; -1 when nobody
	// does.
	Bytes int64
	// Problem is why it could not be looked at, or not to its end: what is
	// listed is then not all.
	Problem string
	// Unsized: the files were listed and their sizes were not.
	Unsized bool
}

// File is one file, with its path in the container.
type File struct {
	Path     string
	Bytes    int64 // -1: unknown
	Modified time.Time
}
