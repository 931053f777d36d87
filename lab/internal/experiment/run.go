package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// Env is what a run needs of the world beside an engine.
type Env struct {
	Now    func() time.Time
	Ledger *Ledger
	// Progress is told of each step as it begins; may be nil. It is called
	// from the goroutine that runs the plan.
	Progress func(p *Plan, st PlannedStep)
	Keep     bool // leave everything where it is
}

// grace is how long process 1 is given to leave before it is killed. The
// probe leaves at once.
const grace = 10 * time.Second

// cleanupTime bounds the cleanup of one plan.
const cleanupTime = 30 * time.Second

// Run carries a plan out and records what was observed. It returns a record
// whatever happens; a fault is in it. Everything the plan made is removed
// before Run returns, also when ctx is done.
func Run(ctx context.Context, eng engine.Engine, p *Plan, env Env) *Record {
	r := &runner{
		plan: p, eng: eng, env: env,
		live: map[string]*live{},
		rec: &Record{
			RunID: p.RunID, Scenario: p.Scenario.Name, Hash: p.Scenario.Hash, Variant: p.Variant.Name,
			Started: env.Now(),
		},
	}
	err := r.steps(ctx)
	var unsupported *engine.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		r.rec.Skipped = unsupported.Error()
	case err != nil:
		r.rec.Fault = err.Error()
	}
	r.cleanup(ctx)
	r.rec.Ended = env.Now()
	return r.rec
}

// settle is how long a request to the engine may go on after the run was
// ended. One that is broken off half-way may be carried out all the same,
// after the cleanup has looked; one that is answered can be undone.
const settle = 5 * time.Second

// steps carries out the plan's steps until one fails. A panic in one is its
// failure: the other variants go on, and everything is removed.
func (r *runner) steps(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the lab itself failed, please report it: %v, at %s", p, panicked())
		}
	}()
	work, cancel := outlive(ctx, settle)
	defer cancel()
	if err := r.prepare(work); err != nil {
		return r.cause(ctx, err)
	}
	for _, st := range r.plan.Steps {
		if err := r.step(ctx, work, st); err != nil {
			return err
		}
	}
	return nil
}

// panicked is where, in the lab's own code, a panic being recovered happened.
func panicked() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "persistencelab/") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

// outlive is ctx, but ends only when ctx has been done for that long.
func outlive(ctx context.Context, long time.Duration) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(long, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(work, func() { timer.Stop() })
	})
	return work, func() {
		stop()
		cancel(context.Canceled)
	}
}

