package matrix

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"strings"
)

// The poster's measures, in millimetres: an A4 sheet on its side, less the
// margins.
const (
	sheetWidth  = 281.0
	sheetHeight = 194.0
	topLine     = 5.0  // where the title stands
	gridTop     = 48.0 // below the events' names
	footRoom    = 13.0 // the legend and the engine
	nameWidth   = 38.0 // the mount kinds' names
	most        = 9.0  // a cell at its largest
)

// paint is how an outcome is drawn: a ground, and on it a letter and a shape,
// so that no two look alike in black and white or to any eyes.
type paint struct {
	fill, ink string
	letter    string
	shape     string // an SVG path in a box of 10 × 10
	dashed    bool
}

var paints = map[Outcome]paint{
	Survived:      {fill: "#d9ecff", ink: "#00365f", letter: "S", shape: "M1.5 5.5 L4 8 L8.5 2"},
	Lost:          {fill: "#4a4a4a", ink: "#ffffff", letter: "L", shape: "M2 2 L8 8 M8 2 L2 8"},
	Changed:       {fill: "#ffe08a", ink: "#3d2c00", letter: "C", shape: "M1.5 3.5 H8.5 M1.5 6.5 H8.5 M7.5 1 L2.5 9"},
	Refused:       {fill: "#ffffff", ink: "#000000", letter: "R", shape: "M5 1.5 A3.5 3.5 0 1 0 5.01 1.5 M2.6 7.4 L7.4 2.6"},
	EventRefused:  {fill: "#f0c3dd", ink: "#4a0030", letter: "E", shape: "M5 1 L9 8.5 H1 Z M5 4 V6 M5 7 V7.4"},
	NotApplicable: {fill: "#ffffff", ink: "#8a8a8a", letter: "", shape: "M4.6 5 H5.4"},
	Skipped:       {fill: "#ffffff", ink: "#555555", letter: "", shape: "M2 5 H8", dashed: true},
	Varies:        {fill: "#e6e6e6", ink: "#000000", letter: "V", shape: "M1 6 C3 2 5 2 5 5 C5 8 7 8 9 4"},
	Unknown:       {fill: "#ffffff", ink: "#b00000", letter: "?", shape: "", dashed: true},
}

// HTML writes a poster: one page that needs nothing else, in one drawing that
// fills an A4 sheet on its side and shrinks or grows with the screen. Each
// cell's title says in words what it shows.
func HTML(w io.Writer, t *Table, _ Options) error {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width">
<title>What survives what</title>
<style>
@page { size: A4 landscape; margin: 8mm }
* { -webkit-print-color-adjust: exact; print-color-adjust: exact }
body { margin: 0; background: #fff; color: #000; font-family: "DejaVu Sans", Verdana, Arial, sans-serif }
main { max-width: 400mm; margin: 0 auto; padding: 4mm }
svg { display: block; width: 100%; height: auto }
section { font-size: 10pt; line-height: 1.4; margin-top: 6mm }
li { overflow-wrap: anywhere }
@media print { main { padding: 0; max-width: none } svg { max-height: 193mm } section { break-before: page } }
</style>
</head>
<body>
<main>
`)
	t.drawing(out)
	if lines := t.special(); len(lines) > 0 {
		fmt.Fprint(out, "<section>\n<h2>Why</h2>\n<ul>\n")
		for _, line := range lines {
			fmt.Fprintf(out, "<li>%s</li>\n", html.EscapeString(line))
		}
		fmt.Fprint(out, "</ul>\n</section>\n")
	}
	fmt.Fprint(out, "</main>\n</body>\n</html>\n")
	return out.Flush()
}

// drawing is the table as one SVG.
func (t *Table) drawing(out io.Writer) {
	groups := t.groups(1 << 20)
	gap := 1.2 // between groups
	across := min((sheetWidth-nameWidth-gap*float64(len(groups)-1)-10)/float64(len(t.Events)), most)
	down := min((sheetHeight-gridTop-footRoom)/float64(len(t.Mounts)), most*0.8)
	// Names at a slant reach to the right of the last column.
	width := max(nameWidth+across*float64(len(t.Events))+gap*float64(len(groups)-1)+10, 150)
	height := gridTop + down*float64(len(t.Mounts)) + footRoom
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.1f %.1f" role="img" aria-label="What survives what: mount kinds by events">`+"\n", width, height)
	text := func(x, y, size float64, more, s string) {
		fmt.Fprintf(out, `<text x="%.2f" y="%.2f" font-size="%.2f" %s>%s</text>`+"\n", x, y, size, more, html.EscapeString(s))
	}
	text(0, topLine, 4.6, `font-weight="bold"`, "What survives what")
	text(0, topLine+4.2, 2.3, "", "rows: where it was written")
	text(0, topLine+7.2, 2.3, "", "columns: what happened then")

	// A lying word is cheaper to read than a standing one: the names lean.
	size := min(across*0.42, 2.7)
	x := nameWidth
	for g, group := range groups {
		left := x
		for _, e := range group.events {
			cx := x + across*0.62
			fmt.Fprintf(out, `<text transform="translate(%.2f %.2f) rotate(-62)" font-size="%.2f">%s</text>`+"\n", cx, gridTop-1, size, html.EscapeString(t.Events[e].Name))
			for m := range t.Mounts {
				t.drawCell(out, t.Cell(m, e), x, gridTop+down*float64(m), across, down)
			}
			x += across
		}
		fmt.Fprintf(out, `<path d="M%.2f %.2f H%.2f" stroke="#000" stroke-width="0.4"/>`+"\n", left, gridTop-0.3, x)
		if g < len(groups)-1 {
			x += gap
		}
	}
	nameSize := min(down*0.68, 2.9)
	for m, k := range t.Mounts {
		text(nameWidth-1, gridTop+down*(float64(m)+0.5)+nameSize*0.35, nameSize, `text-anchor="end"`, k.Name)
	}
	t.drawLegend(out, gridTop+down*float64(len(t.Mounts))+3, width)
	fmt.Fprint(out, "</svg>\n")
}

