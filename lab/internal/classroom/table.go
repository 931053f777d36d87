package classroom

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"persistencelab/scenarios"
)

// Enough is how many learners a cell must stand for to be shown where a class
// can see it.
const Enough = 3

// repeatBelow is the share of right predictions below which a lesson is worth
// repeating.
const repeatBelow = 0.7

// View is what the teacher chose to show.
type View struct {
	// Anonymous: learners are numbers, and what stands for fewer than
	// Enough of them is hidden.
	Anonymous bool
	// Reveal: also what came back, and so what was right.
	Reveal bool
}

// Table is the class table: a pure function of attempts. It is complete; a
// View is applied by whoever shows it.
type Table struct {
	Learners  []Learner
	Scenarios []Scenario
	Beliefs   []Belief // behind wrong predictions, the most common first
	Lessons   []Lesson // the weakest first
	Engines   []string // "podman 4.3.1, rootful: 28 rounds"
	Rounds    int      // finished
	Sealed    int      // rounds that were sealed and never revealed; counted nowhere else
	Repeated  []string // sessions that came more than once, with which one counts
	Answers   []Line   // every answer of a finished round, by learner and time
}

// Tally counts predictions whose outcome is known.
type Tally struct {
	Right, Wrong int
	SureWrong    int // of Wrong: the learner was sure
	NotCounted   int // the outcome is unknown
}

// Of is how many predictions the tally counts.
func (t Tally) Of() int { return t.Right + t.Wrong }

// Share is the share of right ones, 0 where nothing is counted.
func (t Tally) Share() float64 {
	if t.Of() == 0 {
		return 0
	}
	return float64(t.Right) / float64(t.Of())
}

func (t *Tally) count(a *Answer) {
	switch {
	case a.Result == nil || a.Result.Actual == scenarios.Unknown:
		t.NotCounted++
	case a.Result.Actual == a.Predicted:
		t.Right++
	default:
		t.Wrong++
		if a.Sure != nil && *a.Sure {
			t.SureWrong++
		}
	}
}

func (t *Tally) add(u Tally) {
	t.Right, t.Wrong = t.Right+u.Right, t.Wrong+u.Wrong
	t.SureWrong, t.NotCounted = t.SureWrong+u.SureWrong, t.NotCounted+u.NotCounted
}

// BeforeAfter are a first round and, where there was one, the last.
type BeforeAfter struct {
	Before Tally
	// Again is the first round of those learners only who did another, and
	// After their last: the two are of the same people.
	Again, After Tally
	Learners     int // who did a first round
	Twice        int // who did another
}

// Learner is one row.
type Learner struct {
	Name       string // a nickname, or the name given
	Identified bool
	Number     int // from 1, in an order that says nothing of the name
	Total      BeforeAfter
	Scenarios  map[string]BeforeAfter // by name
}

// Scenario is one scenario as a class answered it.
type Scenario struct {
	Name, Title, Lesson string
	Versions            int    // of its file, among the answers
	Hash                string // of its file, where there is one version
	Total               BeforeAfter
	Questions           []QuestionRow // in the order they were asked
}

// QuestionRow is one question as a class answered it.
type QuestionRow struct {
	Question
	Before, After map[scenarios.Outcome]int // learners by what they predicted, in the first and the last round
	Actual        map[scenarios.Outcome]int // by what came back in the first round
	Total         BeforeAfter
}

// Belief is a misconception and who holds it.
type Belief struct {
	Scenario, ID, Text string
	Before, After      int // learners with it in the first round; in the last
	Asked              int // learners who did that scenario
}

// Lesson is how a class stands with one lesson: every learner's last round.
type Lesson struct {
	Key    string
	Tally  Tally
	Repeat bool // worth repeating
}

// Line is one answer of one learner.
type Line struct {
	Learner *Learner
	Attempt *Attempt
	Round   *Round
	Number  int // of the learner's rounds of this scenario, in order of time
	Answer  *Answer
}

// scenarioState collects one scenario.
type scenarioState struct {
	Scenario
	hashes    map[string]bool
	questions map[Question]int
}

