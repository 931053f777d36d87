package drill

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"persistencelab/lab/internal/format"
	"persistencelab/lab/internal/report"
)

// Options are what the person asking can choose.
type Options struct {
	Width   int // columns of the text format; 0 means 80
	Unicode bool
}

// Format is one way to write a report.
type Format = format.Format[*Report, Options]

// Formats lists every format, the default one first.
func Formats() format.List[*Report, Options] {
	return format.List[*Report, Options]{
		{Name: "text", Ext: ".txt", Write: Text},
		{Name: "json", Ext: ".json", Write: JSON},
		{Name: "markdown", Ext: ".md", Write: Markdown},
	}
}

// JSON writes the report as one indented document.
func JSON(w io.Writer, r *Report, _ Options) error { return report.Document(w, r) }

// word is a verdict for people.
func (v Verdict) word() string {
	if v == NotTried {
		return "not tried"
	}
	return string(v)
}

// Text writes the steps, what was lost, and what was not tried.
func Text(w io.Writer, r *Report, o Options) error {
	width := max(o.Width, 48)
	if o.Width == 0 {
		width = 80
	}
	var b bytes.Buffer
	para := func(label, text string) {
		indent := strings.Repeat(" ", len(label)) // labels are ASCII
		for i, l := range report.Wrap(report.Line(text), width-len(label)) {
			if i == 0 {
				fmt.Fprintln(&b, label+l)
			} else {
				fmt.Fprintln(&b, indent+l)
			}
		}
	}
	for _, d := range r.Drills {
		para("", "Restart drill: "+d.Subject)
		b.WriteByte('\n')
		for _, s := range d.Steps {
			word := s.Verdict.word()
			if s.Verdict == Failed || s.Verdict == Unknown {
				word = strings.ToUpper(word)
			}
			para(fmt.Sprintf("%d. ", s.Number), fmt.Sprintf("%s: %s", s.Title, word))
			if s.Command != "" {
				fmt.Fprintf(&b, "   $ %s\n", report.Visible(s.Command)) // never wrapped: it is there to be pasted
			}
			for _, seen := range s.Seen {
				para("   - ", seen)
			}
		}
		b.WriteByte('\n')
		para("", d.lostLine())
		for _, l := range d.Losses {
			para("   - ", l.line())
		}
		b.WriteByte('\n')
		para("", "This drill did not try:")
		for _, n := range d.NotCovered {
			para("   - ", n)
		}
		if d.Fault != "" {
			b.WriteByte('\n')
			para("", "ENDED EARLY: "+d.Fault)
		}
		b.WriteByte('\n')
	}
	para("", r.engineLine())
	para("", r.summary())
	text := b.String()
	if !o.Unicode {
		text = report.ASCII(text)
	}
	_, err := io.WriteString(w, text)
	return err
}

func (d *Drill) lostLine() string {
	if len(d.Losses) == 0 {
		return "Nothing was lost. That says as much as the drill tried, and no more:"
	}
	return "What was lost:"
}

func (l Loss) line() string {
	s := fmt.Sprintf("%s (%s), by %s: %s", l.What, l.Where, l.When, l.Detail)
	switch {
	case l.Accepted != "":
		return s + "; accepted: " + l.Accepted
	case l.Decided:
		return s + "; NOT ACCEPTED"
	}
	return s + "; NOBODY DECIDED what may be lost of it"
}

func (r *Report) engineLine() string {
	who := "rootful"
	if r.Engine.Rootless {
		who = "rootless"
	}
	return fmt.Sprintf("Podman %s, %s, storage %s, %s", r.Engine.Version, who, r.Engine.StorageDriver, r.Engine.OS)
}

func (r *Report) summary() string {
	c := Count(r)
	return fmt.Sprintf("%d losses accepted, %d not; %d steps failed, %d unknown; in %.1f s", c.Accepted, c.NotAccepted, c.Failed, c.Unknown, r.Took.Seconds())
}

// Markdown writes what Text does.
func Markdown(w io.Writer, r *Report, _ Options) error {
	var b bytes.Buffer
	md := report.MarkdownText
	for _, d := range r.Drills {
		fmt.Fprintf(&b, "## Restart drill: %s\n\n| | step | seen | |\n|---|---|---|---|\n", md(d.Subject))
		for _, s := range d.Steps {
			var seen []string
			for _, t := range s.Seen {
				seen = append(seen, md(t))
			}
			word := s.Verdict.word()
			if s.Verdict == Failed || s.Verdict == Unknown {
				word = "**" + strings.ToUpper(word) + "**"
			}
			fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", s.Number, md(s.Title), strings.Join(seen, "; "), word)
		}
		fmt.Fprintf(&b, "\n**%s**\n\n", md(d.lostLine()))
		for _, l := range d.Losses {
			fmt.Fprintf(&b, "- %s\n", md(l.line()))
		}
		fmt.Fprintf(&b, "\nThis drill did not try:\n\n")
		for _, n := range d.NotCovered {
			fmt.Fprintf(&b, "- %s\n", md(n))
		}
		if d.Fault != "" {
			fmt.Fprintf(&b, "\n**ENDED EARLY**: %s\n", md(d.Fault))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s. %s\n", md(r.engineLine()), md(r.summary()))
	_, err := w.Write(b.Bytes())
	return err
}
