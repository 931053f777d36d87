package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"persistencelab/bindings"
	"persistencelab/lab/engine"
	"persistencelab/lab/internal/audit"
	"persistencelab/scenarios"
)

type auditOptions struct {
	all     bool
	policy  string
	output  output[[]*audit.Audit, audit.Options]
	verbose bool
}

func newAudit(env *Env) *cobra.Command {
	var (
		flags engineFlags
		opts  auditOptions
	)
	cmd := &cobra.Command{
		Use:   "audit CONTAINER…",
		Short: "Say what your container would lose if it were removed now",
		Long: `Say what containers, running or stopped, would lose if they were removed now and run again:
databases, keys, uploads, notes and logs in the writable layer, anonymous volumes, memory, data
written beside a mount; and what stays. Each finding comes with the commands that would save it.
Nothing is changed.

--policy is a decision table: a scenario file, or a file with its data: part alone, whose items
say acceptable_loss and rebuild for a file or a folder:

  data:
    jobs:  {sqlite: /var/lib/app/jobs.db, acceptable_loss: none}
    cache: {file: /var/cache/app, acceptable_loss: all, rebuild: auto}

It exits with 1 when something would be lost that no policy accepts.`,
		Example: "  lab audit web\n  lab audit --all --format html -o losses.html\n  lab audit web --policy decision-table.yaml",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runAudit(cmd.Context(), env, flags, opts, args)
		},
	}
	flags.add(cmd)
	cmd.Flags().BoolVar(&opts.all, "all", false, "every container, in any state")
	cmd.Flags().StringVar(&opts.policy, "policy", "", "decision table: which losses are acceptable")
	opts.output.add(cmd, audit.Formats())
	cmd.Flags().BoolVarP(&opts.verbose, "verbose", "v", false, "text: every place, however many")
	return cmd
}

func runAudit(ctx context.Context, env *Env, flags engineFlags, opts auditOptions, names []string) error {
	switch {
	case opts.all && len(names) > 0:
		return usagef("lab audit --all", "--all is every container; it takes no names")
	case !opts.all && len(names) == 0:
		return usagef("lab audit --all", "which container?")
	}
	format, err := opts.output.pick("lab audit --all")
	if err != nil {
		return err
	}
	policy, err := readPolicy(opts.policy)
	if err != nil {
		return err
	}
	eng, done, err := dialToLook(ctx, env, flags)
	if err != nil {
		return err
	}
	defer done()
	audits, err := auditEach(ctx, env, eng, names, policy)
	if err != nil {
		return err
	}
	wopts := audit.Options{Width: min(env.Width, 120), Unicode: unicodeLocale(env), Verbose: opts.verbose}
	if err := opts.output.write(env, format, audits, wopts); err != nil {
		return err
	}
	lost, unknown := 0, 0
	for _, a := range audits {
		lost, unknown = lost+a.NotAccepted, unknown+a.Unknown
	}
	switch {
	case lost > 0:
		return &resultError{code: exitSurprised}
	case unknown > 0:
		return &resultError{code: exitUnknown}
	}
	return nil
}

func readPolicy(file string) ([]scenarios.Item, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, &usageError{err: err, hint: "lab audit --help"}
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, scenarios.MaxBytes+1))
	if err != nil {
		return nil, &usageError{err: err}
	}
	return scenarios.ParsePolicy(file, src)
}

// dialToLook reaches Podman without running, making or removing anything
// there: an audit finds everything as it was and leaves it so.
func dialToLook(ctx context.Context, env *Env, flags engineFlags) (*bindings.Podman, func(), error) {
	folder, err := os.MkdirTemp("", "lab-audit-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { _ = os.RemoveAll(folder) }
	opts, err := dialOptions(env, flags, folder, "")
	if err != nil {
		remove()
		return nil, nil, err
	}
	opts.LookOnly = true
	eng, err := bindings.Dial(ctx, opts)
	if err != nil {
		remove()
		return nil, nil, err
	}
	return eng, func() { _ = eng.Close(); remove() }, nil
}

func auditEach(ctx context.Context, env *Env, eng *bindings.Podman, names []string, policy []scenarios.Item) ([]*audit.Audit, error) {
	all := len(names) == 0
	if all {
		refs, err := eng.Containers(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range refs {
			if !r.Infra {
				names = append(names, r.Name)
			}
		}
	}
	var audits []*audit.Audit
	for _, name := range names {
		facts, err := audit.Gather(ctx, eng, name, env.Now())
		var gone *engine.NotFoundError
		switch {
		case errors.As(err, &gone) && gone.Kind == "container" && all:
			continue // removed since the list was made
		case errors.As(err, &gone) && gone.Kind == "container":
			return nil, noContainer(ctx, eng, name)
		case err != nil:
			return nil, fmt.Errorf("container %s: %w", name, err)
		}
		facts.Podman = eng.Version()
		audits = append(audits, audit.Judge(facts, policy))
	}
	return audits, nil
}

// noContainer says that there is none of that name, and which was meant.
func noContainer(ctx context.Context, eng *bindings.Podman, name string) error {
	refs, err := eng.Containers(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, r := range refs {
		if !r.Infra {
			names = append(names, r.Name)
		}
	}
	hint := "podman ps -a"
	switch near := scenarios.Nearest(name, names); {
	case near != "":
		hint = "lab audit " + near
	case len(names) == 0:
		hint = "there are no containers on this podman (root and each user have their own: sudo lab audit --all)"
	}
	return usagef(hint, "no container %q", name)
}
