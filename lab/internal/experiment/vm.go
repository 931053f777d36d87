package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/vm"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// Machines gives the host's virtual machines. Its error is a
// *vm.MissingError where this host has none.
type Machines func(ctx context.Context) (*vm.Host, error)

// onMachine tells whether the plan is about a virtual machine.
func (p *Plan) onMachine() bool { return p.Scenario.Machine == scenarios.VirtualMachine }

// machineSpec is the plan's machine as package vm is asked for it.
func (p *Plan) machineSpec() vm.Spec {
	s := vm.Spec{Name: "lab-vm", Folder: filepath.Join(p.Folder, scenarios.MachineName)}
	for _, d := range p.container(scenarios.MachineName).Disks {
		s.Disks = append(s.Disks, vm.Disk{
			Name: d.Name, Target: d.Target, Options: d.Options,
			InstanceStore: d.Kind == scenarios.InstanceStore, Flush: d.Flush,
		})
	}
	return s
}

// snapshotKind is how a snapshot step is taken, or how the one was that a
// rollback step goes back to.
func (p *Plan) snapshotKind(st scenarios.Step) string {
	if st.Verb == "rollback" {
		i := slices.IndexFunc(p.Variant.Steps, func(s scenarios.Step) bool { return s.Verb == "snapshot" && s.To == st.From })
		if i < 0 {
			return vm.Offline
		}
		st = p.Variant.Steps[i]
	}
	switch {
	case st.Live:
		return vm.Live
	case st.Overlay:
		return vm.Overlay
	}
	return vm.Offline
}

// machineRun is the virtual machine of a plan that is being carried out.
type machineRun struct {
	*vm.Machine
	number int // of the machine: a boot after terminate is another one's
}

// machineVerbs are the steps a runner can carry out on a virtual machine.
var machineVerbs = map[string]func(*runner, context.Context, PlannedStep, *StepRecord) error{
	"boot":      (*runner).bootMachine,
	"start":     (*runner).startMachine,
	"reboot":    (*runner).rebootMachine,
	"stop":      (*runner).stopMachine,
	"terminate": (*runner).stopMachine,
	"power-cut": (*runner).cutPower,
	"snapshot":  (*runner).snapshotMachine,
	"rollback":  (*runner).rollbackMachine,
	"sync":      (*runner).syncMachine,
	"write":     (*runner).write,
	"read":      (*runner).read,
	"wait":      (*runner).waitMachine,
}

// machines are the host's virtual machines: an *engine.UnsupportedError where
// it has none.
func machines(ctx context.Context, env Env) (*vm.Host, error) {
	if env.Machines == nil {
		return nil, &engine.UnsupportedError{What: "a virtual machine", Needs: vm.Setup}
	}
	host, err := env.Machines(ctx)
	var missing *vm.MissingError
	if errors.As(err, &missing) {
		return nil, &engine.UnsupportedError{What: "a virtual machine", Needs: fmt.Sprintf("%s: %s", strings.Join(missing.What, ", "), vm.Setup), Err: err}
	}
	return host, err
}

// prepareMachine makes the machine's disks.
func (r *runner) prepareMachine(ctx context.Context) error {
	host, err := machines(ctx, r.env)
	if err != nil {
		return err
	}
	r.machine = &machineRun{}
	if err := host.Prepare(ctx, filepath.Join(r.plan.Folder, "trial")); err != nil {
		return err
	}
	facts := host.Facts()
	r.rec.Machine = &facts
	r.machine.Machine, err = host.NewMachine(ctx, r.plan.machineSpec())
	return err
}

// cleanupMachine switches the machine off and removes its folder: there is
// nothing else.
func (r *runner) cleanupMachine() {
	if r.machine == nil {
		return
	}
	if r.machine.Machine != nil {
		r.machine.Close()
	}
	if r.env.Keep {
		r.rec.Cleanup.Kept = true
		return
	}
	if err := os.RemoveAll(r.plan.Folder); err != nil {
		r.rec.Cleanup.Left = append(r.rec.Cleanup.Left, "folder "+r.plan.Folder+": "+err.Error())
		return
	}
	if r.machine.number > 0 {
		r.rec.Cleanup.Removed = append(r.rec.Cleanup.Removed, "virtual machine "+r.plan.name(scenarios.MachineName))
	}
}

// lastWords adds what the console ends with to an error that came from a
// machine that had booted.
func (r *runner) lastWords(err error) error {
	var boot *vm.BootError
	if r.machine == nil || r.machine.Machine == nil || errors.As(err, &boot) {
		return err
	}
	if tail := r.machine.ConsoleTail(3); len(tail) > 0 {
		return fmt.Errorf("%w; the machine's console ends: %s", err, strings.Join(tail, " | "))
	}
	return err
}