// cause is why a request failed: that the run was ended, where it was. It
// notes whether the engine left a request without an answer.
func (r *runner) cause(ctx context.Context, err error) error {
	var down *engine.UnreachableError
	if errors.As(err, &down) || ctx.Err() != nil {
		r.unanswered = true
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// runner is one plan being carried out.
type runner struct {
	plan *Plan
	eng  engine.Engine
	env  Env
	rec  *Record
	live map[string]*live // by the container's name in the scenario
	// unanswered: a request went without an answer, so that the engine may
	// be carrying it out yet.
	unanswered bool
}

// live is a container of the plan as it stands now.
type live struct {
	id      string
	who     Identity
	session *session // nil while nobody answers
	auto    []string // ids of its volumes without a name
}

// step carries out one step and records it: with work, which outlives the
// run's own context ctx.
func (r *runner) step(ctx, work context.Context, st PlannedStep) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if r.env.Progress != nil {
		r.env.Progress(r.plan, st)
	}
	sr := StepRecord{Index: st.Index, Verb: st.Verb, On: st.On, Label: st.Label, Started: r.env.Now()}
	if len(st.Commands) > 0 {
		sr.Command = st.Commands[len(st.Commands)-1]
	}
	do, ok := verbs[st.Verb]
	if !ok {
		return &engine.UnsupportedError{What: "the step " + st.Verb, Needs: "a newer lab"}
	}
	err := do(r, work, st, &sr)
	sr.Took = r.env.Now().Sub(sr.Started)
	if err != nil {
		err = r.cause(ctx, err)
		err = fmt.Errorf("scenario %s, %s, step %d (%s): %w", r.plan.Scenario.Name, r.plan.Variant.Name, st.Index, st.Verb, err)
		sr.Error = err.Error()
	}
	r.rec.Steps = append(r.rec.Steps, sr)
	return err
}

// verbs are the steps a runner can carry out.
var verbs = map[string]func(*runner, context.Context, PlannedStep, *StepRecord) error{
	"run":     (*runner).run,
	"write":   (*runner).write,
	"edit":    (*runner).write,
	"erase":   (*runner).erase,
	"read":    (*runner).read,
	"stop":    (*runner).stop,
	"start":   (*runner).start,
	"restart": (*runner).restart,
	"kill":    (*runner).kill,
	"rm":      (*runner).rm,
}

// prepare makes what must be there before the first step: images, folders,
// volumes made beforehand.
func (r *runner) prepare(ctx context.Context) error {
	for _, c := range r.plan.Variant.Containers {
		if err := r.eng.EnsureImage(ctx, r.plan.images[c.Name]); err != nil {
			return fmt.Errorf("the probe image: %w", err)
		}
		for _, m := range c.Mounts {
			if m.Kind != scenarios.Bind {
				continue
			}
			// Wide open, as a shared data folder is: the probe may run as
			// any user.
			folder := r.plan.hostFolder(m)
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return fmt.Errorf("the folder behind the bind mount: %w", err)
			}
			if !filepath.IsAbs(m.Source) {
				if err := os.Chmod(folder, 0o777); err != nil {
					return fmt.Errorf("the folder behind the bind mount: %w", err)
				}
			}
		}
	}
	for _, v := range r.plan.volumes() {
		name := r.plan.name(v.Name)
		if err := r.refuseForeignVolume(ctx, name); err != nil {
			return err
		}
		if err := r.env.Ledger.Add("volume", name); err != nil {
			return err
		}
		if !v.Create {
			continue
		}
		err := r.eng.CreateVolume(ctx, engine.VolumeSpec{
			Name: name, Labels: map[string]string{RunLabel: r.plan.RunID}, Options: v.Options,
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// run is `podman run`: create, start, and speak to the probe.
func (r *runner) run(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	before := r.identity(st.On)
	if err := r.create(ctx, st.On); err != nil {
		return err
	}
	l := r.live[st.On]
	if err := r.eng.Start(ctx, l.id); err != nil {
		return err
	}
	if err := r.join(ctx, l); err != nil {
		return err
	}
	after, err := r.look(ctx, l)
	sr.Proof = &Proof{Before: before, After: after}
	if before != nil && after != nil {
		same := before.ImageID == after.ImageID
		sr.Proof.SameImage = &same
	}
	return err
}

// create makes the container and writes down what came with it.
func (r *runner) create(ctx context.Context, on string) error {
	c := r.plan.container(on)
	spec := r.plan.spec(c)
	if err := r.env.Ledger.Add("container", spec.Name); err != nil {
		return err
	}
	id, err := r.eng.Create(ctx, spec)
	if err != nil {
		var exists *engine.ExistsError
		if errors.As(err, &exists) && !r.isMine(ctx, spec.Name) {
			_ = r.env.Ledger.Gone("container", spec.Name)
		}
		return err
	}
	l := &live{id: id}
	r.live[on] = l
	if !mayHaveAnonymous(c) {
		return nil
	}
	d, err := r.eng.Inspect(ctx, id)
	if err != nil {
		return err
	}
	for _, m := range d.Mounts {
		if m.Type == "volume" && isAnonymousName(m.Name) {
			l.auto = append(l.auto, m.Name)
			if err := r.env.Ledger.Add("volume", m.Name); err != nil {
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

// join opens a session with the probe in a running container.
func (r *runner) join(ctx context.Context, l *live) error {
	s, err := openSession(ctx, r.eng, l.id)
	if err != nil {
		return fmt.Errorf("the probe in the container: %w", err)
	}
	l.session = s
	return nil
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

// write writes items, each with a fresh nonce, and reads each back at once.
func (r *runner) write(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	for _, name := range st.Items {
		o := Observation{Item: name, Nonce: st.Nonces[name]}
		err := r.ask(ctx, st.On, wire.Write, wireItem(r.plan.items[name], o.Nonce), &o)
		sr.Items = append(sr.Items, o)
		if err != nil {
			return err
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
		err := r.ask(ctx, st.On, wire.Read, wireItem(it, ""), &o)
		if err == nil {
			o.Host = r.lookFromHost(st.On, it)
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
		return fmt.Errorf("nothing runs in container %s", on)
	}
	reply, err := l.session.client.Call(ctx, wire.Request{Op: op, Item: item})
	if err != nil {
		return fmt.Errorf("the probe does not answer: %w", err)
	}
	o.Found, o.Error = reply.Found, reply.Error
	return nil
}

func (r *runner) stop(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	return r.halt(ctx, st, sr, func(id string) error { return r.eng.Stop(ctx, id, grace) })
}

func (r *runner) kill(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	signal := st.Signal
	if signal == "" {
		signal = "KILL"
	}
	return r.halt(ctx, st, sr, func(id string) error {
		if err := r.eng.Kill(ctx, id, signal); err != nil {
			return err
		}
		_, err := r.eng.Wait(ctx, id)
		return err
	})
}

// halt is an event after which the container is there and nothing runs in it.
func (r *runner) halt(ctx context.Context, st PlannedStep, sr *StepRecord, event func(id string) error) error {
	l := r.live[st.On]
	before := r.identity(st.On)
	if err := event(l.id); err != nil {
		return err
	}
	l.leave()
	d, err := r.eng.Inspect(ctx, l.id)
	if err != nil {
		return err
	}
	sr.Proof = &Proof{Before: before, After: &Identity{ID: d.ID, ImageID: d.ImageID, Started: d.Started, State: d.State}, ExitCode: &d.ExitCode}
	return nil
}

func (r *runner) start(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	return r.revive(ctx, st, sr, func(id string) error { return r.eng.Start(ctx, id) })
}

func (r *runner) restart(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	return r.revive(ctx, st, sr, func(id string) error { return r.eng.Restart(ctx, id, grace) })
}

// revive is an event after which a new process runs in the same container.
func (r *runner) revive(ctx context.Context, st PlannedStep, sr *StepRecord, event func(id string) error) error {
	l := r.live[st.On]
	before := r.identity(st.On)
	if err := event(l.id); err != nil {
		return err
	}
	l.leave()
	if err := r.join(ctx, l); err != nil {
		return err
	}
	after, err := r.look(ctx, l)
	if err != nil {
		return err
	}
	sr.Proof = &Proof{Before: before, After: after}
	switch {
	case before == nil:
		return nil
	case before.ID != after.ID:
		return fmt.Errorf("podman says it did it, but the container is another: %s before, %s after", short(before.ID), short(after.ID))
	case before.Instance == after.Instance:
		return errors.New("podman says it did it, but the same process answers")
	}
	return nil
}

// rm is `podman rm -f`: the process leaves, and the container is removed.
func (r *runner) rm(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	l := r.live[st.On]
	sr.Proof = &Proof{Before: r.identity(st.On)}
	// Asked to leave, the probe is gone at once; podman would wait for it.
	l.session.exit(ctx)
	l.leave()
	if err := r.eng.Remove(ctx, l.id, engine.RemoveOptions{Force: true, Volumes: st.Volumes}); err != nil {
		return err
	}
	_, err := r.eng.Inspect(ctx, l.id)
	var gone *engine.NotFoundError
	switch {
	case err == nil:
		return errors.New("podman says it removed the container, but it is still there")
	case !errors.As(err, &gone):
		return err
	}
	sr.Proof.OldIsGone = gone.Error()
	return r.env.Ledger.Gone("container", r.plan.name(st.On))
}

// leave ends the session with a container whose process has ended.
func (l *live) leave() {
	l.session.close()
	l.session = nil
}

func short(id string) string { return id[:min(len(id), 12)] }
