package drill

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/audit"
	lookback "persistencelab/lab/internal/compare"
	"persistencelab/scenarios"
)

// The six steps on a user's image.

func (d *imageDrill) deploy(ctx context.Context) error {
	id, err := d.start(ctx, false)
	d.id = id
	d.out.step(deploy).Command = "podman run -d " + d.flags() + d.ref
	if err != nil {
		return err
	}
	d.out.saw(deploy, Passed, "container %s runs the image's own command", shortID(id))
	if d.opts.WriteCommand != "" {
		res, err := d.eng.Exec(ctx, id, d.words(ctx, d.opts.WriteCommand)...)
		switch {
		case err != nil:
			return err
		case res.Exit != 0:
			return fmt.Errorf("the write command ended with code %d: %s", res.Exit, cmp.Or(strings.TrimSpace(res.Stderr), strings.TrimSpace(res.Stdout)))
		}
		d.out.saw(deploy, Passed, "the write command was carried out")
	}
	status, said, err := d.healthy(ctx, id, "healthy")
	switch {
	case err != nil:
		return err
	case status == "":
		d.out.saw(deploy, Passed, "the image has no health check")
	case status == "healthy":
		d.checks = true
		d.out.saw(deploy, Passed, "its health check is healthy")
	default:
		d.checks = true
		d.out.saw(deploy, Failed, "its health check is %s after %s%s", status, d.opts.HealthTime, behind(said))
	}
	return nil
}

func (d *imageDrill) restart(ctx context.Context) error {
	d.out.step(restart).Command = "podman restart " + d.name("1")
	before, err := d.eng.Inspect(ctx, d.id)
	if err != nil {
		return err
	}
	if err := d.eng.Restart(ctx, d.id, 10*time.Second); err != nil {
		return err
	}
	if err := d.settle(ctx, d.id); err != nil {
		return err
	}
	after, err := d.eng.Inspect(ctx, d.id)
	if err != nil {
		return err
	}
	d.out.saw(restart, Passed, "the same container %s, another process: it started at %s, before at %s", shortID(after.ID),
		after.Started.Format("15:04:05.000"), before.Started.Format("15:04:05.000"))
	return d.healthAgain(ctx, restart, "after the restart")
}

func (d *imageDrill) healthAgain(ctx context.Context, step int, when string) error {
	if !d.checks {
		return nil
	}
	status, said, err := d.healthy(ctx, d.id, "healthy")
	switch {
	case err != nil:
		return err
	case status == "healthy":
		d.out.saw(step, Passed, "its health check is healthy %s", when)
	default:
		d.out.saw(step, Failed, "its health check is %s %s%s", status, when, behind(said))
	}
	return nil
}

// compare explains two reports of the probe, and lists the places that lost.
func (d *imageDrill) compare(step int, a, b *lookback.Side, event string) {
	c := lookback.Explain(a, b)
	d.out.saw(step, Passed, "%s", c.Summary)
	for _, f := range c.Findings {
		if f.About == "boot" || f.About == "container" {
			d.out.saw(step, Passed, "%s", f.Text)
		}
	}
	for _, p := range c.Places {
		v := Passed
		if p.Outcome == scenarios.Unknown {
			v = Unknown
		}
		d.out.saw(step, v, "%s (%s): %s", p.Path, strings.Join(p.Names, ", "), p.Text)
	}
}

// kill has writes of the probe stand in the middle in each place that can be
// lost or kept, and kills the container under them and the service.
func (d *imageDrill) kill(ctx context.Context) error {
	d.out.step(kill).Command = "podman kill " + d.name("1") + " && podman start " + d.name("1")
	if err := d.eng.ExecDetached(ctx, d.id, ProbePath); err != nil {
		return err
	}
	type write struct{ place, path, mode, old, new string }
	var writes []write
	for _, place := range d.places() {
		for _, mode := range []string{"truncate", "atomic"} {
			w := write{place, path.Join(place, "lab-drill-"+mode), mode, d.env.Nonce(), d.env.Nonce()}
			ok, err := d.held(ctx, w.path, mode, w.old, w.new)
			if err != nil {
				return err
			}
			if ok {
				writes = append(writes, w)
			}
		}
	}
	if err := d.eng.Kill(ctx, d.id, "KILL"); err != nil {
		return err
	}
	code, err := d.eng.Wait(ctx, d.id)
	if err != nil {
		return err
	}
	d.out.saw(kill, Passed, "killed with %d writes of the probe half done; exit code %d", len(writes), code)
	if err := d.eng.Start(ctx, d.id); err != nil {
		return err
	}
	if err := d.settle(ctx, d.id); err != nil {
		d.out.saw(kill, Failed, "the service did not come up again: %v", err)
		return err
	}
	d.out.saw(kill, Passed, "the service came up again by podman start")
	for _, w := range writes {
		res, err := d.eng.Exec(ctx, d.id, ProbePath, "read", w.mode, "file", w.path, w.old, "--size", heldBytes)
		if err != nil {
			return err
		}
		said := strings.TrimPrefix(strings.TrimSpace(res.Stdout), w.mode+": ")
		switch {
		case w.mode == "truncate":
			d.out.saw(kill, Passed, "%s, the probe's file rewritten in place: %s; your program's would be, too, if it saves that way", w.place, said)
		case said == "survived":
			d.out.saw(kill, Passed, "%s, the probe's file written beside and renamed: %s", w.place, said)
		default:
			d.out.saw(kill, Failed, "%s, the probe's file written beside and renamed: %s", w.place, said)
		}
		if _, err := d.eng.Exec(ctx, d.id, ProbePath, "erase", w.mode, "file", w.path); err != nil {
			return err
		}
	}
	return d.healthAgain(ctx, kill, "after the kill")
}

