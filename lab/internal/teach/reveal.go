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

// reveal runs the scenario, lets the learner say what the run shows, and then
// names predicted, seen and actual, and why.
func (t *Tutor) reveal(ctx context.Context, s *scenarios.Scenario, plans []*experiment.Plan, round *classroom.Round) error {
	c := &t.Console
	facts := t.lab.Facts()
	c.heading("The run, on Podman " + facts.Version)
	verdicts := map[classroom.Question]experiment.Verdict{}
	seen := map[classroom.Question]string{}
	ran := &experiment.Report{Engine: facts, Scenarios: []experiment.ScenarioSummary{experiment.Summarize(s, plans)}}
	looking := true
	for _, p := range plans {
		c.line("")
		c.line(c.bold(report.Line(p.Variant.Name)))
		rec := t.lab.Run(ctx, p, t.step)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		judged := experiment.Judge(p, rec, facts)
		ran.Records, ran.Results = append(ran.Records, *rec), append(ran.Results, judged...)
		for _, v := range judged {
			verdicts[classroom.Question{Variant: v.Variant, Item: v.Item, Checkpoint: v.Checkpoint}] = v
			switch v.Judgement {
			case experiment.Surprised, experiment.Violated:
				t.score.Surprised++
			case experiment.NotJudged:
				t.score.Unknown++
			}
		}
		switch {
		case rec.Skipped != "":
			c.label("  skipped: ", rec.Skipped)
			continue
		case rec.Fault != "":
			c.label("  ended early: ", rec.Fault)
		}
		var err error
		if looking, err = t.look(ctx, s, p, rec, round, verdicts, seen, looking); err != nil {
			return err
		}
	}
	for i := range round.Answers {
		a := &round.Answers[i]
		a.Result = resultOf(s, *a, verdicts[a.Question], seen[a.Question])
		switch {
		case a.Result.Actual == scenarios.Unknown:
			t.score.NotCounted++
		case a.Result.Actual == a.Predicted:
			t.score.Right++
		default:
			t.score.Wrong++
		}
	}
	round.Engine, round.Finished = classroom.EngineOf(facts), t.Now().UTC().Truncate(1e6)
	if err := t.keep(); err != nil {
		return err
	}
	t.Progress.Done[s.Name] = max(t.Progress.Done[s.Name], round.Number)
	t.Progress.Skipped = slices.DeleteFunc(t.Progress.Skipped, func(n string) bool { return n == s.Name })
	if err := t.Progress.save(); err != nil {
		return err
	}
	if t.Finished != nil {
		if err := t.Finished(ctx, t.attempt, round); err != nil {
			return err
		}
	}
	t.explain(s, plans, round, ran, verdicts)
	return nil
}

// step shows a step as it begins. The commands that write and look, one for
// each item, are shown once, with the first variant.
func (t *Tutor) step(p *experiment.Plan, st experiment.PlannedStep) {
	switch first := p.Variant.Name == p.Scenario.Variants[0].Name; {
	case st.Verb == "write" && !first:
		t.Console.comment("write " + report.List(st.Items))
	case st.Verb == "read" && !first:
		t.Console.comment("look " + st.Label)
	default:
		for _, cmd := range st.Commands {
			t.Console.command(cmd)
		}
	}
}

// look shows what a run found, as it was found, and asks what that is. It
// gives false once the learner does not want to be asked any more.
func (t *Tutor) look(ctx context.Context, s *scenarios.Scenario, p *experiment.Plan, rec *experiment.Record, round *classroom.Round,
	verdicts map[classroom.Question]experiment.Verdict, seen map[classroom.Question]string, looking bool) (bool, error) {
	c := &t.Console
	said := ""
	for _, a := range round.Answers {
		if a.Variant != p.Variant.Name {
			continue
		}
		if said != a.Checkpoint {
			said = a.Checkpoint
			c.line("")
			c.para(0, "What do you see, "+a.Checkpoint+"? (y it is there as written, n it is not there, c something else is there, u can't tell, s no more of these)")
		}
		it, _ := s.Item(a.Item)
		written, found := evidence(rec, it, a.Checkpoint)
		name := "  " + report.Line(a.Item) + "  "
		c.label(name+"written: ", written)
		c.label(strings.Repeat(" ", report.Columns(name))+"found:   ", found)
		if !looking {
			continue
		}
		word, err := t.see(ctx, s.Name, a.Question, verdicts[a.Question].Outcome)
		if err != nil {
			return false, err
		}
		seen[a.Question], looking = word, word != ""
	}
	return looking, nil
}

