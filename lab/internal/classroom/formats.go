package classroom

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"persistencelab/lab/internal/format"
	"persistencelab/lab/internal/picture"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// Options are how a table is written.
type Options struct {
	View
	By      Rows
	LeftOut []error // what could not be read: named in the formats for people
	Width   int     // text: columns, 0 for 80
	Unicode bool    // text: signs beyond ASCII
	Refresh int     // html: seconds after which a browser loads the page again, 0 for never
	Roster  Roster  // gradebooks: who a learner is there
	// Pictures gives a scenario's pictures, a variant each; html draws them.
	// nil for none.
	Pictures func(s *Scenario) []*picture.Picture
}

// Format is one way to write a table.
type Format = format.Format[*Table, Options]

// Formats lists every format, the default one first.
func Formats() format.List[*Table, Options] {
	return format.List[*Table, Options]{
		{Name: "text", Ext: ".txt", Write: Text},
		{Name: "markdown", Ext: ".md", Write: Markdown},
		{Name: "html", Ext: ".html", Write: HTML},
		{Name: "csv", Ext: ".csv", Write: CSV},
		{Name: "json", Ext: ".json", Write: JSON},
		{Name: "gradebook-moodle", Write: Moodle},
		{Name: "gradebook-canvas", Write: Canvas},
	}
}

// Text writes the table for a terminal. No line is longer than Width, unless
// the columns can't be made narrower.
func Text(w io.Writer, t *Table, o Options) error {
	o.Width = max(cmp.Or(o.Width, 80), 40)
	d := t.read(o.By, o.View, o.LeftOut)
	var b bytes.Buffer
	rule := "-"
	if o.Unicode {
		rule = "─"
	}
	line := func(s string) { fmt.Fprintln(&b, strings.TrimRight(s, " ")) }
	para := func(s string) {
		for _, l := range report.Wrap(report.Line(s), o.Width) {
			line(l)
		}
	}
	line(d.Title)
	line(strings.Repeat(rule, o.Width))
	for _, f := range d.Facts {
		para(f)
	}
	for _, p := range d.Parts {
		line("")
		para(p.Title)
		grid(p, o.Width, rule, line)
		for _, n := range p.Notes {
			para(n)
		}
	}
	text := b.String()
	if !o.Unicode {
		text = report.ASCII(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

// grid writes one table, its columns as narrow as the width asks.
func grid(p part, width int, rule string, line func(string)) {
	rows := append([][]string{p.Columns}, p.Rows...)
	widths, word := make([]int, len(p.Columns)), make([]int, len(p.Columns))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], report.Columns(report.Line(c)))
			for _, w := range strings.Fields(c) {
				word[i] = max(word[i], report.Columns(w))
			}
		}
	}
	room := width - 2*(len(widths)-1)
	narrow(widths, room, word)
	narrow(widths, room, make([]int, len(widths))) // then through words
	for n, r := range rows {
		cells := make([][]string, len(r))
		height := 1
		for i, c := range r {
			cells[i] = report.WrapCell(report.Line(c), widths[i])
			height = max(height, len(cells[i]))
		}
		for h := range height {
			text := ""
			for i := range cells {
				c := ""
				if h < len(cells[i]) {
					c = cells[i][h]
				}
				text += report.Pad(c, widths[i])
				if i < len(cells)-1 {
					text += "  "
				}
			}
			line(text)
		}
		if n == 0 {
			text := ""
			for i, c := range widths {
				text += strings.Repeat(rule, c)
				if i < len(widths)-1 {
					text += "  "
				}
			}
			line(text)
		}
	}
}

// narrow takes columns off the widest that is above its floor until the row
// fits or none is left.
func narrow(widths []int, room int, floor []int) {
	for {
		sum, widest := 0, -1
		for i, n := range widths {
			sum += n
			if n > max(floor[i], 6) && (widest < 0 || n > widths[widest]) {
				widest = i
			}
		}
		if sum <= room || widest < 0 {
			return
		}
		widths[widest]--
	}
}

