package compare

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"persistencelab/lab/internal/format"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// Options are what the person asking can choose. The zero value is safe
// anywhere: 80 columns, ASCII signs.
type Options struct {
	Width   int
	Unicode bool
}

// Format is one way to write a comparison.
type Format = format.Format[*Comparison, Options]

// Formats lists every format, the default one first.
func Formats() format.List[*Comparison, Options] {
	return format.List[*Comparison, Options]{
		{Name: "text", Ext: ".txt", Write: Text},
		{Name: "json", Ext: ".json", Write: JSON},
		{Name: "markdown", Ext: ".md", Write: Markdown},
	}
}

// Text writes the comparison for people: what happened in sentences, then a
// line per place, then the whole in one.
func Text(w io.Writer, c *Comparison, o Options) error {
	var b bytes.Buffer
	width := o.Width
	if width == 0 {
		width = 80
	}
	para := func(sign, text string) {
		for i, line := range report.Wrap(report.Line(text), max(width, 48)-2) {
			if i > 0 {
				sign = " "
			}
			fmt.Fprintf(&b, "%s %s\n", sign, line)
		}
	}
	fmt.Fprintf(&b, "first   %s\nsecond  %s\n\n", report.Line(c.First.line()), report.Line(c.Second.line()))
	for _, f := range c.Findings {
		sign := " "
		if f.Warning {
			sign = "!"
		}
		para(sign, f.Text)
	}
	if len(c.Places) > 0 {
		b.WriteByte('\n')
	}
	for _, p := range c.Places {
		para(sign(p.Outcome, o.Unicode), p.Text)
	}
	b.WriteByte('\n')
	para(" ", c.Summary)
	_, err := w.Write(b.Bytes())
	return err
}

func (s Source) line() string {
	line := s.Name + ", " + s.Made
	if !s.At.IsZero() {
		line += ", " + s.At.UTC().Format("2006-01-02 15:04:05 MST")
	}
	return line
}

func sign(o scenarios.Outcome, unicode bool) string {
	signs := map[scenarios.Outcome]string{scenarios.Survived: "+", scenarios.Lost: "x", scenarios.Changed: "~", scenarios.Refused: "!"}
	if unicode {
		signs = map[scenarios.Outcome]string{scenarios.Survived: "✓", scenarios.Lost: "✗", scenarios.Changed: "≠", scenarios.Refused: "⊘"}
	}
	if s := signs[o]; s != "" {
		return s
	}
	return "?"
}

// JSON writes the comparison as one document.
func JSON(w io.Writer, c *Comparison, _ Options) error {
	d := *c
	d.Findings, d.Places = append([]Finding{}, d.Findings...), append([]Place{}, d.Places...)
	return report.Document(w, &d)
}

// Markdown writes the comparison as GitHub's tables and lists.
func Markdown(w io.Writer, c *Comparison, _ Options) error {
	var b bytes.Buffer
	md := report.MarkdownText
	fmt.Fprintf(&b, "**%s**\n\n- first: %s\n- second: %s\n\n", md(c.Summary), md(c.First.line()), md(c.Second.line()))
	for _, f := range c.Findings {
		text := md(f.Text)
		if f.Warning {
			text = "**" + text + "**"
		}
		fmt.Fprintf(&b, "- %s\n", text)
	}
	if len(c.Places) > 0 {
		b.WriteString("\n| place | storage | rows | outcome | |\n|---|---|---|---|---|\n")
	}
	for _, p := range c.Places {
		on := p.Storage.First
		if p.Storage.Second != on {
			on += " → " + p.Storage.Second
		}
		text := strings.TrimPrefix(p.Text, p.Path+": ")
		fmt.Fprintf(&b, "| %s | %s | %d → %d | %s %s | %s |\n", md(p.Path), md(on), p.Rows.First, p.Rows.Second, sign(p.Outcome, true), p.Outcome, md(text))
	}
	_, err := w.Write(b.Bytes())
	return err
}
