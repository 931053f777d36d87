package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"persistencelab/lab/engine"
)

// Patience is how long a thing that was asked for, and whose making nobody saw
// the end of, is given to appear before it counts as never made. Podman makes
// a container in 10 to 100 ms.
const Patience = time.Second

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
	var patience time.Duration
	if r.unanswered {
		patience = Patience
	}
	r.rec.Cleanup.Removed, r.rec.Cleanup.Left = Remove(ctx, r.eng, mine, r.env.Ledger, patience)
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
// and what is left, each with its reason and how to remove it by hand. What is
// not there counts as gone, once it is still not there after patience: where a
// request to make it was never answered, the engine may be at it yet. ledger,
// when not nil, is told of what went.
func Remove(ctx context.Context, eng engine.Engine, made []Made, ledger *Ledger, patience time.Duration) (removed, left []string) {
	var absent []Made
	gone := func(m Made) {
		if ledger != nil {
			_ = ledger.Gone(m.Kind, m.Name)
		}
	}
	try := func(m Made, last bool) {
		err := removeOne(ctx, eng, m)
		var missing *engine.NotFoundError
		switch {
		case err == nil:
			removed = append(removed, m.Kind+" "+m.Name)
			gone(m)
		case errors.As(err, &missing) && !last:
			absent = append(absent, m)
		case errors.As(err, &missing):
			gone(m)
		default:
			left = append(left, fmt.Sprintf("%s %s: %v (by hand: %s)", m.Kind, m.Name, err, m.ByHand()))
		}
	}
	for _, m := range made {
		try(m, patience == 0)
	}
	if len(absent) == 0 {
		return removed, left
	}
	select {
	case <-time.After(patience):
	case <-ctx.Done():
	}
	for _, m := range absent {
		try(m, true)
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

// ByHand is the command that removes it.
func (m Made) ByHand() string {
	switch m.Kind {
	case "container":
		return "podman rm -f -v " + m.Name
	case "folder":
		return "rm -rf " + quote(m.Name)
	}
	return fmt.Sprintf("podman %s rm %s", m.Kind, m.Name)
}
