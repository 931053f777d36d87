//go:build !linux

package bindings

import (
	"context"
	"syscall"
)

// dieWithParent: there is no parent-death signal here; the service's idle
// time-out ends it.
func dieWithParent() *syscall.SysProcAttr { return nil }

// EndService has nothing to do: Podman runs on Linux, and elsewhere its
// services are in a virtual machine that the lab starts none in.
func EndService(context.Context, string) error { return nil }
