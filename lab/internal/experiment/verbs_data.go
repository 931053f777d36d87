package experiment

import (
	"context"
	"fmt"

	"persistencelab/probeimage/wire"
)

// write, erase and read.

// write writes items, each with a fresh nonce, and reads each back at once.
func (r *runner) write(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	for _, name := range st.Items {
		for _, nonce := range repeated(st.Nonces[name], st.Times) {
			o := Observation{Item: name, Nonce: nonce}
			err := r.put(ctx, st.On, name, &o)
			sr.Items = append(sr.Items, o)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// erase takes items away.
func (r *runner) erase(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	for _, name := range st.Items {
		o := Observation{Item: name}
		err := r.ask(ctx, st.On, wire.Erase, wireItem(r.plan.items[name], ""), &o)
		sr.Items = append(sr.Items, o)
		if err != nil {
			return err
		}
	}
	return nil
}

// read looks for items, in the container and from outside it.
func (r *runner) read(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	for _, name := range st.Items {
		it := r.plan.items[name]
		o := Observation{Item: name}
		err := r.get(ctx, st.On, it, &o)
		if err == nil {
			o.Host = r.lookFromHost(ctx, st.On, it)
			err = r.remake(ctx, st, it, &o)
		}
		sr.Items = append(sr.Items, o)
		if err != nil {
			return err
		}
	}
	return nil
}

// ask puts one request to the probe. What the probe answers, also that it
// could not, is an observation; only silence is an error.
func (r *runner) ask(ctx context.Context, on string, op wire.Op, item *wire.Item, o *Observation) error {
	l := r.live[on]
	if l == nil || l.session == nil {
		return &fault{fmt.Errorf("nothing runs in container %s", on)}
	}
	reply, err := l.session.client.Call(ctx, wire.Request{Op: op, Item: item})
	if err != nil {
		return &fault{fmt.Errorf("the probe does not answer: %w", err)}
	}
	o.Found, o.Error = reply.Found, reply.Error
	return nil
}