// Make makes the class table. The attempts are not changed.
func Make(attempts []*Attempt) *Table {
	t := &Table{}
	attempts = t.once(attempts)

	type played struct {
		attempt *Attempt
		round   *Round
	}
	byLearner := map[string][]played{}
	learners := map[string]*Learner{}
	var names []string
	engines := map[string]int{}
	for _, a := range attempts {
		key := fmt.Sprint(a.Identified, " ", a.Learner)
		if learners[key] == nil {
			learners[key] = &Learner{Name: a.Learner, Identified: a.Identified, Scenarios: map[string]BeforeAfter{}}
			names = append(names, key)
		}
		for i := range a.Rounds {
			r := &a.Rounds[i]
			if r.Finished.IsZero() {
				t.Sealed++
				continue
			}
			t.Rounds++
			engines[engineOf(r)]++
			byLearner[key] = append(byLearner[key], played{a, r})
		}
	}
	t.Learners = make([]Learner, 0, len(names)) // Lines point into it: it must not move
	slices.Sort(names)
	// Numbered in an order that does not follow the alphabet.
	numbered := slices.Clone(names)
	slices.SortFunc(numbered, func(a, b string) int {
		x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
		return slices.Compare(x[:], y[:])
	})
	number := map[string]int{}
	for i, n := range numbered {
		number[n] = i + 1
	}

	state := map[string]*scenarioState{}
	type held struct{ scenario, id string }
	beliefs := map[held]*Belief{}
	lessons := map[string]*Tally{}
	for _, key := range names {
		learners[key].Number = number[key]
		t.Learners = append(t.Learners, *learners[key])
		l := &t.Learners[len(t.Learners)-1]
		rounds := byLearner[key]
		slices.SortStableFunc(rounds, func(a, b played) int { return a.round.Sealed.Compare(b.round.Sealed) })
		of := map[string][]played{}
		var order []string
		for _, p := range rounds {
			if len(of[p.round.Scenario]) == 0 {
				order = append(order, p.round.Scenario)
			}
			of[p.round.Scenario] = append(of[p.round.Scenario], p)
		}
		for _, name := range order {
			ps := of[name]
			s := state[name]
			if s == nil {
				r := ps[0].round
				s = &scenarioState{Scenario{Name: name, Title: r.Title, Lesson: r.Lesson}, map[string]bool{}, map[Question]int{}}
				state[name] = s
			}
			for i, p := range ps {
				s.hashes[p.round.Hash] = true
				for j := range p.round.Answers {
					t.Answers = append(t.Answers, Line{l, p.attempt, p.round, i + 1, &p.round.Answers[j]})
				}
			}
			first, last := ps[0].round, ps[len(ps)-1].round
			mine := s.learner(first, last)
			l.Scenarios[name] = mine
			l.Total.merge(mine)
			tally := lessons[s.Lesson]
			if tally == nil {
				tally = &Tally{}
				lessons[s.Lesson] = tally
			}
			for i := range last.Answers {
				tally.count(&last.Answers[i])
			}
			for id, text := range beliefsOf(first) {
				b := beliefs[held{name, id}]
				if b == nil {
					b = &Belief{Scenario: name, ID: id, Text: text}
					beliefs[held{name, id}] = b
				}
				b.Before++
			}
			for id, text := range beliefsOf(last) {
				b := beliefs[held{name, id}]
				if b == nil {
					b = &Belief{Scenario: name, ID: id, Text: text}
					beliefs[held{name, id}] = b
				}
				b.After++
			}
		}
	}
	t.finish(state, lessons, engines)
	for _, b := range beliefs {
		b.Asked = state[b.Scenario].Total.Learners
		t.Beliefs = append(t.Beliefs, *b)
	}
	slices.SortFunc(t.Beliefs, func(a, b Belief) int {
		return cmp.Or(cmp.Compare(b.Before, a.Before), strings.Compare(a.Scenario, b.Scenario), strings.Compare(a.ID, b.ID))
	})
	return t
}

// once keeps each session once: a file that was copied, or handed in again
// with more in it, counts as the fullest of them.
func (t *Table) once(attempts []*Attempt) []*Attempt {
	best := map[string]*Attempt{}
	twice := map[string]bool{}
	for _, a := range attempts {
		old := best[a.Session]
		if old != nil {
			twice[a.Session] = true
		}
		if old == nil || fuller(a, old) {
			best[a.Session] = a
		}
	}
	for _, session := range slices.Sorted(maps.Keys(twice)) {
		t.Repeated = append(t.Repeated, best[session].FileName())
	}
	return slices.SortedFunc(maps.Values(best), func(a, b *Attempt) int {
		return cmp.Or(a.Started.Compare(b.Started), strings.Compare(a.Session, b.Session))
	})
}

// fuller: more was answered, or, with as many, it goes on later.
func fuller(a, b *Attempt) bool {
	size := func(a *Attempt) (rounds int, last time.Time) {
		for _, r := range a.Rounds {
			if !r.Finished.IsZero() {
				rounds, last = rounds+1, r.Finished
			}
		}
		return
	}
	ra, la := size(a)
	rb, lb := size(b)
	return cmp.Or(cmp.Compare(ra, rb), la.Compare(lb), strings.Compare(a.Digest, b.Digest)) > 0
}

// learner counts one learner's first and last round of the scenario.
func (s *scenarioState) learner(first, last *Round) BeforeAfter {
	mine := BeforeAfter{Learners: 1}
	if last != first {
		mine.Twice = 1
	}
	for i := range first.Answers {
		a := &first.Answers[i]
		q := s.question(a.Question)
		q.Before[a.Predicted]++
		if a.Result != nil {
			q.Actual[a.Result.Actual]++
		}
		q.Total.Learners++
		q.Total.Before.count(a)
		mine.Before.count(a)
		if last != first {
			mine.Again.count(a)
			q.Total.Again.count(a)
		}
	}
	if last != first {
		for i := range last.Answers {
			a := &last.Answers[i]
			q := s.question(a.Question)
			q.After[a.Predicted]++
			q.Total.Twice++
			q.Total.After.count(a)
			mine.After.count(a)
		}
	}
	s.Total.merge(mine)
	return mine
}

