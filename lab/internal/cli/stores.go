package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"persistencelab/bindings"
	"persistencelab/lab/internal/experiment"
)

// stores are the engines of a run whose stores are the lab's own. Prunes reach
// everything in a store, other plans' things too: a plan has its store to
// itself, and gives it back for the next.
type stores struct {
	s     *session
	flags engineFlags

	mu   sync.Mutex
	free []*ownStore
	all  []*ownStore
	made int
}

type ownStore struct {
	folder string
	engine *bindings.Podman
	ledger *experiment.Ledger // of what is in the store; it goes with the store
}

// carryOut runs a plan on the run's engine, or, where a step would reach
// beyond what the plan made, on one with a store of the lab's own.
func (s *session) carryOut(ctx context.Context, p *experiment.Plan, env experiment.Env) *experiment.Record {
	if !p.NeedsOwnStore() {
		return experiment.Run(ctx, s.engine, p, env)
	}
	own, err := s.stores.lease(ctx)
	if err != nil {
		env.NoStore = err.Error()
		return experiment.Run(ctx, s.engine, p, env)
	}
	env.Ledger = own.ledger
	rec := experiment.Run(ctx, own.engine, p, env)
	s.stores.giveBack(ctx, own, rec)
	return rec
}

// lacks says what this host lacks for a plan, as far as that is known before it
// is run; "" for nothing.
func (s *session) lacks(ctx context.Context, p *experiment.Plan) string {
	env, own := experiment.Env{Machines: s.machines}, true
	if err := s.stores.none(); err != nil {
		env.NoStore, own = err.Error(), false
	}
	if err := experiment.Lacks(ctx, p, own, env); err != nil {
		return err.Error()
	}
	return ""
}

// none is why there can be no store of the lab's own; nil where there can. It
// reads after "needs a store of the lab's own".
func (st *stores) none() error {
	if asked := st.s.engine.Asked(); asked != "" {
		return fmt.Errorf("which a service named with %s can't have", asked)
	}
	if !st.s.engine.Local() {
		return errors.New("and podman runs on another machine")
	}
	return nil
}

// lease gives a store nobody else uses. The error says, after "needs a store of
// the lab's own", why there is none.
func (st *stores) lease(ctx context.Context) (*ownStore, error) {
	st.mu.Lock()
	if n := len(st.free); n > 0 {
		own := st.free[n-1]
		st.free = st.free[:n-1]
		st.mu.Unlock()
		return own, nil
	}
	st.made++
	own := &ownStore{folder: filepath.Join(st.s.folder, fmt.Sprintf("store%d", st.made))}
	st.mu.Unlock()
	if err := st.none(); err != nil {
		return nil, err
	}
	if err := st.s.ledger.Add(storeKind, own.folder); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(own.folder, 0o700); err != nil {
		return nil, &folderError{err: err}
	}
	st.mu.Lock()
	st.all = append(st.all, own)
	st.mu.Unlock()
	opts, err := dialOptions(st.s.env, st.flags, st.s.runDir, own.folder)
	if err != nil {
		return nil, err
	}
	if own.ledger, err = experiment.OpenLedger(own.folder); err != nil {
		return nil, &folderError{err: err}
	}
	own.engine, err = bindings.Dial(ctx, opts)
	return own, err
}

// giveBack takes a store back. One whose service hung is given up.
func (st *stores) giveBack(ctx context.Context, own *ownStore, rec *experiment.Record) {
	if rec.Hung != "" || len(rec.Cleanup.Left) > 0 && !rec.Cleanup.Kept {
		if err := st.remove(ctx, own); err != nil {
			rec.Cleanup.Left = append(rec.Cleanup.Left, err.Error())
		}
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if !rec.Cleanup.Kept {
		st.free = append(st.free, own)
	}
}

// remove ends a store's service and removes the store.
func (st *stores) remove(ctx context.Context, own *ownStore) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if own.engine != nil {
		_ = own.engine.Close()
		own.engine = nil
	}
	if own.ledger != nil {
		_ = own.ledger.Close()
	}
	if err := removeStore(ctx, own.folder); err != nil {
		return err
	}
	return st.s.ledger.Gone(storeKind, own.folder)
}

func removeStore(ctx context.Context, folder string) error {
	return bindings.RemoveStore(ctx, bindings.Options{Root: folder, UID: os.Getuid(), Getenv: os.Getenv})
}

// close removes every store that is left.
func (st *stores) close(ctx context.Context) (left []string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	var wg sync.WaitGroup
	errs := make([]error, len(st.all))
	for i, own := range st.all {
		if _, err := os.Lstat(own.folder); errors.Is(err, os.ErrNotExist) {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = st.remove(ctx, own)
		}()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			left = append(left, err.Error())
		}
	}
	st.all, st.free = nil, nil
	return left
}
