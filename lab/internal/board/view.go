package board

import (
	"fmt"
	"slices"
	"time"

	"persistencelab/lab/internal/classroom"
	"persistencelab/scenarios"
)

// View is what the board shows. It is the same for everybody, so that there is
// one place where something could be given away.
type View struct {
	ID      string      `json:"board"`
	Version int         `json:"version"` // of the teacher's page
	Joined  int         `json:"joined"`
	Closed  bool        `json:"closed,omitempty"` // nobody can join any more
	Current string      `json:"current"`          // the topic on the board
	Topics  []TopicView `json:"topics"`
}

// TopicView is one topic.
type TopicView struct {
	Name      string               `json:"name"`
	Title     string               `json:"title"`
	Lesson    string               `json:"lesson,omitempty"`
	Question  string               `json:"question,omitempty"`
	About     string               `json:"about,omitempty"`
	Items     []Item               `json:"items,omitempty"`
	Built     []Built              `json:"built,omitempty"`
	Hash      string               `json:"hash"`
	Questions []classroom.Question `json:"questions"`
	Choices   []scenarios.Outcome  `json:"choices"`
	Round     int                  `json:"round"`
	Phase     Phase                `json:"phase"`
	Answered  int                  `json:"answered"` // learners, in this round
	// Bars are the rounds that were revealed, and only those.
	Bars []RoundBars `json:"bars,omitempty"`
	// Happened is there once the teacher has shown it.
	Happened []Happened `json:"happened,omitempty"`
}

// RoundBars are the predictions of one revealed round, question by question.
type RoundBars struct {
	Round    int   `json:"round"`
	Learners int   `json:"learners"`
	Bars     []Bar `json:"bars"`
}

// Bar is how one question was answered.
type Bar struct {
	classroom.Question
	Counts []Count `json:"counts"` // one for each choice
}

// Count is how often an outcome was predicted, or seen.
type Count struct {
	Outcome scenarios.Outcome `json:"outcome"`
	N       int               `json:"n"`
	Sure    int               `json:"sure,omitempty"` // of those, who said they were sure
}

// Happened is what really happened to what one question asks about.
type Happened struct {
	classroom.Question
	Counts []Count `json:"counts"` // outcomes seen, in how many runs; unknown is none of the others
	Detail string  `json:"detail,omitempty"`
}

// Outcome is what every run that could look has seen; unknown where they
// differ or none could.
func (h Happened) Outcome() scenarios.Outcome {
	only := scenarios.Unknown
	for _, c := range h.Counts {
		switch {
		case c.Outcome == scenarios.Unknown:
		case only != scenarios.Unknown:
			return scenarios.Unknown
		default:
			only = c.Outcome
		}
	}
	return only
}

// Pulse is what an event tells: that something changed, never what anybody
// answered.
type Pulse struct {
	Version  int    `json:"version"`
	Current  string `json:"current"`
	Joined   int    `json:"joined"`
	Round    int    `json:"round"`
	Answered int    `json:"answered"`
	State    string `json:"state"` // topic, round and phase: what a learner's page depends on
}

func (st *state) view() *View {
	v := &View{ID: st.id, Version: st.version, Joined: len(st.order), Closed: st.closed, Current: st.current.Name}
	for _, t := range st.topics {
		tv := TopicView{
			Name: t.Name, Title: t.Title, Lesson: t.Lesson, Question: t.Question, About: t.About, Items: t.Items, Built: t.Built, Hash: t.Hash,
			Questions: t.Questions, Choices: t.Choices, Round: t.round, Phase: t.phase, Answered: st.answered(t),
		}
		for _, n := range t.shown {
			tv.Bars = append(tv.Bars, st.bars(t, n))
		}
		if t.phase == Told {
			tv.Happened = st.whatHappened(t)
		}
		v.Topics = append(v.Topics, tv)
	}
	return v
}

// Topic is the topic of that name; nil for none.
func (v *View) Topic(name string) *TopicView {
	for i := range v.Topics {
		if v.Topics[i].Name == name {
			return &v.Topics[i]
		}
	}
	return nil
}

func (st *state) pulse() Pulse {
	t := st.current
	return Pulse{
		Version: st.version, Current: t.Name, Joined: len(st.order), Round: t.round, Answered: st.answered(t),
		State: fmt.Sprintf("%s %d %s", t.Name, t.round, t.phase),
	}
}

func (st *state) answered(t *topic) int {
	n := 0
	for _, l := range st.order {
		if r, _ := l.round(t.Name, t.round); r != nil {
			n++
		}
	}
	return n
}

