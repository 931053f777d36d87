package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"persistencelab/bindings"
	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
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
	lock   *os.File // held while the lab lives: a folder nobody holds is a dead run's
	ledger *experiment.Ledger
	engine *bindings.Podman
	images experiment.ImageMaker
}

// runInfo is what a run's folder says of it, for whoever finds it.
type runInfo struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"`
	URL     string    `json:"url"` // the service asked for; "" for one of the lab's own
	Service bool      `json:"service"`
	Root    string    `json:"root,omitempty"` // store of the lab's own
}

const infoFile = "run.json"

// openSession makes the run's folder, clears away what dead runs left, and
// reaches Podman.
func openSession(ctx context.Context, env *Env, flags engineFlags) (*session, error) {
	state, err := stateDir(env)
	if err != nil {
		return nil, err
	}
	id := env.Random(4)
	s := &session{env: env, id: id, folder: filepath.Join(state, "runs", id), images: imageMaker()}
	if err := os.MkdirAll(s.folder, 0o755); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	if s.lock, err = lockFolder(s.folder); err != nil {
		return nil, fmt.Errorf("the run's folder: %w", err)
	}
	if s.ledger, err = experiment.OpenLedger(s.folder); err != nil {
		s.discard()
		return nil, err
	}
	if s.engine, err = dial(ctx, env, flags, s.folder, ""); err != nil {
		s.discard()
		return nil, err
	}
	url, own := s.engine.Service()
	if err := writeInfo(s.folder, runInfo{ID: id, Started: env.Now(), URL: url, Service: own}); err != nil {
		s.close(ctx, false)
		return nil, err
	}
	clearDead(ctx, env, state, s)
	return s, nil
}

// dial reaches Podman with the lab's flags; root, when set, is a store of the
// lab's own.
func dial(ctx context.Context, env *Env, flags engineFlags, folder, root string) (*bindings.Podman, error) {
	opts, err := dialOptions(env, flags, folder, root)
	if err != nil {
		return nil, err
	}
	return bindings.Dial(ctx, opts)
}

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
		spec := image.Spec{Arch: runtime.GOARCH}
		if extra != nil {
			spec.Files, spec.Volumes, spec.User = extra.Files, extra.Volumes, extra.User
		}
		ref, archive, err := image.Build(spec)
		return engine.Image{Ref: ref, Archive: archive}, err
	}
}

func writeInfo(folder string, info runInfo) error {
	b, err := json.Marshal(info)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, infoFile), b, 0o600); err != nil {
		return fmt.Errorf("the run's folder: %w", err)
	}
	return nil
}

// close checks that nothing of the run is left, and lets go of the engine
// and the folder. left names what is still there.
func (s *session) close(ctx context.Context, keep bool) (left []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if !keep {
		left = s.leaks(ctx)
	}
	_ = s.engine.Close()
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
	found, err := s.engine.Labelled(ctx, experiment.RunLabel)
	if err != nil {
		return []string{"unknown: " + err.Error()}
	}
	var left []string
	for _, o := range found {
		if o.Label == s.id {
			left = append(left, o.Kind+" "+o.Name)
		}
	}
	for _, m := range s.ledger.Left() {
		if name := m.Kind + " " + m.Name; !slices.Contains(left, name) {
			left = append(left, name)
		}
	}
	return left
}

// discard removes the run's folder.
func (s *session) discard() {
	_ = os.RemoveAll(s.folder)
	s.lock.Close()
}

// deadRuns are the folders of runs whose lab is gone.
func deadRuns(state string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(state, "runs"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var dead []string
	for _, e := range entries {
		folder := filepath.Join(state, "runs", e.Name())
		lock, err := lockFolder(folder)
		if err != nil {
			continue // its lab lives
		}
		lock.Close()
		dead = append(dead, folder)
	}
	return dead, nil
}

// clearDead removes what dead runs left on the engine this run uses. What is
// elsewhere, or can't be removed now, stays for `lab clean`.
func clearDead(ctx context.Context, env *Env, state string, s *session) {
	dead, err := deadRuns(state)
	if err != nil {
		return
	}
	url, own := s.engine.Service()
	for _, folder := range dead {
		info, err := readInfo(folder)
		if err == nil && (info.URL != url && !(own && info.Service) || info.Root != "") {
			continue
		}
		removed, left := removeRun(ctx, s.engine, folder)
		if len(removed) > 0 || len(left) > 0 {
			fmt.Fprintf(env.Stderr, "lab: run %s ended early; removed what it left: %s\n", filepath.Base(folder), strings.Join(append(removed, left...), ", "))
		}
	}
}

func readInfo(folder string) (runInfo, error) {
	var info runInfo
	b, err := os.ReadFile(filepath.Join(folder, infoFile))
	if err == nil {
		err = json.Unmarshal(b, &info)
	}
	return info, err
}

// removeRun removes what a dead run left on eng: what its ledger lists and
// what carries its label and its name. The folder goes when all of it went.
func removeRun(ctx context.Context, eng engine.Engine, folder string) (removed, left []string) {
	id := filepath.Base(folder)
	made, err := experiment.ReadLedger(folder)
	if err != nil {
		return nil, []string{err.Error()}
	}
	found, err := eng.Labelled(ctx, experiment.RunLabel)
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, o := range found {
		m := experiment.Made{Kind: o.Kind, Name: o.Name}
		if o.Label == id && strings.HasPrefix(o.Name, "lab-"+id+"-") && !slices.Contains(made, m) {
			made = append(made, m)
		}
	}
	// Containers first: a volume can't go while one refers to it.
	slices.SortStableFunc(made, func(a, b experiment.Made) int { return rank(a) - rank(b) })
	removed, left = experiment.Remove(ctx, eng, made, nil)
	if len(left) == 0 {
		if err := os.RemoveAll(folder); err != nil {
			left = append(left, err.Error())
		}
	}
	return removed, left
}

// rank orders removal: what refers to others before what is referred to.
func rank(m experiment.Made) int {
	return slices.Index([]string{"container", "pod", "volume", "secret", "image"}, m.Kind)
}
