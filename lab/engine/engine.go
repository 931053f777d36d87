// Package engine is the port: what a runner asks of a container engine, and
// nothing else. It imports the standard library only. The Podman adapter is
// package bindings; experiments speak to this package alone.
//
// Every method takes the caller's context and returns soon after it is done.
// Errors are the engine's own words wrapped in this package's types where the
// caller must tell cases apart: NotFoundError, ExistsError, InUseError,
// UnreachableError, UnsupportedError. Anything else is an event the engine
// refused.
//
// Names are chosen by the caller and unique; every container, volume, pod and
// secret carries the caller's labels where the engine lets it.
package engine

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Engine runs containers. All methods are safe for concurrent use.
type Engine interface {
	// Facts tells which engine this is. It may wait for the engine's answer.
	Facts() Facts

	// Local tells whether the engine's files are this machine's, so that a
	// bind mount can be looked at from the host.
	Local() bool

	// EnsureImage makes the image present under its Ref, loading
	// img.Archive only when it is missing.
	EnsureImage(ctx context.Context, img Image) error
	// LoadImage loads img.Archive whatever is there: its Ref then means the
	// new image, and the old one is left without a name.
	LoadImage(ctx context.Context, img Image) error
	// RemoveImage removes an image by reference or id. NotFoundError if
	// absent; with force the containers made from it go too.
	RemoveImage(ctx context.Context, ref string, force bool) error
	// ImageID is the image's id, or NotFoundError.
	ImageID(ctx context.Context, ref string) (string, error)

	// Create makes a container and gives its full id. Volumes the spec
	// names and the engine does not have are made by the engine.
	Create(ctx context.Context, spec ContainerSpec) (id string, err error)
	// Attach joins stdin and stdout of process 1. Once for each process:
	// with the stream its stdin is closed, and to another one nothing
	// answers. On a created container it returns once the stream stands,
	// before the process exists. Reading ends with io.EOF when the process
	// has ended.
	Attach(ctx context.Context, nameOrID string) (io.ReadWriteCloser, error)
	// Join runs a command in a running container and joins its stdin and
	// stdout. Reading ends with io.EOF when the command has ended.
	Join(ctx context.Context, nameOrID string, command ...string) (io.ReadWriteCloser, error)
	Start(ctx context.Context, nameOrID string) error
	// Stop asks process 1 to leave and kills it after grace.
	Stop(ctx context.Context, nameOrID string, grace time.Duration) error
	Restart(ctx context.Context, nameOrID string, grace time.Duration) error
	// Kill sends a signal, by name or number.
	Kill(ctx context.Context, nameOrID, signal string) error
	Pause(ctx context.Context, nameOrID string) error
	Unpause(ctx context.Context, nameOrID string) error
	Rename(ctx context.Context, nameOrID, name string) error
	// Wait returns the exit code once the container is not running.
	Wait(ctx context.Context, nameOrID string) (exit int, err error)
	// Remove removes the container. It is gone when Remove returns nil.
	Remove(ctx context.Context, nameOrID string, opts RemoveOptions) error
	// Inspect gives the container's state, or NotFoundError.
	Inspect(ctx context.Context, nameOrID string) (Container, error)

	// HealthCheck asks the container's health check now and gives its
	// answer: `podman healthcheck run`. UnsupportedError when the container
	// has none.
	HealthCheck(ctx context.Context, nameOrID string) (Health, error)

	// CreateVolume makes a named volume; ExistsError when there is one.
	CreateVolume(ctx context.Context, spec VolumeSpec) error
	// InspectVolume gives the volume, or NotFoundError.
	InspectVolume(ctx context.Context, name string) (Volume, error)
	// RemoveVolume removes by exact name. InUseError while a container
	// refers to it and force is false.
	RemoveVolume(ctx context.Context, name string, force bool) error

	Archives
	Executor
	Pods
	Kube
	Secrets
	Prunes
	Checkpoints

	// Labelled lists what carries label key, whatever its value: what a
	// run made. Anonymous volumes carry none.
	Labelled(ctx context.Context, key string) ([]Object, error)

	// Close lets go of the connection, and of the service if the lab
	// started it.
	Close() error
}

// Facts is what a record states of the engine it ran on. Persistence rules
// changed between versions.
type Facts struct {
	Name          string   `json:"name"`        // podman
	Version       string   `json:"version"`     // 4.3.1
	APIVersion    string   `json:"api_version"` // of the service
	URL           string   `json:"url"`         // how it was reached
	Service       string   `json:"service"`     // "found" or "started by the lab"
	Rootless      bool     `json:"rootless"`
	StorageDriver string   `json:"storage_driver"` // overlay, vfs, …
	Runtime       string   `json:"runtime"`        // runc 1.1.5
	Cgroups       string   `json:"cgroups"`        // v1, v2; "v1 (hybrid)" where both are mounted
	SELinux       bool     `json:"selinux"`
	Kernel        string   `json:"kernel"`
	OS            string   `json:"os"`                 // debian 12
	BootID        string   `json:"boot_id"`            // of the engine's host; "" when it is another machine
	Remote        bool     `json:"remote"`             // the engine's files are not this machine's: no look from the host
	Adjusted      []string `json:"adjusted,omitempty"` // what the lab changed so that containers start here
}

