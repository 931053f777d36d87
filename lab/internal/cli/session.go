package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"persistencelab/bindings"
	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/files"
	"persistencelab/probeimage/image"
	"persistencelab/scenarios"
)

// engineFlags are the flags of every command that reaches Podman.
type engineFlags struct {
	url, connection, identity string
	verbose                   bool
}

func (f *engineFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.url, "url", "", "podman service to use, such as unix:///run/podman/podman.sock (also CONTAINER_HOST)")
	cmd.Flags().StringVar(&f.connection, "connection", "", "a name from `podman system connection ls` (also CONTAINER_CONNECTION)")
	cmd.Flags().StringVar(&f.identity, "identity", "", "ssh key file for an ssh:// url")
	cmd.Flags().BoolVar(&f.verbose, "debug", false, "show what podman's client logs")
	cmd.MarkFlagsMutuallyExclusive("url", "connection")
}

// folders of the lab on this machine.

// stateDir is where runs keep their folders: below the home folder, which a
// podman machine shares with its host.
func stateDir(env *Env) (string, error) {
	return userDir(env, "LAB_STATE_DIR", "XDG_STATE_HOME", ".local/state")
}

// cacheDir is where what can be learned again is kept.
func cacheDir(env *Env) (string, error) {
	return userDir(env, "LAB_CACHE_DIR", "XDG_CACHE_HOME", ".cache")
}

func userDir(env *Env, own, xdg, home string) (string, error) {
	if d := env.Getenv(own); d != "" {
		return filepath.Abs(d)
	}
	if d := env.Getenv(xdg); filepath.IsAbs(d) {
		return filepath.Join(d, "persistencelab"), nil
	}
	h, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("the lab needs a folder of its own: set %s: %w", own, err)
	}
	return filepath.Join(h, filepath.FromSlash(home), "persistencelab"), nil
}

// session is one run of the lab: a folder, a ledger and an engine.
type session struct {
	env    *Env
	id     string
	folder string
	runDir string   // where the socket is: the folder, unless its path is too long for one
	lock   *os.File // held while the lab lives: a folder nobody holds is a dead run's
	info   runInfo
	ledger *experiment.Ledger
	engine *bindings.Podman // nil where no scenario is about containers
	images experiment.ImageMaker
	stores *stores

	machines experiment.Machines
	turns    chan struct{} // of virtual machines: one for each that may run
}

// runInfo is what a run's folder says of it, for whoever finds it. It is there
// before the run makes anything in the engine.
type runInfo struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
	URL     string    `json:"url"`            // the service
	Service bool      `json:"service"`        // the lab started it, and it ends with the lab
	Root    string    `json:"root,omitempty"` // store of the lab's own
	Kept    bool      `json:"kept,omitempty"` // --keep: only `lab clean` removes it
}

const infoFile = "run.json"

// openSession makes the run's folder, clears away what dead runs left, and
// reaches Podman.
func openSession(ctx context.Context, env *Env, flags engineFlags) (*session, error) {
	s, state, err := newSession(env)
	if err != nil {
		return nil, err
	}
	if s.runDir, err = socketFolder(s.folder, s.ledger); err != nil {
		s.discard()
		return nil, err
	}
	opts, err := dialOptions(env, flags, s.runDir, "")
	if err != nil {
		s.discard()
		return nil, err
	}
	opts.RunID, opts.Journal = s.id, s
	if s.engine, err = bindings.Dial(ctx, opts); err != nil {
		s.abandon()
		return nil, err
	}
	s.stores = &stores{s: s, flags: flags}
	clearDead(ctx, env, state, s)
	return s, nil
}

// newSession makes the run's folder and ledger.
func newSession(env *Env) (s *session, state string, err error) {
	if state, err = stateDir(env); err != nil {
		return nil, "", err
	}
	id := env.Random(4)
	folder := filepath.Join(state, "runs", id)
	s = &session{env: env, id: id, folder: folder, runDir: folder, images: imageMaker(), machines: newMachines(env),
		turns: make(chan struct{}, runtime.NumCPU())}
	if s.lock, err = makeRunFolder(s.folder); err != nil {
		return nil, "", &folderError{err: err}
	}
	if s.ledger, err = experiment.OpenLedger(s.folder); err != nil {
		s.discard()
		return nil, "", &folderError{err: err}
	}
	env.quitting(s.ledger.Left)
	return s, state, nil
}

// Reached implements bindings.Journal: from here on something may be made.
func (s *session) Reached(url string, own bool) error {
	s.info = runInfo{ID: s.id, Started: s.env.Now(), URL: url, Service: own}
	return s.writeInfo()
}

