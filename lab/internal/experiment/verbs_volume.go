package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/scenarios"
)

// What happens to volumes, and the prunes.

func (r *runner) createVolume(ctx context.Context, v scenarios.Volume) error {
	name := r.plan.name(v.Name)
	options, folders := r.plan.volumeOptions(v)
	for _, folder := range folders {
		if err := r.makeFolder(folder); err != nil {
			return err
		}
	}
	if err := r.note("volume", name); err != nil {
		return err
	}
	return r.eng.CreateVolume(ctx, engine.VolumeSpec{
		Name: name, Labels: map[string]string{RunLabel: r.plan.RunID}, Options: options,
	})
}

// volumeCreate makes the volume if it is not there: whether it is may depend on
// Podman's version.
func (r *runner) volumeCreate(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	name := r.plan.name(st.Volume)
	if _, err := r.eng.InspectVolume(ctx, name); err == nil {
		sr.Proof = &Proof{Made: "nothing: volume " + name + " was there"}
		return nil
	}
	sr.Proof = &Proof{Made: "volume " + name}
	return r.createVolume(ctx, r.plan.volume(st.Volume))
}

// forceTime bounds `podman volume rm -f`: before 5.3 it hangs on a volume in
// use that must be mounted (a tmpfs, a folder), and takes the service with it.
const forceTime = 15 * time.Second

func (r *runner) volumeRm(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{}
	names := []string{r.plan.name(st.Volume)}
	if st.Volume == "" {
		if names = r.anonymousOf(st.On); len(names) == 0 {
			return &fault{fmt.Errorf("container %s has no volume without a name", st.On)}
		}
	}
	for _, name := range names {
		if err := r.removeVolume(ctx, name, st.Force); err != nil {
			return err
		}
		var missing *engine.NotFoundError
		switch _, err := r.eng.InspectVolume(ctx, name); {
		case err == nil:
			return &fault{errors.New("podman says it removed the volume, but it is still there")}
		case !errors.As(err, &missing):
			return err
		default:
			sr.Proof.OldIsGone = missing.Error()
		}
		if err := r.gone("volume", name); err != nil {
			return err
		}
	}
	if st.Force {
		return r.lookAround(ctx, sr)
	}
	return nil
}

func (r *runner) removeVolume(ctx context.Context, name string, force bool) error {
	if !force {
		return r.eng.RemoveVolume(ctx, name, false)
	}
	hung := fmt.Errorf("podman volume rm -f did not answer within %s", forceTime)
	bounded, cancel := context.WithTimeoutCause(ctx, forceTime, hung)
	defer cancel()
	err := r.eng.RemoveVolume(bounded, name, true)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		r.rec.Hung = hung.Error()
		return hung
	}
	return err
}

// anonymousOf are the volumes without a name the container came with, or the
// ones it takes from others.
func (r *runner) anonymousOf(on string) []string {
	if l := r.live[on]; l != nil {
		return l.auto
	}
	return nil
}

func (r *runner) volumeExport(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{}
	body, err := r.eng.ExportVolume(ctx, r.plan.name(st.Volume))
	if err != nil {
		return err
	}
	return r.save(body, st.To, sr)
}

func (r *runner) volumeImport(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{}
	f, err := os.Open(r.plan.archive(st.From))
	if err != nil {
		return err
	}
	defer f.Close()
	return r.eng.ImportVolume(ctx, r.plan.name(st.Volume), f)
}

func (r *runner) containerPrune(ctx context.Context, _ PlannedStep, sr *StepRecord) error {
	return r.prune(ctx, sr, r.eng.PruneContainers)
}

func (r *runner) volumePrune(ctx context.Context, _ PlannedStep, sr *StepRecord) error {
	return r.prune(ctx, sr, r.eng.PruneVolumes)
}

func (r *runner) systemPrune(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	return r.prune(ctx, sr, func(ctx context.Context) error { return r.eng.PruneSystem(ctx, st.Volumes) })
}

// prune is real and without a filter, in a store of the lab's own.
func (r *runner) prune(ctx context.Context, sr *StepRecord, prune func(context.Context) error) error {
	sr.Proof = &Proof{}
	if err := prune(ctx); err != nil {
		return err
	}
	return r.lookAround(ctx, sr)
}

// lookAround asks for every container the plan has after an event that may
// have removed any of them, and records which it took.
func (r *runner) lookAround(ctx context.Context, sr *StepRecord) error {
	for _, c := range r.plan.Variant.Containers {
		l := r.live[c.Name]
		if l == nil || l.gone {
			continue
		}
		before := r.identity(c.Name)
		_, err := r.eng.Inspect(ctx, l.id)
		var missing *engine.NotFoundError
		switch {
		case err == nil:
			continue
		case !errors.As(err, &missing):
			return err
		}
		sr.Others = append(sr.Others, Proof{On: c.Name, Before: before, OldIsGone: missing.Error()})
		if err := r.removed(l); err != nil {
			return err
		}
	}
	return nil
}

// serviceRestart ends the engine's service and starts it again; containers go
// on meanwhile.
func (r *runner) serviceRestart(ctx context.Context, _ PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{}
	if err := r.eng.RestartService(ctx); err != nil {
		return err
	}
	for _, c := range r.plan.Variant.Containers {
		l := r.live[c.Name]
		if l == nil || l.session == nil {
			continue
		}
		// The service carried the conversation: it must be taken up anew.
		before := r.identity(c.Name)
		l.leave()
		var err error
		if l.session, err = openRelay(ctx, r.eng, l.id); err != nil {
			return &fault{fmt.Errorf("the probe in the container: %w", err)}
		}
		after, err := r.look(ctx, l)
		if err != nil {
			return err
		}
		if after.Instance != before.Instance {
			return &fault{fmt.Errorf("another process answers in container %s", c.Name)}
		}
		sr.Others = append(sr.Others, Proof{On: c.Name, Before: before, After: after})
	}
	return nil
}
