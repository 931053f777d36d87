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
)

// ProbePath is where the lab's probe is mounted in somebody's own image.
const ProbePath = "/.persistencelab-probe"

// Engine is what a drill of an image asks.
type Engine interface {
	engine.Engine
	engine.Auditor
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

// heldBytes is the size of the files whose writes are held: more than one
// piece of a naive save.
const heldBytes = "16384"

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
