package engine

import (
	"context"
	"io"
	"time"
)

// The rest of the port, by what a runner needs it for.

// Archives moves containers' and volumes' files in and out of the engine.
type Archives interface {
	// Commit makes an image of the container's writable layer, not of its
	// mounts, and gives the image's id.
	Commit(ctx context.Context, nameOrID, ref string) (imageID string, err error)
	// ExportContainer gives the container's files as a tar archive; the
	// caller closes it.
	ExportContainer(ctx context.Context, nameOrID string) (io.ReadCloser, error)
	// ImportImage makes an image of a tar archive of files. It has no
	// entrypoint, user or volumes.
	ImportImage(ctx context.Context, ref string, archive io.Reader) (imageID string, err error)
	// CopyOut gives the file or folder at path as a tar archive.
	CopyOut(ctx context.Context, nameOrID, path string) (io.ReadCloser, error)
	// CopyIn unpacks a tar archive into the folder dir.
	CopyIn(ctx context.Context, nameOrID, dir string, archive io.Reader) error
	// ExportVolume and ImportVolume move a volume's files. UnsupportedError
	// where neither the service (5.6) nor a podman command beside it can.
	ExportVolume(ctx context.Context, name string) (io.ReadCloser, error)
	ImportVolume(ctx context.Context, name string, archive io.Reader) error
	// Clone makes a created container of another's configuration.
	// UnsupportedError where there is no podman command beside the service:
	// the service itself can't.
	Clone(ctx context.Context, nameOrID, name string) (id string, err error)
}

// PodSpec is a `podman pod create --network none`.
type PodSpec struct {
	Name   string
	Labels map[string]string
}

// Pods are groups of containers that share namespaces.
type Pods interface {
	CreatePod(ctx context.Context, spec PodSpec) (id string, err error)
	StartPod(ctx context.Context, nameOrID string) error
	StopPod(ctx context.Context, nameOrID string, grace time.Duration) error
	RestartPod(ctx context.Context, nameOrID string) error
	// RemovePod removes the pod and its containers. NotFoundError if absent.
	RemovePod(ctx context.Context, nameOrID string, force bool) error
}

// Kube makes and removes what Kubernetes YAML describes.
type Kube interface {
	// PlayKube is `podman kube play --network none`: what the documents
	// describe is there, and runs, when it returns nil. After an error some
	// of it may be there. UnsupportedError where containers of a service that
	// is not the lab's need limits that YAML can't give them.
	PlayKube(ctx context.Context, yaml []byte) error
	// DownKube is `podman kube down` of the same documents. A pod that is
	// not there is a NotFoundError to one Podman and nothing to another. With
	// force the volumes of the pods' claims go too: UnsupportedError before
	// Podman 4.4.
	DownKube(ctx context.Context, yaml []byte, force bool) error
	// PauseImages are the images this Podman has made by itself for the
	// containers that hold pods' namespaces, by reference: none, or one.
	PauseImages(ctx context.Context) (refs []string, err error)
}

// Secrets are small files the engine keeps beside its containers.
type Secrets interface {
	CreateSecret(ctx context.Context, name, content string) error
	// RemoveSecret: NotFoundError if absent.
	RemoveSecret(ctx context.Context, name string) error
}

// Prunes remove whatever is not in use, whoever made it. A runner calls them
// only on an engine whose Own says true.
type Prunes interface {
	// Own tells whether the store is the lab's own and nobody else's.
	Own() bool
	PruneContainers(ctx context.Context) error
	PruneVolumes(ctx context.Context) error
	PruneSystem(ctx context.Context, volumes bool) error
	// RestartService ends the service and starts it again. Containers go on
	// meanwhile. Only on an engine whose Own says true.
	RestartService(ctx context.Context) error
}

// Checkpoints puts a container's process to disk and brings it back.
type Checkpoints interface {
	// Checkpoint stops the container with its process saved. Where CRIU is
	// missing, too old for the kernel, or not supported by the runtime the
	// error is an UnsupportedError with Podman's words in Err. file, when
	// not "", is the archive to write; the container stays either way.
	Checkpoint(ctx context.Context, nameOrID, file string) error
	// Restore goes on with the process. With file, a new container called
	// name is made of the archive.
	Restore(ctx context.Context, nameOrID, file, name string) (id string, err error)
}