func (s *scenarioState) question(q Question) *QuestionRow {
	i, ok := s.questions[q]
	if !ok {
		i = len(s.Questions)
		s.questions[q] = i
		s.Questions = append(s.Questions, QuestionRow{
			Question: q, Before: map[scenarios.Outcome]int{}, After: map[scenarios.Outcome]int{}, Actual: map[scenarios.Outcome]int{},
		})
	}
	return &s.Questions[i]
}

func (b *BeforeAfter) merge(c BeforeAfter) {
	b.Before.add(c.Before)
	b.Again.add(c.Again)
	b.After.add(c.After)
	b.Learners += c.Learners
	b.Twice += c.Twice
}

// beliefsOf are the misconceptions one round shows, each once.
func beliefsOf(r *Round) map[string]string {
	out := map[string]string{}
	for _, a := range r.Answers {
		if a.Result != nil && a.Result.Misconception != "" {
			out[a.Result.Misconception] = a.Result.Belief
		}
	}
	return out
}

func engineOf(r *Round) string {
	if r.Engine == nil {
		return "an engine that is not named"
	}
	mode := "rootful"
	if r.Engine.Rootless {
		mode = "rootless"
	}
	return r.Engine.Name + " " + r.Engine.Version + ", " + mode
}

func (t *Table) finish(state map[string]*scenarioState, lessons map[string]*Tally, engines map[string]int) {
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		t.Engines = append(t.Engines, fmt.Sprintf("%s: %s", name, count(engines[name], "round", "rounds")))
	}
	order := lessonOrder()
	for _, s := range state {
		s.Versions = len(s.hashes)
		if s.Versions == 1 {
			for s.Hash = range s.hashes {
			}
		}
		t.Scenarios = append(t.Scenarios, s.Scenario)
	}
	slices.SortFunc(t.Scenarios, func(a, b Scenario) int {
		return cmp.Or(cmp.Compare(order(a.Lesson), order(b.Lesson)), strings.Compare(a.Name, b.Name))
	})
	for key, tally := range lessons {
		if key == "" {
			continue
		}
		t.Lessons = append(t.Lessons, Lesson{Key: key, Tally: *tally, Repeat: tally.Of() > 0 && tally.Share() < repeatBelow})
	}
	slices.SortFunc(t.Lessons, func(a, b Lesson) int {
		return cmp.Or(cmp.Compare(a.Tally.Share(), b.Tally.Share()), cmp.Compare(order(a.Key), order(b.Key)), strings.Compare(a.Key, b.Key))
	})
}

// lessonOrder is the study guide's; what it does not know comes last.
func lessonOrder() func(key string) int {
	at := map[string]int{}
	for i, l := range scenarios.Lessons() {
		at[l.Key] = i + 1
	}
	return func(key string) int {
		if at[key] == 0 {
			return len(at) + 1
		}
		return at[key]
	}
}

// lessonTitle is a lesson's title, or its key.
func lessonTitle(key string) string {
	for _, l := range scenarios.Lessons() {
		if l.Key == key {
			return l.Title
		}
	}
	return key
}

// WrongAndSure are the questions that learners got wrong and were sure of, the
// worst first; then those that were only wrong.
func (t *Table) WrongAndSure() []Wrong {
	var out []Wrong
	for i := range t.Scenarios {
		s := &t.Scenarios[i]
		for j := range s.Questions {
			if q := &s.Questions[j]; q.Total.Before.Wrong > 0 {
				out = append(out, Wrong{s, q})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Wrong) int {
		x, y := a.Row.Total.Before, b.Row.Total.Before
		return cmp.Or(cmp.Compare(y.SureWrong, x.SureWrong), cmp.Compare(y.Wrong, x.Wrong))
	})
	return out
}

// Wrong is a question that somebody got wrong.
type Wrong struct {
	Scenario *Scenario
	Row      *QuestionRow
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Hide gives the cells of one row of counts that may not be shown: those that
// stand for one or two learners, and so many of the others, the smallest
// first, that no hidden one can be had by subtraction from the row's sum.
func Hide(cells []int) []bool {
	hidden := make([]bool, len(cells))
	sum, n := 0, 0
	for i, c := range cells {
		if c > 0 && c < Enough {
			hidden[i], sum, n = true, sum+c, n+1
		}
	}
	for n > 0 && (n < 2 || sum < Enough) {
		least := -1
		for i, c := range cells {
			if !hidden[i] && c > 0 && (least < 0 || c < cells[least]) {
				least = i
			}
		}
		if least < 0 {
			break
		}
		hidden[least], sum, n = true, sum+cells[least], n+1
	}
	return hidden
}