func (t *Table) drawCell(out io.Writer, c *Cell, x, y, w, h float64) {
	p := paints[c.Outcome]
	edge := `stroke="#999" stroke-width="0.12"`
	if p.dashed {
		edge = `stroke="#777" stroke-width="0.15" stroke-dasharray="0.5 0.4"`
	}
	title := fmt.Sprintf("%s, %s: %s", c.Mount, c.Event, c.Outcome)
	if c.Detail != "" {
		title += ": " + oneLine(c.Detail)
	}
	if c.Against != nil {
		title += fmt.Sprintf(" (%s: %s)", t.Compared, *c.Against)
	}
	fmt.Fprintf(out, `<g><title>%s</title><rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="%s" %s/>`, html.EscapeString(title), x, y, w, h, p.fill, edge)
	if c.Differs() {
		drawDifference(out, c.Outcome, *c.Against, x, y, w, h)
	} else {
		drawMark(out, p, x, y, w, h)
	}
	fmt.Fprint(out, "</g>\n")
}

// drawDifference draws, in a thick frame, the letter of an outcome and beside
// it, black on white whatever the ground, that of the other engine's.
func drawDifference(out io.Writer, here, there Outcome, x, y, w, h float64) {
	size := min(h*0.72, w*0.42)
	fmt.Fprintf(out, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="#fff"/>`, x+w*0.54, y, w*0.46, h)
	letter := func(at float64, o Outcome, weight, ink string) {
		l := paints[o].letter
		if l == "" {
			l = o.mark(false)
		}
		fmt.Fprintf(out, `<text x="%.2f" y="%.2f" font-size="%.2f" font-weight="%s" text-anchor="middle" fill="%s">%s</text>`, x+w*at, y+h/2+size*0.36, size, weight, ink, html.EscapeString(l))
	}
	letter(0.31, here, "bold", paints[here].ink)
	letter(0.74, there, "normal", "#000")
	fmt.Fprintf(out, `<rect x="%.2f" y="%.2f" width="%.2f" height="%.2f" fill="none" stroke="#000" stroke-width="0.4"/>`, x+0.2, y+0.2, w-0.4, h-0.4)
}

// drawMark draws the letter and the shape side by side.
func drawMark(out io.Writer, p paint, x, y, w, h float64) {
	size := min(h*0.72, w*0.42)
	middle := x + w/2
	if p.letter != "" && p.shape != "" {
		middle = x + w*0.68
	}
	if p.letter != "" {
		at := x + w*0.30
		if p.shape == "" {
			at = middle
		}
		fmt.Fprintf(out, `<text x="%.2f" y="%.2f" font-size="%.2f" font-weight="bold" text-anchor="middle" fill="%s">%s</text>`, at, y+h/2+size*0.36, size, p.ink, p.letter)
	}
	if p.shape != "" {
		scale := size / 10
		fmt.Fprintf(out, `<path transform="translate(%.2f %.2f) scale(%.3f)" d="%s" fill="none" stroke="%s" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"/>`,
			middle-size/2, y+h/2-size/2, scale, p.shape, p.ink)
	}
}

// drawLegend draws what the marks mean, then the engine and the counts.
func (t *Table) drawLegend(out io.Writer, y, width float64) {
	const box, size = 5.5, 2.2
	x := 0.0
	entry := func(draw func(x, y float64), words string) {
		need := box + 1 + float64(len([]rune(words)))*size*0.56 + 3
		if x > 0 && x+need > width {
			x, y = 0, y+3.6
		}
		draw(x, y-2.4)
		fmt.Fprintf(out, `<text x="%.2f" y="%.2f" font-size="%.2f">%s</text>`+"\n", x+box+1, y-0.1, size, html.EscapeString(words))
		x += need
	}
	for _, o := range t.used() {
		p := paints[o]
		entry(func(x, y float64) {
			dash := ""
			if p.dashed {
				dash = ` stroke-dasharray="0.5 0.4"`
			}
			fmt.Fprintf(out, `<rect x="%.2f" y="%.2f" width="%.2f" height="3" fill="%s" stroke="#999" stroke-width="0.12"%s/>`, x, y, box, p.fill, dash)
			drawMark(out, p, x, y, box, 3)
		}, shortMeaning[o])
	}
	if t.Compared != "" {
		entry(func(x, y float64) {
			drawDifference(out, Survived, Refused, x, y, box, 3)
		}, "differs: the thin letter is what "+t.Compared+" said")
	}
	fmt.Fprintf(out, `<text x="0" y="%.2f" font-size="1.9" fill="#333">%s</text>`+"\n", y+4, html.EscapeString(strings.Join([]string{t.onWhat(), t.Summary(), t.Tool}, " · ")))
}

// shortMeaning is the legend of the poster.
var shortMeaning = map[Outcome]string{
	Survived: "survived", Lost: "lost", Changed: "something else is there", Refused: "could not be written at all",
	EventRefused: "podman refused the event", NotApplicable: "not applicable", Skipped: "this engine can't",
	Varies: "varies from run to run", Unknown: "could not be observed",
}
