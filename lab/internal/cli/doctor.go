package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

func newDoctor(env *Env) *cobra.Command {
	var flags engineFlags
	cmd := &cobra.Command{
		Use:     "doctor",
		Short:   "Check that this machine is ready for class",
		Long:    "Check that this machine is ready: Podman, the probe image, space, and each kind of mount by\nreally running a container with it. Each fault comes with its fix.",
		Example: "  lab doctor",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), env, flags) },
	}
	flags.add(cmd)
	return cmd
}

// checkup prints one line a check and remembers whether any failed.
type checkup struct {
	env    *Env
	failed bool
}

func (c *checkup) ok(what, detail string) {
	fmt.Fprintf(c.env.Stdout, "ok     %-12s %s\n", what, detail)
}

func (c *checkup) note(what, detail string) {
	fmt.Fprintf(c.env.Stdout, "note   %-12s %s\n", what, detail)
}

func (c *checkup) fault(what, detail, fix string) {
	c.failed = true
	fmt.Fprintf(c.env.Stdout, "fault  %-12s %s\n", what, detail)
	if fix != "" {
		fmt.Fprintf(c.env.Stdout, "       %-12s %s\n", "fix:", fix)
	}
}

// enoughSpace is what a run needs at most: the image once, a few volumes.
const enoughSpace = 200 << 20

func runDoctor(ctx context.Context, env *Env, flags engineFlags) error {
	c := &checkup{env: env}
	if path, err := exec.LookPath("podman"); err != nil {
		c.note("podman", "no podman command here; a service elsewhere will do")
	} else {
		out, _ := exec.CommandContext(ctx, path, "--version").Output()
		c.ok("podman", strings.TrimSpace(string(out))+" at "+path)
	}
	c.space(env)
	s, err := openSession(ctx, env, flags)
	if err != nil {
		// finish knows each way in which Podman can't be reached, with its fix.
		fmt.Fprintf(env.Stdout, "fault  %-12s %s\n", "engine", err)
		return err
	}
	defer s.close(ctx, false)
	f := s.engine.Facts()
	c.ok("engine", fmt.Sprintf("podman %s, %s, %s at %s", f.Version, rootWord(f.Rootless), f.Service, f.URL))
	c.ok("host", fmt.Sprintf("%s, kernel %s, cgroups %s, %s, storage %s", f.OS, f.Kernel, f.Cgroups, f.Runtime, f.StorageDriver))
	for _, a := range f.Adjusted {
		c.note("adjusted", a)
	}
	if f.StorageDriver == "vfs" {
		c.note("storage", "vfs copies every layer: it works, slowly (install fuse-overlayfs for overlay)")
	}
	img, err := s.images(nil)
	if err == nil {
		err = s.engine.EnsureImage(ctx, img)
	}
	if err != nil {
		c.fault("image", err.Error(), "")
		return &resultError{code: exitUnknown}
	}
	c.ok("image", img.Ref)
	if err := c.mounts(ctx, env, s); err != nil {
		return err
	}
	c.machines(ctx, s)
	if c.failed {
		return &resultError{code: exitUnknown}
	}
	fmt.Fprintln(env.Stdout, "ready: lab run")
	return nil
}

func rootWord(rootless bool) string {
	if rootless {
		return "rootless"
	}
	return "rootful"
}

func (c *checkup) space(env *Env) {
	dir, err := stateDir(env)
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err != nil {
		c.fault("folder", err.Error(), "set LAB_STATE_DIR to a folder you may write to")
		return
	}
	free, err := freeSpace(dir)
	switch {
	case err != nil:
		c.note("space", err.Error())
	case free < enoughSpace:
		c.fault("space", fmt.Sprintf("%d MiB free at %s", free>>20, dir), "make room, or set LAB_STATE_DIR to another disk")
	default:
		c.ok("space", fmt.Sprintf("%d MiB free at %s", free>>20, dir))
	}
}

// mounts runs the first lesson: each of its variants is a kind of mount.
func (c *checkup) mounts(ctx context.Context, env *Env, s *session) error {
	sc, err := scenarios.Find(defaultScenario)
	if err != nil {
		return err
	}
	jobs, err := plans([]*scenarios.Scenario{sc}, s.planOptions(env))
	if err != nil {
		return err
	}
	runJobs(ctx, env, s, runOptions{jobs: len(jobs), timeout: 2 * time.Minute}, jobs)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, j := range jobs {
		rep := experiment.Report{Results: experiment.Judge(j.plan, j.record, s.engine.Facts())}
		counts := report.Count(&rep)
		switch {
		case j.record.Fault != "":
			c.fault("mount", j.plan.Variant.Name+": "+j.record.Fault, "")
		case counts.Surprised+counts.Unknown > 0:
			c.fault("mount", fmt.Sprintf("%s: %s", j.plan.Variant.Name, counts), "lab run --verbose")
		default:
			c.ok("mount", fmt.Sprintf("%s, in %s", j.plan.Variant.Name, j.record.Ended.Sub(j.record.Started).Round(time.Millisecond)))
		}
		if len(j.record.Cleanup.Left) > 0 {
			c.fault("cleanup", strings.Join(j.record.Cleanup.Left, "; "), "lab clean")
		}
	}
	return nil
}
