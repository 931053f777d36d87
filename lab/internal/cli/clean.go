package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
)

func newClean(env *Env) *cobra.Command {
	var flags engineFlags
	cmd := &cobra.Command{
		Use:     "clean",
		Short:   "Remove what the lab left, and only that",
		Long:    "Remove what runs that ended early left behind: containers, volumes and folders that carry\nsuch a run's label and name. Runs still going on are not touched, nor is anything of yours.",
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
	failed := false
	for _, folder := range dead {
		removed, left, err := cleanRun(ctx, env, flags, folder)
		if err != nil {
			return fmt.Errorf("run %s: %w", filepath.Base(folder), err)
		}
		for _, r := range removed {
			fmt.Fprintf(env.Stdout, "removed %s\n", r)
		}
		for _, l := range left {
			failed = true
			fmt.Fprintf(env.Stderr, "lab: error: not removed: %s\n", l)
		}
		if len(left) == 0 {
			fmt.Fprintf(env.Stdout, "removed run %s\n", filepath.Base(folder))
		}
	}
	if failed {
		return &resultError{code: exitUnknown, hint: "podman ps -a --filter label=" + experiment.RunLabel}
	}
	if len(dead) == 0 {
		fmt.Fprintln(env.Stdout, "nothing to remove")
	}
	return nil
}

// cleanRun removes one dead run on the engine it ran on.
func cleanRun(ctx context.Context, env *Env, flags engineFlags, folder string) (removed, left []string, err error) {
	lock, err := lockFolder(folder)
	if err != nil {
		return nil, nil, nil // it has come to life, or another clean has it
	}
	defer lock.Close()
	info, err := readInfo(folder)
	if err == nil && flags.url == "" && flags.connection == "" && !info.Service {
		flags.url = info.URL
	}
	var eng engine.Engine
	if eng, err = dial(ctx, env, flags, folder, info.Root); err != nil {
		return nil, nil, err
	}
	defer eng.Close()
	removed, left = removeRun(ctx, eng, folder)
	return removed, left, nil
}