// see asks what one item's evidence shows; "" for no answer.
func (t *Tutor) see(ctx context.Context, scenario string, q classroom.Question, shown scenarios.Outcome) (string, error) {
	c := &t.Console
	for {
		keys, err := c.ask(ctx, "  you see? ", Ask{Moment: See, Scenario: scenario, Question: q, Shown: shown})
		if err != nil {
			return "", t.ended(err)
		}
		for _, k := range keys {
			switch k {
			case 'y':
				c.echo("there, as written")
				return string(scenarios.Survived), nil
			case 'n':
				c.echo("not there")
				return string(scenarios.Lost), nil
			case 'c':
				c.echo("something else")
				return string(scenarios.Changed), nil
			case 'r':
				c.echo("it could not be written")
				return string(scenarios.Refused), nil
			case 'u':
				c.echo("can't tell")
				return scenarios.Unknown.String(), nil
			case 's':
				c.echo("no answer")
				return "", nil
			case 'q':
				c.echo("quit")
				return "", ErrQuit
			}
		}
		c.echo("y, n, c, r, u or s")
	}
}

// evidence is what a record holds of an item: what was last written before a
// checkpoint, and what was found there.
func evidence(rec *experiment.Record, it scenarios.Item, checkpoint string) (written, found string) {
	written, found = "nothing", "not looked at"
	if it.Seed {
		written = "in the image"
	}
	for _, sr := range rec.Steps {
		for _, o := range sr.Items {
			switch {
			case o.Item != it.Name:
			case sr.Verb == "write":
				written = describe(o, it)
			case sr.Verb == "read" && sr.Label == checkpoint:
				return written, describe(o, it)
			}
		}
		if sr.Error != "" && sr.Label == checkpoint {
			found = sr.Error
		}
	}
	return written, found
}

// describe is one observation as the probe gave it, without a verdict.
func describe(o experiment.Observation, it scenarios.Item) string {
	switch f := o.Found; {
	case o.Error != nil:
		return "the system said: " + o.Error.Text
	case f == nil:
		return "no answer"
	case !f.Present && it.Kind == scenarios.Memory:
		return "process 1 knows no " + it.Path
	case !f.Present:
		return "nothing at " + it.Path
	case it.Kind == scenarios.SQLite:
		return fmt.Sprintf("%s, sha256 %s", onOff(f.Rows, "row", "rows"), short(f.SHA256))
	case it.Kind == scenarios.Memory:
		return "a value, sha256 " + short(f.SHA256)
	default:
		return fmt.Sprintf("%s, sha256 %s", onOff(int(f.Size), "byte", "bytes"), short(f.SHA256))
	}
}

func short(s string) string { return s[:min(len(s), 12)] }

// explain names predicted, seen, actual and why.
func (t *Tutor) explain(s *scenarios.Scenario, plans []*experiment.Plan, round *classroom.Round, ran *experiment.Report, verdicts map[classroom.Question]experiment.Verdict) {
	c := &t.Console
	c.heading("What came back: " + s.Title)
	for _, p := range plans {
		var of []classroom.Answer
		for _, a := range round.Answers {
			if a.Variant == p.Variant.Name {
				of = append(of, a)
			}
		}
		if len(of) == 0 {
			continue
		}
		c.line("")
		c.line(c.bold(report.Line(p.Variant.Name)))
		t.compared(of)
		t.stepByStep(picture.Of(ran, s.Name, p.Variant.Name))
		t.lookAgain(s, ran, of)
		t.why(s, p, of, verdicts)
	}
	right, counted := 0, 0
	for _, a := range round.Answers {
		if a.Result.Actual != scenarios.Unknown {
			counted++
			if a.Result.Actual == a.Predicted {
				right++
			}
		}
	}
	c.line("")
	text := fmt.Sprintf("You predicted %d of %d right.", right, counted)
	if n := len(round.Answers) - counted; n > 0 {
		text += fmt.Sprintf(" %s could not be observed: not counted.", onOff(n, "outcome", "outcomes"))
	}
	c.para(0, c.bold(text))
}

// stepByStep shows what happened to each place, and, once in a lesson, what the
// marks mean.
func (t *Tutor) stepByStep(p *picture.Picture) {
	c := &t.Console
	if p == nil {
		return
	}
	c.line("")
	for _, l := range Strip(p, c.Look) {
		c.line(l)
	}
	if !t.legendSaid && !c.Plain {
		t.legendSaid = true
		for _, l := range c.Look.legend() {
			c.line("  " + l)
		}
	}
	c.line("")
}

