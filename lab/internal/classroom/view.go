package classroom

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"persistencelab/scenarios"
)

// document is a class table made ready to be read: what every format for
// people shows. A View is already applied to it.
type document struct {
	Title string
	Facts []string
	Parts []part
}

// part is one table.
type part struct {
	Title   string
	Notes   []string // below it
	Columns []string
	Rows    [][]string
}

// hiddenCell stands for what may not be shown.
const hiddenCell = "·"

const hiddenNote = hiddenCell + " hidden: fewer than 3 learners, or what that could be computed from"

// Rows says what the rows of the main table are.
type Rows string

// Rows.
const (
	ByLearner  Rows = "learner"
	ByScenario Rows = "scenario"
)

// read makes the document.
func (t *Table) read(rows Rows, v View, bad []error) document {
	d := document{Title: "Class table"}
	d.Facts = append(d.Facts, fmt.Sprintf("%s, %s, %s", count(len(t.Learners), "learner", "learners"),
		count(len(t.Scenarios), "scenario", "scenarios"), count(t.Rounds, "finished round", "finished rounds")))
	d.Facts = append(d.Facts, t.Engines...)
	if len(t.Engines) > 1 {
		d.Facts = append(d.Facts, "The rounds ran on different engines, which may keep different things.")
	}
	if t.Sealed > 0 {
		d.Facts = append(d.Facts, count(t.Sealed, "round is", "rounds are")+" sealed and not run yet; not counted.")
	}
	for _, s := range t.Scenarios {
		if s.Versions > 1 {
			d.Facts = append(d.Facts, fmt.Sprintf("%s was answered in %d versions of its file.", s.Name, s.Versions))
		}
	}
	if n := len(t.Repeated); n > 0 && v.Anonymous { // a file's name has the learner's
		d.Facts = append(d.Facts, count(n, "session is", "sessions are")+" there more than once; the fullest file counts.")
	} else {
		for _, f := range t.Repeated {
			d.Facts = append(d.Facts, f+" is there more than once; the fullest counts.")
		}
	}
	for _, text := range v.leftOut(bad) {
		d.Facts = append(d.Facts, "Left out: "+text)
	}
	if rows == ByScenario {
		for i := range t.Scenarios {
			d.Parts = append(d.Parts, t.scenarioPart(&t.Scenarios[i], v))
		}
	} else {
		d.Parts = append(d.Parts, t.learnerPart(v))
	}
	if !v.Reveal {
		d.Parts[len(d.Parts)-1].Notes = append(d.Parts[len(d.Parts)-1].Notes, "What came back, and so what was right, is not shown yet (--reveal).")
		return d
	}
	if p := t.wrongPart(v); len(p.Rows) > 0 {
		d.Parts = append(d.Parts, p)
	}
	if p := t.beliefPart(v); len(p.Rows) > 0 {
		d.Parts = append(d.Parts, p)
	}
	if p := t.lessonPart(v); len(p.Rows) > 0 {
		d.Parts = append(d.Parts, p)
	}
	return d
}

// leftOut says what was left out, without a file's name where it would tell a
// learner's.
func (v View) leftOut(bad []error) []string {
	texts := []string{}
	for _, err := range bad {
		var f *FileError
		if v.Anonymous && errors.As(err, &f) {
			texts = append(texts, "a file: "+f.Reason)
			continue
		}
		texts = append(texts, err.Error())
	}
	return texts
}

// few: so few learners that nothing of them may be shown.
func (v View) few(learners int) bool { return v.Anonymous && learners < Enough }

// name is what a learner is called in this view.
func (v View) name(l *Learner) string {
	if v.Anonymous {
		return fmt.Sprintf("learner %d", l.Number)
	}
	return l.Name
}

// inOrder are the learners as they are listed: by name, or by number.
func (t *Table) inOrder(v View) []*Learner {
	ls := make([]*Learner, len(t.Learners))
	for i := range t.Learners {
		ls[i] = &t.Learners[i]
	}
	if v.Anonymous {
		slices.SortFunc(ls, func(a, b *Learner) int { return a.Number - b.Number })
	}
	return ls
}

