package matrix

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

const (
	posterWidth = 200
	headWidth   = 12 // columns an event's name is wrapped to
)

// Text writes a grid for a terminal: a table for each group of events, with a
// legend. No line is wider than the width, or 200 columns.
func Text(w io.Writer, t *Table, o Options) error {
	out := bufio.NewWriter(w)
	width := o.Width
	if width <= 0 || width > posterWidth {
		width = posterWidth
	}
	first := len("mount")
	for _, k := range t.Mounts {
		first = max(first, len(k.Name))
	}
	most := max((width-first-2)/(headWidth+2), 1)
	fmt.Fprintln(out, "What survives what: mount kinds × events")
	writeWrapped(out, t.onWhat(), width)
	for _, g := range t.groups(most) {
		fmt.Fprintf(out, "\n%s\n", g.title)
		t.head(out, g, first)
		for m, k := range t.Mounts {
			line := pad(k.Name, first) + "  "
			for _, e := range g.events {
				c := t.Cell(m, e)
				text := c.Outcome.mark(o.Unicode)
				if c.Differs() {
					text += " (" + c.Against.mark(o.Unicode) + ")"
				}
				line += pad(text, headWidth) + "  "
			}
			fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
	}
	fmt.Fprintln(out)
	for _, u := range t.used() {
		writeWrapped(out, u.mark(o.Unicode)+"  "+marks[u].means, width)
	}
	if t.Compared != "" {
		fmt.Fprintf(out, "(x)  %s said x\n", t.Compared)
	}
	if lines := t.special(); len(lines) > 0 {
		fmt.Fprintln(out)
		for _, line := range lines {
			writeWrapped(out, line, width)
		}
	}
	if o.Verbose {
		fmt.Fprintln(out)
		for i := range t.Cells {
			c := &t.Cells[i]
			writeWrapped(out, fmt.Sprintf("%s, %s: %s: %s", c.Mount, c.Event, c.Outcome, oneLine(c.Detail)), width)
		}
	}
	fmt.Fprintln(out)
	writeWrapped(out, t.Summary(), width)
	return out.Flush()
}

// head writes the events' names above their columns.
func (t *Table) head(out io.Writer, g group, first int) {
	var names [][]string
	tall := 0
	for _, e := range g.events {
		lines := wrap(t.Events[e].Name, headWidth)
		names = append(names, lines)
		tall = max(tall, len(lines))
	}
	for row := range tall {
		line := pad("", first)
		if row == tall-1 {
			line = pad("mount", first)
		}
		for _, lines := range names {
			text := ""
			if i := row - (tall - len(lines)); i >= 0 {
				text = lines[i]
			}
			line += "  " + pad(text, headWidth)
		}
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
	fmt.Fprintln(out, strings.Repeat("-", first)+strings.Repeat("  "+strings.Repeat("-", headWidth), len(g.events)))
}

func pad(s string, n int) string {
	return s + strings.Repeat(" ", max(n-utf8.RuneCountInString(s), 0))
}

// wrap breaks a name after spaces, pluses and hyphens into lines of at most n.
func wrap(s string, n int) []string {
	var words []string
	start := 0
	for i, r := range s {
		if r == ' ' || r == '+' || r == '-' || r == '/' {
			words = append(words, s[start:i+1])
			start = i + 1
		}
	}
	words = append(words, s[start:])
	lines := []string{""}
	for _, word := range words {
		last := len(lines) - 1
		if lines[last] != "" && utf8.RuneCountInString(strings.TrimRight(lines[last]+word, " ")) > n {
			lines = append(lines, "")
			last++
		}
		lines[last] += word
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// writeWrapped writes a line broken between words, the rest indented. A word
// longer than the width is cut.
func writeWrapped(out io.Writer, s string, width int) {
	line := ""
	for _, word := range strings.Fields(s) {
		for utf8.RuneCountInString(word) > width-4 {
			r := []rune(word)
			if line != "" {
				fmt.Fprintln(out, line)
			}
			fmt.Fprintln(out, "  "+string(r[:width-4]))
			line, word = "", string(r[width-4:])
		}
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(out, line)
			line = " "
		}
		if line == "" {
			line = word
		} else {
			line += " " + word
		}
	}
	fmt.Fprintln(out, line)
}

// Markdown writes a table for each group.
func Markdown(w io.Writer, t *Table, o Options) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "# What survives what\n\n%s\n", cell(t.onWhat()))
	for _, g := range t.groups(1 << 20) {
		fmt.Fprintf(out, "\n## %s\n\n| mount |", strings.ToUpper(g.title[:1])+g.title[1:])
		for _, e := range g.events {
			fmt.Fprintf(out, " %s |", cell(t.Events[e].Name))
		}
		fmt.Fprintf(out, "\n|---|%s\n", strings.Repeat("---|", len(g.events)))
		for m, k := range t.Mounts {
			fmt.Fprintf(out, "| %s |", cell(k.Name))
			for _, e := range g.events {
				c := t.Cell(m, e)
				text := marks[c.Outcome].full + " " + c.Outcome.String()
				if c.Differs() {
					text = fmt.Sprintf("**%s** (%s: %s)", text, cell(t.Compared), c.Against)
				}
				fmt.Fprintf(out, " %s |", text)
			}
			fmt.Fprintln(out)
		}
	}
	if lines := t.special(); len(lines) > 0 {
		fmt.Fprintln(out)
		for _, line := range lines {
			fmt.Fprintf(out, "- %s\n", cell(line))
		}
	}
	fmt.Fprintf(out, "\n%s\n", cell(t.Summary()))
	return out.Flush()
}

// cell makes any text safe in a table of Markdown.
func cell(s string) string {
	s = oneLine(s)
	for _, c := range []string{`\`, "|", "*", "_", "`", "<", "[", "#", "~"} {
		s = strings.ReplaceAll(s, c, `\`+c)
	}
	return s
}
