package experiment

import (
	"context"
	"errors"

	"persistencelab/lab/engine"
	"persistencelab/scenarios"
)

// What happens to a pod happens to all containers in it.

// ensurePod makes the pod a container runs in, if it is not there.
func (r *runner) ensurePod(ctx context.Context, c scenarios.Container) error {
	if c.Pod == "" || r.pods[c.Pod] {
		return nil
	}
	name := r.plan.name(c.Pod)
	if err := errors.Join(r.note("pod", name), r.notePause(ctx)); err != nil {
		return err
	}
	if _, err := r.eng.CreatePod(ctx, engine.PodSpec{Name: name, Labels: map[string]string{RunLabel: r.plan.RunID}}); err != nil {
		return err
	}
	r.pods[c.Pod] = true
	return nil
}

// membersOf are the containers of a pod that are there.
func (r *runner) membersOf(pod string) []*live {
	var ls []*live
	for _, c := range r.plan.Variant.Containers {
		if l := r.live[c.Name]; l != nil && !l.gone && c.Pod == pod {
			ls = append(ls, l)
		}
	}
	return ls
}

func (r *runner) podStop(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	if err := r.eng.StopPod(ctx, r.plan.name(st.Pod), grace); err != nil {
		return err
	}
	for _, l := range r.membersOf(st.Pod) {
		one := StepRecord{Proof: &Proof{On: l.on, Before: r.identity(l.on)}}
		l.leave()
		if err := r.halted(ctx, l, &one); err != nil {
			return err
		}
		sr.Others = append(sr.Others, *one.Proof)
	}
	return nil
}

func (r *runner) podStart(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	return r.podRevive(ctx, st, sr, r.eng.StartPod)
}

func (r *runner) podRestart(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	return r.podRevive(ctx, st, sr, r.eng.RestartPod)
}

func (r *runner) podRevive(ctx context.Context, st PlannedStep, sr *StepRecord, event func(context.Context, string) error) error {
	if err := event(ctx, r.plan.name(st.Pod)); err != nil {
		return err
	}
	for _, l := range r.membersOf(st.Pod) {
		proof := Proof{On: l.on, Before: r.identity(l.on)}
		l.leave()
		if r.plan.Variant.Played(st.Pod) {
			if err := r.keepUp(ctx, l, r.plan.name(st.Pod), &proof); err != nil {
				return err
			}
		}
		if err := r.revived(ctx, l, &proof); err != nil {
			return err
		}
		sr.Others = append(sr.Others, proof)
	}
	return nil
}

// podRm is `podman pod rm -f`.
func (r *runner) podRm(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	return r.removePod(ctx, st, sr, func() error { return r.eng.RemovePod(ctx, r.plan.name(st.Pod), true) })
}

// removePod is an event that removes a pod and its containers.
func (r *runner) removePod(ctx context.Context, st PlannedStep, sr *StepRecord, event func() error) error {
	sr.Proof = &Proof{}
	name := r.plan.name(st.Pod)
	members := r.membersOf(st.Pod)
	for _, l := range members {
		r.dismiss(ctx, l)
	}
	if err := event(); err != nil {
		return err
	}
	for _, l := range members {
		proof := Proof{On: l.on, Before: r.identity(l.on)}
		if err := r.mustBeGone(ctx, l, &proof); err != nil {
			return err
		}
		sr.Others = append(sr.Others, proof)
	}
	var missing *engine.NotFoundError
	switch err := r.eng.RemovePod(ctx, name, true); {
	case err == nil:
		return &fault{errors.New("podman says it removed the pod, but it was still there")}
	case !errors.As(err, &missing):
		return err
	default:
		sr.Proof.OldIsGone = missing.Error()
	}
	r.pods[st.Pod] = false
	if r.plan.Variant.Played(st.Pod) {
		if err := r.goneWithPod(ctx, st.Pod, sr); err != nil {
			return err
		}
	}
	return r.gone("pod", name)
}