// Image is an image the lab makes itself.
type Image struct {
	Ref     string                        // localhost/persistencelab/probe:<hash>
	Archive func() (io.ReadCloser, error) // docker-archive, called only when needed; the engine closes it
}

// ContainerSpec is a `podman create`. The fields carry Podman's meanings.
type ContainerSpec struct {
	Name  string
	Image string
	// Entrypoint replaces the image's own; an imported image has none.
	Entrypoint []string
	Command    []string // after the image; empty for the image's own
	Labels     map[string]string
	Env        map[string]string
	Hostname   string
	User       string

	Mounts      []Mount
	VolumesFrom []string
	Secrets     []SecretMount
	ImageVolume string // anonymous, tmpfs, ignore; "" for the engine's default

	ReadOnly      bool
	ReadOnlyTmpfs *bool // nil: the engine's default
	Remove        bool  // --rm
	Restart       string
	Pod           string
	Network       string // "" means none; host; container:NAME shares that one's; else a network's name

	// Health is the command of a health check that is only asked for, never
	// run by a timer; nil for the image's own, if it has one.
	Health []string
}

// Mount is one mount of a container.
type Mount struct {
	Kind    string // volume, anonymous, bind, tmpfs, image
	Source  string // volume name, absolute host path, image reference
	Target  string
	Options []string // ro, nocopy, U, z, Z, O, upperdir=…, workdir=…
	Subpath string
}

// SecretMount is a secret as a file in a container, at /run/secrets/Target.
type SecretMount struct{ Name, Target string }

// RemoveOptions is how a container is removed.
type RemoveOptions struct {
	Force   bool
	Volumes bool          // its anonymous volumes too
	Grace   time.Duration // Force: how long a running process 1 is given
}

// Container is what inspect says.
type Container struct {
	ID           string
	Name         string
	ImageID      string
	State        string // created, running, paused, exited, …
	PID          int
	ExitCode     int
	Started      time.Time
	Finished     time.Time
	RestartCount int
	Mounts       []ContainerMount
}

// ContainerMount is one mount as the engine resolved it.
type ContainerMount struct {
	Type, Name, Source, Target string
}

// Health is one answer of a health check.
type Health struct {
	Status string `json:"status"` // healthy, unhealthy, starting
	Exit   int    `json:"exit"`   // of the check's command
	Output string `json:"output"` // what it printed
}

// VolumeSpec is a `podman volume create`.
type VolumeSpec struct {
	Name    string
	Driver  string // "" for local
	Labels  map[string]string
	Options map[string]string
}

// Volume is what volume inspect says.
type Volume struct {
	Name       string
	Mountpoint string // on the engine's host
	Anonymous  bool
	Labels     map[string]string
}

// Object is something the engine holds.
type Object struct {
	Kind  string // container, volume, pod, secret, image
	ID    string
	Name  string
	Label string // the value of the label asked for
}

// NotFoundError: the engine has no such thing. It is the proof that a removal
// happened.
type NotFoundError struct {
	Kind, Name string
	Err        error
}

func (e *NotFoundError) Error() string { return fmt.Sprintf("no such %s: %s", e.Kind, e.Name) }
func (e *NotFoundError) Unwrap() error { return e.Err }

// ExistsError: the name is taken.
type ExistsError struct {
	Kind, Name string
	Err        error
}

func (e *ExistsError) Error() string { return fmt.Sprintf("%s %s already exists", e.Kind, e.Name) }
func (e *ExistsError) Unwrap() error { return e.Err }

// InUseError: refused because something refers to it.
type InUseError struct {
	Kind, Name string
	Err        error
}

func (e *InUseError) Error() string { return fmt.Sprintf("%s %s is in use", e.Kind, e.Name) }
func (e *InUseError) Unwrap() error { return e.Err }

// UnreachableError: no answer from the engine. What it was asked about is
// unknown.
type UnreachableError struct {
	URL   string
	Asked string // how it was asked for: --url, CONTAINER_HOST, …; "" when the lab looked by itself
	Err   error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("podman does not answer at %s: %v", e.URL, e.Err)
}
func (e *UnreachableError) Unwrap() error { return e.Err }

// UnsupportedError: this engine can't, and why. The cell is skipped, not
// failed.
type UnsupportedError struct {
	What  string // "volume subpath"
	Needs string // "podman 5.4", "criu"
	Err   error
}

func (e *UnsupportedError) Error() string { return fmt.Sprintf("%s needs %s", e.What, e.Needs) }
func (e *UnsupportedError) Unwrap() error { return e.Err }
