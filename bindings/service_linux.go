package bindings

import "syscall"

// dieWithParent makes the kernel end the service when the lab is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
}
