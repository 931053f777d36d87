package teach

import (
	"slices"
	"strings"

	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// Look is how something is drawn.
type Look struct {
	Width   int  // columns
	Unicode bool // box drawing and signs beyond ASCII
	Plain   bool // for a screen reader: sentences, no drawing
}

// Picture draws the containers of a variant: layers and memory inside the
// outline, mounts outside it. With items it also says what lies where, which
// is the answer to the question before the run.
func Picture(s *scenarios.Scenario, v *scenarios.Variant, items bool, look Look) []string {
	var lines []string
	for _, c := range v.Containers {
		p := picture{look: look, of: c}
		if items {
			p.items = lying(s, v, c.Name)
		}
		lines = append(lines, p.lines()...)
	}
	if !look.Plain {
		return lines
	}
	var wrapped []string
	for _, l := range lines {
		wrapped = append(wrapped, report.Wrap(l, look.Width)...)
	}
	return wrapped
}

// lying are the items that are written, or are there, in a container.
func lying(s *scenarios.Scenario, v *scenarios.Variant, container string) []scenarios.Item {
	var items []scenarios.Item
	for _, st := range v.Steps {
		if st.Verb != "write" {
			continue
		}
		for _, it := range s.ItemsOf(st) {
			if v.Where(st, it) == container && !slices.ContainsFunc(items, func(i scenarios.Item) bool { return i.Name == it.Name }) {
				items = append(items, it)
			}
		}
	}
	return items
}

type picture struct {
	look  Look
	of    scenarios.Container
	items []scenarios.Item
}

// in names the items that lie in a place.
func (p picture) in(here func(it scenarios.Item) bool) string {
	var names []string
	for _, it := range p.items {
		if here(it) {
			names = append(names, it.Name)
		}
	}
	return report.List(names)
}

func inMemory(it scenarios.Item) bool { return it.Kind == scenarios.Memory }

func (p picture) inLayer(it scenarios.Item) bool {
	return !inMemory(it) && experiment.MountOf(p.of, it) == nil
}

func (p picture) inMount(m *scenarios.Mount) func(scenarios.Item) bool {
	return func(it scenarios.Item) bool {
		over := experiment.MountOf(p.of, it)
		return over != nil && over.Target == m.Target
	}
}

// outside is what a mount is, for people.
func outside(m *scenarios.Mount) string {
	var what string
	switch m.Kind {
	case scenarios.VolumeMount:
		what = "named volume " + m.Source
	case scenarios.Anonymous:
		what = "volume without a name"
	case scenarios.Bind:
		what = "folder " + m.Source + " of the host"
	case scenarios.Tmpfs:
		what = "memory (tmpfs)"
	case scenarios.ImageMount:
		what = "files of another image"
	default:
		what = string(m.Kind)
	}
	if m.Subpath != "" {
		what += ", folder " + m.Subpath
	}
	if len(m.Options) > 0 {
		what += " (" + strings.Join(m.Options, ",") + ")"
	}
	return what
}

func (p picture) layer() string {
	if p.of.ReadOnly {
		return "no writable layer (--read-only)"
	}
	return "writable layer, its own"
}

func (p picture) lines() []string {
	if p.look.Plain {
		return p.sentences()
	}
	h, v, tl, tr, bl, br, link := "-", "|", "+", "+", "+", "+", "|=="
	if p.look.Unicode {
		h, v, tl, tr, bl, br, link = "─", "│", "┌", "┐", "└", "┘", "╞══"
	}
	inside := 26
	row := func(text, items string) string {
		if items != "" {
			text += ": " + items
		}
		return text
	}
	rows := []string{
		row("memory of process 1", p.in(inMemory)),
		row(p.layer(), p.in(p.inLayer)),
		"image layers, read-only",
	}
	head := " container " + report.Line(p.of.Name) + " "
	for _, r := range append(slices.Clone(rows), head) {
		inside = max(inside, report.Columns(r)+2)
	}
	inside = min(inside, max(20, p.look.Width-8))
	lines := []string{"  " + tl + h + head + strings.Repeat(h, max(0, inside-report.Columns(head)-1)) + tr}
	boxed := func(text, tail string) {
		for i, l := range report.WrapCell(report.Line(text), inside-2) {
			end := v
			if i == 0 && tail != "" {
				end = tail
			}
			lines = append(lines, "  "+v+" "+report.Pad(l, inside-2)+" "+end)
		}
	}
	for _, r := range rows {
		boxed(r, "")
	}
	var below []string
	for i := range p.of.Mounts {
		m := &p.of.Mounts[i]
		what := "[ " + row(report.Line(outside(m)), p.in(p.inMount(m))) + " ]"
		if room := p.look.Width - inside - 9; report.Columns(what) <= room {
			boxed(m.Target, link+" "+what)
			continue
		}
		// Too wide to stand beside the outline: below it.
		mark := strings.Repeat("*", len(below)+1)
		boxed(m.Target, link+" "+mark)
		below = append(below, mark+" "+what)
	}
	for _, path := range volumesOf(p.of) {
		boxed(path, link+" [ a new volume without a name (VOLUME) ]")
	}
	for _, from := range p.of.VolumesFrom {
		boxed("--volumes-from "+from, link+" [ the mounts of "+from+" ]")
	}
	lines = append(lines, "  "+bl+strings.Repeat(h, inside)+br)
	for _, b := range below {
		for _, l := range report.Wrap(b, p.look.Width-4) {
			lines = append(lines, "    "+l)
		}
	}
	return lines
}

// volumesOf are the image's VOLUME paths that no mount covers.
func volumesOf(c scenarios.Container) []string {
	if c.Image == nil || c.ImageVolume == "ignore" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(c.Image.Volumes), func(path string) bool {
		return slices.ContainsFunc(c.Mounts, func(m scenarios.Mount) bool { return m.Target == path })
	})
}

// sentences say what the drawing shows.
func (p picture) sentences() []string {
	holds := func(text, items string) string {
		if items != "" {
			text += ", holding " + items
		}
		return report.Line(text) + "."
	}
	lines := []string{
		"Container " + report.Line(p.of.Name) + " has, from the inside out:",
		holds("the memory of process 1", p.in(inMemory)),
		holds(p.layer(), p.in(p.inLayer)),
		"image layers, read-only.",
	}
	for i := range p.of.Mounts {
		m := &p.of.Mounts[i]
		lines = append(lines, holds("Outside it, mounted at "+m.Target+": "+outside(m), p.in(p.inMount(m))))
	}
	for _, path := range volumesOf(p.of) {
		lines = append(lines, "Outside it, at "+path+": a new volume without a name (VOLUME).")
	}
	for _, from := range p.of.VolumesFrom {
		lines = append(lines, "Outside it: the mounts of "+from+".")
	}
	return lines
}
