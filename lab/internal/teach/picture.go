package teach

import (
	"slices"
	"strings"

	"persistencelab/lab/internal/picture"
	"persistencelab/lab/internal/report"
)

// Look is how something is drawn.
type Look struct {
	Width   int  // columns
	Unicode bool // box drawing and signs beyond ASCII
	Plain   bool // for a screen reader: sentences, no drawing
}

// Picture draws a frame of package picture as text: memory and layers inside
// the outline of a container, and the stores outside it.
func Picture(f picture.Frame, look Look) []string {
	if look.Plain {
		return sentences(f, look)
	}
	d := &drawn{look: look, frame: f, named: map[int]bool{}}
	for _, c := range f.Containers {
		d.container(c)
	}
	for i, s := range f.Stores { // what no container that is there mounts
		if s.State != picture.Absent && !d.named[i] {
			d.outside("", d.store(i))
		}
	}
	return d.lines
}

type drawn struct {
	look  Look
	frame picture.Frame
	named map[int]bool // stores that are drawn already
	lines []string
}

// items are data items with the mark of what is known of each.
func (l Look) items(items []picture.Item) []string {
	var out []string
	for _, it := range items {
		name := report.Line(it.Name)
		if sign := l.sign(it); sign != "" {
			name = sign + " " + name
		}
		out = append(out, name)
	}
	return out
}

func (l Look) sign(it picture.Item) string {
	if l.Unicode {
		return it.Sign()
	}
	switch it.Status {
	case picture.Written:
		return "*"
	case picture.Survived, picture.Present:
		return "+"
	case picture.Lost, picture.Missing:
		return "x"
	case picture.Changed:
		return "~"
	case picture.Refused, picture.Failed:
		return "!"
	case picture.Planned:
		return ""
	}
	return "?"
}

// legend explains the marks, those of the picture and of the strip; no mark
// stands apart from its meaning.
func (l Look) legend() []string {
	text := picture.Legend()
	if !l.Unicode {
		text = "* just written, and read back · ? nobody has looked since · + survived · x lost · ~ changed · ! refused"
	}
	tokens := strings.Split(text, " · ")
	for i := range tokens[:len(tokens)-1] {
		tokens[i] += ";"
	}
	return pack(tokens, l.Width-2)
}

func with(text string, items []string) string {
	if len(items) > 0 {
		text += ": " + strings.Join(items, ", ")
	}
	return text
}

// store is a store as it stands beside an outline; what is in it is said where
// it is drawn first.
func (d *drawn) store(i int) string {
	s := d.frame.Stores[i]
	name := report.Line(s.Name)
	switch {
	case d.named[i]:
		return "[ " + name + ", the same ]"
	case s.State == picture.Gone:
		name += ", gone"
	case s.State == picture.Absent:
		name += ", not there yet"
	case len(s.Mounted) == 0:
		name += ", not mounted now"
	}
	d.named[i] = true
	return "[ " + with(name, d.look.items(s.Items)) + " ]"
}

// outside writes what stands below an outline.
func (d *drawn) outside(mark, what string) {
	label := "    "
	if mark != "" {
		label += mark + " "
	}
	for i, l := range report.WrapCell(what, d.look.Width-report.Columns(label)) {
		if i > 0 {
			label = strings.Repeat(" ", report.Columns(label))
		}
		d.lines = append(d.lines, label+l)
	}
}

func (d *drawn) container(c picture.Container) {
	h, v, tl, tr, bl, br, link := "-", "|", "+", "+", "+", "+", "|=="
	if d.look.Unicode {
		h, v, tl, tr, bl, br, link = "─", "│", "┌", "┐", "└", "┘", "╞══"
	}
	head := "container " + report.Line(c.Name)
	if c.Machine {
		head = "virtual machine"
	}
	switch c.State {
	case picture.Absent:
		d.outside("", "("+head+": not there)")
		return
	case picture.Gone:
		d.outside("", "("+strings.TrimSpace(head+" "+c.ID)+": gone)")
		return
	}
	if c.ID != "" {
		head += " " + c.ID
	}
	if c.Word != "" {
		head += ", " + c.Word
	}
	head = " " + head + " "
	rows := []string{"no process"}
	if c.Process {
		rows = []string{with(memoryOf(c), d.look.items(c.Memory))}
	}
	switch {
	case c.Machine:
	case c.ReadOnly:
		rows = append(rows, "no writable layer (--read-only)", "image layers, read-only")
	default:
		rows = append(rows, with("writable layer, its own", d.look.items(c.Layer)), "image layers, read-only")
	}
	inside := 26
	for _, r := range append(slices.Clone(rows), head) {
		inside = max(inside, report.Columns(r)+2)
	}
	inside = min(inside, max(20, d.look.Width-7-len(c.Mounts))) // with room for a mark for each mount
	head = report.WrapCell(head, inside-3)[0]
	d.lines = append(d.lines, "  "+tl+h+" "+strings.TrimSpace(head)+" "+strings.Repeat(h, max(0, inside-3-report.Columns(strings.TrimSpace(head))))+tr)
	boxed := func(text, tail string) {
		for i, l := range report.WrapCell(text, inside-2) {
			end := v
			if i == 0 && tail != "" {
				end = tail
			}
			d.lines = append(d.lines, "  "+v+" "+report.Pad(l, inside-2)+" "+end)
		}
	}
	for _, r := range rows {
		boxed(r, "")
	}
	var below []string
	for _, m := range c.Mounts {
		what := d.store(m.Store)
		if report.Columns(what) <= d.look.Width-inside-9 {
			boxed(report.Line(m.Target), link+" "+what)
			continue
		}
		// Too wide to stand beside the outline: below it.
		below = append(below, what)
		boxed(report.Line(m.Target), link+" "+strings.Repeat("*", len(below)))
	}
	d.lines = append(d.lines, "  "+bl+strings.Repeat(h, inside)+br)
	for i, b := range below {
		d.outside(strings.Repeat("*", i+1), b)
	}
}