func (st *state) bars(t *topic, round int) RoundBars {
	rb := RoundBars{Round: round}
	at := map[classroom.Question]int{}
	for i, q := range t.Questions {
		at[q] = i
		b := Bar{Question: q}
		for _, c := range t.Choices {
			b.Counts = append(b.Counts, Count{Outcome: c})
		}
		rb.Bars = append(rb.Bars, b)
	}
	for _, l := range st.order {
		r, _ := l.round(t.Name, round)
		if r == nil {
			continue
		}
		rb.Learners++
		for _, a := range r.Answers {
			c := &rb.Bars[at[a.Question]].Counts[slices.Index(t.Choices, a.Predicted)]
			c.N++
			if a.Sure != nil && *a.Sure {
				c.Sure++
			}
		}
	}
	return rb
}

// whatHappened counts the runs that are known: the teacher's report, and the
// learners' own.
func (st *state) whatHappened(t *topic) []Happened {
	seen := map[classroom.Question]*Happened{}
	add := func(q classroom.Question, o scenarios.Outcome, detail string) {
		h := seen[q]
		if h == nil {
			h = &Happened{Question: q, Detail: detail}
			seen[q] = h
		}
		i := slices.IndexFunc(h.Counts, func(c Count) bool { return c.Outcome == o })
		if i < 0 {
			h.Counts = append(h.Counts, Count{Outcome: o})
			i = len(h.Counts) - 1
		}
		h.Counts[i].N++
	}
	if t.actual != nil {
		for _, v := range t.actual.Verdicts {
			add(classroom.Question{Variant: v.Variant, Item: v.Item, Checkpoint: v.Checkpoint}, v.Outcome, v.Detail)
		}
	}
	for _, l := range st.order {
		// One run of a learner's is one run, however many rounds it answered.
		for i := len(l.attempt.Rounds) - 1; i >= 0; i-- {
			own, ok := l.own[l.seals[i]]
			if l.attempt.Rounds[i].Scenario != t.Name || !ok {
				continue
			}
			for _, a := range own.Answers {
				if a.Result != nil && slices.Contains(t.Questions, a.Question) {
					add(a.Question, a.Result.Actual, a.Result.Detail)
				}
			}
			break
		}
	}
	var out []Happened
	for _, q := range t.Questions {
		if h := seen[q]; h != nil {
			out = append(out, *h)
		}
	}
	return out
}

// export gives every learner's attempt as far as it is known here: the sealed
// rounds with the results of the learner's own run or, without one, the
// teacher's.
func (st *state) export() []*classroom.Attempt {
	var out []*classroom.Attempt
	for _, l := range st.order {
		if len(l.attempt.Rounds) == 0 {
			continue
		}
		a := *l.attempt
		a.Rounds = slices.Clone(a.Rounds)
		for i := range a.Rounds {
			r := &a.Rounds[i]
			r.Answers = slices.Clone(r.Answers)
			t := st.topic(r.Scenario)
			if own, ok := l.own[l.seals[i]]; ok {
				fill(r, own.Engine, own.Finished, own.result)
				r.Hints = own.Hints
			} else if t.actual != nil {
				fill(r, t.actual.Engine, t.actualAt, t.result)
			}
		}
		out = append(out, &a)
	}
	return out
}

// fill puts results beside a round's answers.
func fill(r *classroom.Round, e *classroom.Engine, at time.Time, result func(classroom.Answer) *classroom.Result) {
	r.Engine, r.Finished = e, at
	for i := range r.Answers {
		r.Answers[i].Result = result(r.Answers[i])
	}
}

func (own ownResults) result(to classroom.Answer) *classroom.Result {
	for _, a := range own.Answers {
		if a.Question == to.Question {
			return a.Result
		}
	}
	return nil
}

// result is the class's result of an answer, with the belief behind a wrong
// one.
func (t *topic) result(to classroom.Answer) *classroom.Result {
	for _, v := range t.actual.Verdicts {
		if (classroom.Question{Variant: v.Variant, Item: v.Item, Checkpoint: v.Checkpoint}) != to.Question {
			continue
		}
		r := &classroom.Result{Actual: v.Outcome, Expected: v.Expected, Judgement: v.Judgement, Detail: v.Detail}
		if v.Outcome != scenarios.Unknown && v.Outcome != to.Predicted {
			if m := t.misconception(to); m != nil {
				r.Misconception, r.Belief = m.ID, m.Belief
			}
		}
		return r
	}
	return nil
}

// misconception is the first of the scenario's that fits a wrong prediction.
func (t *topic) misconception(a classroom.Answer) *scenarios.Misconception {
	fits := func(want, is string) bool { return want == "" || want == is }
	for i := range t.Misconceptions {
		m := &t.Misconceptions[i]
		if m.Predicted == a.Predicted && fits(m.Variant, a.Variant) && fits(m.Item, a.Item) && fits(m.Checkpoint, a.Checkpoint) {
			return m
		}
	}
	return nil
}
