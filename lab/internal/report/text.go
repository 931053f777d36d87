package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// Text writes the table a teacher would put on the wall. No line is longer
// than Options.Width, except for a single word that is.
func Text(w io.Writer, r *experiment.Report, opts Options) error {
	if opts.Width == 0 {
		opts.Width = 80
	}
	p := &printer{Options: opts}
	p.Width = max(p.Width, 48)
	for _, t := range tables(r) {
		p.scenario(t)
		p.line("")
	}
	p.engine(r)
	p.line("")
	p.para("", Count(r).String()+" in "+took(r.Took))
	_, err := w.Write(p.out.Bytes())
	return err
}

type printer struct {
	Options
	out bytes.Buffer
}

// span is a piece of a line; style is an SGR code, "" for none.
type span struct{ text, style string }

// line writes one line without trailing spaces.
func (p *printer) line(spans ...any) {
	start := p.out.Len()
	for _, s := range spans {
		switch s := s.(type) {
		case string:
			p.out.WriteString(s)
		case span:
			if p.Color && s.text != "" && s.style != "" {
				fmt.Fprintf(&p.out, "\x1b[%sm%s\x1b[0m", s.style, s.text)
			} else {
				p.out.WriteString(s.text)
			}
		}
	}
	p.out.Truncate(start + len(bytes.TrimRight(p.out.Bytes()[start:], " ")))
	p.out.WriteByte('\n')
}

// own is text of the report made safe, with the lab's own typography in ASCII
// where that is asked for.
func (p *printer) own(s string) string {
	s = fold(s)
	if !p.Unicode {
		s = asciiDashes.Replace(s)
	}
	return s
}

var asciiDashes = strings.NewReplacer("→", "->", "–", "-", "—", "-", "…", "...", "’", "'", "‘", "'", "“", `"`, "”", `"`, "·", "-")

func (p *printer) rule(n int) string {
	if p.Unicode {
		return strings.Repeat("─", n)
	}
	return strings.Repeat("-", n)
}

// para writes text behind a label, wrapped with the label's indent.
func (p *printer) para(label, text string) {
	indent := strings.Repeat(" ", columns(label))
	for i, l := range wrap(p.own(text), p.Width-columns(label)) {
		if i == 0 {
			p.line(label + l)
		} else {
			p.line(indent + l)
		}
	}
}

func (p *printer) scenario(t table) {
	title := p.own(t.Title)
	name := p.own(t.Name)
	if title == "" {
		title = name
	} else if gap := p.Width - columns(title) - columns(name); gap >= 2 {
		title = pad(title, p.Width-columns(name)) + name
	} else {
		title += "  " + name
	}
	if columns(title) <= p.Width {
		p.line(title)
	} else {
		p.para("", title)
	}
	p.line(p.rule(p.Width))
	if t.Question != "" {
		p.para("", t.Question)
	}
	p.items(t)
	p.line("")

	p.grid(t)

	var width int
	for _, v := range t.Grid {
		width = max(width, columns(p.own(v.Name)))
	}
	width = min(width, p.Width/4)
	for _, v := range t.Grid {
		p.why(v, width)
	}
	p.decisions(t)
	if p.Verbose {
		p.details(t)
	}
}

func (p *printer) items(t table) {
	if p.Verbose {
		for _, it := range t.Items {
			p.para("  "+p.own(it.Name)+"  ", it.Kind+", "+it.Place)
		}
		return
	}
	var items []string
	for _, it := range t.Items {
		items = append(items, it.Name+" ("+it.Kind+")")
	}
	if len(items) > 0 {
		p.para("Data: ", strings.Join(items, ", "))
	}
}

// cell is what stands in one place of the grid, a span per line.
type cell []span

func (c cell) columns() int {
	n := 0
	for _, s := range c {
		n = max(n, columns(s.text))
	}
	return n
}

