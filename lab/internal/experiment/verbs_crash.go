package experiment

import (
	"context"
	"fmt"
	"slices"

	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// crashAmid kills the container in the middle of a write: once, or at every
// point of a sweep.
func (r *runner) crashAmid(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	if st.Point == "every" {
		for _, name := range st.Amid {
			if err := r.sweep(ctx, st, sr, name); err != nil {
				return err
			}
		}
		return nil
	}
	// All of the writes stand still at once when the kill comes.
	for _, name := range st.Amid {
		c := Crash{Item: name, Nonce: st.Nonces[name], How: ByPodman, Point: pointOf[st.Point], Of: len(pointOf)}
		if _, err := r.interrupt(ctx, st.On, &c, true); err != nil {
			return err
		}
		sr.Crashes = append(sr.Crashes, c)
	}
	if err := r.kill(ctx, PlannedStep{Step: scenarios.Step{On: st.On}}, sr); err != nil {
		return err
	}
	for i := range sr.Crashes {
		sr.Crashes[i].ExitCode = sr.Proof.ExitCode
	}
	return nil
}

// pointOf are the places in a write that have a name.
var pointOf = map[string]int{"before": 0, "mid": 1, "after": 2}

// A sweep starts over from an empty place every so many points, so that what
// grows (rows, turns) stays small.
const pointsPerStart = 20

// sweep kills a write at many points, each time over an old content that is
// known to be there, and looks at what is left. Most kills are of the writing
// process alone, by process 1; a sample is of the whole container, by podman,
// which then starts it again. The kernel does the same to the writer in both,
// and the record says which it was.
func (r *runner) sweep(ctx context.Context, st PlannedStep, sr *StepRecord, name string) error {
	it := r.plan.items[name]
	clean := false
	for i := range st.Points {
		c := Crash{Item: name, Nonce: fmt.Sprintf("%s.%d", st.Nonces[name], i), How: ByProbe, Point: i, Of: st.Points}
		o := Observation{Item: name}
		if !clean || i%pointsPerStart == 0 {
			if err := r.ask(ctx, st.On, wire.Erase, wireItem(it, ""), &o); err != nil {
				return err
			}
		}
		if err := r.ask(ctx, st.On, wire.Write, wireItem(it, c.Nonce+"o"), &o); err != nil {
			return err
		}
		c.Old, c.Error = o.Found, o.Error
		if c.Error == nil {
			if byPodman(it, i, st.Points) {
				c.How = ByPodman
			}
			if err := r.crashOnce(ctx, st, &c); err != nil {
				return err
			}
		}
		clean = slices.Contains([]fate{fateOld, fateNew}, fateOf(it, c, c.Found))
		sr.Crashes = append(sr.Crashes, c)
	}
	return nil
}

// byPodman picks the sample. The time from asking podman to the kill is
// milliseconds, so a commit is left to the probe, which counts microseconds.
func byPodman(it scenarios.Item, point, of int) bool {
	return point%20 == 1 && (it.Kind != scenarios.SQLite || point < of/2)
}

// crashOnce carries out one point of a sweep and looks at what is left.
func (r *runner) crashOnce(ctx context.Context, st PlannedStep, c *Crash) error {
	held := c.How == ByPodman
	found, err := r.interrupt(ctx, st.On, c, held)
	if err != nil || !held || c.Error != nil {
		c.Found = found
		return err
	}
	var killed, started StepRecord
	on := PlannedStep{Step: scenarios.Step{On: st.On}}
	if err := r.kill(ctx, on, &killed); err != nil {
		return err
	}
	c.ExitCode = killed.Proof.ExitCode
	if err := r.start(ctx, on, &started); err != nil {
		return err
	}
	o := Observation{Item: c.Item}
	err = r.ask(ctx, st.On, wire.Read, wireItem(r.plan.items[c.Item], ""), &o)
	c.Found, c.Error = o.Found, o.Error
	return err
}

// interrupt has the probe begin a write and end, or hold, it where c says.
func (r *runner) interrupt(ctx context.Context, on string, c *Crash, hold bool) (*wire.Found, error) {
	l := r.live[on]
	if l == nil || l.session == nil {
		return nil, &fault{fmt.Errorf("nothing runs in container %s", on)}
	}
	reply, err := l.session.client.Call(ctx, wire.Request{
		Op: wire.Interrupt, Item: wireItem(r.plan.items[c.Item], c.Nonce),
		Cut: &wire.Cut{Point: c.Point, Of: c.Of, Hold: hold},
	})
	if err != nil {
		return nil, &fault{fmt.Errorf("the probe does not answer: %w", err)}
	}
	c.Where, c.Error = reply.Interrupted, reply.Error
	return reply.Found, nil
}
