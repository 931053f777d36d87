package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"persistencelab/lab/engine"
)

// Patience is how long a thing that was asked for, and whose making nobody saw
// the end of, is given to appear before it counts as never made. Podman makes
// a container in 10 to 100 ms.
const Patience = time.Second

// podPatience is that for what comes with a pod: its image is built, then its
// containers are made and started one after the other.
const podPatience = 10 * time.Second

// cleanup takes away what the plan made, the newest first, under a context
// that outlives the run's own.
func (r *runner) cleanup(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	if !r.env.Keep {
		r.dropCollections(ctx)
	}
	for _, l := range r.live {
		if r.env.Keep {
			l.session.close()
			continue
		}
		r.dismiss(ctx, l) // a container whose process has left goes faster
	}
	if r.env.Keep {
		r.rec.Cleanup.Kept = true
		return
	}
	if r.rec.Hung != "" {
		// Nothing more can be had from this engine. Whoever lent it, its
		// store being the lab's own, takes it away with all that is in it.
		for m := range r.mine {
			_ = r.env.Ledger.Gone(m.Kind, m.Name)
		}
		r.rec.Cleanup.Removed = []string{"the whole store"}
		_ = os.RemoveAll(r.plan.Folder)
		return
	}
	mine := slices.SortedFunc(maps.Keys(r.mine), func(a, b Made) int { return r.mine[b] - r.mine[a] })
	var patience time.Duration
	if r.unanswered {
		patience = Patience
	}
	removed, left := Remove(ctx, r.eng, mine, r.env.Ledger, patience)
	r.rec.Cleanup.Removed = append(r.rec.Cleanup.Removed, removed...)
	r.rec.Cleanup.Left = append(r.rec.Cleanup.Left, left...)
	if err := os.RemoveAll(r.plan.Folder); err != nil {
		r.rec.Cleanup.Left = append(r.rec.Cleanup.Left, "folder "+r.plan.Folder+": "+err.Error())
	}
}

// Remove removes things a run made, what refers to others before what is
// referred to, and says what went and what is left, each with its reason and
// how to remove it by hand. What is not there counts as gone, once nothing has
// come for patience: where a request to make it was never answered, the engine
// may be at it yet. A refusal that may pass is asked for again, removalTries in
// all. ledger, when not nil, is told of what went.
func Remove(ctx context.Context, eng engine.Engine, made []Made, ledger *Ledger, patience time.Duration) (removed, left []string) {
	made = slices.Clone(made)
	slices.SortStableFunc(made, func(a, b Made) int { return rank(a) - rank(b) })
	if patience > 0 && slices.ContainsFunc(made, func(m Made) bool { return m.Kind == "pod" }) {
		patience = max(patience, podPatience)
	}
	gone := func(m Made) {
		if ledger != nil {
			_ = ledger.Gone(m.Kind, m.Name)
		}
	}
	for quiet, tries := time.Now(), 1; ; {
		last := time.Since(quiet) >= patience || ctx.Err() != nil
		var pending []Made
		errs := map[Made]error{}
		awaited := false // something that may come yet, and may bring what it refers to
		for _, m := range made {
			if awaited && !last && rank(m) > rank(Made{Kind: "pod"}) {
				pending = append(pending, m)
				continue
			}
			err := removeOne(ctx, eng, m)
			if err == nil {
				removed = append(removed, m.Kind+" "+m.Name)
				gone(m)
				quiet = time.Now()
				continue
			}
			pending, errs[m] = append(pending, m), err
			awaited = awaited || nothing(m, err)
		}
		made = pending
		if awaited && !last {
			_ = sleep(ctx, min(patience/4, 250*time.Millisecond))
			continue
		}
		passing := func(m Made) bool { return mayPass(m, errs[m]) }
		if tries < removalTries && ctx.Err() == nil && slices.ContainsFunc(pending, passing) {
			tries++
			_ = sleep(ctx, 200*time.Millisecond)
			continue
		}
		for _, m := range pending {
			if nothing(m, errs[m]) {
				gone(m)
				continue
			}
			left = append(left, fmt.Sprintf("%s %s: %v (by hand: %s)", m.Kind, m.Name, errs[m], m.ByHand()))
		}
		return removed, left
	}
}

// nothing tells whether there is nothing to remove: it is not there, or has
// become somebody else's.
func nothing(m Made, err error) bool {
	var missing *engine.NotFoundError
	var used *engine.InUseError
	return errors.As(err, &missing) || m.Kind == PauseImage && errors.As(err, &used)
}

// removalTries: Podman refuses to remove what is between two states ("container
// state improper: stopped", 4.3.1 under load, its process gone while it was being
// killed), and has it right a moment later.
const removalTries = 4

// mayPass tells a refusal that may pass from one that says how things are.
func mayPass(m Made, err error) bool {
	var used *engine.InUseError
	var down *engine.UnreachableError
	return !nothing(m, err) && !errors.As(err, &used) && !errors.As(err, &down)
}

func removeOne(ctx context.Context, eng engine.Engine, m Made) error {
	switch m.Kind {
	case "container":
		return eng.Remove(ctx, m.Name, engine.RemoveOptions{Force: true, Volumes: true})
	case "volume":
		return eng.RemoveVolume(ctx, m.Name, false)
	case "pod":
		return eng.RemovePod(ctx, m.Name, true)
	case "secret":
		return eng.RemoveSecret(ctx, m.Name)
	case "image":
		return eng.RemoveImage(ctx, m.Name, true)
	case PauseImage:
		return removePause(ctx, eng)
	}
	return fmt.Errorf("the lab does not know how to remove a %s", m.Kind)
}

// ByHand is the command that removes it.
func (m Made) ByHand() string {
	switch m.Kind {
	case "container":
		return "podman rm -f -v " + m.Name
	case PauseImage:
		return "podman rmi $(podman images -q " + m.Name + ")"
	case Collection:
		c := madeCollection(m.Name)
		return "podman exec " + c.container + " " + strings.Join(c.drop(), " ")
	case "folder":
		return "rm -rf " + quote(m.Name)
	}
	return fmt.Sprintf("podman %s rm %s", m.Kind, m.Name)
}

// rank orders removal.
func rank(m Made) int {
	return slices.Index([]string{"container", "pod", "volume", "secret", "image", PauseImage}, m.Kind)
}
