package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"persistencelab/bindings"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/report"
	"persistencelab/lab/internal/vm"
	"persistencelab/scenarios"
)

type runOptions struct {
	engineFlags
	output  output[*experiment.Report, report.Options]
	verbose bool
	all     bool
	jobs    int
	keep    bool
	dryRun  bool
	kube    bool
	timeout time.Duration
	allow   []string
	service []string
	instead map[string]string // by the service's name: of --service
}

// defaultScenario is what a bare `lab run` runs.
const defaultScenario = "three-mounts"

func newRun(env *Env) *cobra.Command {
	var opts runOptions
	cmd := &cobra.Command{
		Use:   "run [SCENARIO…]",
		Short: "Run scenarios on real Podman and show what came back",
		Long: "Run built-in scenarios by name, or scenario files by path, and show which data came\n" +
			"back. Without an argument it runs " + defaultScenario + ". Scenarios about virtual machines need QEMU\n" +
			"(" + vm.Setup + "); without it they are skipped.",
		Example: "  lab run\n  lab run stop-and-start my.yaml\n  lab run --all --format markdown -o results.md\n  lab run --dry-run      # the podman commands, to type yourself\n  lab run --kube-yaml    # its containers for podman kube play, or Kubernetes",
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRun(cmd.Context(), env, opts, args)
		},
	}
	opts.engineFlags.add(cmd)
	opts.output.add(cmd, report.Formats())
	cmd.Flags().BoolVarP(&opts.verbose, "verbose", "v", false, "text: also paths, what exactly was found, and the podman commands")
	cmd.Flags().BoolVar(&opts.all, "all", false, "run the whole catalogue")
	cmd.Flags().IntVar(&opts.jobs, "jobs", min(2*runtime.NumCPU(), 8), "variants run side by side")
	cmd.Flags().BoolVar(&opts.keep, "keep", false, "leave containers, volumes and folders, and say how to look at them")
	cmd.Flags().BoolVar(&opts.dryRun, "dry-run", false, "print the podman commands instead of running anything")
	cmd.Flags().BoolVar(&opts.kube, "kube-yaml", false, "write the scenario's containers as Kubernetes YAML instead of running anything")
	cmd.MarkFlagsMutuallyExclusive("kube-yaml", "dry-run")
	cmd.MarkFlagsMutuallyExclusive("kube-yaml", "all")
	cmd.MarkFlagsMutuallyExclusive("kube-yaml", "format")
	cmd.Flags().DurationVar(&opts.timeout, "timeout", 2*time.Minute, "longest time for one variant")
	cmd.Flags().StringArrayVar(&opts.allow, "allow-host-path", nil, "host folder a scenario may bind-mount (repeatable)")
	cmd.Flags().StringArrayVar(&opts.service, "service", nil, "run a service of a scenario as another store: NAME=IMAGE that is here, or NAME=URL (repeatable)")
	return cmd
}

func runRun(ctx context.Context, env *Env, opts runOptions, names []string) error {
	if opts.jobs < 1 {
		return usagef("lab run --jobs 1", "--jobs %d: at least one variant must run", opts.jobs)
	}
	if opts.all && len(names) > 0 {
		return usagef("lab run --all", "--all runs the whole catalogue; name scenarios or say --all, not both")
	}
	if len(names) == 0 && !opts.all {
		names = []string{defaultScenario}
	}
	list, err := loadScenarios(names, opts.all, opts.allow)
	if err != nil {
		return err
	}
	if opts.instead, err = serviceFlags(opts.service, list); err != nil {
		return err
	}
	format, err := opts.output.pick("lab run")
	if err != nil {
		return err
	}
	if opts.kube {
		return printKube(env, opts.output.file, names, list)
	}
	if opts.dryRun {
		return printPlans(env, opts, list)
	}
	rep, left, err := execute(ctx, env, opts, list)
	if rep == nil {
		return err
	}
	write := report.Options{Verbose: opts.verbose, Unicode: unicodeLocale(env)}
	if opts.output.file == "" {
		write.Width, write.Color = min(env.Width, 120), env.StdoutTTY && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"
	}
	if werr := opts.output.write(env, format, rep, write); werr != nil {
		return werr
	}
	for _, l := range left {
		fmt.Fprintf(env.Stderr, "lab: error: left behind: %s\n", l)
	}
	if err != nil {
		return err
	}
	return verdictOf(rep, left)
}

