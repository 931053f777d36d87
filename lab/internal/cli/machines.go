package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/vm"
	"persistencelab/scenarios"
)

// Virtual machines need no Podman, and Podman needs no virtual machines: a
// run reaches for what its scenarios are about.

// machinesOnly tells whether no scenario is about containers.
func machinesOnly(list []*scenarios.Scenario) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(s *scenarios.Scenario) bool { return s.Machine == "" })
}

// newMachines looks for what virtual machines need when the first is asked
// for.
func newMachines(env *Env) experiment.Machines {
	var once sync.Once
	var host *vm.Host
	var err error
	return func(ctx context.Context) (*vm.Host, error) {
		once.Do(func() {
			var cache string
			if cache, err = cacheDir(env); err == nil {
				host, err = vm.Find(ctx, vm.Options{CacheDir: cache})
			}
		})
		return host, err
	}
}

// openSessionFor opens a session for the scenarios, without Podman where none
// is about containers.
func openSessionFor(ctx context.Context, env *Env, flags engineFlags, list []*scenarios.Scenario) (*session, error) {
	if !machinesOnly(list) {
		return openSession(ctx, env, flags)
	}
	s, state, err := newSession(env)
	if err != nil {
		return nil, err
	}
	s.info = runInfo{ID: s.id, Started: env.Now()}
	if err := s.writeInfo(); err != nil {
		s.close(ctx, false)
		return nil, err
	}
	clearDead(ctx, env, state, s)
	return s, nil
}

// facts states what the session's scenarios ran on.
func (s *session) facts(jobs []*job) engine.Facts {
	if s.engine != nil {
		return s.engine.Facts()
	}
	f := engine.Facts{Name: "qemu"}
	for _, j := range jobs {
		if m := j.record.Machine; m != nil {
			f.Version, f.Runtime, f.Kernel = m.QEMU, m.Accelerator, m.Kernel
		}
	}
	return f
}

// machineFiles are what virtual machines start from, for the lines a person
// would type.
func machineFiles(env *Env) (kernel, initrd string) {
	cache, err := cacheDir(env)
	if err != nil {
		cache = filepath.Join("~", ".cache", "persistencelab")
	}
	return vm.Files(cache)
}

// turn waits until the plan may run, which is at once unless it is about a
// virtual machine: emulated ones side by side in any number only slow each
// other down, and run out of their time. done ends the turn.
func (s *session) turn(ctx context.Context, p *experiment.Plan) (done func()) {
	if p.Scenario.Machine == "" {
		return func() {}
	}
	select {
	case s.turns <- struct{}{}:
		return func() { <-s.turns }
	case <-ctx.Done():
		return func() {}
	}
}

// machines checks virtual machines by booting one. Only some scenarios need
// them: where what they run with is missing, that is no fault.
func (c *checkup) machines(ctx context.Context, s *session) {
	const what = "vm"
	host, err := s.machines(ctx)
	var missing *vm.MissingError
	if errors.As(err, &missing) {
		c.note(what, err.Error())
		return
	}
	folder := filepath.Join(s.folder, "doctor")
	if err == nil {
		err = host.Prepare(ctx, folder)
	}
	var m *vm.Machine
	if err == nil {
		m, err = host.NewMachine(ctx, vm.Spec{Name: "lab-vm", Folder: folder})
	}
	started := s.env.Now()
	if err == nil {
		defer m.Close()
		err = m.Start(ctx)
	}
	if err != nil {
		c.fault(what, err.Error(), vm.Setup)
		return
	}
	f := host.Facts()
	c.ok(what, fmt.Sprintf("qemu %s (%s), kernel %s: booted in %s", f.QEMU, f.Accelerator, f.Kernel, s.env.Now().Sub(started).Round(10*time.Millisecond)))
}
