package bindings

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// dieWithParent makes the kernel end the service when the lab is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM, Setpgid: true}
}

// EndService waits until no service of a dead lab listens at url any more. The
// kernel has told it to end, and it ends once it has done what it was asked
// for last; one that takes its time is told again, then killed.
func EndService(ctx context.Context, url string) error {
	const poll = 20 * time.Millisecond
	for i := 0; ; i++ {
		pids := servicesAt(url)
		if len(pids) == 0 {
			return nil
		}
		switch time.Duration(i) * poll {
		case 2 * time.Second:
			signalAll(pids, syscall.SIGTERM)
		case 6 * time.Second:
			signalAll(pids, syscall.SIGKILL)
		case 10 * time.Second:
			return fmt.Errorf("the podman service of a run that ended early does not end: process %d", pids[0])
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func signalAll(pids []int, s syscall.Signal) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, s)
	}
}

// servicesAt are the processes that are `podman … system service … url`. The
// url holds a run's id, so that they are that run's.
func servicesAt(url string) []int {
	var pids []int
	for _, pid := range processes() {
		args := commandLine(pid)
		if len(args) > 0 && pid != os.Getpid() && filepath.Base(args[0]) == "podman" && args[len(args)-1] == url && slices.Contains(args, "service") {
			pids = append(pids, pid)
		}
	}
	return pids
}
