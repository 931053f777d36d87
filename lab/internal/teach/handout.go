package teach

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/picture"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// Handout is a worksheet: text, commands to type by hand and a table to fill
// in, or, with Answers, what the teacher needs.
type Handout struct {
	Answers bool
	Parts   []Worksheet
}

// Worksheet is one scenario on paper.
type Worksheet struct {
	Lesson   string // title, where a new lesson begins; "" else
	Text     string // the lesson's
	Scenario *scenarios.Scenario
	Plans    []*experiment.Plan
}

// sheet is a worksheet made ready for a format.
type sheet struct {
	Lesson     string
	LessonText [][]span
	Title      string
	Name       string
	About      [][]span
	Items      [][2]string
	Question   []span
	Columns    []string
	Rows       [][]string
	Variants   []sheetVariant
	Beliefs    [][]span
	Hints      [][]span
}

type sheetVariant struct {
	Name    string
	Picture string
	Script  string
	Explain []span
}

// span is a piece of a line of an author's Markdown: of its marks only code
// and emphasis are understood.
type span struct{ Text, Kind string } // Kind: "", code, em

// spans reads one paragraph.
func spans(text string) []span {
	var out []span
	for i, piece := range strings.Split(text, "`") {
		if i%2 == 1 {
			out = append(out, span{report.Line(piece), "code"})
			continue
		}
		for j, p := range strings.Split(piece, "*") {
			kind := ""
			if j%2 == 1 {
				kind = "em"
			}
			if p != "" {
				out = append(out, span{strings.ReplaceAll(p, "\n", " "), kind})
			}
		}
	}
	return out
}

func paragraphs(text string) [][]span {
	var out [][]span
	for _, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if strings.TrimSpace(p) != "" {
			out = append(out, spans(p))
		}
	}
	return out
}

func (h Handout) sheets() []sheet {
	var out []sheet
	for _, w := range h.Parts {
		s := w.Scenario
		sh := sheet{
			Lesson: w.Lesson, LessonText: paragraphs(w.Text), Title: s.Title, Name: s.Name,
			About: paragraphs(s.About), Question: spans(strings.TrimSpace(s.Question)),
		}
		for _, it := range s.Data {
			sh.Items = append(sh.Items, [2]string{it.Name, experiment.PlaceOf(it)})
		}
		sh.Columns = []string{"variant", "item", "look", "I predict", "sure?", "I saw"}
		if h.Answers {
			sh.Columns = []string{"variant", "item", "look", "comes back"}
		}
		for _, q := range Questions(s) {
			row := []string{q.Variant, q.Item, q.Checkpoint}
			if h.Answers {
				row = append(row, expectation(s, q.Variant, q.Checkpoint, q.Item))
			} else {
				row = append(row, "", "", "")
			}
			sh.Rows = append(sh.Rows, row)
		}
		built := experiment.Summarize(s, w.Plans).Variants
		for i, p := range w.Plans {
			v := sheetVariant{
				Name:    p.Variant.Name,
				Picture: strings.Join(Picture(picture.Built(built[i].Containers, h.Answers), Look{Width: 80, Unicode: true}), "\n"),
				Script:  strings.TrimSpace(p.Script()),
			}
			if h.Answers {
				v.Explain = spans(strings.TrimSpace(p.Variant.Explain))
			}
			sh.Variants = append(sh.Variants, v)
		}
		if h.Answers {
			for _, m := range s.Misconceptions {
				about := ""
				for _, where := range []string{m.Item, m.Variant, m.Checkpoint} {
					if where != "" {
						about += where + ", "
					}
				}
				sh.Beliefs = append(sh.Beliefs, spans(fmt.Sprintf("%spredicted *%s*: “%s” %s", about, m.Predicted, strings.TrimSpace(m.Belief), strings.TrimSpace(m.Answer))))
			}
			for _, hint := range Hints(s) {
				sh.Hints = append(sh.Hints, spans(strings.TrimSpace(hint)))
			}
		}
		out = append(out, sh)
	}
	return out
}

