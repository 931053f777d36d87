package experiment

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// Env is what a run needs of the world beside an engine.
type Env struct {
	Now    func() time.Time
	Ledger *Ledger
	// Progress is told of each step as it begins; may be nil. It is called
	// from the goroutine that runs the plan.
	Progress func(p *Plan, st PlannedStep)
	Keep     bool // leave everything where it is
	// NoStore is why there is no store of the lab's own, for plans that
	// need one and are run on an engine without.
	NoStore string
	// Machines gives virtual machines; nil where there are none.
	Machines Machines
}

// Lacks says what this host lacks for the plan, as far as that is known before
// it is run: an *engine.UnsupportedError; nil for nothing. own tells whether
// the plan would run on a store of the lab's own.
func Lacks(ctx context.Context, p *Plan, own bool, env Env) error {
	if p.onMachine() {
		_, err := machines(ctx, env)
		if none := new(engine.UnsupportedError); errors.As(err, &none) {
			return none
		}
		return nil // whatever else it is, the run will say
	}
	if p.NeedsOwnStore() && !own {
		needs := "a store of the lab's own"
		if env.NoStore != "" {
			needs += ", " + env.NoStore
		}
		return &engine.UnsupportedError{What: p.ownStoreVerb(), Needs: needs}
	}
	if p.missing != nil {
		return p.missing
	}
	return nil
}

// grace is how long process 1 is given to leave before it is killed. The
// probe leaves at once.
const grace = 10 * time.Second

// cleanupTime bounds the cleanup of one plan.
const cleanupTime = 30 * time.Second

// Run carries a plan out and records what was observed. It returns a record
// whatever happens; a fault is in it. Everything the plan made is removed
// before Run returns, also when ctx is done.
func Run(ctx context.Context, eng engine.Engine, p *Plan, env Env) *Record {
	r := &runner{
		plan: p, eng: eng, env: env,
		live: map[string]*live{}, mine: map[Made]int{}, pods: map[string]bool{},
		rec: &Record{
			RunID: p.RunID, Scenario: p.Scenario.Name, Hash: p.Scenario.Hash, Variant: p.Variant.Name,
			Started: env.Now(),
		},
	}
	err := r.steps(ctx)
	var unsupported *engine.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		r.rec.Skipped = unsupported.Error()
	case err != nil:
		r.rec.Fault = r.lastWords(err).Error()
	}
	if p.onMachine() {
		r.cleanupMachine()
	} else {
		r.cleanup(ctx)
	}
	r.rec.Ended = env.Now()
	return r.rec
}

// settle is how long a request to the engine may go on after the run was
// ended. One that is broken off half-way may be carried out all the same,
// after the cleanup has looked; one that is answered can be undone.
const settle = 5 * time.Second

// steps carries out the plan's steps until one fails. A panic in one is its
// failure: the other variants go on, and everything is removed.
func (r *runner) steps(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the lab itself failed, please report it: %v, at %s", p, panicked())
		}
	}()
	work, cancel := outlive(ctx, settle)
	defer cancel()
	prepare := r.prepare
	if r.plan.onMachine() {
		work, prepare = ctx, r.prepareMachine // killing it leaves nothing half-way
	}
	if err := prepare(work); err != nil {
		return r.cause(ctx, err)
	}
	if err := r.startServices(work); err != nil {
		err = r.cause(ctx, err)
		return fmt.Errorf("scenario %s, %s: %w", r.plan.Scenario.Name, r.plan.Variant.Name, err)
	}
	for _, st := range r.plan.Steps {
		if err := r.step(ctx, work, st); err != nil {
			return err
		}
	}
	return nil
}

// panicked is where, in the lab's own code, a panic being recovered happened.
func panicked() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		f, more := frames.Next()
		if strings.HasPrefix(f.Function, "persistencelab/") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return "an unknown place"
		}
	}
}

// outlive is ctx, but ends only when ctx has been done for that long.
func outlive(ctx context.Context, long time.Duration) (context.Context, context.CancelFunc) {
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(long, func() { cancel(context.Cause(ctx)) })
		context.AfterFunc(work, func() { timer.Stop() })
	})
	return work, func() {
		stop()
		cancel(context.Canceled)
	}
}