// held writes a file and begins to write it again, up to its middle.
func (d *imageDrill) held(ctx context.Context, file, mode, old, new string) (bool, error) {
	var last engine.Executed
	for try := 0; ; try++ {
		res, err := d.eng.Exec(ctx, d.id, ProbePath, "write", mode, "file", file, old, "--size", heldBytes, "--mode", mode)
		if err != nil {
			return false, err
		}
		if !strings.Contains(res.Stdout, ": written") {
			d.out.saw(kill, Skipped, "%s%s", path.Dir(file), behind(res.Stdout+res.Stderr))
			return false, nil
		}
		last, err = d.eng.Exec(ctx, d.id, ProbePath, "interrupt", mode, "file", file, new, "1", "3", "--size", heldBytes, "--mode", mode, "--hold")
		if err != nil {
			return false, err
		}
		if last.Exit == 0 {
			return true, nil
		}
		// The probe beside the service may not listen yet.
		if try == 20 {
			return false, fmt.Errorf("a write could not be held in %s%s", file, behind(last.Stdout+last.Stderr))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// withoutState runs the image beside the first container with empty volumes:
// what does its health check say of a service that has nothing?
func (d *imageDrill) withoutState(ctx context.Context) error {
	if !d.checks {
		d.out.saw(ready, Skipped, "the image has no HEALTHCHECK, and --health-cmd names none")
		return nil
	}
	id, err := d.start(ctx, true)
	if id != "" {
		defer d.remove(ctx, id)
	}
	if err != nil {
		d.out.saw(ready, Passed, "without its state the service does not even run: %v", err)
		return nil
	}
	status, said, err := d.askHealth(ctx, id)
	switch {
	case err != nil:
		return err
	case status == "healthy":
		d.out.saw(ready, Failed, "a fresh container with empty volumes is as healthy as the first: the check has not looked at the state")
	default:
		d.out.saw(ready, Passed, "a fresh container with empty volumes is %s%s", status, behind(said))
	}
	return nil
}

// replace removes the container and runs another in its place.
func (d *imageDrill) replace(ctx context.Context, before *lookback.Side, own *audit.Audit) error {
	d.out.step(replace).Command = "podman rm -f " + d.name("1") + " && podman run -d " + d.flags() + d.ref
	old := d.id
	if err := d.remove(ctx, old); err != nil {
		return err
	}
	id, err := d.start(ctx, false)
	d.id = id
	if err != nil {
		return err
	}
	d.out.saw(replace, Passed, "container %s is gone; %s runs from the same image", shortID(old), shortID(id))
	after, err := d.report(ctx, "after the replacement")
	if err != nil {
		return err
	}
	d.compare(replace, before, after, "rm and run")
	for _, f := range own.Findings {
		if f.Outcome != scenarios.Lost || d.probes(f) {
			continue
		}
		what := "files"
		if f.What != "" {
			what = string(f.What)
		}
		d.out.Losses = append(d.out.Losses, Loss{
			What: what, Where: f.Where + ", in the " + string(f.Storage), When: "rm and run", Detail: f.Text,
		})
	}
	return d.healthAgain(ctx, replace, "after the replacement")
}

// probes tells a finding that is the drill's own doing.
func (d *imageDrill) probes(f audit.Finding) bool {
	return slices.ContainsFunc(f.Examples, func(e string) bool { return strings.Contains(e, "persistencelab") || strings.Contains(e, "lab-drill-") }) && f.Files <= 4
}
