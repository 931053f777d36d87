package experiment

import (
	"fmt"
	"strings"
	"time"

	"persistencelab/scenarios"
)

// What may be lost is the owner's decision and stands on the item; whether
// that was kept is judged here, and does not ask what anybody expected.

// violation says how an outcome is more than the item's owner can do without;
// "" when it is not, or when nothing was decided.
func (s *sight) violation(o scenarios.Outcome) string {
	if o != scenarios.Lost && o != scenarios.Changed {
		return ""
	}
	it := s.item
	if it.Kind == scenarios.Cache {
		r := s.rebuilt()
		switch {
		case it.Rebuild == "by hand":
			return "it comes back only by hand, so it is no cache"
		case it.Rebuild == "auto" && r == nil && s.kills == nil:
			return "it should rebuild by itself, and did not"
		case it.Rebuild == "auto" && r != nil && r.Error != nil:
			return "it should rebuild by itself, and could not: " + r.Error.Text
		}
	}
	loss := it.AcceptableLoss
	switch {
	case loss == nil, loss.All:
		return ""
	case loss.Within == 0:
		return "nothing of it may be lost"
	}
	if age := s.ageOfLoss(); age > loss.Within {
		return fmt.Sprintf("what is gone was %s old, and only the last %s may be lost", howLong(age), LossWords(loss))
	}
	return ""
}

func (s *sight) rebuilt() *Rebuilt {
	if s.seen == nil {
		return nil
	}
	return s.seen.Rebuilt
}

// ageOfLoss is how long before the event that took it the oldest lost content
// had been written. Where nothing says which content is lost, it is all.
func (s *sight) ageOfLoss() time.Duration {
	if len(s.writes) == 0 {
		return 0
	}
	oldest := s.writes[0].at
	if f := s.seen.Found; f != nil && f.Present && f.Torn == "" {
		kept := map[string]bool{}
		for _, n := range f.Nonces {
			kept[n] = true
		}
		for i, w := range s.writes {
			// What a later write put in its place is not missing.
			if w.sha == f.SHA256 && i+1 < len(s.writes) {
				oldest = s.writes[i+1].at
			}
		}
		for _, w := range s.writes {
			if s.adds() && !kept[w.nonce] {
				oldest = w.at
				break
			}
		}
	}
	return s.event.Sub(oldest)
}

// adds: a write of the item adds to the ones before.
func (s *sight) adds() bool {
	return s.item.Kind == scenarios.SQLite || s.item.Kind.InTurns() || s.item.Mode == scenarios.Append
}

// howLong is a duration for people.
func howLong(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// LossWords is an acceptable loss as the scenario file has it.
func LossWords(l *scenarios.Loss) string {
	switch {
	case l == nil:
		return ""
	case l.All:
		return "all"
	case l.Within == 0:
		return "none"
	}
	s := l.Within.String() // 1m0s, 1h0m0s
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Decide makes the rows of the durability decision table for one plan, of its
// verdicts. An item whose owner decided nothing has none.
func Decide(p *Plan, rec *Record, verdicts []Verdict) []Decision {
	var table []Decision
	for _, it := range p.Scenario.Data {
		if it.AcceptableLoss == nil && it.Rebuild == "" {
			continue
		}
		d := Decision{
			Scenario: p.Scenario.Name, Variant: p.Variant.Name, Item: it.Name,
			Data: dataOf(it), Where: WhereOf(p, it), Rebuild: it.Rebuild, AcceptableLoss: LossWords(it.AcceptableLoss),
			RebuildTook: longestRebuild(rec, it.Name), Verdict: DecisionUnknown, Observed: "not looked at",
		}
		worst := -1
		for _, v := range verdicts {
			if v.Item != it.Name {
				continue
			}
			if r := severity(v); r > worst {
				worst = r
				d.Observed = v.Outcome.String() + " " + v.Checkpoint
				d.Verdict, d.Why = DecisionKept, v.Violation
			}
		}
		switch {
		case worst == severityUnknown:
			d.Verdict = DecisionUnknown
		case d.Why != "":
			d.Verdict = DecisionViolated
		}
		if d.RebuildTook > 0 {
			d.Observed += ", rebuilt in " + howLong(d.RebuildTook)
		}
		table = append(table, d)
	}
	return table
}

// How bad a verdict is for the one who decided. What is not known is worse
// than an accepted loss and better than a violation that was seen.
const (
	severityFine = iota
	severityAccepted
	severityUnknown
	severityViolation
)

func severity(v Verdict) int {
	switch {
	case v.Violation != "":
		return severityViolation
	case v.Outcome == scenarios.Unknown:
		return severityUnknown
	case v.Outcome == scenarios.Lost, v.Outcome == scenarios.Changed:
		return severityAccepted
	}
	return severityFine
}

// dataOf is what kind of data an item is, for the table.
func dataOf(it scenarios.Item) string {
	switch it.Kind {
	case scenarios.SQLite:
		return "rows in SQLite"
	case scenarios.Memory:
		return "a value in memory"
	}
	return string(it.Kind)
}

// WhereOf is where an item goes: its path and what that lies on.
func WhereOf(p *Plan, it scenarios.Item) string {
	on := p.Variant.Where(scenarios.Step{}, it)
	if on == "" {
		return PlaceOf(it)
	}
	where := placeOf(p.container(on), it)
	if !it.OnDisk() {
		return string(where)
	}
	return fmt.Sprintf("%s, in %s", it.Path, where)
}

func longestRebuild(rec *Record, item string) time.Duration {
	var longest time.Duration
	for _, st := range rec.Steps {
		for _, o := range st.Items {
			if o.Item == item && o.Rebuilt != nil && o.Rebuilt.Error == nil {
				longest = max(longest, o.Rebuilt.Took)
			}
		}
	}
	return longest
}