// compared is the little table of one variant.
func (t *Tutor) compared(of []classroom.Answer) {
	c := &t.Console
	rows := [][]string{{"", "predicted", "you saw", "came back", ""}}
	for _, a := range of {
		mark := "right"
		switch {
		case a.Result.Actual == scenarios.Unknown:
			mark = "not counted"
		case a.Result.Actual != a.Predicted:
			mark = "WRONG"
			if a.Sure != nil && *a.Sure {
				mark = "WRONG, and sure of it"
			}
		}
		name := report.Line(a.Item)
		qs := make([]classroom.Question, len(of))
		for i, a := range of {
			qs[i] = a.Question
		}
		if len(checkpoints(qs)) > 1 {
			name += ", " + report.Line(a.Checkpoint)
		}
		seen := a.Result.Seen
		if seen == "" {
			seen = "-"
		}
		rows = append(rows, []string{name, a.Predicted.String() + sureWord(a.Sure), seen, a.Result.Actual.String(), mark})
	}
	if c.Plain {
		for _, r := range rows[1:] {
			c.para(2, fmt.Sprintf("%s: you predicted %s, you saw %s, it is %s: %s.", r[0], r[1], r[2], r[3], r[4]))
		}
		return
	}
	width := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, text := range r {
			width[i] = max(width[i], report.Columns(text))
		}
	}
	width[0] = min(width[0], max(12, c.Width-2-width[1]-width[2]-width[3]-width[4]-8))
	for n, r := range rows {
		for i, l := range report.WrapCell(r[0], width[0]) {
			line := "  " + report.Pad(l, width[0])
			if i == 0 {
				for j, text := range r[1:] {
					line += "  " + report.Pad(text, width[j+1])
				}
			}
			if n == 0 {
				line = c.dim(strings.TrimRight(line, " "))
			} else if strings.HasPrefix(r[4], "WRONG") {
				line = c.style("33", strings.TrimRight(line, " "))
			}
			c.line(line)
		}
	}
}

// lookAgain shows once more what was on the screen where a learner took it for
// something else.
func (t *Tutor) lookAgain(s *scenarios.Scenario, ran *experiment.Report, of []classroom.Answer) {
	for _, a := range of {
		seen, actual := a.Result.Seen, a.Result.Actual
		if seen == "" || seen == scenarios.Unknown.String() || actual == scenarios.Unknown || seen == actual.String() {
			continue
		}
		for i := range ran.Records {
			if rec := &ran.Records[i]; rec.Variant == a.Variant {
				it, _ := s.Item(a.Item)
				written, found := evidence(rec, it, a.Checkpoint)
				t.Console.para(2, fmt.Sprintf("%s: you saw “%s”, and it is “%s”. Look again. Written: %s. Found: %s.", a.Item, seen, actual, written, found))
			}
		}
	}
}

// why says why it came out so, and answers the belief behind each wrong
// prediction.
func (t *Tutor) why(s *scenarios.Scenario, p *experiment.Plan, of []classroom.Answer, verdicts map[classroom.Question]experiment.Verdict) {
	c := &t.Console
	asExpected := true
	for q, v := range verdicts {
		if q.Variant == p.Variant.Name && v.Judgement != experiment.AsExpected {
			asExpected = false
		}
	}
	if asExpected && p.Variant.Explain != "" {
		// The author's explanation speaks of what was expected.
		c.para(2, p.Variant.Explain)
	} else {
		for _, a := range of {
			v := verdicts[a.Question]
			text := v.Why
			if v.Judgement == experiment.Surprised {
				text = fmt.Sprintf("SURPRISED: %s was expected. %s", v.Expected, text)
			}
			if v.Detail != "" {
				text += " (" + v.Detail + ")"
			}
			c.label("  "+report.Line(a.Item)+": ", text)
		}
	}
	var answered []string
	for _, a := range of {
		if a.Result.Misconception == "" || slices.Contains(answered, a.Result.Misconception) {
			continue
		}
		answered = append(answered, a.Result.Misconception)
		m := MisconceptionOf(s, a.Question, a.Predicted)
		c.para(2, a.Item+": you predicted "+a.Predicted.String()+". The belief behind it may be: “"+strings.TrimSpace(m.Belief)+"” "+strings.TrimSpace(m.Answer))
	}
}
