package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/drill"
	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

type drillOptions struct {
	engineFlags
	output  output[*drill.Report, drill.Options]
	variant string
	points  int
	timeout time.Duration
	allow   []string

	image drill.ImageOptions
	ref   string
}

func newDrill(env *Env) *cobra.Command {
	var opts drillOptions
	cmd := &cobra.Command{
		Use:   "drill SCENARIO | --image IMAGE",
		Short: "The restart drill: restart, kill mid-write, readiness, and the list of losses",
		Long: `Six steps, on a scenario's data and mounts or on an image of your own: deploy and write, restart
without deploying again, look and compare, kill in the middle of a write, take the state away and
see whether readiness notices, replace the container and list what was lost. A scenario's
acceptable_loss and rebuild say which losses are accepted.

With --image the image's own command runs, in volumes that are made for the drill (-v NAME:TARGET)
and removed with it: none of your data is touched. The lab's probe is mounted read-only beside it
at ` + drill.ProbePath + ` and leaves evidence in the temp, home and working folders, the mounts and each
--path; what the image's program wrote by itself is found as lab audit finds it. --write is a
command that makes it write something real, --health-cmd asks its health where the image has no
HEALTHCHECK.

It exits with 1 when something was lost that nobody accepted, when a write was left torn, or when
a health check did not notice that its state is gone.`,
		Example: "  lab drill three-mounts --variant \"named volume\"\n  lab new --decision-table my-service && lab drill my-service.yaml\n  lab drill --image localhost/shop:1 -v data:/var/lib/shop --health-cmd '/shop ready'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runDrill(cmd.Context(), env, opts, args)
		},
	}
	opts.engineFlags.add(cmd)
	flags := cmd.Flags()
	opts.output.add(cmd, drill.Formats())
	flags.DurationVar(&opts.timeout, "timeout", 5*time.Minute, "longest time for one drill")
	flags.StringVar(&opts.variant, "variant", "", "scenario: only this variant (default: each)")
	flags.IntVar(&opts.points, "points", 50, "scenario: how many times each write is killed")
	flags.StringArrayVar(&opts.allow, "allow-host-path", nil, "scenario: host folder it may bind-mount (repeatable)")
	flags.StringVar(&opts.ref, "image", "", "an image of your own, which podman has already")
	flags.StringArrayVarP(&opts.image.Volumes, "volume", "v", nil, "image: NAME:TARGET, a volume made for the drill (repeatable)")
	flags.StringArrayVarP(&opts.image.Env, "env", "e", nil, "image: NAME=VALUE in its environment (repeatable)")
	flags.StringArrayVar(&opts.image.Paths, "path", nil, "image: a further folder to leave evidence in (repeatable)")
	flags.StringVar(&opts.image.WriteCommand, "write", "", "image: a command in the container that makes it write something real")
	flags.StringVar(&opts.image.HealthCommand, "health-cmd", "", "image: a command that exits with 0 when the service is ready")
	flags.DurationVar(&opts.image.Settle, "settle", 3*time.Second, "image: time it is given after each start")
	flags.DurationVar(&opts.image.HealthTime, "health-time", 30*time.Second, "image: how long it may take to become healthy")
	return cmd
}

