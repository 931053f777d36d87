package experiment

import (
	"fmt"
	"strings"
	"time"

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
			s.detail = v.Detail
			v.Violation, v.Kills = s.violation(v.Outcome), s.kills
			rule := expected(p.Variant.Expect[st.Label][item], facts)
			v.Expected, v.Rule, v.Why = rule.Outcome, rule.When, rule.Because
			v.Judgement = judgement(v, rule, s.item, rec)
			switch {
			case v.Judgement == Skipped:
				v.Why, v.Detail = "skipped: "+rec.Skipped, rec.Skipped
			case v.Judgement == Violated:
				v.Why = v.Violation
			case v.Why == "" && v.Violation != "":
				v.Why = v.Violation
			case v.Why == "":
				v.Why = why(p, st, s, v.Outcome)
			}
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

func judgement(v Verdict, rule scenarios.Rule, item scenarios.Item, rec *Record) Judgement {
	switch {
	case rec.Skipped != "" && v.Outcome == scenarios.Unknown:
		return Skipped
	case v.Outcome == scenarios.Unknown:
		return NotJudged
	case v.Violation != "" && !rule.Violated:
		return Violated
	case v.Violation == "" && rule.Violated:
		return Surprised
	case v.Expected == scenarios.Varies, v.Expected == v.Outcome:
		return AsExpected
	case v.Outcome == scenarios.Refused && item.InService():
		// A store that is full says something about the store, and nothing
		// about what the scenario asks.
		return NotJudged
	}
	return Surprised
}

// expected picks the first rule that holds for the engine.
func expected(e scenarios.Expectation, facts engine.Facts) scenarios.Rule {
	for _, rule := range e.Rules {
		if rule.Holds(facts.Version, facts.Rootless) {
			return rule
		}
	}
	return scenarios.Rule{}
}

// sight is everything a record holds about one item up to one checkpoint.
type sight struct {
	item     scenarios.Item
	written  bool         // the last acknowledged write was seen present right after
	wrote    *Observation // the last acknowledged write
	earlier  []string     // digests of acknowledged writes before that
	refused  *wire.Error  // the last write was not accepted, and none was before
	failed   *wire.Error  // what the last write met that was not carried out
	attempts int          // writes that were carried out, accepted or not
	planned  int          // writes the plan has before the checkpoint
	seen     *Observation // at the checkpoint
	load     *loaded      // what a load wrote of it
	fault    string       // why there is nothing at the checkpoint

	writes []written // the acknowledged ones, with their times
	event  time.Time // the first event after the last write
	crash  *Crash    // the write after the last one was killed here
	sweep  []Crash   // or killed many times, and looked at each time
	kills  *Kills    // the sweep, counted
	detail string    // what exactly was seen, once it is judged
}

// written is one acknowledged write.
type written struct {
	at         time.Time
	nonce, sha string
}

func sightOf(p *Plan, rec *Record, at PlannedStep, item string) sight {
	s := sight{item: p.items[item], fault: rec.Fault}
	for _, st := range p.Steps[:at.seq] {
		if st.Verb == "write" || st.Verb == "load" {
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
		s.noteEvent(sr)
		if sr.Load != nil && i != at.seq {
			for _, it := range sr.Load.Items {
				if it.Item == item {
					s.noteLoad(it, sr.Load.Errors)
				}
			}
		}
		for j := range sr.Items {
			o := &sr.Items[j]
			if o.Item != item {
				continue
			}
			switch {
			case sr.Verb == "write":
				s.noteWrite(sr, o)
			case i == at.seq:
				s.seen = o
			default:
				s.noteRead(sr, o)
			}
		}
		if i == at.seq && sr.Error != "" {
			s.fault = sr.Error
		}
	}
	if s.item.Seed {
		s.noteSeed(p, at)
	}
	if len(s.sweep) > 0 {
		s.kills = tally(s.item, s.sweep)
	}
	return s
}

// noteEvent takes note of what a step did to the item besides writing or
// reading it.
func (s *sight) noteEvent(sr *StepRecord) {
	if sr.Verb != "write" && sr.Verb != "read" && sr.Verb != "wait" && s.event.IsZero() {
		s.event = sr.Started
	}
	var mine []Crash
	for _, c := range sr.Crashes {
		if c.Item == s.item.Name {
			mine = append(mine, c)
		}
	}
	switch len(mine) {
	case 0:
	case 1:
		s.crash = &mine[0]
	default:
		s.sweep, s.crash = append(s.sweep, mine...), nil
	}
}

// noteRead: after a sweep there is no one write that what is seen later could
// be held against. What the first look after it found is what counts then.
func (s *sight) noteRead(sr *StepRecord, o *Observation) {
	if sr.Verb == "read" && len(s.sweep) > 0 && o.Found != nil && o.Found.Present {
		s.wrote, s.earlier = o, nil
		s.writes, s.sweep, s.event = []written{{at: sr.Started, sha: o.Found.SHA256}}, nil, time.Time{}
	}
}

func (s *sight) noteLoad(it LoadItem, errors []LoadError) {
	s.attempts++
	if s.load == nil {
		s.load = &loaded{}
	}
	s.load.add(it)
	for _, e := range errors {
		s.load.words = e.Words
	}
	s.written = len(s.load.acked) > 0
}

func (s *sight) noteWrite(sr *StepRecord, o *Observation) {
	s.attempts++
	s.event, s.crash, s.sweep = time.Time{}, nil, nil
	switch {
	case o.Found != nil && o.Found.Present:
		s.writes = append(s.writes, written{sr.Started, o.Nonce, o.Found.SHA256})
		if s.wrote != nil {
			s.earlier = append(s.earlier, s.wrote.Found.SHA256)
		}
		s.wrote, s.written, s.refused = o, true, nil
	case o.Error != nil && s.wrote == nil && isRefusal(o.Error.Code):
		s.refused = o.Error
	default:
		s.failed = o.Error
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
	case s.load != nil:
		return s.afterLoad()
	case s.wrote == nil && s.attempts == 0:
		return scenarios.Unknown, "it was never written"
	case s.wrote == nil && s.failed != nil:
		return scenarios.Unknown, "its write failed: " + s.failed.Text
	case s.wrote == nil:
		return scenarios.Unknown, "its write failed"
	case !s.seen.Found.Present:
		return scenarios.Lost, s.withHost(s.nothing()) + s.again()
	case s.kills != nil:
		return s.afterSweep()
	case s.crash != nil:
		return s.afterCrash()
	case s.seen.Found.SHA256 == s.wrote.Found.SHA256:
		if h := s.seen.Host; h != nil && h.Skipped == "" && !h.Present {
			return scenarios.Changed, "the container sees it, but it is not on the host at " + h.Path
		}
		return scenarios.Survived, s.withHost(s.everything())
	}
	return scenarios.Changed, s.difference() + s.again()
}

// again says that a cache was made anew.
func (s *sight) again() string {
	switch r := s.rebuilt(); {
	case r == nil:
		return ""
	case r.Error != nil:
		return "; rebuilding it failed: " + r.Error.Text
	default:
		return "; rebuilt by itself in " + howLong(r.Took)
	}
}

// afterLoad counts the records of a load.
func (s *sight) afterLoad() (scenarios.Outcome, string) {
	there, err := wire.InRanges(s.seen.Found.Seqs)
	total := len(s.load.acked)
	switch {
	case err != nil:
		return scenarios.Unknown, err.Error()
	case total == 0 && s.load.words != "":
		return scenarios.Unknown, "no write was acknowledged: " + s.load.words
	case total == 0:
		return scenarios.Unknown, "no write was acknowledged"
	}
	missing, extra := s.load.missing(there)
	rest := ""
	if n := len(s.load.unacked); n > 0 {
		rest = fmt.Sprintf("; of %d not acknowledged %d came through", n, extra)
	}
	switch missing {
	case 0:
		return scenarios.Survived, fmt.Sprintf("all %d acknowledged writes%s", total, rest)
	case total:
		return scenarios.Lost, fmt.Sprintf("none of %d acknowledged writes%s", total, rest)
	}
	return scenarios.Changed, fmt.Sprintf("%d of %d acknowledged writes are gone%s", missing, total, rest)
}

func (s *sight) nothing() string {
	if s.item.Kind == scenarios.SQLite && s.wrote.Found.Rows > 0 {
		return fmt.Sprintf("%s → none", rows(s.wrote.Found.Rows))
	}
	if s.item.Kind == scenarios.Transcript {
		return turns(s.wrote.Found.Rows) + " → none"
	}
	if s.item.Kind == scenarios.Agent {
		return tasks(s.wrote.Found.Rows) + " → it knows of none, and begins again"
	}
	if s.item.Kind == scenarios.Memory {
		return "a new process knows nothing of it"
	}
	switch s.item.Kind {
	case scenarios.Row:
		return fmt.Sprintf("%s → none", rows(s.wrote.Found.Rows))
	case scenarios.Key, scenarios.Object:
		return "no such " + string(s.item.Kind)
	case scenarios.Fact:
		return "it is not set"
	}
	return "no such file"
}

func (s *sight) everything() string {
	if s.item.Kind == scenarios.SQLite || s.item.Kind == scenarios.Row {
		return rows(s.seen.Found.Rows)
	}
	if s.item.Kind == scenarios.Transcript {
		return turns(s.seen.Found.Rows)
	}
	if s.item.Kind == scenarios.Agent {
		return "it knows of " + tasks(s.seen.Found.Rows)
	}
	if s.item.Kind == scenarios.Health {
		return s.seen.Found.Excerpt + ", as before"
	}
	if s.item.Kind == scenarios.Memory {
		return "the value is there"
	}
	if s.item.Kind == scenarios.Fact {
		return "the same: " + s.seen.Found.Excerpt
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
	switch {
	case s.item.Kind == scenarios.Fact:
		return was.Excerpt + " → " + is.Excerpt
	case is.Size == 0 && was.Size > 0:
		return "empty"
	case is.ZeroTail > 0:
		return fmt.Sprintf("zero tail: the last %d of %d bytes are zero", is.ZeroTail, is.Size)
	case is.Torn != "":
		return "torn: " + is.Torn
	case s.item.Kind == scenarios.SQLite && is.Rows != was.Rows:
		return fmt.Sprintf("%s → %d", rows(was.Rows), is.Rows)
	}
	for _, d := range s.earlier {
		if d == is.SHA256 {
			return "older: rolled back to an earlier write"
		}
	}
	switch {
	case s.item.Kind == scenarios.Health:
		return was.Excerpt + " → " + is.Excerpt
	case s.item.Kind == scenarios.Transcript && is.Rows != was.Rows:
		return fmt.Sprintf("%s → %d", turns(was.Rows), is.Rows)
	case s.item.Kind == scenarios.Agent && is.Rows != was.Rows:
		return fmt.Sprintf("%s → it knows of %d", tasks(was.Rows), is.Rows)
	case (s.item.Kind == scenarios.SQLite || s.item.Kind == scenarios.Row) && is.Rows != was.Rows:
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

func turns(n int) string {
	if n == 1 {
		return "1 turn"
	}
	return fmt.Sprintf("%d turns", n)
}

func tasks(n int) string {
	if n == 1 {
		return "1 task done"
	}
	return fmt.Sprintf("%d tasks done", n)
}

func rows(n int) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}
