package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"persistencelab/bindings"
	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
)

// A run's folder, runs/<id> in the lab's state folder, tells other labs what
// to do with it. It holds
//
//	lock        held by the run's lab: one that nobody holds is a dead run's
//	run.json    which engine the run is on; there before anything is made
//	made.jsonl  the ledger: what it makes there, written before it is made
//
// Whoever makes a folder or looks for dead ones holds a lock on runs/ itself
// while at it, so that no folder is seen before its lock is taken, and no dead
// run is removed twice.

// runID is the form of a run's id, and of its folder's name. Anything else in
// runs/ is somebody else's.
var runID = regexp.MustCompile(`^[0-9a-f]{8}$`)

// makeRunFolder makes the folder of a run that begins, and takes its lock.
func makeRunFolder(folder string) (*os.File, error) {
	runs := filepath.Dir(folder)
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return nil, err
	}
	all, err := lockRuns(runs)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	lock, err := lockFolder(folder, true)
	if err != nil {
		os.RemoveAll(folder)
	}
	return lock, err
}

// lockRuns waits for the lock on all run folders. It is held for moments.
func lockRuns(runs string) (*os.File, error) {
	f, err := os.Open(runs)
	if err != nil {
		return nil, err
	}
	for range 1000 {
		if err = tryLock(f); err == nil {
			return f, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Close()
	return nil, fmt.Errorf("another lab holds %s: %w", runs, err)
}

// folderKind is the ledger's kind for a folder of the lab's own outside the
// run's folder.
const folderKind = "folder"

// storeKind is its kind for a store of the lab's own, named by its folder in
// the run's folder.
const storeKind = "store"

// inEngine tells whether a thing made is in the engine the run is on.
func inEngine(m experiment.Made) bool { return m.Kind != folderKind && m.Kind != storeKind }

// socketRoom is how long the path of a folder may be for a socket in it: what
// fits into sockaddr_un on every system, less the socket's name.
const socketRoom = 100 - len("/podman.sock")

// socketFolder is where the run's private socket goes: the run's folder, or
// one with a short path where that one's is too long.
func socketFolder(folder string, ledger *experiment.Ledger) (string, error) {
	if len(folder) <= socketRoom {
		return folder, nil
	}
	short := filepath.Join(os.TempDir(), "lab-"+filepath.Base(folder))
	if err := ledger.Add(folderKind, short); err != nil {
		return "", err
	}
	if err := os.Mkdir(short, 0o700); err != nil {
		return "", &folderError{err: err}
	}
	return short, nil
}

// deadRun is a run whose lab is gone, with what it left.
type deadRun struct {
	id, folder string
	lock       *os.File
	info       runInfo
	reached    bool // it had reached an engine: info says which
	made       []experiment.Made
}

// deadRuns takes hold of every dead run. The caller closes each.
func deadRuns(state string) ([]*deadRun, error) {
	runs := filepath.Join(state, "runs")
	all, err := lockRuns(runs)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &folderError{err: err}
	}
	defer all.Close()
	entries, err := os.ReadDir(runs)
	if err != nil {
		return nil, &folderError{err: err}
	}
	var dead []*deadRun
	for _, e := range entries {
		if !e.IsDir() || !runID.MatchString(e.Name()) {
			continue
		}
		d := &deadRun{id: e.Name(), folder: filepath.Join(runs, e.Name())}
		if d.lock, err = lockFolder(d.folder, false); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				_ = os.Remove(d.folder) // killed before it had a lock: then it is empty
			}
			continue // its lab lives
		}
		dead = append(dead, d)
	}
	return dead, nil
}