func (t *Table) learnerPart(v View) part {
	p := part{Title: "By learner", Columns: []string{"learner", "done", "predictions", "second rounds"}}
	if v.Reveal {
		p.Columns = []string{"learner", "done", "right", "right again", "wrong and sure", "by scenario"}
	}
	hidden, twice := false, 0
	for i := range t.Learners {
		twice += min(1, t.Learners[i].Total.Twice)
	}
	for _, l := range t.inOrder(v) {
		done := fmt.Sprintf("%d of %d", len(l.Scenarios), len(t.Scenarios))
		all := l.Total
		if !v.Reveal {
			p.Rows = append(p.Rows, []string{v.name(l), done, fmt.Sprint(all.Before.Of() + all.Before.NotCounted), fmt.Sprint(all.Twice)})
			continue
		}
		if v.few(len(t.Learners)) {
			hidden = true
			p.Rows = append(p.Rows, []string{v.name(l), done, hiddenCell, hiddenCell, hiddenCell, hiddenCell})
			continue
		}
		var each []string
		known := BeforeAfter{} // of what is shown
		for _, s := range t.Scenarios {
			mine, ok := l.Scenarios[s.Name]
			switch {
			case !ok:
			case v.few(s.Total.Learners):
				hidden = true
				each = append(each, s.Name+" "+hiddenCell)
			default:
				known.merge(mine)
				text := fmt.Sprintf("%s %d/%d", s.Name, mine.Before.Right, mine.Before.Of())
				switch {
				case mine.Twice > 0 && v.few(s.Total.Twice):
					hidden = true
					text += " → " + hiddenCell
				case mine.Twice > 0:
					text += fmt.Sprintf(" → %d/%d", mine.After.Right, mine.After.Of())
				}
				each = append(each, text)
			}
		}
		again := "-"
		switch {
		case known.Twice > 0 && v.few(twice):
			again = hiddenCell
		case known.Twice > 0:
			again = share(known.After)
		}
		p.Rows = append(p.Rows, []string{v.name(l), done, share(known.Before), again, fmt.Sprint(known.Before.SureWrong), strings.Join(each, ", ")})
	}
	if hidden {
		p.Notes = append(p.Notes, hiddenNote)
	}
	return p
}

// share is "7/9, 78 %".
func share(t Tally) string {
	if t.Of() == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d, %s", t.Right, t.Of(), percent(t.Right, t.Of()))
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d %%", (200*n+of)/(2*of))
}

// outcomesIn are the outcomes anybody predicted of a scenario, and the first
// two in any case.
func outcomesIn(s *Scenario) []scenarios.Outcome {
	var out []scenarios.Outcome
	for _, o := range scenarios.Outcomes() {
		used := o == scenarios.Survived || o == scenarios.Lost
		for i := range s.Questions {
			used = used || s.Questions[i].Before[o]+s.Questions[i].After[o] > 0
		}
		if used {
			out = append(out, o)
		}
	}
	return out
}

// cells are the counts of a row, hidden where they must be.
func (v View) cells(counts map[scenarios.Outcome]int, outcomes []scenarios.Outcome) (cells []string, hidden bool) {
	ns := make([]int, len(outcomes))
	for i, o := range outcomes {
		ns[i] = counts[o]
	}
	hide := Hide(ns)
	for i, n := range ns {
		if v.Anonymous && hide[i] {
			cells, hidden = append(cells, hiddenCell), true
			continue
		}
		cells = append(cells, fmt.Sprint(n))
	}
	return cells, hidden
}

// tally is how many were right, hidden where the number of right or wrong
// learners is too small.
func (v View) tally(t Tally) (text string, hidden bool) {
	if hide := Hide([]int{t.Right, t.Wrong}); v.Anonymous && (hide[0] || hide[1]) {
		return hiddenCell, true
	}
	if t.Of() == 0 {
		return "-", false
	}
	return fmt.Sprintf("%d/%d", t.Right, t.Of()), false
}

// number is a count of learners, hidden where it is too small.
func (v View) number(n int) (text string, hidden bool) {
	if v.Anonymous && n > 0 && n < Enough {
		return hiddenCell, true
	}
	return fmt.Sprint(n), false
}

