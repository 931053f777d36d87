package experiment

import (
	"context"
	"fmt"
	"time"

	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// healthCommand is the command Podman runs in the container for its health
// check; nil for none.
func healthCommand(h *scenarios.HealthCheck) []string {
	switch {
	case h == nil:
		return nil
	case h.Ready == "":
		return []string{"/probe", "healthy", "live"}
	}
	return []string{"/probe", "healthy", "ready", h.Ready}
}

// put writes an item. A health item is written by asking: the first answer is
// what later ones are compared with.
func (r *runner) put(ctx context.Context, on, name string, o *Observation) error {
	it := r.plan.items[name]
	if it.Kind == scenarios.Health {
		return r.askHealth(ctx, it, o)
	}
	return r.ask(ctx, on, wire.Write, wireItem(it, o.Nonce), o)
}

// get looks for an item.
func (r *runner) get(ctx context.Context, on string, it scenarios.Item, o *Observation) error {
	if it.Kind == scenarios.Health {
		return r.askHealth(ctx, it, o)
	}
	return r.ask(ctx, on, wire.Read, wireItem(it, ""), o)
}

// askHealth is `podman healthcheck run`.
func (r *runner) askHealth(ctx context.Context, it scenarios.Item, o *Observation) error {
	l := r.live[it.Path]
	if l == nil || l.gone {
		return &fault{fmt.Errorf("there is no container %s", it.Path)}
	}
	h, err := r.eng.HealthCheck(ctx, l.id)
	if err != nil {
		return err
	}
	o.Health = &h
	o.Found = &wire.Found{Present: true, SHA256: digest(h.Status), Excerpt: h.Status}
	return nil
}

// remake has a cache that is not there, or not whole, made anew, where it
// says that it needs nobody for that.
func (r *runner) remake(ctx context.Context, st PlannedStep, it scenarios.Item, o *Observation) error {
	if it.Kind != scenarios.Cache || it.Rebuild != "auto" || o.Found == nil || o.Found.Present && o.Found.Torn == "" {
		return nil
	}
	l := r.live[st.On]
	reply, err := l.session.client.Call(ctx, wire.Request{Op: wire.Rebuild, Item: wireItem(it, st.Last[it.Name])})
	if err != nil {
		return &fault{fmt.Errorf("the probe does not answer: %w", err)}
	}
	o.Rebuilt = &Rebuilt{Took: time.Duration(reply.Took), Found: reply.Found, Error: reply.Error}
	return nil
}