// cause is why a request failed: that the run was ended, where it was. It
// notes whether the engine left a request without an answer.
func (r *runner) cause(ctx context.Context, err error) error {
	var down *engine.UnreachableError
	if errors.As(err, &down) || ctx.Err() != nil {
		r.unanswered = true
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// runner is one plan being carried out.
type runner struct {
	plan  *Plan
	eng   engine.Engine
	env   Env
	rec   *Record
	live  map[string]*live // by the container's name in the scenario
	mine  map[Made]int     // what the plan made and has not removed, by when
	count int
	pods  map[string]bool // by the pod's name in the scenario: there now
	// unanswered: a request went without an answer, so that the engine may
	// be carrying it out yet.
	unanswered bool
	machine    *machineRun // of a plan about a virtual machine
}

// live is a container of the plan as it stands now.
type live struct {
	on      string // its name in the scenario
	name    string // its name in the engine now
	id      string
	who     Identity
	session *session // nil while nobody answers
	paused  bool
	gone    bool     // removed; kept for what it left
	auto    []string // ids of its volumes without a name
}

// note writes down that the plan is about to make something.
func (r *runner) note(kind, name string) error {
	m := Made{Kind: kind, Name: name}
	if r.mine[m] > 0 {
		return nil
	}
	r.count++
	r.mine[m] = r.count
	return r.env.Ledger.Add(kind, name)
}

// gone writes down that something the plan made is no more.
func (r *runner) gone(kind, name string) error {
	if r.mine[Made{Kind: kind, Name: name}] == 0 {
		return nil
	}
	delete(r.mine, Made{Kind: kind, Name: name})
	return r.env.Ledger.Gone(kind, name)
}

// step carries out one step and records it: with work, which outlives the
// run's own context ctx.
func (r *runner) step(ctx, work context.Context, st PlannedStep) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if r.env.Progress != nil {
		r.env.Progress(r.plan, st)
	}
	sr := StepRecord{Index: st.Index, Verb: st.Verb, On: st.On, Label: st.Label, Started: r.env.Now()}
	if len(st.Commands) > 0 {
		sr.Command = st.Commands[len(st.Commands)-1]
	}
	table := verbs
	if r.plan.onMachine() {
		table = machineVerbs
	}
	do, ok := table[st.Verb]
	if !ok {
		return &engine.UnsupportedError{What: "the step " + st.Verb, Needs: "a newer lab"}
	}
	err := do(r, work, st, &sr)
	sr.Took = r.env.Now().Sub(sr.Started)
	if err != nil && ctx.Err() == nil && r.machine == nil && refusal(err) {
		if sr.Proof == nil {
			sr.Proof = &Proof{}
		}
		sr.Proof.Refused = err.Error()
		if st.Refused {
			err = r.afterRefusal(ctx, st)
		}
	} else if err == nil && st.Refused && ctx.Err() == nil {
		err = &fault{errors.New("podman was expected to refuse it, and did not")}
	}
	if err != nil {
		err = r.cause(ctx, err)
		err = fmt.Errorf("scenario %s, %s, step %d (%s): %w", r.plan.Scenario.Name, r.plan.Variant.Name, st.Index, st.Verb, err)
		sr.Error = err.Error()
	}
	r.rec.Steps = append(r.rec.Steps, sr)
	return err
}

// fault is an error of the lab or of what it saw, not an answer of the engine.
type fault struct{ error }

func (f *fault) Unwrap() error { return f.error }

// refusal tells the engine's no from not knowing.
func refusal(err error) bool {
	var (
		own         *fault
		down        *engine.UnreachableError
		unsupported *engine.UnsupportedError
		path        *fs.PathError
	)
	return !errors.As(err, &own) && !errors.As(err, &down) && !errors.As(err, &unsupported) && !errors.As(err, &path)
}

// afterRefusal makes sure that what a refused event was about still answers.
func (r *runner) afterRefusal(ctx context.Context, st PlannedStep) error {
	l := r.live[st.On]
	if l == nil || l.gone || l.session == nil || l.paused {
		return nil
	}
	if _, err := l.session.client.Call(ctx, wire.Request{Op: wire.Hello}); err != nil {
		return &fault{fmt.Errorf("after the refusal the probe does not answer: %w", err)}
	}
	return nil
}

// verbs are the steps a runner can carry out.
var verbs = map[string]func(*runner, context.Context, PlannedStep, *StepRecord) error{
	"run":     (*runner).run,
	"load":    (*runner).load,
	"write":   (*runner).write,
	"edit":    (*runner).write,
	"erase":   (*runner).erase,
	"read":    (*runner).read,
	"wait":    (*runner).wait,
	"create":  (*runner).createOnly,
	"stop":    (*runner).stop,
	"start":   (*runner).start,
	"restart": (*runner).restart,
	"kill":    (*runner).kill,
	"crash":   (*runner).crash,
	"rm":      (*runner).rm,
	"pause":   (*runner).pause,
	"unpause": (*runner).unpause,
	"rename":  (*runner).rename,
	"clone":   (*runner).clone,

	"commit":  (*runner).commit,
	"export":  (*runner).export,
	"import":  (*runner).importImage,
	"rebuild": (*runner).rebuild,
	"rmi":     (*runner).rmi,
	"cp":      (*runner).cp,

	"volume create": (*runner).volumeCreate,
	"volume rm":     (*runner).volumeRm,
	"volume export": (*runner).volumeExport,
	"volume import": (*runner).volumeImport,

	"container prune": (*runner).containerPrune,
	"volume prune":    (*runner).volumePrune,
	"system prune":    (*runner).systemPrune,
	"service restart": (*runner).serviceRestart,

	"pod stop":    (*runner).podStop,
	"pod start":   (*runner).podStart,
	"pod restart": (*runner).podRestart,
	"pod rm":      (*runner).podRm,

	"kube play": (*runner).kubePlay,
	"kube down": (*runner).kubeDown,

	"checkpoint": (*runner).checkpoint,
	"restore":    (*runner).restore,
}

// prepare makes what must be there before the first step: images, folders,
// volumes made beforehand, secrets.
func (r *runner) prepare(ctx context.Context) error {
	if err := Lacks(ctx, r.plan, r.eng.Own(), r.env); err != nil {
		return err
	}
	for _, c := range r.plan.Variant.Containers {
		img := r.plan.images[c.Name]
		if c.Service != nil && img.Archive == nil {
			if err := r.mustHaveImage(ctx, r.plan.backings[c.Name]); err != nil {
				return err
			}
			continue
		}
		if r.plan.ownImages {
			if err := r.note("image", img.Ref); err != nil {
				return err
			}
		}
		if err := r.eng.EnsureImage(ctx, img); err != nil {
			return fmt.Errorf("the probe image: %w", err)
		}
		for _, m := range c.Mounts {
			for _, folder := range r.plan.hostFolders(m) {
				if err := r.makeFolder(folder); err != nil {
					return err
				}
			}
			if m.Kind == scenarios.ImageMount && m.Source == "probe" {
				if err := r.eng.EnsureImage(ctx, r.plan.probe); err != nil {
					return fmt.Errorf("the probe image: %w", err)
				}
			}
		}
		for _, name := range c.Secrets {
			if secret := r.plan.name(name); r.mine[Made{Kind: "secret", Name: secret}] == 0 {
				if err := r.note("secret", secret); err != nil {
					return err
				}
				if err := r.eng.CreateSecret(ctx, secret, secretContent); err != nil {
					return err
				}
			}
		}
	}
	for _, v := range r.plan.volumes() {
		if err := r.refuseForeignVolume(ctx, r.plan.name(v.Name)); err != nil {
			return err
		}
		if !v.Create {
			if err := r.note("volume", r.plan.name(v.Name)); err != nil {
				return err
			}
			continue
		}
		if err := r.createVolume(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

// secretContent is what a secret holds until somebody writes over its file.
const secretContent = "the secret as podman keeps it\n"

// makeFolder makes a folder behind a mount. Wide open, as a shared data folder
// is: the probe may run as any user. A real path the user allowed is there and
// stays as it is.
func (r *runner) makeFolder(folder string) error {
	_, err := os.Stat(folder)
	if err == nil {
		return nil
	}
	if err = os.MkdirAll(folder, 0o700); err == nil && within(folder, r.plan.Folder) {
		err = os.Chmod(folder, 0o777)
	}
	if err != nil {
		return fmt.Errorf("the folder behind the bind mount: %w", err)
	}
	return nil
}
