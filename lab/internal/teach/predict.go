package teach

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/picture"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// keyOf are the keys of the outcomes. A capital adds that one is sure.
var keyOf = map[scenarios.Outcome]rune{scenarios.Survived: 'y', scenarios.Lost: 'n', scenarios.Changed: 'c', scenarios.Refused: 'r'}

// says are outcomes as answers to "is it still there?".
var says = map[scenarios.Outcome]string{
	scenarios.Survived: "survives", scenarios.Lost: "lost", scenarios.Changed: "there, but changed", scenarios.Refused: "can't be written at all",
}

func outcomeOf(key rune, choices []scenarios.Outcome) (scenarios.Outcome, bool) {
	for _, o := range choices {
		if keyOf[o] == key {
			return o, true
		}
	}
	return scenarios.Unknown, false
}

// predict asks all questions of a scenario and seals the answers. Every answer
// is kept at once.
func (t *Tutor) predict(ctx context.Context, s *scenarios.Scenario, plans []*experiment.Plan, qs []classroom.Question) (*classroom.Round, error) {
	c := &t.Console
	d := t.Progress.Draft
	if d == nil || d.Scenario != s.Name || d.Hash != s.Hash || !d.fits(qs) {
		d = &Draft{Scenario: s.Name, Hash: s.Hash}
	}
	if n := len(d.Answers); n > 0 {
		c.line("")
		c.para(0, fmt.Sprintf("%d of %d answers are there from last time (b goes back).", n, len(qs)))
	}
	choices := Choices(s)
	if t.keysSaid != fmt.Sprint(choices) {
		t.keysSaid = fmt.Sprint(choices)
		c.line("")
		t.keys(choices)
	}
	shown := "" // the variant whose picture is on the screen
	for {
		i := len(d.Answers)
		ask := Ask{Moment: Predict, Scenario: s.Name}
		var prompt string
		if i < len(qs) {
			q := qs[i]
			if q.Variant != shown {
				shown = q.Variant
				t.variant(s, plans, q.Variant)
				t.asking(qs, q)
			} else if i > 0 && qs[i-1].Checkpoint != q.Checkpoint {
				t.asking(qs, q)
			}
			ask.Question = q
			prompt = t.prompt(s, q)
		} else {
			shown = ""
			ask.Moment = Seal
			c.line("")
			prompt = fmt.Sprintf("Enter seals these %s, b goes back: ", onOff(len(qs), "prediction", "predictions"))
		}
		keys, err := c.ask(ctx, prompt, ask)
		if err != nil {
			return nil, t.ended(err)
		}
		for _, k := range keys {
			done, err := t.key(s, d, qs, choices, k)
			if err != nil || done != nil {
				return done, err
			}
		}
	}
}

// fits: the answers are to these questions, in order; another lab may ask
// others.
func (d *Draft) fits(qs []classroom.Question) bool {
	if len(d.Answers) > len(qs) {
		return false
	}
	for i, a := range d.Answers {
		if a.Question != qs[i] {
			return false
		}
	}
	return true
}

// key is one key of the prediction.
func (t *Tutor) key(s *scenarios.Scenario, d *Draft, qs []classroom.Question, choices []scenarios.Outcome, k rune) (*classroom.Round, error) {
	c := &t.Console
	n := len(d.Answers)
	lower := k
	if k >= 'A' && k <= 'Z' {
		lower += 'a' - 'A'
	}
	if o, ok := outcomeOf(lower, choices); ok && n < len(qs) {
		a := classroom.Answer{Question: qs[n], Predicted: o}
		if k != lower {
			a.Sure = new(bool)
			*a.Sure = true
		}
		d.Answers = append(d.Answers, a)
		c.echo("%s%s", says[o], sureWord(a.Sure))
		return nil, t.keepDraft(d)
	}
	switch {
	case (k == '+' || k == '-') && n > 0:
		last := &d.Answers[n-1]
		sure := k == '+'
		last.Sure = &sure
		c.echo("%s: %s%s", report.Line(last.Item), says[last.Predicted], sureWord(last.Sure))
		return nil, t.keepDraft(d)
	case k == 'b' && n > 0:
		d.Answers = d.Answers[:n-1]
		c.echo("back to %s", report.Line(qs[n-1].Item))
		return nil, t.keepDraft(d)
	case lower == 'h':
		c.echo("")
		t.hint(s, d)
		return nil, t.keepDraft(d)
	case lower == 's':
		c.echo("skip")
		return nil, errSkip
	case lower == 'q':
		c.echo("quit")
		return nil, ErrQuit
	case k == '\n' && n == len(qs):
		round, err := t.seal(s, d)
		if err != nil {
			return nil, err
		}
		c.echo("sealed at %s, seal %s", round.Sealed.Local().Format("15:04:05"), classroom.ShortSeal(round.Seal))
		return round, nil
	}
	c.echo("?")
	t.keys(choices)
	return nil, nil
}

