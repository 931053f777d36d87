package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"persistencelab/lab/engine"
	"persistencelab/scenarios"
)

// run and create: the container of a step, and the session with its probe.

// run is `podman run`: create, start, and speak to the probe.
func (r *runner) run(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	before := r.identity(st.On)
	sr.Proof = &Proof{Before: before}
	if st.Replace {
		if err := r.replaced(ctx, st, sr); err != nil {
			return err
		}
	}
	if err := r.create(ctx, st); err != nil {
		return err
	}
	l := r.live[st.On]
	if err := r.eng.Start(ctx, l.id); err != nil {
		return err
	}
	after, err := r.greet(ctx, l)
	sr.Proof.After = after
	if before != nil && after != nil {
		same := before.ImageID == after.ImageID
		sr.Proof.SameImage = &same
	}
	return err
}

// create makes the container and writes down what came with it.
func (r *runner) create(ctx context.Context, st PlannedStep) error {
	c := r.plan.container(st.On)
	spec := r.plan.specOf(st)
	if err := r.ensurePod(ctx, c); err != nil {
		return err
	}
	for _, m := range c.Mounts {
		if m.Kind == scenarios.VolumeMount {
			if err := r.note("volume", r.plan.name(m.Source)); err != nil {
				return err
			}
		}
	}
	if err := r.note("container", spec.Name); err != nil {
		return err
	}
	id, err := r.eng.Create(ctx, spec)
	if err != nil {
		var exists *engine.ExistsError
		if errors.As(err, &exists) && !r.isMine(ctx, spec.Name) {
			_ = r.gone("container", spec.Name)
		}
		return err
	}
	l := &live{on: st.On, name: spec.Name, id: id}
	r.live[st.On] = l
	if st.Image == "" && !mayHaveAnonymous(c) {
		return nil
	}
	return r.noteAnonymous(ctx, l)
}

// noteAnonymous writes down the volumes without a name a container came with.
func (r *runner) noteAnonymous(ctx context.Context, l *live) error {
	d, err := r.eng.Inspect(ctx, l.id)
	if err != nil {
		return err
	}
	for _, m := range d.Mounts {
		if m.Type == "volume" && isAnonymousName(m.Name) {
			l.auto = append(l.auto, m.Name)
			if err := r.note("volume", m.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// refuseForeignVolume: a volume of the name that is there already is
// somebody's. Names carry the run's id, so it can't be this run's; it is
// neither used nor, since the ledger does not have it, removed.
func (r *runner) refuseForeignVolume(ctx context.Context, name string) error {
	_, err := r.eng.InspectVolume(ctx, name)
	var missing *engine.NotFoundError
	switch {
	case err == nil:
		return &engine.ExistsError{Kind: "volume", Name: name, Err: errors.New("it was there before this run")}
	case errors.As(err, &missing):
		return nil
	}
	return err
}

// isMine tells whether a container of the name carries this run's label:
// Podman's client asks again when a connection breaks, and the second asking
// finds what the first one made.
func (r *runner) isMine(ctx context.Context, name string) bool {
	found, err := r.eng.Labelled(ctx, RunLabel)
	return err != nil || slices.ContainsFunc(found, func(o engine.Object) bool {
		return o.Kind == "container" && o.Name == name && o.Label == r.plan.RunID
	})
}

// mayHaveAnonymous tells whether Podman may give the container a volume
// without a name.
func mayHaveAnonymous(c scenarios.Container) bool {
	return c.Image != nil && len(c.Image.Volumes) > 0 || len(c.VolumesFrom) > 0 ||
		slices.ContainsFunc(c.Mounts, func(m scenarios.Mount) bool { return m.Kind == scenarios.Anonymous })
}

// isAnonymousName: Podman names a volume without a name by 64 hex digits.
func isAnonymousName(name string) bool {
	return len(name) == 64 && !slices.ContainsFunc([]byte(name), func(b byte) bool {
		return !(b >= '0' && b <= '9' || b >= 'a' && b <= 'f')
	})
}

// join opens a session with the probe in a running container. kube play gives
// process 1 no stdin, whatever the YAML says (4.3 and 5.4).
func (r *runner) join(ctx context.Context, l *live) error {
	var s *session
	var err error
	if r.plan.Variant.Played(r.plan.container(l.on).Pod) {
		s, err = r.joinPlayed(ctx, l)
	} else {
		s, err = openSession(ctx, r.eng, l.id)
	}
	if err != nil {
		return &fault{fmt.Errorf("the probe in the container: %w", err)}
	}
	l.session = s
	return nil
}

// greet opens a session with the probe in a container that has just been
// started, or waits for the service in it, and asks podman for the container's identity beside it.
func (r *runner) greet(ctx context.Context, l *live) (*Identity, error) {
	looked := make(chan error, 1)
	who := &live{id: l.id}
	go func() {
		_, err := r.look(ctx, who)
		looked <- err
	}()
	err := r.answers(ctx, l)
	if lerr := <-looked; err == nil {
		err = lerr
	}
	if err != nil {
		return nil, err
	}
	l.who = who.who
	if l.session != nil { // a service has none
		l.who.Instance = l.session.hello.Instance
	}
	after := l.who
	return &after, nil
}

// look inspects a container and gives its identity.
func (r *runner) look(ctx context.Context, l *live) (*Identity, error) {
	d, err := r.eng.Inspect(ctx, l.id)
	if err != nil {
		return nil, err
	}
	l.who = Identity{ID: d.ID, ImageID: d.ImageID, Started: d.Started, PID: d.PID, State: d.State}
	if l.session != nil {
		l.who.Instance = l.session.hello.Instance
	}
	who := l.who
	return &who, nil
}

// identity is what is known of a container from its last event; nil before
// its first.
func (r *runner) identity(on string) *Identity {
	l := r.live[on]
	if l == nil || l.who.ID == "" {
		return nil
	}
	who := l.who
	return &who
}
