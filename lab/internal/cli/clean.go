package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"persistencelab/bindings"
	"persistencelab/lab/internal/experiment"
)

func newClean(env *Env) *cobra.Command {
	var flags engineFlags
	cmd := &cobra.Command{
		Use:     "clean",
		Short:   "Remove what the lab left, and only that",
		Long:    "Remove what runs that ended early left behind: containers, volumes and folders that carry\nsuch a run's label and name, and what it put into a store of yours. Runs still going on are\nnot touched, nor is anything of yours.",
		Example: "  lab clean",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runClean(cmd.Context(), env, flags) },
	}
	flags.add(cmd)
	return cmd
}

func runClean(ctx context.Context, env *Env, flags engineFlags) error {
	state, err := stateDir(env)
	if err != nil {
		return err
	}
	dead, err := deadRuns(state)
	if err != nil {
		return err
	}
	defer func() {
		for _, d := range dead {
			d.close()
		}
	}()
	var first error
	failed := false
	for _, d := range dead {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		removed, left, err := d.clean(ctx, env, flags)
		for _, r := range removed {
			fmt.Fprintf(env.Stdout, "removed %s\n", r)
		}
		for _, l := range left {
			failed = true
			fmt.Fprintf(env.Stderr, "lab: error: not removed: %s\n", l)
		}
		switch {
		case err == nil && len(left) == 0:
			fmt.Fprintf(env.Stdout, "removed run %s\n", d.id)
		case err != nil && first == nil:
			first = fmt.Errorf("run %s: %w", d.id, err)
		case err != nil:
			fmt.Fprintf(env.Stderr, "lab: error: run %s: %s\n", d.id, err)
		}
	}
	switch {
	case first != nil:
		return first
	case failed:
		return &resultError{code: exitUnknown, hint: "podman ps -a --filter label=" + experiment.RunLabel}
	case len(dead) == 0:
		fmt.Fprintln(env.Stdout, "nothing to remove")
	}
	return nil
}

// clean removes a dead run on the engine it ran on, or the one the flags name.
func (d *deadRun) clean(ctx context.Context, env *Env, flags engineFlags) (removed, left []string, err error) {
	if err := d.read(); err != nil {
		return nil, nil, fmt.Errorf("%w (look into %s, then remove it by hand)", err, d.folder)
	}
	if err := d.endService(ctx); err != nil {
		return nil, nil, err
	}
	if !d.inEngine() {
		return nil, d.removeFolders(), nil
	}
	if flags.url == "" && flags.connection == "" && !d.info.Service {
		flags.url = d.info.URL
	}
	ledger, err := experiment.OpenLedger(d.folder)
	if err != nil {
		return nil, nil, err
	}
	defer ledger.Close()
	runDir := d.folder
	if i := slices.IndexFunc(d.made, func(m experiment.Made) bool { return m.Kind == folderKind }); i >= 0 {
		runDir = d.made[i].Name
	}
	opts, err := dialOptions(env, flags, runDir, d.info.Root)
	if err != nil {
		return nil, nil, err
	}
	opts.RunID, opts.Journal = d.id, cleaning{ledger}
	eng, err := bindings.Dial(ctx, opts)
	if err != nil {
		return nil, nil, err
	}
	defer eng.Close()
	removed, left = d.remove(ctx, eng)
	return removed, left, nil
}

// cleaning is the journal of a dead run's cleaning: where it ran stands in its
// folder already.
type cleaning struct{ *experiment.Ledger }

// Reached implements bindings.Journal.
func (cleaning) Reached(string, bool) error { return nil }
