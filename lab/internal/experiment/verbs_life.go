package experiment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
)

// What happens to a container and its process.

func (r *runner) stop(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	return r.halt(ctx, st, sr, func(id string) error { return r.eng.Stop(ctx, id, grace) })
}

func (r *runner) kill(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	signal := st.Signal
	if signal == "" {
		signal = "KILL"
	}
	if signal == "USR1" {
		// The probe does not mind this one: it goes on as it was.
		l := r.live[st.On]
		sr.Proof = &Proof{Before: r.identity(st.On)}
		if err := r.eng.Kill(ctx, l.id, signal); err != nil {
			return err
		}
		return r.goesOn(ctx, l, sr)
	}
	return r.halt(ctx, st, sr, func(id string) error {
		if err := r.eng.Kill(ctx, id, signal); err != nil {
			return err
		}
		if r.plan.container(st.On).Remove {
			return nil // waiting for what is removed is an error by itself
		}
		_, err := r.eng.Wait(ctx, id)
		return err
	})
}

// halt is an event after which nothing runs in the container, and with --rm
// the container itself is gone.
func (r *runner) halt(ctx context.Context, st PlannedStep, sr *StepRecord, event func(id string) error) error {
	l := r.live[st.On]
	sr.Proof = &Proof{Before: r.identity(st.On)}
	if err := event(l.id); err != nil && !r.goneMeanwhile(ctx, l) {
		return err
	}
	l.leave()
	return r.halted(ctx, l, sr)
}

// goneMeanwhile tells whether a --rm container was removed under the event's
// hands: podman stop may then say "no such container" of its own success.
func (r *runner) goneMeanwhile(ctx context.Context, l *live) bool {
	if !r.plan.container(l.on).Remove {
		return false
	}
	var missing *engine.NotFoundError
	_, err := r.eng.Inspect(ctx, l.id)
	return errors.As(err, &missing)
}

