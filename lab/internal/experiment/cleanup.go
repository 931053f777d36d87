package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"persistencelab/lab/engine"
)

// cleanup takes away what the plan made, the newest first, under a context
// that outlives the run's own.
func (r *runner) cleanup(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	for _, l := range r.live {
		if !r.env.Keep {
			l.session.exit(ctx) // a container whose process has left goes faster
		}
		l.session.close()
	}
	if r.env.Keep {
		r.rec.Cleanup.Kept = true
		return
	}
	var mine []Made
	for _, m := range r.env.Ledger.Left() {
		if strings.HasPrefix(m.Name, r.plan.Prefix+"-") || r.isMyVolume(m) {
			mine = append(mine, m)
		}
	}
	r.rec.Cleanup.Removed, r.rec.Cleanup.Left = Remove(ctx, r.eng, mine, r.env.Ledger)
	if err := os.RemoveAll(r.plan.Folder); err != nil {
		r.rec.Cleanup.Left = append(r.rec.Cleanup.Left, "folder "+r.plan.Folder+": "+err.Error())
	}
}

// isMyVolume: a volume without a name does not carry the plan's prefix.
func (r *runner) isMyVolume(m Made) bool {
	for _, l := range r.live {
		for _, id := range l.auto {
			if m.Kind == "volume" && m.Name == id {
				return true
			}
		}
	}
	return false
}

// Remove removes things a run made, in the order given, and says what went
// and what is left, each with its reason. What is not there counts as gone.
// ledger, when not nil, is told of what went.
func Remove(ctx context.Context, eng engine.Engine, made []Made, ledger *Ledger) (removed, left []string) {
	for _, m := range made {
		err := removeOne(ctx, eng, m)
		var missing *engine.NotFoundError
		switch {
		case err == nil:
			removed = append(removed, m.Kind+" "+m.Name)
		case errors.As(err, &missing):
		default:
			left = append(left, fmt.Sprintf("%s %s: %v", m.Kind, m.Name, err))
			continue
		}
		if ledger != nil {
			_ = ledger.Gone(m.Kind, m.Name)
		}
	}
	return removed, left
}

func removeOne(ctx context.Context, eng engine.Engine, m Made) error {
	switch m.Kind {
	case "container":
		return eng.Remove(ctx, m.Name, engine.RemoveOptions{Force: true, Volumes: true})
	case "volume":
		return eng.RemoveVolume(ctx, m.Name, false)
	case "image":
		return eng.RemoveImage(ctx, m.Name, true)
	}
	return fmt.Errorf("the lab does not know how to remove a %s", m.Kind)
}