func (t *Tutor) keepDraft(d *Draft) error {
	t.Progress.Draft = d
	return t.Progress.save()
}

// keys says which keys there are.
func (t *Tutor) keys(choices []scenarios.Outcome) {
	var parts []string
	for _, o := range choices {
		parts = append(parts, fmt.Sprintf("%c %s", keyOf[o], says[o]))
	}
	c := &t.Console
	c.label("Keys: ", strings.Join(parts, ", ")+"; a capital letter: and I am sure. + or - after an answer: sure or unsure of it. h hint, b back, s skip, q quit.")
}

// asking says which moment the next questions are about.
func (t *Tutor) asking(qs []classroom.Question, q classroom.Question) {
	c := &t.Console
	c.line("")
	c.para(0, "Predict, "+q.Variant+", "+q.Checkpoint+": what is still there?")
}

func (t *Tutor) prompt(s *scenarios.Scenario, q classroom.Question) string {
	it, _ := s.Item(q.Item)
	width := 0
	for _, it := range s.Data {
		width = max(width, report.Columns(it.Name))
	}
	if t.Console.Plain {
		return fmt.Sprintf("%s, %s: ", report.Line(q.Item), report.Line(experiment.PlaceOf(it)))
	}
	return fmt.Sprintf("  %s  %s ? ", report.Pad(report.Line(q.Item), width), t.Console.dim(report.Line(experiment.PlaceOf(it))))
}

// variant shows one variant: its picture, and the commands about to run. Of
// all but the first, only the commands that differ from the first.
func (t *Tutor) variant(s *scenarios.Scenario, plans []*experiment.Plan, name string) {
	c := &t.Console
	i := slices.IndexFunc(plans, func(p *experiment.Plan) bool { return p.Variant.Name == name })
	if i < 0 {
		return
	}
	p := plans[i]
	if len(plans) > 1 {
		c.heading(fmt.Sprintf("%s (%d of %d)", name, i+1, len(plans)))
	}
	for _, l := range Picture(picture.Built(experiment.Summarize(s, plans).Variants[i].Containers, false), c.Look) {
		c.line(l)
	}
	c.line("")
	var known []string
	same := i > 0 && slices.Equal(outline(p), outline(plans[0]))
	if same {
		for _, st := range plans[0].Steps {
			for _, cmd := range st.Commands {
				known = append(known, normal(plans[0], cmd))
			}
		}
		if !differs(p, known) {
			c.para(0, "The commands are the same.")
			return
		}
		c.para(0, "The commands are the same, but for:")
	} else {
		c.para(0, "What will run:")
	}
	for _, st := range p.Steps {
		switch {
		case st.Verb == "write" && !same:
			c.comment("write " + report.List(st.Items))
		case st.Verb == "read" && !same:
			c.comment("look " + st.Label)
		case st.Verb == "write", st.Verb == "read":
		default:
			for _, cmd := range st.Commands {
				if n := normal(p, cmd); !slices.Contains(known, n) {
					c.command(cmd)
					if same {
						known = append(known, n)
					}
				}
			}
		}
	}
}

// outline is what happens in a plan, without the details.
func outline(p *experiment.Plan) []string {
	var out []string
	for _, st := range p.Steps {
		out = append(out, st.Verb+" "+st.On+" "+st.Label)
	}
	return out
}

// differs tells whether an event's command is none of those known.
func differs(p *experiment.Plan, known []string) bool {
	for _, st := range p.Steps {
		if st.Verb == "write" || st.Verb == "read" {
			continue
		}
		for _, cmd := range st.Commands {
			if !slices.Contains(known, normal(p, cmd)) {
				return true
			}
		}
	}
	return false
}