// sentences say what the drawing shows.
func sentences(f picture.Frame, look Look) []string {
	var lines []string
	say := func(text string, items []picture.Item) {
		if held := look.items(items); len(held) > 0 {
			text += ", holding " + report.List(held)
		}
		lines = append(lines, report.Wrap(text+".", look.Width)...)
	}
	for _, c := range f.Containers {
		name, writable := "Container "+report.Line(c.Name), "its own writable layer"
		if c.Machine {
			name = "The virtual machine"
		}
		if c.ReadOnly {
			writable = "no writable layer (--read-only)"
		}
		switch {
		case c.State != picture.There:
			say(name+" is not there", nil)
			continue
		case !c.Process:
			say(name+" has no process", nil)
		default:
			say(name+" has, from the inside out: the "+memoryOf(c), c.Memory)
		}
		if !c.Machine {
			say(writable, c.Layer)
			say("image layers, read-only", nil)
		}
	}
	for _, s := range f.Stores {
		if s.State == picture.There {
			say(where(s), s.Items)
		}
	}
	return lines
}

// where says what a store is, and where it is mounted.
func where(s picture.Store) string {
	if len(s.Mounted) == 0 {
		return "Outside, not mounted now: " + report.Line(s.Name)
	}
	return "Outside, mounted " + report.Line(report.List(s.Mounted)) + ": " + report.Line(s.Name)
}

// Outside says in a line each what is outside the containers of a frame, and
// which have no writable layer inside.
func Outside(f picture.Frame) []string {
	var lines []string
	for _, c := range f.Containers {
		if c.ReadOnly {
			lines = append(lines, "Container "+report.Line(c.Name)+" has no writable layer (--read-only).")
		}
	}
	for _, s := range f.Stores {
		if s.State == picture.There {
			lines = append(lines, where(s)+".")
		}
	}
	if len(lines) == 0 {
		lines = []string{"Nothing is mounted."}
	}
	return lines
}

func memoryOf(c picture.Container) string {
	if c.Machine {
		return "memory, and all that is on no disk"
	}
	return "memory of process 1"
}

// Strip draws a whole run: a line for each step, and a column for each place
// that something can lie in. Where so many columns do not fit, each step says
// which places it changed.
func Strip(p *picture.Picture, look Look) []string {
	if look.Plain {
		return stripInWords(p, look)
	}
	steps := look.steps(p)
	names := placesOf(p)
	widths := make([]int, len(names)+1)
	widths[0] = len("step")
	for _, st := range steps {
		widths[0] = min(max(widths[0], report.Columns(st.title)), 26)
		for i, cell := range st.cells {
			for _, token := range cell {
				widths[i+1] = max(widths[i+1], report.Columns(token))
			}
		}
	}
	for i, name := range names {
		for _, word := range strings.Fields(name) {
			widths[i+1] = max(widths[i+1], report.Columns(word))
		}
	}
	room := look.Width - 2
	for _, w := range widths {
		room -= w + 2
	}
	if room+2 < 0 {
		return look.list(steps, names)
	}
	// What is left over goes to the columns that would take more lines.
	for i := 0; room+2 > 0 && i < 200; i++ {
		wider := 1 + i%len(names)
		want := report.Columns(names[wider-1])
		for _, st := range steps {
			want = max(want, report.Columns(strings.Join(st.cells[wider-1], " ")))
		}
		if widths[wider] < want {
			widths[wider]++
			room--
		}
	}
	var lines []string
	row := func(cells [][]string) {
		height := 1
		for _, c := range cells {
			height = max(height, len(c))
		}
		for n := range height {
			line := " "
			for i, c := range cells {
				text := ""
				if n < len(c) {
					text = c[n]
				}
				line += " " + report.Pad(text, widths[i]) + " "
			}
			lines = append(lines, strings.TrimRight(line, " "))
		}
	}
	head, rule := [][]string{{"step"}}, [][]string{{}}
	for i, name := range names {
		head, rule = append(head, report.Wrap(name, widths[i+1])), append(rule, nil)
	}
	dash := "-"
	if look.Unicode {
		dash = "─"
	}
	for i := range rule {
		rule[i] = []string{strings.Repeat(dash, widths[i])}
	}
	row(head)
	row(rule)
	for _, st := range steps {
		cells := [][]string{report.WrapCell(st.title, widths[0])}
		for i, cell := range st.cells {
			cells = append(cells, pack(cell, widths[i+1]))
		}
		row(cells)
	}
	return lines
}

