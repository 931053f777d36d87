//go:build unix

package bootprobe

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
}

// machineID is an id of the installed system that can be shown to others: the
// hash machine-id(5) asks for, in place of the id itself. "" where the system
// has none.
func machineID() (string, error) {
	b, err := os.ReadFile("/etc/machine-id")
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	id := bytes.TrimSpace(b)
	if err != nil || len(id) == 0 || bytes.Equal(id, []byte("uninitialized")) {
		return "", err
	}
	mac := hmac.New(sha256.New, id)
	mac.Write([]byte(Kind))
	return hex.EncodeToString(mac.Sum(nil)[:16]), nil
}

// process1 reads who process 1 is and when it began. Its start in
// /proc/1/stat counts hundredths of a second since the boot, whatever the
// kernel's own clock rate (USER_HZ is 100 on every architecture Go has).
func process1() (*Process, error) {
	b, err := os.ReadFile("/proc/1/stat")
	if err != nil {
		return nil, err
	}
	// "1 (name) S …": the name can hold anything, parentheses too.
	text := string(b)
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return nil, fmt.Errorf("/proc/1/stat reads %q", text)
	}
	const startTime = 19 // field 22, the third after the name being the first here
	fields := strings.Fields(text[end+1:])
	if len(fields) <= startTime {
		return nil, fmt.Errorf("/proc/1/stat has %d fields", len(fields))
	}
	ticks, err := strconv.ParseInt(fields[startTime], 10, 64)
	if err != nil {
		return nil, err
	}
	p := &Process{Name: text[open+1 : end], Ticks: ticks}
	booted, err := bootTime()
	if err != nil {
		return p, err
	}
	p.Started = booted.Add(time.Duration(ticks) * 10 * time.Millisecond)
	return p, nil
}

// bootTime is the boot as the kernel dates it, to the second.
func bootTime() (time.Time, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20) // the line of interrupts is long
	for s.Scan() {
		if rest, ok := strings.CutPrefix(s.Text(), "btime "); ok {
			sec, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return time.Unix(sec, 0).UTC(), err
		}
	}
	return time.Time{}, errors.Join(s.Err(), errors.New("/proc/stat has no btime"))
}

var (
	// Podman and Docker mount files of the container's own folder, whose
	// name is its id, over these.
	ownFiles  = map[string]bool{"/etc/hostname": true, "/etc/hosts": true, "/etc/resolv.conf": true, "/run/.containerenv": true}
	ownFolder = regexp.MustCompile(`/(?:([a-z]+-containers)|containers)/([0-9a-f]{64})/`)
	cgroupID  = regexp.MustCompile(`(?:^|/|[a-z]-)([0-9a-f]{64})(?:\.scope)?(?:/|$)`)
	shortID   = regexp.MustCompile(`^[0-9a-f]{12}$`)
)

// findContainer tells whether this is a container, and which. There is no one
// place that always says so: the best evidence is taken.
func findContainer(mounts []mountLine, hostname string) *Container {
	c := &Container{}
	_, podman := os.Stat("/run/.containerenv")
	_, docker := os.Stat("/.dockerenv")
	switch {
	case podman == nil:
		c.Engine, c.Evidence = "podman", "/run/.containerenv"
	case docker == nil:
		c.Engine, c.Evidence = "docker", "/.dockerenv"
	}
	for _, m := range mounts {
		if !ownFiles[m.at] {
			continue
		}
		if id := ownFolder.FindStringSubmatch(m.root); id != nil {
			if id[1] != "" {
				c.Engine = "podman"
			}
			c.ID, c.Evidence = id[2], "the mount at "+m.at
			return c
		}
	}
	if b, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		for l := range strings.Lines(string(b)) {
			path := strings.TrimSpace(l[strings.LastIndexByte(l, ':')+1:])
			if id := cgroupID.FindStringSubmatch(path); id != nil {
				c.ID, c.Evidence = id[1], "the cgroup"
				return c
			}
		}
	}
	// A marker alone can have been left over: machines are made of container
	// images too. A container's root is no whole disk.
	if root := mountOf(mounts, "/"); c.Evidence == "" || root != nil && root.root == "/" && strings.HasPrefix(root.source, "/dev/") {
		return nil
	}
	if shortID.MatchString(hostname) {
		c.ID, c.Evidence = hostname, c.Evidence+" and the hostname, which is the id unless somebody chose it"
	}
	return c
}
