//go:build !linux

package bindings

import "syscall"

// dieWithParent: there is no parent-death signal here; the service's idle
// time-out ends it.
func dieWithParent() *syscall.SysProcAttr { return nil }