// stripStep is a step of the strip: what is said of each place.
type stripStep struct {
	title string
	cells [][]string
}

// placesOf are the places of a picture: the columns of its strip.
func placesOf(p *picture.Picture) []string {
	var names []string
	f := p.Frames[0]
	of := func(c picture.Container) string {
		if len(f.Containers) > 1 {
			return " of " + report.Line(c.Name)
		}
		return ""
	}
	for _, c := range f.Containers {
		if c.Machine {
			names = append(names, "memory of the machine")
			continue
		}
		names = append(names, "memory"+of(c), "writable layer"+of(c))
	}
	for i, s := range f.Stores {
		name := report.Line(s.Name)
		twice := func(o picture.Store) bool { return o.Name == s.Name }
		if j := slices.IndexFunc(f.Stores, twice); j < i || slices.ContainsFunc(f.Stores[i+1:], twice) {
			name += " at " + report.Line(targetOf(f, i))
		}
		names = append(names, name)
	}
	return names
}

// targetOf is where a store is mounted, by the first container that does.
func targetOf(f picture.Frame, store int) string {
	for _, c := range f.Containers {
		for _, m := range c.Mounts {
			if m.Store == store {
				return m.Target
			}
		}
	}
	return ""
}

func (l Look) steps(p *picture.Picture) []stripStep {
	var out []stripStep
	for _, f := range p.Frames {
		st := stripStep{title: report.Line(f.Title)}
		for _, c := range f.Containers {
			memory, layer := l.items(c.Memory), l.items(c.Layer)
			switch {
			case c.State == picture.Absent:
				memory, layer = nil, nil
			case c.State == picture.Gone:
				memory, layer = []string{"gone"}, []string{"gone"}
			case !c.Process:
				memory = []string{"no process"}
				if c.Machine {
					memory = []string{"off"}
				}
			case c.Started:
				memory = append([]string{"new:"}, orEmpty(memory)...)
			default:
				memory = orEmpty(memory)
			}
			if c.State == picture.There {
				switch {
				case c.ReadOnly:
					layer = append([]string{"none"}, layer...)
				case c.New:
					layer = append([]string{"new:"}, orEmpty(layer)...)
				default:
					layer = orEmpty(layer)
				}
			}
			st.cells = append(st.cells, memory)
			if !c.Machine {
				st.cells = append(st.cells, layer)
			}
		}
		for _, s := range f.Stores {
			items := l.items(s.Items)
			switch {
			case s.State == picture.Absent:
				items = nil
			case s.State == picture.Gone:
				items = []string{"gone"}
			case s.New:
				items = append([]string{"new:"}, orEmpty(items)...)
			default:
				items = orEmpty(items)
			}
			st.cells = append(st.cells, items)
		}
		out = append(out, st)
	}
	return out
}

// orEmpty says that there is a place, with nothing of the scenario's in it.
func orEmpty(items []string) []string {
	if len(items) == 0 {
		return []string{"-"}
	}
	return items
}

// list is the strip where its columns do not fit.
func (l Look) list(steps []stripStep, names []string) []string {
	var lines []string
	before := make([]string, len(names))
	for _, st := range steps {
		lines = append(lines, "  "+st.title)
		for i, cell := range st.cells {
			text := strings.Join(cell, " ")
			if text == "" {
				text = "not there"
			}
			if text == before[i] || before[i] == "" && text == "not there" {
				continue
			}
			before[i] = text
			label := "    " + names[i] + ": "
			for j, line := range pack(cell, l.Width-report.Columns(label)) {
				if j > 0 {
					label = strings.Repeat(" ", report.Columns(label))
				}
				lines = append(lines, label+line)
			}
		}
	}
	return lines
}

// pack puts as many tokens on a line as go there; none is broken that fits.
func pack(tokens []string, width int) []string {
	var lines []string
	line := ""
	for _, token := range tokens {
		switch {
		case line == "":
			line = token
		case report.Columns(line)+1+report.Columns(token) <= width:
			line += " " + token
		default:
			lines, line = append(lines, line), token
		}
	}
	lines = append(lines, line)
	var out []string
	for _, l := range lines {
		out = append(out, report.WrapCell(l, width)...)
	}
	return out
}

// stripInWords tells the steps one after the other.
func stripInWords(p *picture.Picture, look Look) []string {
	var lines []string
	for _, f := range p.Frames {
		text := report.Line(f.Title) + ". " + report.Line(strings.Join(f.Says, " "))
		for i, l := range report.Wrap(text, look.Width-4) {
			indent := "  "
			if i > 0 {
				indent = "    "
			}
			lines = append(lines, indent+l)
		}
	}
	return lines
}
