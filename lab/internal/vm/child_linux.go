package vm

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// dieWithParent has the kernel end a child with the thread that started it,
// and keeps the terminal's Ctrl-C from it: the lab ends it in its own time.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// pair makes a channel to a child: our end, and the file it inherits.
func pair() (net.Conn, *os.File, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	mine, theirs := os.NewFile(uintptr(fds[0]), "channel"), os.NewFile(uintptr(fds[1]), "channel")
	conn, err := net.FileConn(mine)
	mine.Close()
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn, theirs, nil
}

// Gone is what the kernel answers when asked for a process that has ended; ""
// while it has not.
func Gone(pid int) string {
	if err := syscall.Kill(pid, 0); err != nil {
		return err.Error()
	}
	return ""
}

// starved is how long a process's busiest thread has waited for a processor.
// It stands in /proc/PID/task/TID/schedstat, in nanoseconds, second of three.
func starved(pid int) time.Duration {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	var longest time.Duration
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		var ran, waited int64
		if _, err := fmt.Sscan(string(b), &ran, &waited); err == nil {
			longest = max(longest, time.Duration(waited))
		}
	}
	return longest
}
