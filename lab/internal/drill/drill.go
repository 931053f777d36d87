// Package drill is the restart drill: six steps that find out, before anybody
// depends on it, what a service loses.
//
//  1. Deploy it and let something real be written.
//  2. Restart it, without deploying it again: a deploy hides what a restart
//     loses.
//  3. Look again and compare.
//  4. Kill it in the middle of a write and see whether what is stored is whole.
//  5. Take the state away: a readiness check that stays green has not looked.
//  6. Replace the container, and write down what was lost.
//
// Scenario makes the drill of a scenario's data and mounts, which the
// experiment's runner carries out; Image carries one out on somebody's own
// image. Both give a Drill, which the writers write. A drill that lost nothing
// says what it did not try.
package drill

import (
	"fmt"
	"time"

	"persistencelab/lab/engine"
)

// Version is the version of the JSON document a Report marshals to.
const Version = 1

// Report is one or more drills on one engine.
type Report struct {
	Version int           `json:"version"`
	Tool    string        `json:"tool"`
	Started time.Time     `json:"started"`
	Took    time.Duration `json:"took_ns"`
	Engine  engine.Facts  `json:"engine"`
	Drills  []Drill       `json:"drills"`
}

// Drill is one drill.
type Drill struct {
	Subject string `json:"subject"` // "scenario NAME, VARIANT" or "image REF"
	Steps   []Step `json:"steps"`   // the six, in order
	// Losses is what was lost, the worst first.
	Losses []Loss `json:"losses"`
	// NotCovered is what this drill says nothing about.
	NotCovered []string `json:"not_covered"`
	// Fault is why the drill ended early; "" when it did not.
	Fault string `json:"fault,omitempty"`
}

// Verdict is how a step ended.
type Verdict string

// Verdicts. NotTried is the zero value.
const (
	NotTried Verdict = ""        // it did not come to that
	Passed   Verdict = "passed"  // nothing was lost that may not be
	Failed   Verdict = "failed"  // something was, or a check did not notice
	Skipped  Verdict = "skipped" // there is nothing to try; Seen says why
	Unknown  Verdict = "unknown" // it could not be observed
)

// Step is one of the six.
type Step struct {
	Number  int      `json:"number"`
	Title   string   `json:"title"`
	Command string   `json:"command,omitempty"` // what a person would type
	Seen    []string `json:"seen"`
	Verdict Verdict  `json:"verdict"`
}

// Loss is one thing that was lost or damaged.
type Loss struct {
	What   string `json:"what"`
	Where  string `json:"where"`
	When   string `json:"when"`   // the event that took it
	Detail string `json:"detail"` // what exactly was seen
	// Accepted says how the owner's decision covers it: "all may be lost".
	// "" where it does not.
	Accepted string `json:"accepted,omitempty"`
	// Decided: the owner had said what may be lost of it.
	Decided bool `json:"decided"`
}

// The six steps, by number.
const (
	deploy = 1 + iota
	restart
	compare
	kill
	ready
	replace
)

// newDrill is a drill before its first step.
func newDrill(subject string) *Drill {
	d := &Drill{Subject: subject}
	for i, title := range []string{
		"Deploy, and write something real", "Restart, without deploying again", "Look again, and compare",
		"Kill it in the middle of a write", "Take the state away: readiness must fail", "Replace the container: what was lost",
	} {
		d.Steps = append(d.Steps, Step{Number: i + 1, Title: title})
	}
	return d
}

func (d *Drill) step(number int) *Step { return &d.Steps[number-1] }

// saw adds what was seen in a step. The worst verdict stays.
func (d *Drill) saw(number int, v Verdict, format string, args ...any) {
	s := d.step(number)
	s.Seen = append(s.Seen, fmt.Sprintf(format, args...))
	if rank[v] > rank[s.Verdict] {
		s.Verdict = v
	}
}

var rank = map[Verdict]int{NotTried: 0, Skipped: 1, Passed: 2, Unknown: 3, Failed: 4}

// Counts is what an exit code is made of.
type Counts struct {
	Failed, Unknown, NotAccepted, Accepted int
}

// Count adds up a report.
func Count(r *Report) Counts {
	var c Counts
	for _, d := range r.Drills {
		for _, s := range d.Steps {
			switch s.Verdict {
			case Failed:
				c.Failed++
			case Unknown, NotTried:
				c.Unknown++
			}
		}
		for _, l := range d.Losses {
			if l.Accepted == "" {
				c.NotAccepted++
			} else {
				c.Accepted++
			}
		}
	}
	return c
}

// always is what no drill covers.
func always() []string {
	return []string{
		"a power cut or a kernel crash: a kill leaves what the kernel has taken",
		"the loss of the host's disk, and of the volumes with it: no backup was restored",
		"more than one node, and more than one container at the same data",
	}
}