// read reads what the folder tells.
func (d *deadRun) read() error {
	b, err := os.ReadFile(filepath.Join(d.folder, infoFile))
	switch {
	case err == nil:
		d.reached = true
		err = json.Unmarshal(b, &d.info)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err == nil {
		d.made, err = experiment.ReadLedger(d.folder)
	}
	return err
}

func (d *deadRun) close() { d.lock.Close() }

// inEngine tells whether anything the run made may be in an engine.
func (d *deadRun) inEngine() bool {
	return slices.ContainsFunc(d.made, inEngine)
}

// endService ends the service the dead run's lab had started. The kernel has
// told it to; what it was asked for last it may still be doing.
func (d *deadRun) endService(ctx context.Context) error {
	if !d.info.Service {
		return nil
	}
	return bindings.EndService(ctx, d.info.URL)
}

// remove removes what the run left on eng: what its ledger lists and what
// carries its label and its name. The folders go when all of it went.
func (d *deadRun) remove(ctx context.Context, eng engine.Engine) (removed, left []string) {
	made := slices.DeleteFunc(slices.Clone(d.made), func(m experiment.Made) bool { return !inEngine(m) || m.Kind == experiment.Collection })
	found, err := eng.Labelled(ctx, experiment.RunLabel)
	if err != nil {
		return nil, []string{err.Error()}
	}
	for _, o := range found {
		m := experiment.Made{Kind: o.Kind, Name: o.Name}
		if o.Label == d.id && strings.HasPrefix(o.Name, "lab-"+d.id+"-") && !slices.Contains(made, m) {
			made = append(made, m)
		}
	}
	// A collection that can't be dropped is said once: with its container goes
	// what is known of its store.
	dropped, kept := experiment.DropCollections(ctx, eng, d.made)
	removed, left = experiment.Remove(ctx, eng, made, nil, experiment.Patience)
	if len(left) == 0 {
		bindings.EndOrphans("lab-" + d.id + "-")
		left = d.removeFolders()
	}
	return append(dropped, removed...), append(kept, left...)
}

// removeFolders removes the run's folders, when nothing else of it is left.
func (d *deadRun) removeFolders() (left []string) {
	for _, m := range d.made {
		if m.Kind == storeKind && filepath.Dir(m.Name) == d.folder {
			if err := removeStore(context.Background(), m.Name); err != nil {
				left = append(left, err.Error())
			}
		}
		// The name is checked: it is a folder of the lab's own, or nothing.
		if m.Kind == folderKind && filepath.Base(m.Name) == "lab-"+d.id {
			if err := os.RemoveAll(m.Name); err != nil {
				left = append(left, err.Error())
			}
		}
	}
	if len(left) > 0 {
		return left
	}
	if err := os.RemoveAll(d.folder); err != nil {
		left = append(left, err.Error())
	}
	return left
}

// clearDead removes what dead runs left on the engine this run uses. What is
// elsewhere, was kept, or can't be removed now, stays for `lab clean`.
func clearDead(ctx context.Context, env *Env, state string, s *session) {
	dead, err := deadRuns(state)
	if err != nil {
		return
	}
	for _, d := range dead {
		if err := d.read(); err == nil && !d.info.Kept && d.info.Root == "" {
			d.clear(ctx, env, s)
		}
		d.close()
	}
}

func (d *deadRun) clear(ctx context.Context, env *Env, s *session) {
	if !d.inEngine() {
		_ = d.endService(ctx)
		_ = d.removeFolders()
		return
	}
	if s.engine == nil {
		return // this run is of virtual machines only
	}
	if d.info.URL != s.info.URL && !(d.info.Service && s.info.Service) || !d.reached {
		return
	}
	removed, left := []string(nil), []string(nil)
	if err := d.endService(ctx); err != nil {
		left = []string{err.Error()}
	} else {
		removed, left = d.remove(ctx, s.engine)
	}
	if len(removed) > 0 {
		fmt.Fprintf(env.Stderr, "lab: run %s ended early; removed what it left: %s\n", d.id, strings.Join(removed, ", "))
	}
	for _, l := range left {
		fmt.Fprintf(env.Stderr, "lab: run %s ended early; not removed: %s\n", d.id, l)
	}
	if len(left) > 0 {
		fmt.Fprintln(env.Stderr, "lab: hint: lab clean")
	}
}