// outcome is a verdict's cell: sign and word, then what is loud about it.
func (p *printer) outcome(vs []experiment.Verdict, partly bool) cell {
	var c cell
	for _, v := range vs {
		if v.Judgement == experiment.Skipped {
			c = append(c, span{p.none() + " skipped", styleLoud})
			continue
		}
		c = append(c, span{sign(v.Outcome, p.Unicode) + " " + p.own(v.Outcome.String()), style(v.Outcome)})
		if partly && !v.Written {
			c = append(c, span{"  not written", ""})
		}
		if m := alarm(v); m != "" {
			c = append(c, span{"  " + m + ":", styleLoud})
		}
		if m := remark(v); m != "" {
			c = append(c, span{"  " + p.own(m), ""})
		}
	}
	if c == nil {
		c = cell{{p.none(), ""}}
	}
	return c
}

func (p *printer) none() string {
	if p.Unicode {
		return "–"
	}
	return "-"
}

func (p *printer) written(w string) cell {
	switch w {
	case "yes":
		return cell{{sign(scenarios.Survived, p.Unicode) + " yes", style(scenarios.Survived)}}
	case "no":
		return cell{{p.none() + " no", ""}}
	}
	return cell{{"  " + w, ""}}
}

const styleLoud = "1" // bold

// style is an outcome's colour. Cyan and yellow stay apart in every common
// kind of colour blindness, on dark and light ground; signs and words carry
// the meaning anyway.
func style(o scenarios.Outcome) string {
	switch o {
	case scenarios.Survived:
		return "36"
	case scenarios.Lost:
		return "33"
	case scenarios.Changed:
		return "35"
	case scenarios.Refused:
		return "34"
	}
	return styleLoud
}

const gap = 2 // columns between columns

// grid writes the table. Checkpoints that do not fit beside each other go
// into further blocks below, each with its row names.
func (p *printer) grid(t table) {
	names, items := columns("variant"), columns("item")
	for _, v := range t.Grid {
		names = max(names, columns(p.own(v.Name)))
		for _, r := range v.Rows {
			items = max(items, columns(p.own(r.Item)))
		}
	}
	names, items = min(names, p.Width/4), min(items, p.Width/5)
	written := columns("written")
	left := names + gap + items + gap + written
	room := p.Width - left - gap // for checkpoints

	// A column is as wide as its outcomes, and wider for a heading only
	// where there is room.
	widths := make([]int, len(t.Checkpoints))
	for i := range t.Checkpoints {
		widths[i] = columns("? unknown")
		for _, v := range t.Grid {
			if v.Skipped != "" {
				continue
			}
			for _, r := range v.Rows {
				widths[i] = max(widths[i], p.outcome(r.Cells[i], r.Written == "partly").columns())
			}
		}
		widths[i] = min(widths[i], room)
	}
	sum := 0
	for i, c := range t.Checkpoints {
		sum += max(widths[i], columns(p.own(c))) + gap
	}
	for i, c := range t.Checkpoints {
		if sum-gap <= room {
			widths[i] = max(widths[i], columns(p.own(c)))
		}
	}

	for from := 0; from == 0 || from < len(widths); {
		to, used := from, 0
		for to < len(widths) && (to == from || used+gap+widths[to] <= room) {
			if to > from {
				used += gap
			}
			used += widths[to]
			to++
		}
		p.block(t, from, to, []int{names, items, written}, widths)
		from = max(to, 1)
	}
}

