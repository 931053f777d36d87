package experiment

import (
	"fmt"
	"strings"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// Judge makes a verdict of every item at every checkpoint of a record. It is
// a pure function of what was planned, what was recorded, and which engine it
// was: judged once, here, for every view.
func Judge(p *Plan, rec *Record, facts engine.Facts) []Verdict {
	var verdicts []Verdict
	for _, st := range p.Steps {
		if st.Verb != "read" {
			continue
		}
		for _, item := range st.Items {
			v := Verdict{
				Scenario: p.Scenario.Name, Variant: p.Variant.Name, Item: item, Checkpoint: st.Label,
			}
			s := sightOf(p, rec, st, item)
			v.Written = s.written
			v.Outcome, v.Detail = s.outcome()
			v.Expected, v.Rule, v.Why = expected(p.Variant.Expect[st.Label][item], facts)
			v.Judgement = judgement(v, rec)
			switch {
			case v.Judgement == Skipped:
				v.Why = "skipped: " + rec.Skipped
			case v.Why == "":
				v.Why = why(p, st, item, v.Outcome)
			}
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

func judgement(v Verdict, rec *Record) Judgement {
	switch {
	case rec.Skipped != "" && v.Outcome == scenarios.Unknown:
		return Skipped
	case v.Outcome == scenarios.Unknown:
		return NotJudged
	case v.Expected == scenarios.Varies, v.Expected == v.Outcome:
		return AsExpected
	}
	return Surprised
}

// expected picks the first rule that holds for the engine.
func expected(e scenarios.Expectation, facts engine.Facts) (outcome scenarios.Outcome, when, because string) {
	for _, rule := range e.Rules {
		if rule.Holds(facts.Version, facts.Rootless) {
			return rule.Outcome, rule.When, rule.Because
		}
	}
	return scenarios.Unknown, "", ""
}

// sight is everything a record holds about one item up to one checkpoint.
type sight struct {
	item     scenarios.Item
	written  bool         // the last acknowledged write was seen present right after
	wrote    *Observation // the last acknowledged write
	earlier  []string     // digests of acknowledged writes before that
	refused  *wire.Error  // the last write was not accepted, and none was before
	attempts int          // writes that were carried out, accepted or not
	planned  int          // writes the plan has before the checkpoint
	seen     *Observation // at the checkpoint
	fault    string       // why there is nothing at the checkpoint
}

func sightOf(p *Plan, rec *Record, at PlannedStep, item string) sight {
	s := sight{item: p.items[item], fault: rec.Fault}
	for _, st := range p.Steps[:at.seq] {
		if st.Verb == "write" {
			for _, name := range st.Items {
				if name == item {
					s.planned++
				}
			}
		}
	}
	for i := range rec.Steps {
		if i > at.seq {
			break
		}
		sr := &rec.Steps[i]
		for j := range sr.Items {
			o := &sr.Items[j]
			if o.Item != item {
				continue
			}
			switch {
			case sr.Verb == "write":
				s.noteWrite(o)
			case i == at.seq:
				s.seen = o
			}
		}
		if i == at.seq && sr.Error != "" {
			s.fault = sr.Error
		}
	}
	if s.item.Seed {
		s.noteSeed(p, at)
	}
	return s
}

func (s *sight) noteWrite(o *Observation) {
	s.attempts++
	switch {
	case o.Found != nil && o.Found.Present:
		if s.wrote != nil {
			s.earlier = append(s.earlier, s.wrote.Found.SHA256)
		}
		s.wrote, s.written, s.refused = o, true, nil
	case o.Error != nil && s.wrote == nil && isRefusal(o.Error.Code):
		s.refused = o.Error
	}
}

// noteSeed: an item of the image counts as written with the image's content.
func (s *sight) noteSeed(p *Plan, at PlannedStep) {
	c := p.container(at.On)
	if c.Image == nil {
		return
	}
	content, ok := c.Image.Files[s.item.Path]
	if !ok || s.wrote != nil {
		return
	}
	s.wrote = &Observation{Item: s.item.Name, Found: &wire.Found{Present: true, SHA256: digest(content), Size: int64(len(content))}}
	s.written = true
	s.planned, s.attempts = 1, 1
}

// isRefusal tells the answers that mean a write was not accepted from those
// that mean it is not known.
func isRefusal(c wire.Code) bool {
	return c == wire.CodeReadOnly || c == wire.CodePermission || c == wire.CodeNoSpace
}

// outcome is the outcome and what exactly was seen.
func (s *sight) outcome() (scenarios.Outcome, string) {
	switch {
	case s.refused != nil:
		return scenarios.Refused, s.refused.Text
	case s.seen == nil && s.fault != "":
		return scenarios.Unknown, s.fault
	case s.seen == nil:
		return scenarios.Unknown, "the checkpoint was not reached"
	case s.seen.Error != nil:
		return scenarios.Unknown, s.seen.Error.Text
	case s.seen.Found == nil:
		return scenarios.Unknown, "the probe's answer says nothing"
	case s.wrote == nil && s.attempts == 0:
		return scenarios.Unknown, "it was never written"
	case s.wrote == nil:
		return scenarios.Unknown, "its write failed"
	case !s.seen.Found.Present:
		return scenarios.Lost, s.withHost(s.nothing())
	case s.seen.Found.SHA256 == s.wrote.Found.SHA256:
		if h := s.seen.Host; h != nil && h.Skipped == "" && !h.Present {
			return scenarios.Changed, "the container sees it, but it is not on the host at " + h.Path
		}
		return scenarios.Survived, s.withHost(s.everything())
	}
	return scenarios.Changed, s.difference()
}

func (s *sight) nothing() string {
	if s.item.Kind == scenarios.SQLite && s.wrote.Found.Rows > 0 {
		return fmt.Sprintf("%s → none", rows(s.wrote.Found.Rows))
	}
	if s.item.Kind == scenarios.Memory {
		return "a new process knows nothing of it"
	}
	return "no such file"
}

func (s *sight) everything() string {
	if s.item.Kind == scenarios.SQLite {
		return rows(s.seen.Found.Rows)
	}
	if s.item.Kind == scenarios.Memory {
		return "the value is there"
	}
	return fmt.Sprintf("%d bytes, byte for byte", s.seen.Found.Size)
}

// withHost adds what the look from the host showed.
func (s *sight) withHost(detail string) string {
	switch h := s.seen.Host; {
	case h == nil:
		return detail
	case h.Skipped != "":
		return detail + "; not looked at from the host: " + h.Skipped
	case h.Present:
		return detail + "; seen on the host too"
	}
	return detail + "; not on the host either"
}

// difference says how what is there differs from what was last written.
func (s *sight) difference() string {
	is, was := s.seen.Found, s.wrote.Found
	if is.Torn != "" {
		return "torn: " + is.Torn
	}
	for _, d := range s.earlier {
		if d == is.SHA256 {
			return "older: rolled back to an earlier write"
		}
	}
	switch {
	case s.item.Kind == scenarios.SQLite && is.Rows != was.Rows:
		return fmt.Sprintf("%s → %d", rows(was.Rows), is.Rows)
	case is.Size == 0 && was.Size > 0:
		return "empty"
	case is.Size < was.Size:
		return fmt.Sprintf("shorter: %d of %d bytes", is.Size, was.Size)
	}
	return "different content" + excerpt(is.Excerpt)
}

func excerpt(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "" {
		return ""
	}
	if r := []rune(line); len(r) > 40 {
		line = string(r[:40]) + "…"
	}
	return fmt.Sprintf(": %q", line)
}

func rows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}
