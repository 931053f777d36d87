package picture

import (
	"fmt"
	"strings"
)

// A frame in words.

// list is "a", "a and b", "a, b and c".
func list(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Alt is the frame in words, for who can't see it.
func (f *Frame) Alt() string {
	var out []string
	for _, c := range f.Containers {
		switch c.State {
		case Absent:
			if c.Machine {
				out = append(out, "No machine is there.")
				continue
			}
			out = append(out, fmt.Sprintf("Container %s is not there.", c.Name))
			continue
		case Gone:
			out = append(out, fmt.Sprintf("Container %s is gone, and with it its memory and writable layer.", c.Name))
			continue
		}
		s := "Container " + c.Name
		if c.Machine {
			s = "Virtual machine"
		}
		for _, more := range []string{c.ID, c.Word} {
			if more != "" {
				s += ", " + more
			}
		}
		s += ". "
		if c.Process {
			s += "In its memory: " + inWords(c.Memory) + ". "
		} else {
			s += "No process. "
		}
		if c.Machine {
			out = append(out, strings.TrimSpace(s))
			continue
		}
		if c.ReadOnly {
			s += "No writable layer. "
		} else {
			s += "In its writable layer: " + inWords(c.Layer) + ". "
		}
		out = append(out, s+"Below it the image layers, read-only.")
	}
	for _, s := range f.Stores {
		switch s.State {
		case There:
			mounted := "not mounted by any container"
			if len(s.Mounted) > 0 {
				mounted = "mounted " + list(s.Mounted)
			}
			out = append(out, fmt.Sprintf("Outside, %s, %s: %s.", s.Name, mounted, inWords(s.Items)))
		case Gone:
			out = append(out, fmt.Sprintf("Outside, %s is gone.", s.Name))
		}
	}
	return strings.Join(out, " ")
}

func inWords(items []Item) string {
	if len(items) == 0 {
		return "nothing of ours"
	}
	var out []string
	for _, it := range items {
		out = append(out, it.Name+" "+statusWords[it.Status])
	}
	return strings.Join(out, ", ")
}

var statusWords = map[Status]string{
	Written: "just written", Unseen: "not looked at since", Failed: "not accepted", Present: "there", Missing: "not there",
	Survived: "survived", Lost: "lost", Changed: "changed", Refused: "refused", Unknown: "unknown", Planned: "is written",
}