// verdictOf is the exit that a report asks for.
func verdictOf(rep *experiment.Report, left []string) error {
	c := report.Count(rep)
	switch {
	case len(left) > 0:
		return &resultError{code: exitUnknown, hint: "lab clean"}
	case c.Unknown > 0:
		return &resultError{code: exitUnknown, hint: "what is unknown could not be observed: see the reason in the table, then run again, or ask lab doctor"}
	case c.Surprised+c.Violated > 0:
		return &resultError{code: exitSurprised}
	}
	return nil
}

// loadScenarios finds scenarios by name in the catalogue or by path. Every
// file's faults are told, not only the first file's.
func loadScenarios(names []string, all bool, allow []string) ([]*scenarios.Scenario, error) {
	if all {
		return scenarios.Catalogue(), nil
	}
	var list []*scenarios.Scenario
	var faults scenarios.Errors
	for _, name := range names {
		s, err := loadScenario(name, allow)
		var fs scenarios.Errors
		switch {
		case errors.As(err, &fs):
			faults = append(faults, fs...)
		case err != nil:
			return nil, err
		default:
			list = append(list, s)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return list, nil
}

func loadScenario(name string, allow []string) (*scenarios.Scenario, error) {
	if isPath(name) {
		s, err := scenarios.Load(name, scenarios.Options{AllowHostPaths: allow})
		if errors.Is(err, os.ErrNotExist) {
			return nil, usagef("lab new "+strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))+" writes one to start from", "no scenario file %s", name)
		}
		var faults scenarios.Errors
		if err != nil && !errors.As(err, &faults) {
			return nil, &usageError{err: err} // it can't be read
		}
		return s, err
	}
	s, err := scenarios.Find(name)
	var unknown *scenarios.UnknownError
	if errors.As(err, &unknown) {
		return nil, &usageError{err: err, hint: unknown.Suggestion}
	}
	return s, err
}