// meet opens the conversation with a machine that has just answered.
func (r *runner) meet(st PlannedStep) *Identity {
	m := r.machine
	hello := m.Hello()
	who := Identity{
		ID: fmt.Sprintf("%s-%d", r.plan.name(scenarios.MachineName), m.number), PID: m.PID(), State: "running",
		Started: time.Unix(0, hello.Started).UTC(), Instance: hello.Instance, BootID: hello.BootID, Hostname: hello.Hostname,
	}
	r.live[st.On] = &live{id: who.ID, who: who, session: &session{client: m.Client(), hello: hello}}
	return &who
}

func (r *runner) bootMachine(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	r.machine.number++
	return r.startMachine(ctx, st, sr)
}

// startMachine is a new process of QEMU's, and a new boot.
func (r *runner) startMachine(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	before := r.identity(st.On)
	sr.Proof = &Proof{Before: before}
	if err := r.machine.Start(ctx); err != nil {
		return err
	}
	sr.Proof.After = r.meet(st)
	return newBoot(before, sr.Proof.After)
}

// rebootMachine is a new boot in the same process of QEMU's.
func (r *runner) rebootMachine(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	before := r.identity(st.On)
	sr.Proof = &Proof{Before: before}
	if err := r.machine.Reboot(ctx); err != nil {
		return err
	}
	sr.Proof.After = r.meet(st)
	if before.PID != sr.Proof.After.PID {
		return fmt.Errorf("the machine rebooted, but qemu is another process: %d before, %d after", before.PID, sr.Proof.After.PID)
	}
	return newBoot(before, sr.Proof.After)
}

// newBoot makes sure that a boot has happened.
func newBoot(before, after *Identity) error {
	if before != nil && before.BootID == after.BootID {
		return errors.New("the machine says it booted, but its boot id is the same")
	}
	return nil
}

// stopMachine is an orderly end of the machine, and of QEMU.
func (r *runner) stopMachine(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	return r.endMachine(st, sr, "stopped", func() error {
		if !r.machine.On() { // terminate of a stopped one
			return nil
		}
		return r.machine.Stop(ctx)
	})
}

// cutPower takes the power away, now or in the middle of a write.
func (r *runner) cutPower(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	if st.Delay > 0 {
		if err := sleep(ctx, st.Delay); err != nil {
			return err
		}
	}
	if st.During != "" {
		item := wireItem(r.plan.items[st.During], st.Nonces[st.During])
		item.UpTo = st.At
		o := Observation{Item: st.During, Nonce: item.Nonce}
		err := r.ask(ctx, st.On, wire.Begin, item, &o)
		sr.Items = append(sr.Items, o)
		if err == nil && o.Error != nil {
			err = o.Error
		}
		if err != nil {
			return err
		}
	}
	return r.endMachine(st, sr, "cut off", r.machine.Cut)
}

// endMachine ends QEMU, and makes sure that it has ended.
func (r *runner) endMachine(st PlannedStep, sr *StepRecord, state string, end func() error) error {
	before := r.identity(st.On)
	sr.Proof = &Proof{Before: before}
	if err := end(); err != nil {
		return err
	}
	r.live[st.On].session = nil
	r.live[st.On].who.State = state
	sr.Proof.After = &Identity{ID: before.ID, State: state}
	gone := vm.Gone(before.PID)
	if gone == "" {
		return fmt.Errorf("qemu should have ended, but process %d is there", before.PID)
	}
	sr.Proof.OldIsGone = fmt.Sprintf("qemu, process %d: %s", before.PID, gone)
	return nil
}

func (r *runner) snapshotMachine(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{Before: r.identity(st.On)}
	return r.machine.Snapshot(ctx, r.plan.snapshotKind(st.Step), st.To)
}

// rollbackMachine puts the machine back. After a live one the machine runs,
// and is the same boot it was when the snapshot was taken.
func (r *runner) rollbackMachine(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	sr.Proof = &Proof{Before: r.identity(st.On)}
	kind := r.plan.snapshotKind(st.Step)
	if err := r.machine.Rollback(ctx, kind, st.From); err != nil || kind != vm.Live {
		return err
	}
	l := r.live[st.On]
	reply, err := l.session.client.Call(ctx, wire.Request{Op: wire.Hello})
	if err != nil {
		return err
	}
	if reply.Hello == nil {
		return errors.New("the machine does not greet after the rollback")
	}
	l.session.hello = *reply.Hello
	l.who.Instance, l.who.BootID = reply.Hello.Instance, reply.Hello.BootID
	sr.Proof.After = r.identity(st.On)
	return nil
}

func (r *runner) syncMachine(ctx context.Context, _ PlannedStep, _ *StepRecord) error {
	return r.machine.Sync(ctx)
}

