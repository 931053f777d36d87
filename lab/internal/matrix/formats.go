package matrix

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"

	"persistencelab/lab/internal/format"
)

// Options is how a table is to look.
type Options struct {
	Width   int  // columns of text; 0 for as many as a poster takes (200)
	Unicode bool // the reader can show ✓
	Verbose bool // text: also what exactly each cell saw
}

// Format is one way of writing a table.
type Format = format.Format[*Table, Options]

// Formats lists them.
func Formats() format.List[*Table, Options] {
	return format.List[*Table, Options]{
		{Name: "text", Ext: ".txt", Write: Text},
		{Name: "markdown", Ext: ".md", Write: Markdown},
		{Name: "csv", Ext: ".csv", Write: CSV},
		{Name: "json", Ext: ".json", Write: JSON},
		{Name: "html", Ext: ".html", Write: HTML},
	}
}

// mark is an outcome in one character, in full and in plain ASCII.
type mark struct{ full, ascii, means string }

// marks are letters and shapes: nothing is said by colour alone.
var marks = map[Outcome]mark{
	Survived:      {"✓", "S", "survived: what was written came back"},
	Lost:          {"✗", "L", "lost: the place was looked at, and it is not there"},
	Changed:       {"≠", "C", "changed: something else is there"},
	Refused:       {"∅", "R", "refused: it could not be written in the first place"},
	EventRefused:  {"!", "!", "event refused: podman would not do it"},
	NotApplicable: {"·", ".", "not applicable"},
	Skipped:       {"–", "-", "skipped: this engine can't"},
	Varies:        {"~", "~", "varies from run to run"},
	Unknown:       {"?", "?", "unknown: it could not be observed"},
}

func (o Outcome) mark(unicode bool) string {
	if unicode {
		return marks[o].full
	}
	return marks[o].ascii
}

// CSV writes one line a cell.
func CSV(w io.Writer, t *Table, _ Options) error {
	out := csv.NewWriter(w)
	head := []string{"mount", "event", "outcome", "detail", "seconds"}
	if t.Compared != "" {
		head = append(head, "against", "differs")
	}
	_ = out.Write(head)
	for i := range t.Cells {
		c := &t.Cells[i]
		line := []string{c.Mount, c.Event, c.Outcome.String(), oneLine(c.Detail), fmt.Sprintf("%.3f", c.Took.Seconds())}
		if t.Compared != "" {
			against := ""
			if c.Against != nil {
				against = c.Against.String()
			}
			line = append(line, against, fmt.Sprint(c.Differs()))
		}
		_ = out.Write(line)
	}
	out.Flush()
	return out.Error()
}

// oneLine makes any text one safe line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
}

// group is a run of columns under one heading.
type group struct {
	title  string
	events []int // places in Table.Events
}

// groups cuts the events into their groups, and those into parts of at most
// most columns.
func (t *Table) groups(most int) []group {
	var gs []group
	for i, e := range t.Events {
		last := len(gs) - 1
		if last < 0 || gs[last].title != e.Group || len(gs[last].events) >= most {
			gs = append(gs, group{title: e.Group})
			last++
		}
		gs[last].events = append(gs[last].events, i)
	}
	return gs
}

// used are the outcomes the table has, in their order.
func (t *Table) used() []Outcome {
	n, _ := t.Count()
	var used []Outcome
	for _, o := range order {
		if n[o] > 0 {
			used = append(used, o)
		}
	}
	return used
}

// Summary is one line: how many cells of each outcome, in what time.
func (t *Table) Summary() string {
	n, differ := t.Count()
	var parts []string
	for _, o := range t.used() {
		parts = append(parts, fmt.Sprintf("%d %s", n[o], o))
	}
	s := fmt.Sprintf("%d cells: %s", len(t.Cells), strings.Join(parts, ", "))
	if t.Compared != "" {
		s += fmt.Sprintf("; %d differ from %s", differ, t.Compared)
	}
	return s + " in " + t.Took.Round(100*time.Millisecond).String()
}

// onWhat is one line about the engine.
func (t *Table) onWhat() string {
	rights := "rootful"
	if t.Engine.Rootless {
		rights = "rootless"
	}
	return oneLine(fmt.Sprintf("%s %s, %s, storage %s, %s, cgroups %s, kernel %s, %s", t.Engine.Name, t.Engine.Version, rights,
		t.Engine.StorageDriver, t.Engine.Runtime, t.Engine.Cgroups, t.Engine.Kernel, t.Engine.OS))
}

// special are the details worth telling under a table: why a cell is not
// simply survived or lost. Events of one mount with one reason stand together,
// and mounts with the same events and reason.
func (t *Table) special() []string {
	type reason struct {
		mount, detail string
		o             Outcome
	}
	var reasons []reason
	events := map[reason][]string{}
	for i := range t.Cells {
		c := &t.Cells[i]
		switch c.Outcome {
		case Survived, Lost, NotApplicable, Refused, Changed:
			continue
		}
		r := reason{c.Mount, oneLine(c.Detail), c.Outcome}
		if events[r] == nil {
			reasons = append(reasons, r)
		}
		events[r] = append(events[r], c.Event)
	}
	var lines []string
	mounts := map[string][]string{} // by the rest of the line
	for _, r := range reasons {
		what := strings.Join(events[r], "; ")
		if len(events[r]) == len(t.Events) && len(events[r]) > 1 {
			what = "every event"
		}
		line := fmt.Sprintf("%s: %s: %s", what, r.o, r.detail)
		if mounts[line] == nil {
			lines = append(lines, line)
		}
		mounts[line] = append(mounts[line], r.mount)
	}
	for i, line := range lines {
		who := strings.Join(mounts[line], ", ")
		if n := len(mounts[line]); n > manyMounts {
			who = fmt.Sprintf("%d mount kinds", n)
		}
		lines[i] = who + ": " + line
	}
	return lines
}

// manyMounts are more than a line of the reasons names one by one; the table
// above it shows which they are.
const manyMounts = 6