// isPath tells a file from a name in the catalogue, whose names have neither
// dots nor slashes.
func isPath(name string) bool { return strings.ContainsAny(name, `./\`) }

// job is one plan to carry out, and what became of it.
type job struct {
	plan   *experiment.Plan
	record *experiment.Record
}

// execute runs every variant of the scenarios and makes the report. With an
// error and a report, the run was cut short and the report holds what was
// observed until then. left is what could not be removed.
func execute(ctx context.Context, env *Env, opts runOptions, list []*scenarios.Scenario) (_ *experiment.Report, left []string, _ error) {
	started := env.Now()
	s, err := openSessionFor(ctx, env, opts.engineFlags, list)
	if err != nil {
		return nil, nil, err
	}
	closed := false
	finish := func() {
		if !closed {
			closed = true
			left = s.close(ctx, opts.keep)
		}
	}
	defer finish()
	po := s.planOptions(env)
	po.Stores.Instead = opts.instead
	jobs, err := plans(list, po)
	if err != nil {
		return nil, nil, err
	}
	runJobs(ctx, env, s, opts, jobs)
	rep := &experiment.Report{
		Version: experiment.ReportVersion, Tool: "lab " + version, Started: started, Engine: s.facts(jobs),
	}
	for _, sc := range list {
		rep.Scenarios = append(rep.Scenarios, experiment.Summarize(sc, plansOf(jobs, sc)))
	}
	for _, j := range jobs {
		rep.Records = append(rep.Records, *j.record)
		verdicts := experiment.Judge(j.plan, j.record, rep.Engine)
		rep.Results = append(rep.Results, verdicts...)
		rep.Decisions = append(rep.Decisions, experiment.Decide(j.plan, j.record, verdicts)...)
		for _, l := range j.record.Cleanup.Left {
			fmt.Fprintf(env.Stderr, "lab: error: not removed: %s\n", l)
		}
	}
	if opts.keep {
		keepNote(env, s, jobs)
	}
	finish()
	rep.Took = env.Now().Sub(started)
	if ctx.Err() != nil {
		return rep, left, context.Cause(ctx)
	}
	return rep, left, nil
}

// planOptions are a session's part of a plan.
func (s *session) planOptions(env *Env) experiment.PlanOptions {
	kernel, initrd := machineFiles(env)
	return experiment.PlanOptions{
		RunID: s.id, Folder: s.folder, Images: s.images, Stores: serviceStores(env, nil), Nonce: func() string { return env.Random(8) },
		Kernel: kernel, Initrd: initrd,
	}
}

// plans resolves every variant of every scenario.
func plans(list []*scenarios.Scenario, o experiment.PlanOptions) ([]*job, error) {
	var jobs []*job
	for _, sc := range list {
		for i := range sc.Variants {
			o.Number++
			p, err := experiment.New(sc, &sc.Variants[i], o)
			if err != nil {
				return nil, err
			}
			jobs = append(jobs, &job{plan: p})
		}
	}
	return jobs, nil
}

func plansOf(jobs []*job, sc *scenarios.Scenario) []*experiment.Plan {
	var ps []*experiment.Plan
	for _, j := range jobs {
		if j.plan.Scenario == sc {
			ps = append(ps, j.plan)
		}
	}
	return ps
}

// runJobs carries the plans out, opts.jobs at a time.
func runJobs(ctx context.Context, env *Env, s *session, opts runOptions, jobs []*job) {
	progress := newProgress(env, len(jobs))
	defer progress.end()
	next := make(chan *job)
	var wg sync.WaitGroup
	for range min(opts.jobs, len(jobs)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range next {
				done := s.turn(ctx, j.plan)
				pctx, cancel := context.WithTimeoutCause(ctx, opts.timeout, fmt.Errorf("it took longer than %s (--timeout)", opts.timeout))
				j.record = s.carryOut(pctx, j.plan, experiment.Env{
					Now: env.Now, Ledger: s.ledger, Progress: progress.step, Keep: opts.keep, Machines: s.machines,
				})
				cancel()
				done()
				progress.done()
			}
		}()
	}
	for _, j := range jobs {
		next <- j
	}
	close(next)
	wg.Wait()
}

// keepNote says how to look at what --keep left, and how to remove it.
func keepNote(env *Env, s *session, jobs []*job) {
	if s.engine != nil {
		fmt.Fprintf(env.Stderr, "lab: kept: podman ps -a --filter label=%s=%s\n", experiment.RunLabel, s.id)
	}
	fmt.Fprintf(env.Stderr, "lab: kept: bind mounts and the run's ledger are in %s\n", s.folder)
	fmt.Fprintf(env.Stderr, "lab: hint: lab clean   # removes all of it\n")
}

// printPlans prints the podman commands of every variant.
func printPlans(env *Env, opts runOptions, list []*scenarios.Scenario) error {
	state, err := stateDir(env)
	if err != nil {
		return err
	}
	dialed, err := dialOptions(env, opts.engineFlags, "", "")
	if err != nil {
		return err
	}
	id := env.Random(4)
	kernel, initrd := machineFiles(env)
	podman, limits := bindings.HostShell(dialed)
	shell := experiment.NewShell(podman, limits)
	shell.Pasted, shell.Remote, shell.Rootless = true, slices.Contains(podman, "--remote"), os.Getuid() != 0
	jobs, err := plans(list, experiment.PlanOptions{
		Kernel: kernel, Initrd: initrd,
		RunID: id, Folder: filepath.Join(state, "runs", id), Images: imageMaker(), Stores: serviceStores(env, opts.instead),
		Nonce: func() string { return env.Random(8) }, Podman: shell,
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "# The probe image must be there: lab doctor, and every lab run, sees to it.\n\n")
	for _, j := range jobs {
		fmt.Fprint(&out, j.plan.Script())
	}
	fmt.Fprintln(&out, experiment.RemoveFolder(filepath.Join(state, "runs", id)))
	_, err = env.Stdout.Write(out.Bytes())
	return err
}
