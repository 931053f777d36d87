package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// checkpoint is `podman container checkpoint`: the process goes to disk.
func (r *runner) checkpoint(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	l := r.live[st.On]
	sr.Proof = &Proof{Before: r.identity(st.On)}
	file := ""
	if st.To != "" {
		file = r.plan.archive(st.To)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
	}
	// The process is saved as it is: with nobody at the other end.
	l.leave()
	if err := r.eng.Checkpoint(ctx, l.id, file); err != nil {
		return err
	}
	return r.halted(ctx, l, sr)
}

// restore is `podman container restore`: the same process goes on, in the same
// container or, from an archive, in a new one.
func (r *runner) restore(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{Before: r.identity(st.On)}
	l := r.live[st.On]
	if st.From == "" {
		if _, err := r.eng.Restore(ctx, l.id, "", ""); err != nil {
			return err
		}
	} else {
		name := r.plan.name(st.On)
		if err := r.note("container", name); err != nil {
			return err
		}
		id, err := r.eng.Restore(ctx, "", r.plan.archive(st.From), name)
		if err != nil {
			return err
		}
		l = &live{on: st.On, name: name, id: id}
		r.live[st.On] = l
		if err := r.noteAnonymous(ctx, l); err != nil {
			return err
		}
	}
	// Its stdin was closed when the lab let go of it for the checkpoint.
	var err error
	if l.session, err = openRelay(ctx, r.eng, l.id); err != nil {
		return &fault{fmt.Errorf("the probe in the container: %w", err)}
	}
	after, err := r.look(ctx, l)
	if err != nil {
		return err
	}
	sr.Proof.After = after
	if before := sr.Proof.Before; before != nil && before.Instance != after.Instance {
		return &fault{fmt.Errorf("podman says it restored the process, but another answers: %w", errors.New(after.Instance))}
	}
	return nil
}
