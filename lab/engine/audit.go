package engine

import (
	"context"
	"time"
)

// Auditor is what an engine can tell of containers that are not the lab's.
// It is an ability of its own beside Engine: nothing here changes anything,
// neither the container nor its files nor its times.
type Auditor interface {
	// Containers lists every container in any state.
	Containers(ctx context.Context) ([]ContainerRef, error)
	// Holding tells all that decides what a container would keep, or
	// NotFoundError. An id may be cut short.
	Holding(ctx context.Context, nameOrID string) (Holding, error)
	// Changes lists what the writable layer holds that the image does not:
	// `podman diff`. For many files it takes the engine seconds.
	Changes(ctx context.Context, id string) ([]Change, error)
	// LayerSize is the number of bytes in the writable layer.
	LayerSize(ctx context.Context, id string) (int64, error)
	// StatIn looks at one path as the container sees it, or NotFoundError.
	StatIn(ctx context.Context, id, path string) (FileInfo, error)
	// ReadTree lists the files below path as the container sees them. It
	// stops after about limit bytes of their content and says so (whole is
	// false): the engine sends the files themselves. A mount in memory can
	// be read while the container runs.
	ReadTree(ctx context.Context, id, path string, limit int64) (files []FileInfo, whole bool, err error)
}

// ContainerRef names a container.
type ContainerRef struct {
	ID    string
	Name  string
	State string
	Infra bool // holds a pod's namespaces, nothing else
}

// Holding is what inspect says of a container, its image and its volumes.
type Holding struct {
	Container
	ImageName     string
	Created       time.Time
	AutoRemove    bool   // --rm
	RestartPolicy string // "", no, on-failure, always, unless-stopped
	ReadOnly      bool
	Rootfs        bool // --rootfs: the root is a folder of the host, not a layer

	Pod        string // its name, "" for none
	Infra      bool
	PodMembers []string // Infra: the pod's other containers

	// Command is what made the container, as it was typed; nil when it was
	// made otherwise than on the command line.
	Command []string

	Held         []HeldMount
	Tmpfs        map[string]string // target → options
	ImageVolumes []string          // VOLUME lines of the image

	// Upper is the writable layer's folder on the engine's host, "" when
	// the storage driver has none.
	Upper string
	// Lower are the folders of the image's layers there.
	Lower []string
}

// HeldMount is one mount, with its volume.
type HeldMount struct {
	Type    string // volume, bind, image, …
	Name    string // of the volume
	Source  string
	Target  string
	Options []string
	Write   bool

	// For volumes:
	Anonymous bool
	Driver    string
	VolumeOpt map[string]string // type, device, o: what the volume was created with
	Others    []string          // other containers that have it
}

// Change is one path of `podman diff`.
type Change struct {
	Path string
	Kind ChangeKind
}

// ChangeKind says how a path differs from the image.
type ChangeKind int

// Kinds, in Podman's numbering.
const (
	Modified ChangeKind = iota
	Added
	Deleted
)

// FileInfo is one file.
type FileInfo struct {
	Path     string
	Bytes    int64
	Modified time.Time
	Dir      bool
}