// Markdown writes the same as GitHub tables.
func Markdown(w io.Writer, t *Table, o Options) error {
	d := t.read(o.By, o.View, o.LeftOut)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n\n", d.Title)
	for _, f := range d.Facts {
		fmt.Fprintf(&b, "- %s\n", report.MarkdownText(f))
	}
	for _, p := range d.Parts {
		fmt.Fprintf(&b, "\n## %s\n\n|", report.MarkdownText(p.Title))
		for _, c := range p.Columns {
			fmt.Fprintf(&b, " %s |", report.MarkdownText(c))
		}
		fmt.Fprintf(&b, "\n%s|\n", strings.Repeat("|---", len(p.Columns)))
		for _, r := range p.Rows {
			b.WriteString("|")
			for _, c := range r {
				fmt.Fprintf(&b, " %s |", report.MarkdownText(c))
			}
			b.WriteByte('\n')
		}
		for _, n := range p.Notes {
			fmt.Fprintf(&b, "\n%s\n", report.MarkdownText(n))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

//go:embed class.html.tmpl
var classPage string

//go:embed class.css
var classStyle string

// drawn are the pictures of one scenario.
type drawn struct {
	Title, Name string
	Happened    bool // in steps; else how it is built
	Variants    []drawnVariant
}

type drawnVariant struct {
	Name    string
	Picture template.HTML
}

// draw makes the pictures of the table's scenarios.
func (t *Table) draw(o Options) (all []drawn, err error) {
	if o.Pictures == nil {
		return nil, nil
	}
	for i := range t.Scenarios {
		s := &t.Scenarios[i]
		d := drawn{Title: cmp.Or(s.Title, s.Name), Name: s.Name}
		for j, p := range o.Pictures(s) {
			v := drawnVariant{Name: p.Variant}
			if v.Picture, err = p.HTML(fmt.Sprintf("picture-%d-%d", i+1, j+1)); err != nil {
				return nil, err
			}
			d.Variants, d.Happened = append(d.Variants, v), d.Happened || len(p.Frames) > 1
		}
		if len(d.Variants) > 0 {
			all = append(all, d)
		}
	}
	return all, nil
}

// HTML writes one page that needs nothing else: no font, no file, no network;
// its content security policy allows its own style and script, by their
// hashes. It reads in black and white and prints on A4. A page that is loaded
// again and again has no script: its pictures are strips of stills.
func HTML(w io.Writer, t *Table, o Options) error {
	pictures, err := t.draw(o)
	if err != nil {
		return fmt.Errorf("write the class table as html: %w", err)
	}
	style, script := "\n"+report.Style()+classStyle, ""
	if len(pictures) > 0 {
		style += picture.CSS()
		if o.Refresh == 0 {
			script = "\n" + picture.Script()
		}
	}
	page, err := template.New("class").Funcs(template.FuncMap{
		"clean":  report.Line,
		"style":  func() template.CSS { return template.CSS(style) },
		"script": func() template.JS { return template.JS(script) },
		"policy": func() string { return report.Policy(style, script) },
		"legend": picture.Legend,
		"happened": func(ds []drawn) bool {
			return slices.ContainsFunc(ds, func(d drawn) bool { return d.Happened })
		},
		"class": func(cell string) string { // an outcome's word has its colour
			for _, o := range []scenarios.Outcome{scenarios.Survived, scenarios.Lost, scenarios.Changed, scenarios.Refused} {
				if cell == o.String() {
					return cell
				}
			}
			return ""
		},
	}).Parse(classPage)
	if err != nil {
		return fmt.Errorf("write the class table as html: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, struct {
		document
		Refresh  int
		Pictures []drawn
	}{t.read(o.By, o.View, o.LeftOut), o.Refresh, pictures}); err != nil {
		return fmt.Errorf("write the class table as html: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// CSV writes a line per learner, question and round, with what came back: it
// is for the teacher's spreadsheet, not for the projector. Anonymous leaves
// out names and nicknames.
func CSV(w io.Writer, t *Table, o Options) error {
	rows := [][]string{{"learner", "session", "scenario", "hash", "round", "variant", "item", "checkpoint", "predicted", "sure",
		"seen", "actual", "expected", "verdict", "right", "misconception", "hints", "sealed", "engine"}}
	for _, l := range t.Answers {
		a, r := l.Answer, l.Round
		sure, right := "", ""
		if a.Sure != nil {
			sure = fmt.Sprint(*a.Sure)
		}
		x := a.Result
		if x == nil {
			x = &Result{}
		}
		if x.Actual != scenarios.Unknown {
			right = fmt.Sprint(x.Actual == a.Predicted)
		}
		session := l.Attempt.Session
		if o.Anonymous {
			session = ""
		}
		rows = append(rows, []string{o.name(l.Learner), session, r.Scenario, r.Hash, fmt.Sprint(l.Number),
			a.Variant, a.Item, a.Checkpoint, a.Predicted.String(), sure, x.Seen, x.Actual.String(), x.Expected.String(),
			string(x.Judgement), right, x.Misconception, fmt.Sprint(r.Hints), r.Sealed.UTC().Format(time.RFC3339), engineOf(r)})
	}
	return writeCSV(w, rows)
}

func writeCSV(w io.Writer, rows [][]string) error {
	var b bytes.Buffer
	c := csv.NewWriter(&b)
	for _, r := range rows {
		for i := range r {
			r[i] = safeCell(r[i])
		}
		_ = c.Write(r) // into memory; Error has it
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// safeCell is one line that no spreadsheet runs. A dash alone is none.
func safeCell(s string) string {
	if s == "-" {
		return s
	}
	return report.NotFormula(report.Line(s))
}