// Add and Gone implement bindings.Journal.
func (s *session) Add(kind, name string) error  { return s.ledger.Add(kind, name) }
func (s *session) Gone(kind, name string) error { return s.ledger.Gone(kind, name) }

func (s *session) writeInfo() error {
	b, err := json.Marshal(s.info)
	if err != nil {
		return err
	}
	if err := files.Replace(filepath.Join(s.folder, infoFile), b); err != nil {
		return &folderError{err: err}
	}
	return nil
}

// abandon ends a session whose engine could not be reached. What was made
// until then stays in the folder, for `lab clean`.
func (s *session) abandon() {
	if len(s.enginesLeft()) > 0 {
		_ = s.ledger.Close()
		s.lock.Close()
		return
	}
	s.discard()
}

// enginesLeft is what the ledger lists and an engine has.
func (s *session) enginesLeft() []experiment.Made {
	return slices.DeleteFunc(s.ledger.Left(), func(m experiment.Made) bool { return !inEngine(m) })
}

// folderError: the lab can't use its own folder.
type folderError struct{ err error }

func (e *folderError) Error() string { return "the run's folder: " + e.err.Error() }
func (e *folderError) Unwrap() error { return e.err }

// dialOptions is how to reach Podman with the lab's flags; root, when set, is a
// store of the lab's own.
func dialOptions(env *Env, flags engineFlags, folder, root string) (bindings.Options, error) {
	cache, err := cacheDir(env)
	if err != nil {
		return bindings.Options{}, err
	}
	probe, err := imageMaker()(nil)
	if err != nil {
		return bindings.Options{}, err
	}
	opts := bindings.Options{
		URL: flags.url, Connection: flags.connection, Identity: flags.identity,
		Getenv: env.Getenv, UID: os.Getuid(), RunDir: folder, CacheDir: cache, Image: probe, Root: root,
	}
	if flags.verbose {
		opts.Log = env.Stderr
	}
	return opts, nil
}

// imageMaker makes the lab's images for this machine's architecture.
func imageMaker() experiment.ImageMaker {
	return func(extra *scenarios.Image) (engine.Image, error) {
		ref, archive, err := image.Build(imageSpec(extra))
		return engine.Image{Ref: ref, Archive: archive}, err
	}
}

// imageSpec is the image with what a scenario adds to it.
func imageSpec(extra *scenarios.Image) image.Spec {
	spec := image.Spec{Arch: runtime.GOARCH}
	if extra == nil {
		return spec
	}
	spec.Files, spec.Volumes, spec.User, spec.Tag = extra.Files, extra.Volumes, extra.User, extra.Tag
	if extra.Tag != "" {
		// Another image than anybody's of the same content: removing one must
		// not leave it under the other's name.
		spec.Labels = map[string]string{experiment.ImageLabel: extra.Tag}
	}
	return spec
}

// close checks that nothing of the run is left, and lets go of the engine
// and the folder. left names what is still there.
func (s *session) close(ctx context.Context, keep bool) (left []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if keep {
		s.info.Kept = true
		if err := s.writeInfo(); err != nil {
			left = []string{err.Error()}
		}
	} else if s.engine != nil {
		left = s.leaks(ctx)
	}
	if s.engine != nil {
		left = append(left, s.stores.close(ctx)...)
		_ = s.engine.Close()
	}
	_ = s.ledger.Close()
	if keep || len(left) > 0 {
		s.lock.Close()
		return left
	}
	s.discard()
	return nil
}

// leaks is the check that ends every run: whatever still carries its label.
func (s *session) leaks(ctx context.Context) []string {
	// What the preflight could not take away, and what a variant's cleanup
	// had no time for.
	_, left := experiment.Remove(ctx, s.engine, s.enginesLeft(), s.ledger, 0)
	found, err := s.engine.Labelled(ctx, experiment.RunLabel)
	if err != nil {
		return append(left, "it is not known what else is left: "+err.Error())
	}
	for _, o := range found {
		m := experiment.Made{Kind: o.Kind, Name: o.Name}
		if o.Label == s.id && !slices.Contains(s.ledger.Left(), m) {
			left = append(left, fmt.Sprintf("%s %s (by hand: %s)", m.Kind, m.Name, m.ByHand()))
		}
	}
	return left
}

// discard removes the run's folders.
func (s *session) discard() {
	if s.runDir != s.folder {
		_ = os.RemoveAll(s.runDir)
	}
	_ = os.RemoveAll(s.folder)
	s.lock.Close()
}