func (r *runner) waitMachine(ctx context.Context, st PlannedStep, _ *StepRecord) error {
	return sleep(ctx, st.Delay)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// machineLines are the lines a person would type for a step on a virtual
// machine.
func (p *Plan) machineLines(st PlannedStep, kernel, initrd string) []string {
	spec := p.machineSpec()
	ask := func(op wire.Op, item *wire.Item) string {
		return vm.AskLine(wire.Request{ID: int64(st.Index), Op: op, Item: item}, quote)
	}
	items := func(op wire.Op, nonces map[string]string) (lines []string) {
		for _, name := range st.Items {
			for _, nonce := range repeated(nonces[name], st.Times) {
				lines = append(lines, ask(op, wireItem(p.items[name], nonce)))
			}
		}
		return lines
	}
	start := func() []string { return spec.StartLines(kernel, initrd, quote) }
	switch st.Verb {
	case "boot":
		if slices.ContainsFunc(p.Steps, func(s PlannedStep) bool { return s.Verb == "boot" }) {
			return start() // the disks are there
		}
		return append(spec.DiskLines(quote), start()...)
	case "start":
		return start()
	case "reboot":
		return []string{ask(wire.Reboot, nil), vm.WaitLine}
	case "sync":
		return []string{ask(wire.Sync, nil)}
	case "stop", "terminate":
		return []string{ask(wire.Exit, nil), vm.EndLine}
	case "write":
		return items(wire.Write, st.Nonces)
	case "read":
		return items(wire.Read, nil)
	case "wait":
		return []string{fmt.Sprintf("sleep %g", st.Delay.Seconds())}
	case "power-cut":
		var lines []string
		if st.Delay > 0 {
			lines = append(lines, fmt.Sprintf("sleep %g", st.Delay.Seconds()))
		}
		if st.During != "" {
			item := wireItem(p.items[st.During], st.Nonces[st.During])
			item.UpTo = st.At
			lines = append(lines, ask(wire.Begin, item))
		}
		return append(lines, vm.CutLine)
	case "snapshot":
		return spec.SnapshotLines(p.snapshotKind(st.Step), st.To, false, quote)
	case "rollback":
		return spec.SnapshotLines(p.snapshotKind(st.Step), st.From, true, quote)
	}
	return nil
}

// repeated are the nonces of a write that is done several times over.
func repeated(nonce string, times int) []string {
	if times < 2 {
		return []string{nonce}
	}
	nonces := make([]string, times)
	for i := range nonces {
		nonces[i] = fmt.Sprintf("%s-%d", nonce, i+1)
	}
	return nonces
}

// Places of a virtual machine.
const (
	inDisk          place = "a durable disk"
	inInstanceStore place = "the instance store"
	inMachineMemory place = "the machine's memory"
	inKernel        place = "what the kernel says of itself"
)

// machinePlace is the place of an item in a virtual machine.
func machinePlace(c scenarios.Container, it scenarios.Item) place {
	if it.Kind == scenarios.Fact {
		return inKernel
	}
	for _, d := range c.Disks {
		switch {
		case it.Kind == scenarios.Memory || !within(it.Path, d.Target):
		case d.Kind == scenarios.InstanceStore:
			return inInstanceStore
		default:
			return inDisk
		}
	}
	return inMachineMemory
}

// machineWhy is why for a virtual machine.
func machineWhy(where place, event string, o scenarios.Outcome) string {
	cut, back := strings.Contains(event, "power-cut"), strings.Contains(event, "rollback")
	if event == "" {
		event = "nothing"
	}
	switch {
	case o == scenarios.Unknown:
		return "it could not be looked at, so nothing is said of it"
	case where == inKernel && o == scenarios.Survived:
		return fmt.Sprintf("%s does not change it", event)
	case where == inKernel:
		return fmt.Sprintf("it is made anew at every boot: %s is one", event)
	case o == scenarios.Survived && where == inDisk && cut:
		return "it was on the disk, or the disk had it, when the power went"
	case o == scenarios.Survived && back:
		return fmt.Sprintf("it was in %s when the snapshot was taken", where)
	case o == scenarios.Survived:
		return fmt.Sprintf("it is in %s, which %s does not touch", where, event)
	case o == scenarios.Refused:
		return "the write was not accepted, so there is nothing that could come back"
	case back:
		return fmt.Sprintf("it was written to %s after the snapshot was taken, and the rollback put that back", where)
	case where == inInstanceStore:
		return fmt.Sprintf("it was in %s, which ends with the machine's process on its host: %s starts another", where, event)
	case where == inMachineMemory:
		return fmt.Sprintf("it was in %s, which ends with the boot: %s starts another", where, event)
	case cut:
		return "the write was acknowledged while it was, in part or whole, only in the kernel's memory, and the power cut took that"
	case o == scenarios.Lost:
		return fmt.Sprintf("it was in %s, which does not outlast %s", where, event)
	}
	return "something is there, but not what was last written"
}