// block writes the part of the grid with the checkpoints from … to-1.
func (p *printer) block(t table, from, to int, left, checkpoints []int) {
	widths := append(slices.Clone(left), checkpoints[from:to]...)
	indent := 0
	for _, w := range left {
		indent += w + gap
	}
	if to > from {
		used := -gap
		for _, w := range checkpoints[from:to] {
			used += w + gap
		}
		p.line(strings.Repeat(" ", indent) + "came back " + p.rule(max(used-columns("came back "), 0)))
	}
	head := []cell{{{"variant", ""}}, {{"item", ""}}, {{"written", ""}}}
	for _, c := range t.Checkpoints[from:to] {
		head = append(head, cell{{p.own(c), ""}})
	}
	var rules []cell
	for _, w := range widths {
		rules = append(rules, cell{{p.rule(w), ""}})
	}
	p.row(head, widths)
	p.row(rules, widths)

	for _, v := range t.Grid {
		name := p.own(v.Name)
		switch {
		case v.Skipped != "":
			text := "SKIPPED: " + p.own(v.Skipped)
			w := []int{left[0], p.Width - left[0] - gap}
			c := cell{}
			for _, l := range wrap(text, w[1]) {
				c = append(c, span{l, ""})
			}
			p.row([]cell{{{name, ""}}, c}, w)
		case len(v.Rows) == 0:
			p.row([]cell{{{name, ""}}, {{p.none(), ""}}}, widths)
		}
		for _, r := range v.Rows {
			if v.Skipped != "" {
				break
			}
			cells := []cell{{{name, ""}}, {{p.own(r.Item), ""}}, p.written(r.Written)}
			for i := from; i < to; i++ {
				cells = append(cells, p.outcome(r.Cells[i], r.Written == "partly"))
			}
			p.row(cells, widths)
			name = ""
		}
		p.line("")
	}
}

// row writes one row of cells, as many lines high as its highest cell.
func (p *printer) row(cells []cell, widths []int) {
	high := 0
	for i, c := range cells {
		var fitted cell
		for _, s := range c {
			if columns(s.text) <= widths[i] {
				fitted = append(fitted, s)
				continue
			}
			for _, l := range wrapCell(s.text, widths[i]) {
				fitted = append(fitted, span{l, s.style})
			}
		}
		cells[i] = fitted
		high = max(high, len(fitted))
	}
	for l := range high {
		var spans []any
		for i, c := range cells {
			s := span{}
			if l < len(c) {
				s = c[l]
			}
			spans = append(spans, s, strings.Repeat(" ", max(widths[i]-columns(s.text), 0)+gap))
		}
		p.line(spans...)
	}
}

// why writes a variant's notes behind its name.
func (p *printer) why(v variant, width int) {
	name := wrapCell(p.own(v.Name), width)
	for _, n := range v.Notes {
		text := p.own(n.Text)
		if n.About != "" {
			text = p.own(n.About) + ": " + text
		}
		for i, l := range wrap(n.Mark+" "+text, p.Width-width-gap) {
			label := ""
			if len(name) > 0 {
				label, name = name[0], name[1:]
			}
			label = pad(label, width+gap)
			if rest, ok := strings.CutPrefix(l, n.Mark); ok && i == 0 {
				p.line(label, span{n.Mark, styleLoud}, rest)
			} else {
				p.line(label + l)
			}
		}
	}
	if len(v.Notes) > 0 {
		for _, n := range name {
			p.line(n)
		}
	}
}

// details writes what exactly was found, and the commands.
func (p *printer) details(t table) {
	for _, v := range t.Grid {
		p.line("")
		p.line(p.own(v.Name))
		for _, r := range v.Rows {
			for _, c := range r.Cells {
				for _, d := range c {
					if d.Detail != "" {
						p.para("  ", d.Checkpoint+", "+d.Item+": "+d.Detail)
					}
				}
			}
		}
		for _, c := range v.Commands {
			p.line("  $ " + visible(c)) // never wrapped: it is there to be pasted
		}
	}
}

func (p *printer) engine(r *experiment.Report) {
	p.line(p.rule(p.Width))
	var short []string
	var long []fact
	for _, f := range facts(r.Engine) {
		switch f.Name {
		case "engine", "mode", "system":
			short = append(short, f.Value)
		case "reached at", "adjusted":
			long = append(long, f)
		case "boot id":
			if p.Verbose {
				long = append(long, f)
			}
		default:
			short = append(short, f.Name+" "+f.Value)
		}
	}
	p.para("", strings.Join(short, ", "))
	for _, f := range long {
		p.para(f.Name+" ", f.Value)
	}
}
