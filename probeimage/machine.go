//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The probe as /init of a virtual machine. The kernel starts it from an
// initramfs that holds it and, in /modules, the kernel modules of the disks in
// the order in which they load. What else it needs stands on the kernel's
// command line, each value escaped as in a URL's query:
//
//	lab.host=NAME                      the host name
//	lab.mount=SERIAL:FOLDER:OPTIONS    an ext4 disk, told by its serial number
//
// It serves on the second serial port and, unlike in a container, speaks
// first: one greeting with ID 0, when all is mounted. What goes wrong before
// that is said on the console, and then process 1 ends: the kernel panics.
const (
	initPath  = "/init"
	probePort = "/dev/ttyS1"
)

// leaveToReboot is the code with which serve returns when asked to reboot.
const leaveToReboot = 1 << 8

func isInit() bool { return os.Getpid() == 1 && os.Args[0] == initPath }

// runMachine does not return.
func runMachine() {
	err := machine()
	if console, openErr := os.OpenFile("/dev/console", os.O_WRONLY, 0); openErr == nil {
		fmt.Fprintf(console, "probe: error: %v\n", err)
	}
	os.Exit(exitUnknown)
}

func machine() error {
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	if err := loadModules("/modules"); err != nil {
		return err
	}
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return err
	}
	var mounted []string
	for _, word := range strings.Fields(string(line)) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "lab.host":
			err = unix.Sethostname([]byte(value))
		case "lab.mount":
			var folder string
			folder, err = mountDisk(value)
			mounted = append(mounted, folder)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", word, err)
		}
	}
	port, err := openPort(probePort)
	if err != nil {
		return err
	}
	how := unix.LINUX_REBOOT_CMD_POWER_OFF
	if serve(port, port, os.Stderr) == leaveToReboot {
		how = unix.LINUX_REBOOT_CMD_RESTART
	}
	// The answer is on its way before the port is.
	_ = unix.IoctlSetInt(int(port.Fd()), unix.TCSBRK, 1)
	slices.Reverse(mounted)
	for _, folder := range mounted {
		if err := unix.Unmount(folder, 0); err != nil {
			// A write that was begun is still open: what it wrote is synced.
			unix.Sync()
		}
	}
	return unix.Reboot(how)
}

// loadModules loads a folder's kernel modules in the order of their names.
func loadModules(dir string) error {
	files, err := filepath.Glob(dir + "/*.ko")
	if err != nil {
		return err
	}
	for _, file := range files { // sorted
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load %s: %w", file, err)
		}
	}
	return nil
}

// mountDisk mounts what SERIAL:FOLDER:OPTIONS says, and gives the folder.
func mountDisk(value string) (folder string, err error) {
	parts := strings.Split(value, ":")
	if len(parts) != 3 {
		return "", errors.New("SERIAL:FOLDER:OPTIONS is needed")
	}
	for i := range parts {
		if parts[i], err = url.QueryUnescape(parts[i]); err != nil {
			return "", err
		}
	}
	device, err := findDisk(parts[0])
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(parts[1], 0o755); err != nil {
		return "", err
	}
	return parts[1], unix.Mount(device, parts[1], "ext4", 0, parts[2])
}

// findDisk gives the device with the serial number. The driver needs a moment
// after it is loaded.
func findDisk(serial string) (string, error) {
	for wait := time.Millisecond; wait < 4*time.Second; wait *= 2 {
		files, _ := filepath.Glob("/sys/block/*/serial")
		for _, file := range files {
			text, err := os.ReadFile(file)
			device := "/dev/" + filepath.Base(filepath.Dir(file))
			if _, statErr := os.Stat(device); err == nil && statErr == nil && strings.TrimSpace(string(text)) == serial {
				return device, nil
			}
		}
		time.Sleep(wait)
	}
	return "", fmt.Errorf("no disk has the serial number %q", serial)
}

// openPort opens a serial port that passes bytes on as they are.
func openPort(path string) (*os.File, error) {
	port, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	raw, err := unix.IoctlGetTermios(int(port.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	raw.Iflag, raw.Oflag, raw.Lflag = 0, 0, 0
	raw.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(port.Fd()), unix.TCSETS, raw); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return port, nil
}