// halted records how a container stands whose process has ended.
func (r *runner) halted(ctx context.Context, l *live, sr *StepRecord) error {
	if r.plan.container(l.on).Remove {
		return r.awaitGone(ctx, l, sr)
	}
	// "stopped" is Podman's word for a container whose process has ended and
	// whose mounts are still in place; a process that Podman itself starts
	// takes them away. Starting the container before that is a race no hand
	// would win, and it can bring back what lies in memory.
	var d engine.Container
	for end := time.Now().Add(unmountTime); ; {
		var err error
		if d, err = r.eng.Inspect(ctx, l.id); err != nil {
			return err
		}
		if d.State != "stopped" || time.Now().After(end) || ctx.Err() != nil {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	sr.Proof.After, sr.Proof.ExitCode = &Identity{ID: d.ID, ImageID: d.ImageID, Started: d.Started, State: d.State}, &d.ExitCode
	return nil
}

// unmountTime bounds the wait for that.
const unmountTime = 5 * time.Second

// settleTime bounds the wait for what Podman does in its own time after a
// process has ended: removing a --rm container, restarting by policy.
const settleTime = 20 * time.Second

// poll asks until done says so, at most settleTime.
func poll(ctx context.Context, what string, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, settleTime, &fault{fmt.Errorf("%s did not happen within %s", what, settleTime)})
	defer cancel()
	for pause := 3 * time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// awaitGone waits until the engine knows the container no more.
func (r *runner) awaitGone(ctx context.Context, l *live, sr *StepRecord) error {
	err := poll(ctx, "the removal of the container", func() (bool, error) {
		_, err := r.eng.Inspect(ctx, l.id)
		var missing *engine.NotFoundError
		if errors.As(err, &missing) {
			sr.Proof.OldIsGone = missing.Error()
			return true, nil
		}
		return false, err
	})
	if err != nil {
		return err
	}
	return r.removed(l)
}

// removed notes that a container is no more.
func (r *runner) removed(l *live) error {
	l.leave()
	l.gone, l.paused = true, false
	return r.gone("container", l.name)
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
	sr.Proof = &Proof{Before: r.identity(st.On)}
	if err := event(l.id); err != nil {
		return err
	}
	l.leave()
	if r.plan.container(st.On).Remove {
		// Podman 4.3 removes a --rm container that is restarted, 5.4 does not.
		var missing *engine.NotFoundError
		if _, err := r.eng.Inspect(ctx, l.id); errors.As(err, &missing) {
			sr.Proof.OldIsGone = missing.Error()
			return r.removed(l)
		}
	}
	return r.revived(ctx, l, sr.Proof)
}

// revived joins a container in which a new process runs and proves that it is
// the same container and another process.
func (r *runner) revived(ctx context.Context, l *live, proof *Proof) error {
	after, err := r.greet(ctx, l)
	if err != nil {
		return err
	}
	before := proof.Before
	proof.After = after
	switch {
	case before == nil:
	case before.ID != after.ID:
		return &fault{fmt.Errorf("podman says it did it, but the container is another: %s before, %s after", short(before.ID), short(after.ID))}
	case before.Instance == after.Instance && after.Instance != "":
		return &fault{errors.New("podman says it did it, but the same process answers")}
	}
	return nil
}

// answers waits until what runs in a container takes requests: the probe, or
// the store of a service.
func (r *runner) answers(ctx context.Context, l *live) error {
	if r.plan.backings[l.on] != nil {
		return r.awaitService(ctx, l.on)
	}
	return r.join(ctx, l)
}

// crash ends process 1 from the inside, which is what a restart policy
// answers on every version (after `podman kill` 5.x does not).
func (r *runner) crash(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	if len(st.Amid) > 0 {
		return r.crashAmid(ctx, st, sr)
	}
	l := r.live[st.On]
	before := r.identity(st.On)
	sr.Proof = &Proof{Before: before}
	// There is no answer to this one: the process is gone.
	_, _ = l.session.client.Call(ctx, wire.Request{Op: wire.Crash, Code: st.Code})
	l.leave()
	if !answered(r.plan.container(st.On).Restart, st.Code) {
		if !r.plan.container(st.On).Remove {
			if _, err := r.eng.Wait(ctx, l.id); err != nil {
				return err
			}
		}
		return r.halted(ctx, l, sr)
	}
	// Attaching to a container that is between two lives would reset it:
	// the second life must be seen first.
	err := poll(ctx, "the restart by policy", func() (bool, error) {
		d, err := r.eng.Inspect(ctx, l.id)
		return err == nil && d.State == "running" && d.PID != 0 && d.PID != before.PID, err
	})
	if err != nil {
		return err
	}
	return r.revived(ctx, l, sr.Proof)
}

// answered tells whether a restart policy answers an exit with this code.
func answered(policy string, code int) bool {
	switch {
	case policy == "always", policy == "unless-stopped":
		return true
	case len(policy) >= 10 && policy[:10] == "on-failure":
		return code != 0
	}
	return false
}

// rm is `podman rm -f`: the process leaves, and the container is removed.
func (r *runner) rm(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	l := r.live[st.On]
	sr.Proof = &Proof{Before: r.identity(st.On)}
	r.dismiss(ctx, l)
	if err := r.eng.Remove(ctx, l.id, engine.RemoveOptions{Force: true, Volumes: st.Volumes}); err != nil {
		return err
	}
	return r.mustBeGone(ctx, l, sr.Proof)
}

// dismiss asks the probe to leave: then it is gone at once, where Podman would
// wait for it. One that would be restarted is left to Podman.
func (r *runner) dismiss(ctx context.Context, l *live) {
	if !l.paused && !answered(r.plan.container(l.on).Restart, 0) {
		l.session.exit(ctx)
	}
	l.leave()
}

// mustBeGone proves that a container was removed.
func (r *runner) mustBeGone(ctx context.Context, l *live, proof *Proof) error {
	_, err := r.eng.Inspect(ctx, l.id)
	var missing *engine.NotFoundError
	switch {
	case err == nil:
		return &fault{errors.New("podman says it removed the container, but it is still there")}
	case !errors.As(err, &missing):
		return err
	}
	proof.OldIsGone = missing.Error()
	return r.removed(l)
}

// replaced is the first half of `podman run --replace`: the container of that
// name is removed, its anonymous volumes are not.
func (r *runner) replaced(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	l := r.live[st.On]
	if l == nil || l.gone {
		return nil
	}
	r.dismiss(ctx, l)
	if err := r.eng.Remove(ctx, l.id, engine.RemoveOptions{Force: true}); err != nil {
		return err
	}
	return r.mustBeGone(ctx, l, sr.Proof)
}

// createOnly is `podman create`: no process yet.
func (r *runner) createOnly(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{Before: r.identity(st.On)}
	if err := r.create(ctx, st); err != nil {
		return err
	}
	d, err := r.eng.Inspect(ctx, r.live[st.On].id)
	if err != nil {
		return err
	}
	sr.Proof.After = &Identity{ID: d.ID, ImageID: d.ImageID, State: d.State}
	return nil
}

func (r *runner) pause(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	l := r.live[st.On]
	sr.Proof = &Proof{Before: r.identity(st.On)}
	if err := r.eng.Pause(ctx, l.id); err != nil {
		return err
	}
	l.paused = true
	d, err := r.eng.Inspect(ctx, l.id)
	if err != nil {
		return err
	}
	sr.Proof.After = &Identity{ID: d.ID, ImageID: d.ImageID, Started: d.Started, PID: d.PID, State: d.State}
	if d.State != "paused" {
		return &fault{fmt.Errorf("podman says it paused the container, but it is %s", d.State)}
	}
	return nil
}

func (r *runner) unpause(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	l := r.live[st.On]
	sr.Proof = &Proof{Before: r.identity(st.On)}
	if err := r.eng.Unpause(ctx, l.id); err != nil {
		return err
	}
	l.paused = false
	return r.goesOn(ctx, l, sr)
}

// goesOn proves that the same process answers.
func (r *runner) goesOn(ctx context.Context, l *live, sr *StepRecord) (err error) {
	if r.plan.backings[l.on] != nil {
		if err := r.awaitService(ctx, l.on); err != nil {
			return err
		}
		sr.Proof.After, err = r.look(ctx, l)
		return err
	}
	reply, err := l.session.client.Call(ctx, wire.Request{Op: wire.Hello})
	if err != nil {
		return &fault{fmt.Errorf("the probe does not answer: %w", err)}
	}
	if reply.Hello != nil && reply.Hello.Instance != l.session.hello.Instance {
		return &fault{errors.New("another process answers")}
	}
	sr.Proof.After, err = r.look(ctx, l)
	return err
}

func (r *runner) rename(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	l := r.live[st.On]
	sr.Proof = &Proof{Before: r.identity(st.On)}
	name := r.plan.name(st.To)
	if err := r.note("container", name); err != nil {
		return err
	}
	if err := r.eng.Rename(ctx, l.id, name); err != nil {
		_ = r.gone("container", name)
		return err
	}
	if err := r.gone("container", l.name); err != nil {
		return err
	}
	l.name = name
	d, err := r.eng.Inspect(ctx, name)
	switch {
	case err != nil:
		return err
	case d.ID != l.id:
		return &fault{errors.New("podman says it renamed the container, but another answers to the name")}
	}
	sr.Proof.After = &Identity{ID: d.ID, ImageID: d.ImageID, Started: d.Started, PID: d.PID, State: d.State}
	return nil
}

// clone is `podman container clone`: a created container of the same
// configuration, under the name of a deferred container of the scenario.
func (r *runner) clone(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{Before: r.identity(st.On)}
	name := r.plan.name(st.To)
	if err := r.note("container", name); err != nil {
		return err
	}
	id, err := r.eng.Clone(ctx, r.live[st.On].id, name)
	if err != nil {
		return err
	}
	l := &live{on: st.To, name: name, id: id}
	r.live[st.To] = l
	d, err := r.eng.Inspect(ctx, id)
	if err != nil {
		return err
	}
	sr.Proof.After = &Identity{ID: d.ID, ImageID: d.ImageID, State: d.State}
	return r.noteAnonymous(ctx, l)
}

func (r *runner) wait(ctx context.Context, st PlannedStep, _ *StepRecord) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(st.Delay):
		return nil
	}
}

// leave ends the session with a container whose process has ended.
func (l *live) leave() {
	l.session.close()
	l.session = nil
}

func short(id string) string { return id[:min(len(id), 12)] }