func runDrill(ctx context.Context, env *Env, opts drillOptions, args []string) error {
	switch {
	case opts.ref == "" && len(args) == 0:
		return usagef("lab drill three-mounts", "drill what? name a scenario, or an image with --image")
	case opts.ref != "" && len(args) > 0:
		return usagef("lab drill --image "+opts.ref, "a scenario or --image, not both")
	case opts.points < 3 || opts.points > 1000:
		return usagef("lab drill --points 50", "--points %d: 3 to 1000", opts.points)
	}
	format, err := opts.output.pick("lab drill three-mounts")
	if err != nil {
		return err
	}
	var drills []*drill.Scenario
	if opts.ref == "" {
		if drills, err = drillsOf(args[0], opts); err != nil {
			return err
		}
	} else if err := opts.image.Check(); err != nil {
		return &usageError{err: err, hint: "lab drill --help"}
	}
	started := env.Now()
	s, err := openSession(ctx, env, opts.engineFlags)
	if err != nil {
		return err
	}
	rep := &drill.Report{Version: drill.Version, Tool: "lab " + version, Started: started, Engine: s.engine.Facts()}
	if opts.ref == "" {
		err = drillScenarios(ctx, env, s, opts, drills, rep)
	} else {
		err = drillImage(ctx, env, s, opts, rep)
	}
	left := s.close(ctx, false)
	rep.Took = env.Now().Sub(started)
	if err != nil {
		return err
	}
	if err := opts.output.write(env, format, rep, drill.Options{Width: min(env.Width, 120), Unicode: unicodeLocale(env)}); err != nil {
		return err
	}
	for _, l := range left {
		fmt.Fprintf(env.Stderr, "lab: error: left behind: %s\n", l)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c := drill.Count(rep)
	switch {
	case len(left) > 0:
		return &resultError{code: exitUnknown, hint: "lab clean"}
	case c.Unknown > 0:
		return &resultError{code: exitUnknown}
	case c.Failed+c.NotAccepted > 0:
		return &resultError{code: exitSurprised}
	}
	return nil
}

// drillsOf makes the drill of each variant asked for.
func drillsOf(name string, opts drillOptions) ([]*drill.Scenario, error) {
	s, err := loadScenario(name, opts.allow)
	if err != nil {
		return nil, err
	}
	var drills []*drill.Scenario
	var names []string
	for i := range s.Variants {
		v := &s.Variants[i]
		names = append(names, v.Name)
		if opts.variant != "" && opts.variant != v.Name {
			continue
		}
		d, err := drill.OfScenario(s, v, opts.points)
		if err != nil {
			return nil, &usageError{err: err, hint: "lab new --decision-table my-service writes one that can be drilled"}
		}
		drills = append(drills, d)
	}
	if len(drills) == 0 {
		return nil, usagef(fmt.Sprintf("lab drill %s --variant %q", name, names[0]), "scenario %s has no variant %q", s.Name, opts.variant)
	}
	return drills, nil
}

func drillScenarios(ctx context.Context, env *Env, s *session, opts drillOptions, drills []*drill.Scenario, rep *drill.Report) error {
	var list []*scenarios.Scenario
	for _, d := range drills {
		list = append(list, d.Scenario)
	}
	jobs, err := plans(list, s.planOptions(env))
	if err != nil {
		return err
	}
	// One after the other: what is measured is not to disturb itself.
	runJobs(ctx, env, s, runOptions{jobs: 1, timeout: opts.timeout}, jobs)
	for i, j := range jobs {
		for _, l := range j.record.Cleanup.Left {
			fmt.Fprintf(env.Stderr, "lab: error: not removed: %s\n", l)
		}
		rep.Drills = append(rep.Drills, *drills[i].Result(j.plan, j.record, experiment.Judge(j.plan, j.record, rep.Engine)))
	}
	return nil
}

func drillImage(ctx context.Context, env *Env, s *session, opts drillOptions, rep *drill.Report) error {
	ctx, cancel := context.WithTimeoutCause(ctx, opts.timeout, fmt.Errorf("it took longer than %s (--timeout)", opts.timeout))
	defer cancel()
	d, err := drill.Image(ctx, s.engine, opts.ref, opts.image, drill.Env{
		RunID: s.id, Folder: s.folder, Ledger: s.ledger, Now: env.Now, Nonce: func() string { return env.Random(8) },
	})
	var missing *engine.NotFoundError
	if errors.As(err, &missing) {
		return &usageError{err: err, hint: "podman pull " + opts.ref}
	}
	if err != nil {
		return err
	}
	rep.Drills = append(rep.Drills, *d)
	return nil
}
