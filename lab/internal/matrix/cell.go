package matrix

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// Outcome is what a cell says.
type Outcome string

// Outcomes. The zero value is unknown.
const (
	Unknown       Outcome = ""
	Survived      Outcome = "survived"
	Lost          Outcome = "lost"
	Changed       Outcome = "changed"
	Refused       Outcome = "refused"        // the write was not accepted
	EventRefused  Outcome = "event refused"  // podman refused the event, or the run after it
	NotApplicable Outcome = "not applicable" // the event is not about this kind
	Skipped       Outcome = "skipped"        // this engine can't; the detail says what it needs
	Varies        Outcome = "varies"         // repeats gave different outcomes
)

// String gives the outcome's word; "unknown" for the zero value.
func (o Outcome) String() string {
	if o == Unknown {
		return "unknown"
	}
	return string(o)
}

// Cell is one kind at one event.
type Cell struct {
	Mount   string
	Event   string
	Outcome Outcome
	Detail  string        // what exactly was seen, or why it was not
	Took    time.Duration // all repeats
	Against *Outcome      // the same cell in the table compared with; nil where that has none

	evidence []span // where its records are in the spool
	seen     map[Outcome]int
}

// Differs tells whether the table compared with says something else.
func (c *Cell) Differs() bool { return c.Against != nil && *c.Against != c.Outcome }

// Judge makes a cell's outcome of the record of its scenario.
func Judge(p *experiment.Plan, rec *experiment.Record, facts engine.Facts, e Event, k Kind) (Outcome, string) {
	var v experiment.Verdict
	for _, one := range experiment.Judge(p, rec, facts) {
		if one.Item == item {
			v = one
		}
	}
	switch {
	case v.Outcome == scenarios.Refused:
		// Whatever came after: nothing was there that could have been kept.
		return Refused, v.Detail
	case rec.Skipped != "":
		return Skipped, rec.Skipped
	case rec.Fault != "":
		if words := refusedWords(rec); words != "" {
			return EventRefused, words
		}
		return Unknown, rec.Fault
	case v.Outcome == scenarios.Unknown:
		return Unknown, v.Detail
	case e.applies != nil && !e.applies(k):
		return NotApplicable, ""
	}
	return Outcome(v.Outcome), v.Detail
}

// refusedWords are the engine's words where the record ends with a refusal.
func refusedWords(rec *experiment.Record) string {
	if len(rec.Steps) == 0 {
		return ""
	}
	last := rec.Steps[len(rec.Steps)-1]
	if last.Error == "" || last.Proof == nil || last.Proof.Refused == "" {
		return ""
	}
	return last.Verb + ": " + last.Proof.Refused
}

// add joins one more run's outcome to the cell's.
func (c *Cell) add(o Outcome, detail string) {
	if c.seen == nil {
		c.seen = map[Outcome]int{}
	}
	c.seen[o]++
	c.Outcome, c.Detail = o, detail
	if len(c.seen) > 1 && c.seen[Unknown] == 0 {
		c.Outcome, c.Detail = Varies, ""
		for _, o := range order {
			if n := c.seen[o]; n > 0 {
				if c.Detail != "" {
					c.Detail += ", "
				}
				c.Detail += fmt.Sprintf("%d× %s", n, o)
			}
		}
	} else if c.seen[Unknown] > 0 {
		c.Outcome = Unknown
	}
}

// order is the outcomes' order in legends and counts.
var order = []Outcome{Survived, Lost, Changed, Refused, EventRefused, NotApplicable, Skipped, Varies, Unknown}

// spool keeps records in a file: one line of JSON each.
type spool struct {
	mu   sync.Mutex
	file *os.File
	end  int64
}

type span struct{ at, size int64 }

// newSpool makes a spool in a file without a name: it is gone with the lab.
func newSpool(dir string) (*spool, error) {
	f, err := os.CreateTemp(dir, "records-*.jsonl")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return &spool{file: f}, nil
}

func (s *spool) add(rec *experiment.Record) (span, error) {
	line, err := json.Marshal(rec)
	if err != nil {
		return span{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	at := span{s.end, int64(len(line))}
	if _, err := s.file.WriteAt(line, s.end); err != nil {
		return span{}, fmt.Errorf("keep a cell's record: %w", err)
	}
	s.end += at.size
	return at, nil
}

// read gives one record's JSON.
func (s *spool) read(at span) (json.RawMessage, error) {
	line := make([]byte, at.size)
	_, err := s.file.ReadAt(line, at.at)
	return line, err
}

func (s *spool) close() error { return s.file.Close() }
