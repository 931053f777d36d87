//go:build unix

package bootprobe

import (
	"os"
	"regexp"
	"strings"
)

// mountLine is one line of /proc/self/mountinfo.
type mountLine struct {
	root, at, options, fs, source string
}

func readMounts() ([]mountLine, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return parseMounts(string(b)), nil
}

// parseMounts reads mountinfo (proc(5)): "36 35 98:0 /root /at rw,noatime
// master:1 - ext3 /dev/sda1 rw". The optional fields end with a dash.
func parseMounts(text string) []mountLine {
	var list []mountLine
	for l := range strings.Lines(text) {
		head, tail, ok := strings.Cut(l, " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if !ok || len(h) < 6 || len(t) < 2 {
			continue
		}
		m := mountLine{root: unescape(h[3]), at: unescape(h[4]), options: h[5], fs: t[0], source: unescape(t[1])}
		list = append(list, m)
	}
	return list
}

// unescape turns the octal escapes of space, tab, newline and backslash back.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// mountOf is the mount a path without symbolic links lies on: the deepest
// one, and of several at one place the last.
func mountOf(mounts []mountLine, path string) *mountLine {
	var found *mountLine
	for i, m := range mounts {
		if (m.at == "/" || path == m.at || strings.HasPrefix(path, m.at+"/")) && (found == nil || len(m.at) >= len(found.at)) {
			found = &mounts[i]
		}
	}
	return found
}

var (
	volumeRoot  = regexp.MustCompile(`/volumes/([^/]+)/_data(?:/|$)`)
	volumeNoOne = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// describe puts the mount into the lab's words.
func (m *mountLine) describe(contained bool) *Mount {
	d := &Mount{At: m.at, Type: m.fs, Source: m.source, Root: m.root, Storage: Disk}
	for _, o := range strings.Split(m.options, ",") {
		d.ReadOnly = d.ReadOnly || o == "ro"
	}
	volume := volumeRoot.FindStringSubmatch(m.root)
	switch {
	case m.fs == "tmpfs" && volume == nil, m.fs == "ramfs":
		d.Storage = Memory
	case contained && m.at == "/":
		d.Storage = WritableLayer
	case volume != nil && volumeNoOne.MatchString(volume[1]):
		d.Storage, d.Volume = AnonymousVolume, volume[1]
	case volume != nil:
		d.Storage, d.Volume = NamedVolume, volume[1]
	case contained:
		d.Storage = BindMount
	case m.fs == "overlay":
		d.Storage = Overlay
	}
	return d
}
