package teach

import (
	"context"
	"fmt"
	"io"
	"strings"

	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// Keys gives a learner's keys.
type Keys interface {
	// Keys gives the next keys for what is asked: one or several, in order.
	// "\n" is Enter. An io.EOF means that no more will come.
	Keys(ctx context.Context, a Ask) (string, error)
}

// Moment is what a key is asked for.
type Moment string

// Moments.
const (
	GoOn    Moment = "go on"   // something was read
	Predict Moment = "predict" // one question, before the run
	Seal    Moment = "seal"    // all predictions of a scenario are there
	See     Moment = "see"     // one question, after the run
)

// Ask is what a key is asked for.
type Ask struct {
	Moment   Moment
	Scenario string
	Question classroom.Question
	Shown    scenarios.Outcome // See: what the evidence on the screen shows
}

// Console is where a lesson is shown. Nothing it writes moves the cursor.
type Console struct {
	Look
	Out   io.Writer
	Color bool
	Keys  Keys
	// Echo: keys are not shown by whoever gives them.
	Echo bool

	err error
}

// write is the one place where text goes out; a failed write ends the lesson
// at the next question.
func (c *Console) write(s string) {
	if !c.Unicode {
		s = report.ASCII(s)
	}
	if _, err := io.WriteString(c.Out, s); err != nil && c.err == nil {
		c.err = err
	}
}

func (c *Console) line(s string) { c.write(strings.TrimRight(s, " ") + "\n") }

// para writes wrapped text with an indent.
func (c *Console) para(indent int, text string) {
	in := strings.Repeat(" ", indent)
	for _, l := range report.Wrap(report.Line(text), c.Width-indent) {
		c.line(in + l)
	}
}

// label writes wrapped text behind a label.
func (c *Console) label(label, text string) {
	for i, l := range report.Wrap(report.Line(text), c.Width-report.Columns(label)) {
		if i > 0 {
			label = strings.Repeat(" ", report.Columns(label))
		}
		c.line(label + l)
	}
}

// prose writes paragraphs that are apart by empty lines.
func (c *Console) prose(text string) {
	for i, p := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			c.line("")
		}
		c.para(0, markdown.Replace(p))
	}
}

// markdown takes the marks out of a text that is shown as it is.
var markdown = strings.NewReplacer("**", "", "*", "", "`", "")

// heading starts a part.
func (c *Console) heading(text string) {
	text = report.Line(text)
	c.line("")
	if c.Plain {
		c.line(text)
		return
	}
	dash := "-"
	if c.Unicode {
		dash = "─"
	}
	lines := report.Wrap(text, c.Width-6)
	for i, l := range lines {
		lead, rule := strings.Repeat(dash, 2), ""
		if i > 0 {
			lead = "  "
		}
		if i == len(lines)-1 {
			rule = " " + strings.Repeat(dash, max(2, c.Width-4-report.Columns(l)))
		}
		c.line(c.bold(lead + " " + l + rule))
	}
}

// Colours, as the report's table has them: cyan and yellow stay apart in every
// common kind of colour blindness, and words carry the meaning.
func (c *Console) style(code, s string) string {
	if !c.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (c *Console) bold(s string) string { return c.style("1", s) }
func (c *Console) dim(s string) string  { return c.style("2", s) }

// command writes a podman line; one that is too long goes on below, so that
// it can still be copied into a shell.
func (c *Console) command(line string) {
	if c.Plain {
		c.line(line)
		return
	}
	words := splitShell(report.Line(line))
	text := "  $ "
	used := len(text)
	for i, w := range words {
		n := report.Columns(w)
		switch {
		case i == 0:
		case used+1+n > c.Width-2:
			c.line(c.dim(text + ` \`))
			text, used = "      ", 6
		default:
			text, used = text+" ", used+1
		}
		text, used = text+w, used+n
	}
	c.line(c.dim(text))
}

// comment stands among commands; every line of it is a comment to a shell.
func (c *Console) comment(text string) {
	for _, l := range report.Wrap(report.Line(text), c.Width-4) {
		c.line("  # " + l)
	}
}

// splitShell splits a line at its spaces, but not inside single quotes.
func splitShell(line string) []string {
	var words []string
	quoted, start := false, 0
	for i, r := range line {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == ' ' && !quoted:
			words, start = append(words, line[start:i]), i+1
		}
	}
	return append(words, line[start:])
}

// ask shows a prompt and gives the keys pressed.
func (c *Console) ask(ctx context.Context, prompt string, a Ask) (string, error) {
	c.write(prompt)
	if c.err != nil {
		return "", c.err
	}
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	return c.Keys.Keys(ctx, a)
}

// echo shows what a key meant, where the prompt stands.
func (c *Console) echo(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if c.Echo {
		c.line(text)
		return
	}
	c.line("  " + text)
}
