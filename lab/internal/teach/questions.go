package teach

import (
	"slices"

	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// bearable is how many predictions one scenario may ask for when its author
// has not said which.
const bearable = 12

// Questions are what a learner predicts of a scenario, variant by variant in
// the order of the run: the same for every learner and engine. What the author
// names under ask: is asked. Otherwise it is every item at every checkpoint;
// where those are too many, every item at each variant's last checkpoint; and
// where those still are, as many items of each variant as fit, those first
// that a misconception is about. What varies on some engine is never asked.
func Questions(s *scenarios.Scenario) []classroom.Question {
	all := questions(s, func(checkpoint, item string) bool {
		return len(s.Ask) == 0 || slices.Contains(s.Ask[checkpoint], item)
	})
	if len(all) <= bearable || len(s.Ask) > 0 {
		return all
	}
	last := lastOnly(all)
	if len(last) <= bearable {
		return last
	}
	items := max(1, bearable/len(s.Variants))
	var keep []string
	for _, about := range []bool{true, false} {
		for _, it := range s.Data {
			if inMisconception(s, it.Name) == about && len(keep) < items {
				keep = append(keep, it.Name)
			}
		}
	}
	return slices.DeleteFunc(last, func(q classroom.Question) bool { return !slices.Contains(keep, q.Item) })
}

func inMisconception(s *scenarios.Scenario, item string) bool {
	return slices.ContainsFunc(s.Misconceptions, func(m scenarios.Misconception) bool { return m.Item == item })
}

// questions are all there could be, filtered.
func questions(s *scenarios.Scenario, want func(checkpoint, item string) bool) []classroom.Question {
	var qs []classroom.Question
	for i := range s.Variants {
		v := &s.Variants[i]
		for _, st := range v.Steps {
			if st.Verb != "read" {
				continue
			}
			for _, it := range s.ItemsOf(st) {
				q := classroom.Question{Variant: v.Name, Item: it.Name, Checkpoint: st.Label}
				if want(st.Label, it.Name) && answerable(v.Expect[st.Label][it.Name]) && !slices.Contains(qs, q) {
					qs = append(qs, q)
				}
			}
		}
	}
	return qs
}

// answerable: something is expected, and the engine does not toss a coin.
func answerable(e scenarios.Expectation) bool {
	return len(e.Rules) > 0 && !slices.ContainsFunc(e.Rules, func(r scenarios.Rule) bool { return r.Outcome == scenarios.Varies })
}

// lastOnly keeps of each variant the questions at its last checkpoint.
func lastOnly(qs []classroom.Question) []classroom.Question {
	last := map[string]string{}
	for _, q := range qs {
		last[q.Variant] = q.Checkpoint
	}
	return slices.DeleteFunc(slices.Clone(qs), func(q classroom.Question) bool { return q.Checkpoint != last[q.Variant] })
}

// Choices are the outcomes a learner can predict in a scenario: survived and
// lost, and the rarer two where the scenario has them anywhere.
func Choices(s *scenarios.Scenario) []scenarios.Outcome {
	choices := []scenarios.Outcome{scenarios.Survived, scenarios.Lost}
	for _, o := range []scenarios.Outcome{scenarios.Changed, scenarios.Refused} {
		if expects(s, o) {
			choices = append(choices, o)
		}
	}
	return choices
}

func expects(s *scenarios.Scenario, o scenarios.Outcome) bool {
	for _, v := range s.Variants {
		for _, items := range v.Expect {
			for _, e := range items {
				if slices.ContainsFunc(e.Rules, func(r scenarios.Rule) bool { return r.Outcome == o }) {
					return true
				}
			}
		}
	}
	return false
}

// MisconceptionOf is the belief behind a wrong prediction: the first of the
// scenario's that fits; nil for none.
func MisconceptionOf(s *scenarios.Scenario, q classroom.Question, predicted scenarios.Outcome) *scenarios.Misconception {
	fits := func(want, is string) bool { return want == "" || want == is }
	for i := range s.Misconceptions {
		m := &s.Misconceptions[i]
		if m.Predicted == predicted && fits(m.Variant, q.Variant) && fits(m.Item, q.Item) && fits(m.Checkpoint, q.Checkpoint) {
			return m
		}
	}
	return nil
}

// resultOf joins a prediction to the verdict of the run.
func resultOf(s *scenarios.Scenario, a classroom.Answer, v experiment.Verdict, seen string) *classroom.Result {
	r := &classroom.Result{Seen: seen, Actual: v.Outcome, Expected: v.Expected, Judgement: v.Judgement, Detail: v.Detail}
	if v.Outcome != scenarios.Unknown && a.Predicted != v.Outcome {
		if m := MisconceptionOf(s, a.Question, a.Predicted); m != nil {
			r.Misconception, r.Belief = m.ID, m.Belief
		}
	}
	return r
}
