package classroom

import (
	"io"

	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// TableVersion is the version of the JSON document that JSON writes.
const TableVersion = 1

// The document of the json format. A count that is hidden is null; what is
// not revealed is absent.
type (
	tableJSON struct {
		Kind       string         `json:"kind"` // "persistencelab class table"
		Version    int            `json:"version"`
		Anonymous  bool           `json:"anonymous"`
		Revealed   bool           `json:"revealed"`
		Rounds     int            `json:"rounds"`
		Sealed     int            `json:"sealed_only"`
		Engines    []string       `json:"engines"`
		LeftOut    []string       `json:"left_out"`
		Learners   []learnerJSON  `json:"learners"`
		Scenarios  []scenarioJSON `json:"scenarios"`
		Beliefs    []beliefJSON   `json:"misconceptions,omitempty"`
		Lessons    []lessonJSON   `json:"lessons,omitempty"`
		WrongFirst []wrongJSON    `json:"wrong_first,omitempty"`
	}
	learnerJSON struct {
		Learner string     `json:"learner"`
		Done    int        `json:"done"`
		Twice   int        `json:"second_rounds"`
		Before  *tallyJSON `json:"before,omitempty"`
		After   *tallyJSON `json:"after,omitempty"`
	}
	tallyJSON struct {
		Right      int `json:"right"`
		Wrong      int `json:"wrong"`
		SureWrong  int `json:"wrong_and_sure"`
		NotCounted int `json:"not_counted"`
	}
	scenarioJSON struct {
		Scenario  string         `json:"scenario"`
		Title     string         `json:"title,omitempty"`
		Lesson    string         `json:"lesson,omitempty"`
		Versions  int            `json:"versions"`
		Learners  *int           `json:"learners"`
		Twice     *int           `json:"second_rounds"`
		Questions []questionJSON `json:"questions"`
	}
	questionJSON struct {
		Question
		Before    map[string]*int `json:"predicted"`
		After     map[string]*int `json:"predicted_last,omitempty"`
		Actual    map[string]*int `json:"actual,omitempty"`
		Right     *int            `json:"right,omitempty"`
		Wrong     *int            `json:"wrong,omitempty"`
		SureWrong *int            `json:"wrong_and_sure,omitempty"`
	}
	beliefJSON struct {
		ID       string `json:"id"`
		Scenario string `json:"scenario"`
		Belief   string `json:"belief"`
		Before   *int   `json:"learners"`
		After    *int   `json:"learners_last"`
		Asked    *int   `json:"asked"`
	}
	lessonJSON struct {
		Lesson string    `json:"lesson"`
		Last   tallyJSON `json:"last"`
		Repeat bool      `json:"repeat"`
	}
	wrongJSON struct {
		Scenario string `json:"scenario"`
		Question
	}
)

// JSON writes the table as one document.
func JSON(w io.Writer, t *Table, o Options) error {
	v := o.View
	d := tableJSON{
		Kind: "persistencelab class table", Version: TableVersion, Anonymous: v.Anonymous, Revealed: v.Reveal,
		Rounds: t.Rounds, Sealed: t.Sealed, Engines: append([]string{}, t.Engines...),
		LeftOut: v.leftOut(o.LeftOut), Learners: []learnerJSON{}, Scenarios: []scenarioJSON{},
	}
	for _, l := range t.inOrder(v) {
		j := learnerJSON{Learner: v.name(l), Done: len(l.Scenarios), Twice: l.Total.Twice}
		if v.Reveal && !v.few(len(t.Learners)) {
			j.Before, j.After = tallyOf(l.Total.Before), tallyOf(l.Total.After)
		}
		d.Learners = append(d.Learners, j)
	}
	for i := range t.Scenarios {
		s := &t.Scenarios[i]
		j := scenarioJSON{Scenario: s.Name, Title: s.Title, Lesson: s.Lesson, Versions: s.Versions,
			Learners: v.shown(s.Total.Learners), Twice: v.shown(s.Total.Twice), Questions: []questionJSON{}}
		for k := range s.Questions {
			j.Questions = append(j.Questions, v.question(&s.Questions[k], s.Total.Twice > 0))
		}
		d.Scenarios = append(d.Scenarios, j)
	}
	if v.Reveal {
		for _, b := range t.Beliefs {
			j := beliefJSON{ID: b.ID, Scenario: b.Scenario, Belief: b.Text, After: v.shown(b.After), Asked: v.shown(b.Asked)}
			if hide := Hide([]int{b.Before, b.Asked - b.Before}); !v.Anonymous || !hide[0] {
				j.Before = &b.Before
			}
			d.Beliefs = append(d.Beliefs, j)
		}
		for _, l := range t.Lessons {
			if !v.few(len(t.Learners)) {
				d.Lessons = append(d.Lessons, lessonJSON{l.Key, *tallyOf(l.Tally), l.Repeat})
			}
		}
		for _, x := range t.WrongAndSure() {
			b := x.Row.Total.Before
			if hide := Hide([]int{b.Wrong, b.Right}); !v.Anonymous || !hide[0] {
				d.WrongFirst = append(d.WrongFirst, wrongJSON{x.Scenario.Name, x.Row.Question})
			}
		}
	}
	return report.Document(w, d)
}

func tallyOf(t Tally) *tallyJSON { return &tallyJSON{t.Right, t.Wrong, t.SureWrong, t.NotCounted} }

// shown is a count of learners, nil where it is hidden.
func (v View) shown(n int) *int {
	if v.Anonymous && n > 0 && n < Enough {
		return nil
	}
	return &n
}

func (v View) question(q *QuestionRow, again bool) questionJSON {
	j := questionJSON{Question: q.Question, Before: v.counts(q.Before)}
	if again {
		j.After = v.counts(q.After)
	}
	if v.Reveal {
		j.Actual = map[string]*int{}
		for o, n := range q.Actual {
			j.Actual[o.String()] = v.shown(n)
		}
		b := q.Total.Before
		if hide := Hide([]int{b.Right, b.Wrong}); !v.Anonymous || !hide[0] && !hide[1] {
			j.Right, j.Wrong = &b.Right, &b.Wrong
		}
		j.SureWrong = v.shown(b.SureWrong)
	}
	return j
}

func (v View) counts(counts map[scenarios.Outcome]int) map[string]*int {
	all := append(scenarios.Outcomes(), scenarios.Unknown)
	ns := make([]int, len(all))
	for i, o := range all {
		ns[i] = counts[o]
	}
	hide := Hide(ns)
	out := map[string]*int{}
	for i, o := range all {
		switch {
		case ns[i] == 0:
		case v.Anonymous && hide[i]:
			out[o.String()] = nil
		default:
			out[o.String()] = &ns[i]
		}
	}
	return out
}
