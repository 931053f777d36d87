package picture

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

//go:embed picture.html.tmpl picture.css picture.js
var assets embed.FS

// CSS and Script are what a page with pictures needs once. Both are constant,
// so a page's security policy can name them by their hashes.
func CSS() string    { return asset("picture.css") }
func Script() string { return asset("picture.js") }

func asset(name string) string {
	b, err := assets.ReadFile(name)
	if err != nil {
		panic(err) // embedded: it is there
	}
	return string(b)
}

// Legend explains the signs, once for a page.
func Legend() string {
	return "● just written, and read back · ? nobody has looked since · ✓ survived · ✗ lost · ≠ changed · ⊘ refused"
}

// HTML is the picture as part of a page: an ordered list of stills. Script
// makes a player of it where there is script and no wish for reduced motion.
// id must be unique in the page, and a plain word.
func (p *Picture) HTML(id string) (template.HTML, error) {
	size := p.measure()
	type still struct {
		Frame
		ID    string
		Shape *shape
	}
	var stills []still
	for i, f := range p.Frames {
		stills = append(stills, still{f, fmt.Sprintf("%s-%d", id, i+1), size.draw(&f)})
	}
	page, err := template.New("picture.html.tmpl").Funcs(template.FuncMap{"clean": clean}).ParseFS(assets, "picture.html.tmpl")
	if err != nil {
		return "", fmt.Errorf("draw the picture: %w", err)
	}
	var b bytes.Buffer
	err = page.Execute(&b, map[string]any{"ID": id, "Variant": p.Variant, "Stills": stills, "N": len(stills)})
	if err != nil {
		return "", fmt.Errorf("draw the picture: %w", err)
	}
	return template.HTML(b.String()), nil
}

// clean makes text of a scenario or engine one line that steers nothing.
func clean(s string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, s)), " ")
}

// Sizes, in the picture's own units: a CSS pixel where it is 360 wide.
const (
	width   = 360
	left    = 18 // of a container
	indent  = 34 // of a store
	pad     = 8
	line    = 17 // of small text
	pill    = 24
	between = 12
	letter  = 7.2 // an average one of 12 px, on the safe side
)

// shape is a drawn frame.
type shape struct {
	W, H  int
	Boxes []box
	Lines []path
	Texts []text
}

type box struct {
	X, Y, W, H, R int
	Class         string
}

type path struct{ D, Class string }

type text struct {
	X, Y  int
	Class string
	S     string
}

// sizes are what all frames of a picture share, so that things stay in place.
type sizes struct {
	memory, layer []int // lines of pills, by container
	store         []int
}

func (p *Picture) measure() *sizes {
	s := &sizes{}
	for _, f := range p.Frames {
		if s.memory == nil {
			s.memory, s.layer = slices.Repeat([]int{1}, len(f.Containers)), slices.Repeat([]int{1}, len(f.Containers))
			s.store = slices.Repeat([]int{1}, len(f.Stores))
		}
		for i, c := range f.Containers {
			s.memory[i] = max(s.memory[i], pillLines(c.Memory, width-left-4*pad))
			s.layer[i] = max(s.layer[i], pillLines(c.Layer, width-left-4*pad))
		}
		for i, st := range f.Stores {
			s.store[i] = max(s.store[i], pillLines(st.Items, width-indent-3*pad))
		}
	}
	return s
}

func pillLines(items []Item, room int) int {
	lines, x := 1, 0
	for _, it := range items {
		w := pillWidth(it, room)
		if x > 0 && x+w > room {
			lines, x = lines+1, 0
		}
		x += w + 6
	}
	return lines
}

// pillWidth has room for the longest an item can say, so that it stays where
// it is.
func pillWidth(it Item, room int) int {
	return min(room, int(float64(utf8.RuneCountInString(clean(it.Name))+2+len(" survived"))*letter)+16)
}

var signs = map[Status]string{
	Written: "●", Unseen: "?", Failed: "⊘", Present: "✓", Missing: "–",
	Survived: "✓", Lost: "✗", Changed: "≠", Refused: "⊘", Unknown: "?",
}

// Sign is the item's mark, which tells statuses apart without colour; "" for
// one that is planned.
func (it Item) Sign() string { return signs[it.Status] }

func (it Item) says() string {
	s := strings.TrimSpace(signs[it.Status] + " " + clean(it.Name))
	switch it.Status {
	case Written, Unseen, Planned:
		return s
	case Failed:
		return s + " refused"
	case Missing:
		return s + " not there"
	case Present:
		return s + " there"
	}
	return s + " " + string(it.Status)
}

// fit shortens text to a width.
func fit(s string, room int) string {
	n := int(float64(room) / letter)
	if r := []rune(s); len(r) > n {
		return string(r[:max(1, n-1)]) + "…"
	}
	return s
}

// draw draws a frame.
func (s *sizes) draw(f *Frame) *shape {
	d := &shape{W: width}
	y := 2
	bottoms := map[string]int{}
	for i, c := range f.Containers {
		y = d.container(&c, y, s.memory[i], s.layer[i])
		bottoms[c.Name] = y - between - 20
	}
	for i, st := range f.Stores {
		y = d.store(&st, y, s.store[i], bottoms, f.Containers)
	}
	d.H = y - between + 4
	return d
}

