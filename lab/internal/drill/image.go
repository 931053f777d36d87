package drill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/audit"
	lookback "persistencelab/lab/internal/compare"
	"persistencelab/lab/internal/experiment"
	"persistencelab/probeimage/image"
	"persistencelab/scenarios"
)

// ProbePath is where the lab's probe is mounted in somebody's own image.
const ProbePath = "/.persistencelab-probe"

// Engine is what a drill of an image asks.
type Engine interface {
	engine.Engine
	engine.Auditor
	engine.Executor
}

// Env is what a drill needs of the world beside an engine.
type Env struct {
	RunID  string
	Folder string // the run's folder on the host
	Ledger *experiment.Ledger
	Now    func() time.Time
	Nonce  func() string
}

// ImageOptions is what the owner of an image says about it.
type ImageOptions struct {
	Volumes       []string      // NAME:TARGET
	Env           []string      // NAME=VALUE
	Paths         []string      // further folders to leave evidence in
	WriteCommand  string        // run by /bin/sh where the image has one, else split at spaces
	HealthCommand string        // the same
	Settle        time.Duration // what the service is given after each start
	HealthTime    time.Duration // how long it may take to become healthy
}

var volumeName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,40}$`)

// Check says what is wrong with the options.
func (o ImageOptions) Check() error {
	targets := map[string]bool{}
	for _, v := range o.Volumes {
		name, target, ok := strings.Cut(v, ":")
		switch {
		case strings.HasPrefix(v, "/"):
			return fmt.Errorf("volume %q: the drill makes its own volumes and touches no folder of yours; write NAME:TARGET", v)
		case !ok || !volumeName.MatchString(name) || !path.IsAbs(target) || strings.Contains(target, ":"):
			return fmt.Errorf("volume %q: write NAME:TARGET, like data:/var/lib/app", v)
		case targets[target]:
			return fmt.Errorf("volume %q: two volumes at %s", v, target)
		}
		targets[target] = true
	}
	for _, e := range o.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" {
			return fmt.Errorf("environment %q: write NAME=VALUE", e)
		}
	}
	for _, p := range o.Paths {
		if !path.IsAbs(p) {
			return fmt.Errorf("path %q: an absolute path in the container is needed", p)
		}
	}
	return nil
}

// imageDrill is a drill being carried out.
type imageDrill struct {
	eng   Engine
	ref   string
	opts  ImageOptions
	env   Env
	out   *Drill
	id    string
	probe string // the probe's file on the host
	count int
	shell *bool // whether the image has one; nil: not asked yet
	// checks: the image, or the command line, brought a health check.
	checks bool
}

// Image carries the drill out on somebody's own image. It makes containers and
// volumes of its own and removes them, also when it fails. The error is why
// there is no drill at all; what goes wrong later stands in the drill.
func Image(ctx context.Context, eng Engine, ref string, opts ImageOptions, env Env) (*Drill, error) {
	if _, err := eng.ImageID(ctx, ref); err != nil {
		var missing *engine.NotFoundError
		if errors.As(err, &missing) {
			return nil, missing
		}
		return nil, err
	}
	d := &imageDrill{eng: eng, ref: ref, opts: opts, env: env, out: newDrill("image " + ref)}
	probe, err := image.Probe(runtime.GOARCH)
	if err != nil {
		return nil, err
	}
	d.probe = filepath.Join(env.Folder, "probe")
	if err := os.WriteFile(d.probe, probe, 0o755); err != nil {
		return nil, fmt.Errorf("the probe for the image: %w", err)
	}
	defer d.cleanup(ctx)
	if err := d.run(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		d.out.Fault = err.Error()
	}
	d.out.NotCovered = append(d.notCovered(), always()...)
	sortLosses(d.out.Losses)
	return d.out, nil
}

func (d *imageDrill) run(ctx context.Context) error {
	if err := d.deploy(ctx); err != nil {
		return err
	}
	first, err := d.report(ctx, "before the restart")
	if err != nil {
		return err
	}
	if err := d.restart(ctx); err != nil {
		return err
	}
	second, err := d.report(ctx, "after the restart")
	if err != nil {
		return err
	}
	d.compare(compare, first, second, "restart")
	if err := d.kill(ctx); err != nil {
		return err
	}
	third, err := d.report(ctx, "before the replacement")
	if err != nil {
		return err
	}
	own, err := d.holds(ctx)
	if err != nil {
		return err
	}
	if err := d.withoutState(ctx); err != nil {
		return err
	}
	return d.replace(ctx, third, own)
}

// container is the image's container, with the volumes of the owner and the
// probe beside them. fresh: with empty volumes of other names.
func (d *imageDrill) container(fresh bool) engine.ContainerSpec {
	d.count++
	s := engine.ContainerSpec{
		Name: d.name(fmt.Sprint(d.count)), Image: d.ref, Labels: map[string]string{experiment.RunLabel: d.env.RunID},
		Env: map[string]string{}, Hostname: "drill",
		Mounts: []engine.Mount{{Kind: "bind", Source: d.probe, Target: ProbePath, Options: []string{"ro"}}},
	}
	for _, e := range d.opts.Env {
		name, value, _ := strings.Cut(e, "=")
		s.Env[name] = value
	}
	for _, v := range d.opts.Volumes {
		name, target, _ := strings.Cut(v, ":")
		if fresh {
			name += "-fresh"
		}
		s.Mounts = append(s.Mounts, engine.Mount{Kind: "volume", Source: d.name(name), Target: target})
	}
	return s
}

func (d *imageDrill) name(thing string) string { return "lab-" + d.env.RunID + "-1-" + thing }

// start runs a container and waits until it stands.
func (d *imageDrill) start(ctx context.Context, fresh bool) (string, error) {
	s := d.container(fresh)
	for _, m := range s.Mounts {
		if m.Kind == "volume" {
			if err := d.env.Ledger.Add("volume", m.Source); err != nil {
				return "", err
			}
		}
	}
	if err := d.env.Ledger.Add("container", s.Name); err != nil {
		return "", err
	}
	id, err := d.eng.Create(ctx, s)
	if err != nil {
		return "", err
	}
	c, err := d.eng.Inspect(ctx, id)
	if err != nil {
		return "", err
	}
	for _, m := range c.Mounts {
		if m.Type == "volume" && !strings.HasPrefix(m.Name, "lab-") { // without a name: the image's VOLUME
			if err := d.env.Ledger.Add("volume", m.Name); err != nil {
				return "", err
			}
		}
	}
	if err := d.eng.Start(ctx, id); err != nil {
		return id, err
	}
	return id, d.settle(ctx, id)
}

// settle gives the service its time and makes sure that it still runs.
func (d *imageDrill) settle(ctx context.Context, id string) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d.opts.Settle):
	}
	c, err := d.eng.Inspect(ctx, id)
	if err != nil {
		return err
	}
	if c.State != "running" {
		return fmt.Errorf("the image's own command ended with code %d: the drill is for a service that keeps running", c.ExitCode)
	}
	return nil
}

// words makes a command of what was typed: the image's own shell where it has
// one.
func (d *imageDrill) words(ctx context.Context, typed string) []string {
	if d.shell == nil {
		res, err := d.eng.Exec(ctx, d.id, "/bin/sh", "-c", "exit 0")
		has := err == nil && res.Exit == 0
		d.shell = &has
	}
	if *d.shell {
		return []string{"/bin/sh", "-c", typed}
	}
	return strings.Fields(typed)
}

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

func (d *imageDrill) flags() string {
	var b strings.Builder
	for _, v := range d.opts.Volumes {
		fmt.Fprintf(&b, "-v %s ", v)
	}
	return b.String()
}

// healthy asks the service's health until it answers want, or its time is up.
// status is "" when there is nothing to ask.
func (d *imageDrill) healthy(ctx context.Context, id, want string) (status, said string, err error) {
	deadline := d.env.Now().Add(d.opts.HealthTime)
	for {
		status, said, err = d.askHealth(ctx, id)
		if err != nil || status == "" || status == want || !d.env.Now().Before(deadline) {
			return status, said, err
		}
		select {
		case <-ctx.Done():
			return "", "", context.Cause(ctx)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func (d *imageDrill) askHealth(ctx context.Context, id string) (status, said string, err error) {
	if d.opts.HealthCommand != "" {
		res, err := d.eng.Exec(ctx, id, d.words(ctx, d.opts.HealthCommand)...)
		if err != nil {
			return "", "", err
		}
		said = cmp.Or(res.Stdout, res.Stderr)
		if res.Exit == 0 {
			return "healthy", said, nil
		}
		return "unhealthy", said, nil
	}
	h, err := d.eng.HealthCheck(ctx, id)
	var none *engine.UnsupportedError
	if errors.As(err, &none) {
		return "", "", nil
	}
	if h.Status != "healthy" && h.Exit == 0 && err == nil && h.Status == "starting" {
		return "healthy", h.Output, nil // its answer is good; Podman only has not counted yet
	}
	return h.Status, h.Output, err
}

// report has the probe leave evidence and tell what it found.
func (d *imageDrill) report(ctx context.Context, name string) (*lookback.Side, error) {
	command := []string{ProbePath, "host-report"}
	for _, v := range d.opts.Volumes {
		_, target, _ := strings.Cut(v, ":")
		command = append(command, target)
	}
	res, err := d.eng.Exec(ctx, d.id, append(command, d.opts.Paths...)...)
	if err != nil {
		return nil, err
	}
	return lookback.Read("the report "+name, strings.NewReader(res.Stdout))
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

// heldBytes is the size of the files whose writes are held: more than one
// piece of a naive save.
const heldBytes = "16384"

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

// places are the folders whose kind of storage is a decision: one of the
// writable layer, and each mount.
func (d *imageDrill) places() []string {
	places := []string{"/tmp"}
	for _, v := range d.opts.Volumes {
		_, target, _ := strings.Cut(v, ":")
		places = append(places, target)
	}
	for _, p := range d.opts.Paths {
		if !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	return places
}

// holds is what the container holds that would go with it.
func (d *imageDrill) holds(ctx context.Context) (*audit.Audit, error) {
	f, err := audit.Gather(ctx, d.eng, d.id, d.env.Now())
	if err != nil {
		return nil, err
	}
	return audit.Judge(f, nil), nil
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

func (d *imageDrill) remove(ctx context.Context, id string) error {
	return d.eng.Remove(ctx, id, engine.RemoveOptions{Force: true, Volumes: true})
}

// cleanup removes what the drill made, the newest first.
func (d *imageDrill) cleanup(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	_, left := experiment.Remove(ctx, d.eng, d.env.Ledger.Left(), d.env.Ledger, 0)
	if len(left) > 0 && d.out.Fault == "" {
		d.out.Fault = "not removed: " + strings.Join(left, ", ")
	}
}

func (d *imageDrill) notCovered() []string {
	out := []string{"your program's own writes at the moment of the kill: the half-done writes were the probe's"}
	if d.opts.WriteCommand == "" {
		out = append(out, "data that your program writes only when it is used: give a command with --write")
	}
	if !d.checks {
		out = append(out, "readiness: there is no health check")
	}
	if len(d.opts.Volumes) == 0 {
		out = append(out, "the volumes it has where it really runs: name them with -v")
	}
	return out
}
