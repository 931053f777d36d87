package engine

import "context"

// Executor runs commands in a container beside its process 1.
type Executor interface {
	// Exec runs a command to its end: `podman exec`. What it prints is kept
	// up to a megabyte of each stream.
	Exec(ctx context.Context, nameOrID string, command ...string) (Executed, error)
	// ExecDetached starts a command and does not wait: `podman exec -d`.
	ExecDetached(ctx context.Context, nameOrID string, command ...string) error
}

// Executed is a command that has ended.
type Executed struct {
	Exit           int
	Stdout, Stderr string
}