func (t *Table) scenarioPart(s *Scenario, v View) part {
	title := s.Name
	if s.Title != "" {
		title = s.Title + " (" + s.Name + ")"
	}
	outcomes := outcomesIn(s)
	p := part{Title: title, Columns: []string{"variant", "item"}}
	var at []string
	for i := range s.Questions {
		if c := s.Questions[i].Checkpoint; !slices.Contains(at, c) {
			at = append(at, c)
		}
	}
	if len(at) > 1 {
		p.Columns = append(p.Columns, "checkpoint")
	} else {
		p.Title += ": " + strings.Join(at, "")
	}
	for _, o := range outcomes {
		p.Columns = append(p.Columns, "say "+o.String())
	}
	if v.Reveal {
		p.Columns = append(p.Columns, "came back", "right", "wrong and sure")
	}
	anyHidden := false
	for i := range s.Questions {
		q := &s.Questions[i]
		row := []string{q.Variant, q.Item}
		if len(at) > 1 {
			row = append(row, q.Checkpoint)
		}
		cells, hidden := v.cells(q.Before, outcomes)
		right, h := v.tally(q.Total.Before)
		anyHidden = anyHidden || hidden || v.Reveal && h
		if q.Total.Twice > 0 {
			later, hidden := v.cells(q.After, outcomes)
			for i := range cells {
				cells[i] += " → " + later[i]
			}
			after, h := v.tally(q.Total.After)
			right += " → " + after
			anyHidden = anyHidden || hidden || v.Reveal && h
		}
		row = append(row, cells...)
		if v.Reveal {
			sure, h := v.number(q.Total.Before.SureWrong)
			anyHidden = anyHidden || h
			row = append(row, came(q.Actual, v), right, sure)
		}
		p.Rows = append(p.Rows, row)
	}
	who := count(s.Total.Learners, "learner", "learners")
	switch {
	case v.few(s.Total.Learners):
		who = hiddenCell + " learners"
	case v.Reveal:
		who += ", " + share(s.Total.Before) + " right"
	}
	switch {
	case s.Total.Twice == 0:
	case v.few(s.Total.Twice):
		who += "; " + hiddenCell + " did it twice"
	case v.Reveal:
		who += fmt.Sprintf("; the %d who did it twice had %s right before, %s after", s.Total.Twice,
			percent(s.Total.Again.Right, s.Total.Again.Of()), percent(s.Total.After.Right, s.Total.After.Of()))
	default:
		who += fmt.Sprintf("; %d did it twice", s.Total.Twice)
	}
	anyHidden = anyHidden || strings.Contains(who, hiddenCell)
	p.Notes = append(p.Notes, who)
	if anyHidden {
		p.Notes = append(p.Notes, hiddenNote)
	}
	return p
}

// came is what came back, with how often where it was not always the same.
func came(actual map[scenarios.Outcome]int, v View) string {
	var parts []string
	for _, o := range append(scenarios.Outcomes(), scenarios.Unknown) {
		if n := actual[o]; n > 0 {
			text, _ := v.number(n)
			parts = append(parts, o.String()+" "+text)
		}
	}
	if len(parts) == 1 {
		return strings.Fields(parts[0])[0]
	}
	return strings.Join(parts, ", ")
}

// mostWrong is how many questions the list of wrong answers shows.
const mostWrong = 10

func (t *Table) wrongPart(v View) part {
	p := part{Title: "Wrong, and sure of it", Columns: []string{"scenario", "variant", "item", "checkpoint", "wrong and sure", "wrong", "came back"}}
	hidden := false
	for _, w := range t.WrongAndSure() {
		if len(p.Rows) == mostWrong {
			p.Notes = append(p.Notes, fmt.Sprintf("The first %d; --by scenario has all.", mostWrong))
			break
		}
		q := w.Row
		b := q.Total.Before
		if hide := Hide([]int{b.Wrong, b.Right}); v.Anonymous && hide[0] {
			hidden = true
			continue
		}
		sure, h := v.number(b.SureWrong)
		hidden = hidden || h
		p.Rows = append(p.Rows, []string{w.Scenario.Name, q.Variant, q.Item, q.Checkpoint, sure,
			fmt.Sprintf("%d of %d", b.Wrong, b.Of()), came(q.Actual, v)})
	}
	if hidden {
		p.Notes = append(p.Notes, hiddenNote+"; questions with so few are left out")
	}
	return p
}

func (t *Table) beliefPart(v View) part {
	p := part{Title: "Beliefs behind wrong predictions", Columns: []string{"learners", "share", "scenario", "belief"}}
	again := slices.ContainsFunc(t.Scenarios, func(s Scenario) bool { return s.Total.Twice > 0 })
	if again {
		p.Columns = []string{"learners", "share", "in the last round", "scenario", "belief"}
	}
	hidden := false
	for _, b := range t.Beliefs {
		if hide := Hide([]int{b.Before, b.Asked - b.Before}); v.Anonymous && hide[0] {
			hidden = true
			continue
		}
		row := []string{fmt.Sprintf("%d of %d", b.Before, b.Asked), percent(b.Before, b.Asked)}
		if again {
			after, h := v.number(b.After)
			hidden = hidden || h
			row = append(row, after)
		}
		p.Rows = append(p.Rows, append(row, b.Scenario, strings.TrimSpace(b.Text)+" ("+b.ID+")"))
	}
	if hidden {
		p.Notes = append(p.Notes, hiddenNote)
	}
	return p
}

func (t *Table) lessonPart(v View) part {
	p := part{Title: "Lessons", Columns: []string{"lesson", "right in the last round", ""}}
	if v.few(len(t.Learners)) {
		return p
	}
	for _, l := range t.Lessons {
		word := ""
		if l.Repeat {
			word = "repeat it"
		}
		p.Rows = append(p.Rows, []string{lessonTitle(l.Key), share(l.Tally), word})
	}
	return p
}