// expectation is what is expected, with the engines it depends on.
func expectation(s *scenarios.Scenario, variant, checkpoint, item string) string {
	for _, v := range s.Variants {
		if v.Name != variant {
			continue
		}
		var parts []string
		for _, r := range v.Expect[checkpoint][item].Rules {
			text := r.Outcome.String()
			if r.When != "" {
				text += " (" + r.When + ")"
			} else if len(parts) > 0 {
				text += " (else)"
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, ", ")
	}
	return ""
}

// Markdown writes the handout as Markdown.
func (h Handout) Markdown(w io.Writer) error {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	text := func(ss []span) string {
		out := ""
		for _, s := range ss {
			switch s.Kind {
			case "code":
				out += "`" + s.Text + "`"
			case "em":
				out += "*" + report.MarkdownText(s.Text) + "*"
			default:
				out += keepEnds(s.Text)
			}
		}
		return strings.TrimSpace(out)
	}
	for i, s := range h.sheets() {
		if i > 0 {
			line("\n---\n")
		}
		if s.Lesson != "" {
			line("# %s\n", report.MarkdownText(s.Lesson))
			for _, p := range s.LessonText {
				line("%s\n", text(p))
			}
		}
		line("## %s\n", report.MarkdownText(s.Title))
		if !h.Answers {
			line("Name: ______________________  Date: ____________\n")
		}
		for _, p := range s.About {
			line("%s\n", text(p))
		}
		for _, it := range s.Items {
			line("- **%s**: %s", report.MarkdownText(it[0]), report.MarkdownText(it[1]))
		}
		if len(s.Question) > 0 {
			line("\n**%s**", text(s.Question))
		}
		line("\n| %s |\n%s|", strings.Join(s.Columns, " | "), strings.Repeat("|---", len(s.Columns)))
		for _, r := range s.Rows {
			for j, c := range r {
				if c == "" {
					c = "&nbsp;"
				} else {
					c = report.MarkdownText(c)
				}
				r[j] = c
			}
			line("| %s |", strings.Join(r, " | "))
		}
		line("")
		for _, v := range s.Variants {
			line("### %s\n\n```text\n%s\n```\n", report.MarkdownText(v.Name), fence(v.Picture))
			if len(v.Explain) > 0 {
				line("%s\n", text(v.Explain))
			}
			if !h.Answers {
				line("```sh\n%s\n```\n", fence(v.Script))
			}
		}
		if len(s.Beliefs) > 0 {
			line("### Wrong predictions, and what answers them\n")
			for _, m := range s.Beliefs {
				line("- %s", text(m))
			}
			line("")
		}
		if len(s.Hints) > 0 {
			line("### Hints, from gentle to plain\n")
			for j, m := range s.Hints {
				line("%d. %s", j+1, text(m))
			}
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// keepEnds escapes text and keeps the space at its ends.
func keepEnds(s string) string {
	out := report.MarkdownText(s)
	if strings.HasPrefix(s, " ") {
		out = " " + out
	}
	if strings.HasSuffix(s, " ") && strings.TrimSpace(s) != "" {
		out += " "
	}
	return out
}

// fence keeps text inside its code block.
func fence(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.ReplaceAll(strings.TrimRight(report.Visible(l), " "), "```", "` ` `")
	}
	return strings.Join(lines, "\n")
}

//go:embed handout.html.tmpl
var handoutPage string

// HTML writes the handout as one page to print: no script, no font, no
// picture from elsewhere.
func (h Handout) HTML(w io.Writer) error {
	page, err := template.New("handout").Funcs(template.FuncMap{
		"clean": report.Line, "visible": fence,
		"style": func() template.CSS { return template.CSS(report.Style()) },
	}).Parse(handoutPage)
	if err != nil {
		return fmt.Errorf("write the handout: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, struct {
		Answers bool
		Sheets  []sheet
	}{h.Answers, h.sheets()}); err != nil {
		return fmt.Errorf("write the handout: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