func class(base string, state State, isNew bool) string {
	switch {
	case state == Absent:
		base += " absent"
	case state == Gone:
		base += " gone"
	case isNew:
		base += " new"
	}
	return base
}

// kind is what a container is called in its head.
func (c *Container) kind() string {
	if c.Machine {
		return "virtual machine"
	}
	return "container " + clean(c.Name)
}

// memory is what its memory is called.
func (c *Container) memory() string {
	if c.Machine {
		return "memory, and all that is on no disk"
	}
	return "memory of process 1"
}

func (d *shape) container(c *Container, y, memory, layer int) int {
	x, w := left, width-left-2
	memoryH, layerH := line+memory*pill+pad, line+layer*pill+pad
	imageH := 2*6 + line + 4
	h := line + pad + memoryH + layerH + imageH + 4*4 + pad
	if c.Machine {
		h = line + pad + memoryH + 2*4 + pad
	}
	d.Boxes = append(d.Boxes, box{x, y, w, h, 8, class("outline", c.State, c.New)})
	head := c.kind()
	switch c.State {
	case Absent:
		head += ": not there"
	case Gone:
		head += " " + c.ID + ": gone"
	default:
		if c.ID != "" {
			head += " " + c.ID
		}
		if c.Word != "" {
			head += ", " + c.Word
		}
	}
	d.Texts = append(d.Texts, text{x + pad, y + line, "head", fit(head, w-2*pad)})
	if c.State == Absent {
		return y + h + between
	}
	part := c.State // its parts share the container's fate
	at := y + line + pad + 2
	inner := func(h int, class, label string, items []Item) {
		d.Boxes = append(d.Boxes, box{x + pad, at, w - 2*pad, h, 4, class})
		d.Texts = append(d.Texts, text{x + 2*pad, at + line - 3, "label", fit(label, w-4*pad)})
		d.pills(items, x+2*pad, at+line, w-4*pad, c.State)
		at += h + 4
	}
	if c.Process {
		inner(memoryH, class("memory", part, c.Started), c.memory(), c.Memory)
	} else {
		label := "no process"
		if c.Machine {
			label = "no memory: it is off"
		}
		state := Gone
		if c.State == There && c.Word == "created" {
			label, state = "no process yet", Absent
		}
		inner(memoryH, class("memory", state, false), label, nil)
	}
	if c.Machine {
		return y + h + between
	}
	if c.ReadOnly {
		inner(layerH, class("layer", Absent, false), "no writable layer (--read-only)", c.Layer)
	} else {
		inner(layerH, class("layer", part, c.New), "writable layer, its own", c.Layer)
	}
	for i := range 3 { // sheets, one behind the other
		d.Boxes = append(d.Boxes, box{x + pad, at + 6*i, w - 2*pad, line + 4, 4, "image"})
	}
	d.Texts = append(d.Texts, text{x + 2*pad, at + 12 + line - 2, "label", "image layers, read-only"})
	return y + h + between
}

func (d *shape) store(s *Store, y, lines int, bottoms map[string]int, containers []Container) int {
	x, w := indent, width-indent-2
	h := 2*line + lines*pill + pad
	if s.State == Absent {
		return y + h + between
	}
	mid := y + h/2
	mounted := false
	for _, c := range containers {
		if c.State == There && slices.Contains(s.users, c.Name) {
			d.Lines = append(d.Lines, path{fmt.Sprintf("M%d %d H8 V%d H%d", left, bottoms[c.Name], mid, x), class("mount", There, s.New || c.New)})
			mounted = true
		}
	}
	d.Boxes = append(d.Boxes, box{x, y, w, h, 8, class("store", s.State, s.New)})
	d.Texts = append(d.Texts, text{x + pad, y + line - 1, "head", fit(clean(s.Name), w-2*pad)})
	label := "not mounted now"
	switch {
	case s.State == Gone:
		label = "gone"
	case mounted:
		label = "mounted " + clean(list(s.Mounted))
	}
	d.Texts = append(d.Texts, text{x + pad, y + 2*line - 2, "label", fit(label, w-2*pad)})
	d.pills(s.Items, x+pad, y+2*line, w-2*pad, s.State)
	return y + h + between
}

func (d *shape) pills(items []Item, x, y, room int, state State) {
	at := x
	for _, it := range items {
		w := pillWidth(it, room)
		if at > x && at+w > x+room {
			at, y = x, y+pill
		}
		says := it.says()
		drawn := min(w, int(float64(utf8.RuneCountInString(says))*letter)+16)
		d.Boxes = append(d.Boxes, box{at, y + 3, drawn, pill - 5, 9, class("pill "+string(it.Status), There, it.New && state == There)})
		d.Texts = append(d.Texts, text{at + 7, y + 17, "item " + string(it.Status), fit(says, drawn-8)})
		at += w + 6
	}
}
