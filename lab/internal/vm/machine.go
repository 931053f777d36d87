package vm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"persistencelab/probeimage/wire"
)

// Spec is one virtual machine.
type Spec struct {
	Name   string // its host name
	Folder string // on the host, for its files; it is the machine's alone
	Disks  []Disk
}

// Disk is one disk of a machine, with an ext4 file system on it.
type Disk struct {
	Name    string
	Target  string   // where it is mounted in the machine
	Options []string // of the mount
	// InstanceStore: the disk belongs to the machine's process on the host
	// and ends with it.
	InstanceStore bool
	// Flush: "" for a disk that keeps all it was given; "honest" for one
	// with a cache of its own, which a power cut empties; "lies" for one
	// that answers a flush without doing it.
	Flush string
}

// DiskSize is the size of every disk in bytes.
const DiskSize = 64 << 20

// file is the disk's image in the machine's folder.
func (d Disk) file() string {
	if d.Flush != "" {
		return d.Name + ".raw"
	}
	return d.Name + ".qcow2"
}

// serial is the disk's serial number, by which the guest finds it.
func (s Spec) serial(i int) string {
	if s.Disks[i].InstanceStore {
		return fmt.Sprintf("ephemeral%d", i)
	}
	return fmt.Sprintf("disk%d", i)
}

// Machine is a virtual machine, switched on or off.
type Machine struct {
	host   *Host
	spec   Spec
	folder string
	accel  string

	run *running // nil while it is off
}

// running is one life of a machine's process.
type running struct {
	pid     int
	process *os.Process
	ended   chan struct{} // closed when the process has ended
	said    *bytes.Buffer // what QEMU said; read it after ended
	port    io.Closer
	in      *bufio.Reader
	stream  io.ReadWriteCloser
	monitor *monitor
	disks   []*cachedDisk
	served  []chan struct{}
	client  *wire.Client
	hello   wire.Greeting
}

// BootError: the machine did not get as far as answering.
type BootError struct {
	Reason  string
	Console []string // its last lines
}

func (e *BootError) Error() string {
	if len(e.Console) == 0 {
		return e.Reason + "; its console says nothing"
	}
	return e.Reason + "; its console ends: " + strings.Join(e.Console, " | ")
}

// NewMachine makes a machine's disks, each with an empty file system. It is
// switched off. Prepare must have succeeded.
func (h *Host) NewMachine(ctx context.Context, spec Spec) (*Machine, error) {
	m := &Machine{host: h, spec: spec, folder: spec.Folder, accel: h.accel}
	if err := os.MkdirAll(m.folder, 0o700); err != nil {
		return nil, err
	}
	for _, d := range spec.Disks {
		if err := m.makeDisk(ctx, d); err != nil {
			return nil, fmt.Errorf("disk %s: %w", d.Name, err)
		}
	}
	return m, nil
}

func (m *Machine) makeDisk(ctx context.Context, d Disk) error {
	raw := filepath.Join(m.folder, d.Name+".raw")
	f, err := os.Create(raw)
	if err == nil {
		err = errors.Join(f.Truncate(DiskSize), f.Close())
	}
	if err == nil {
		err = m.tool(ctx, m.host.mkfs, MkfsArgs(d.Name+".raw")...)
	}
	if err != nil || d.Flush != "" {
		return err
	}
	if err := m.tool(ctx, m.host.qemuImg, "convert", "-O", "qcow2", d.Name+".raw", d.file()); err != nil {
		return err
	}
	return os.Remove(raw)
}

// MkfsArgs are mkfs.ext4's arguments: nothing left to be done after the first
// mount, else Debian's defaults for a disk of any ordinary size.
func MkfsArgs(image string) []string {
	return []string{"-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0", image}
}

// tool runs a program in the machine's folder.
func (m *Machine) tool(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = m.folder
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, bytes.TrimSpace(out))
	}
	return nil
}

// kernelLine is what the kernel is told. The long list makes an emulated boot
// fast and sure; nothing in it is about disks.
func (s Spec) kernelLine(more string) string {
	words := []string{
		"quiet loglevel=1 panic=-1 console=ttyS0 8250.nr_uarts=2 tsc=reliable no_timer_check nokaslr mitigations=off",
		"random.trust_cpu=on cryptomgr.notests rcupdate.rcu_expedited=1 i8042.noaux=1 i8042.nokbd=1 i8042.nopnp=1",
	}
	if s.Name != "" {
		words = append(words, "lab.host="+s.Name)
	}
	for i, d := range s.Disks {
		words = append(words, fmt.Sprintf("lab.mount=%s:%s:%s", s.serial(i), url.QueryEscape(d.Target), url.QueryEscape(strings.Join(d.Options, ","))))
	}
	if more != "" {
		words = append(words, more)
	}
	return strings.Join(words, " ")
}

// Channels of a QEMU that the lab started, as file descriptors it inherits.
const (
	portFD    = 3
	monitorFD = 4
	firstFD   = 5 // of disks with a cache of their own
)

// arguments are QEMU's.
func (m *Machine) arguments() []string {
	fd := firstFD - 1
	return m.spec.arguments(m.accel, m.host.image, m.host.initrd, m.host.opts.Append, func(channel string) string {
		switch channel {
		case "probe":
			return fmt.Sprintf("fd=%d", portFD)
		case "monitor":
			return fmt.Sprintf("fd=%d", monitorFD)
		}
		fd++
		return fmt.Sprintf("driver=nbd,node-name=%s,server.type=fd,server.str=%d", channel, fd)
	})
}

// processor is QEMU's default one with a source of random numbers. Without it
// the kernel gathers its own, and whoever asks for some early waits: a third of
// an emulated boot.
const processor = "qemu64,+rdrand"

// arguments are QEMU's, with the channels to it as channel has them: probe,
// monitor, and the serial numbers of disks with a cache of their own.
func (s Spec) arguments(accel, kernel, initrd, more string, channel func(string) string) []string {
	args := []string{
		"-accel", accel, "-machine", "q35", "-cpu", processor, "-m", "128", "-nodefaults", "-no-user-config", "-display", "none",
		"-kernel", kernel, "-initrd", initrd, "-append", s.kernelLine(more),
		"-serial", "file:console.log",
		"-chardev", "socket,id=probe," + channel("probe"), "-serial", "chardev:probe",
		"-chardev", "socket,id=monitor," + channel("monitor"), "-mon", "chardev=monitor,mode=control",
	}
	for i, d := range s.Disks {
		serial := s.serial(i)
		switch {
		case d.Flush != "":
			args = append(args, "-blockdev", channel(serial))
		case d.InstanceStore:
			args = append(args, "-drive", fmt.Sprintf("if=none,id=%s,file=%s,format=qcow2,snapshot=on", serial, d.file()))
		default:
			args = append(args, "-blockdev", fmt.Sprintf("driver=qcow2,node-name=%s,file.driver=file,file.filename=%s", serial, d.file()))
		}
		args = append(args, "-device", fmt.Sprintf("virtio-blk-pci,drive=%[1]s,serial=%[1]s", serial))
	}
	return args
}

// Start switches the machine on and waits for its greeting.
func (m *Machine) Start(ctx context.Context) error {
	err := m.boot(ctx, m.host.opts.BootTime)
	var failed *BootError
	if errors.As(err, &failed) && ctx.Err() == nil {
		if err = m.boot(ctx, m.host.opts.BootTime); errors.As(err, &failed) {
			failed.Reason += " (at two tries)"
		}
	}
	return err
}

func (m *Machine) boot(ctx context.Context, limit time.Duration) (err error) {
	if err := m.spawn(ctx); err != nil {
		m.Close()
		return err
	}
	if err := m.greeted(ctx, limit, false); err != nil {
		m.Close()
		return err
	}
	return nil
}

// spawn starts QEMU.
func (m *Machine) spawn(ctx context.Context) error {
	r := &running{ended: make(chan struct{}), said: &bytes.Buffer{}}
	m.run = r
	port, theirPort, err := pair()
	if err != nil {
		return err
	}
	defer theirPort.Close()
	mon, theirMon, err := pair()
	if err != nil {
		return err
	}
	defer theirMon.Close()
	r.in = bufio.NewReader(port)
	r.port = port
	r.stream = struct {
		io.Reader
		io.WriteCloser
	}{r.in, port}

	cmd := exec.Command(m.host.qemu, m.arguments()...)
	cmd.Dir = m.folder
	cmd.Env = append(os.Environ(), "TMPDIR="+m.folder) // of the instance store
	cmd.Stderr = r.said
	cmd.ExtraFiles = []*os.File{theirPort, theirMon}
	for _, d := range m.spec.Disks {
		if d.Flush == "" {
			continue
		}
		disk, err := openCachedDisk(filepath.Join(m.folder, d.file()), d.Flush == "lies")
		if err != nil {
			return err
		}
		r.disks = append(r.disks, disk)
		mine, theirs, err := pair()
		if err != nil {
			return err
		}
		defer theirs.Close()
		cmd.ExtraFiles = append(cmd.ExtraFiles, theirs)
		done := make(chan struct{})
		r.served = append(r.served, done)
		go func() {
			defer close(done)
			_ = disk.serve(mine) // ends with QEMU
		}()
	}
	started := make(chan error, 1)
	go func() {
		// The kernel ends QEMU when the thread that started it ends, so
		// that thread must live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd.SysProcAttr = dieWithParent()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(r.ended)
	}()
	err = <-started
	for _, theirs := range cmd.ExtraFiles {
		theirs.Close() // here and not later, so that QEMU's end ends the channel
	}
	if err != nil {
		r.pid = 0
		return fmt.Errorf("start qemu: %w", err)
	}
	r.process, r.pid = cmd.Process, cmd.Process.Pid
	ctx, cancel := context.WithTimeout(ctx, m.host.opts.BootTime)
	defer cancel()
	if r.monitor, err = newMonitor(ctx, mon); err != nil {
		mon.Close()
		return &BootError{Reason: fmt.Sprintf("qemu did not start the machine (%v): %s", err, strings.TrimSpace(m.lastWords()))}
	}
	return nil
}

// lastWords is what QEMU said before it ended.
func (m *Machine) lastWords() string {
	select {
	case <-m.run.ended:
		return m.run.said.String()
	case <-time.After(time.Second):
		return "it says nothing"
	}
}

// greeted waits for the probe's greeting. A restart of the guest before it
// means that the kernel panicked, except that rebooting says it was asked to:
// a guest tries one way of restarting after another, quicker than the first
// works, and each is an event. Then a panic is told by the console.
func (m *Machine) greeted(ctx context.Context, limit time.Duration, rebooting bool) error {
	said := len(m.console())
	r := m.run
	type answer struct {
		hello *wire.Greeting
		err   error
	}
	answers := make(chan answer, 1)
	go func() {
		for {
			line, err := wire.ReadLine(r.in)
			if errors.Is(err, wire.ErrTooLong) {
				continue
			}
			var reply wire.Reply
			if err != nil || json.Unmarshal(line, &reply) == nil && reply.Hello != nil {
				answers <- answer{reply.Hello, err}
				return
			}
		}
	}()
	// The time in which this host had no processor for the machine is not
	// the machine's; but there is an end to that, too.
	started, before := time.Now(), starved(r.pid)
	tick := time.NewTicker(limit / 20)
	defer tick.Stop()
	reason := ""
	for reason == "" {
		select {
		case a := <-answers:
			if a.err == nil {
				r.client, r.hello = wire.NewClient(r.stream), *a.hello
				return nil
			}
			reason = "qemu ended while the machine booted: " + strings.TrimSpace(m.lastWords())
		case <-r.monitor.resets:
			if !rebooting || bytes.Contains(m.console()[said:], []byte("Kernel panic")) {
				reason = "the machine panicked while it booted"
			}
		case <-tick.C:
			passed := time.Since(started)
			if passed-(starved(r.pid)-before) > limit || passed > 5*limit {
				reason = fmt.Sprintf("the machine did not answer within %s", limit)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return &BootError{Reason: reason, Console: m.ConsoleTail(4)}
}

// ConsoleTail gives the last lines of the machine's console; where the kernel
// panicked the ones that say why, which a dump of registers follows.
func (m *Machine) ConsoleTail(n int) []string {
	var lines []string
	for _, line := range strings.FieldsFunc(string(m.console()), func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD")); line != "" {
			lines = append(lines, line)
		}
	}
	tail := lines[max(0, len(lines)-n):]
	for i, line := range lines {
		if strings.Contains(line, "probe: error") || strings.Contains(line, "Kernel panic") {
			tail = lines[i:min(i+n, len(lines))]
			break
		}
	}
	return tail
}

// console is all the machine's process has written to its console.
func (m *Machine) console() []byte {
	b, _ := os.ReadFile(filepath.Join(m.folder, "console.log"))
	return b
}

// On tells whether the machine is switched on.
func (m *Machine) On() bool { return m.run != nil }

// PID is QEMU's, 0 while the machine is off.
func (m *Machine) PID() int {
	if m.run == nil {
		return 0
	}
	return m.run.pid
}

// Hello is the probe's greeting of the last boot.
func (m *Machine) Hello() wire.Greeting { return m.run.hello }

// Client asks the probe. It is of use until the next event; a live rollback
// leaves it so.
func (m *Machine) Client() *wire.Client { return m.run.client }

var errOff = errors.New("the machine is switched off")

// Ask puts one request to the probe.
func (m *Machine) Ask(ctx context.Context, req wire.Request) (wire.Reply, error) {
	if m.run == nil {
		return wire.Reply{}, errOff
	}
	return m.run.client.Call(ctx, req)
}

// orderly asks the probe for something that it must not refuse.
func (m *Machine) orderly(ctx context.Context, op wire.Op) error {
	reply, err := m.Ask(ctx, wire.Request{Op: op})
	if err == nil && reply.Error != nil {
		err = reply.Error
	}
	return err
}

// Sync puts all that was written on the disks.
func (m *Machine) Sync(ctx context.Context) error { return m.orderly(ctx, wire.Sync) }

// Reboot restarts the guest in an orderly way, in the same process.
func (m *Machine) Reboot(ctx context.Context) error {
	if err := m.orderly(ctx, wire.Reboot); err != nil {
		return err
	}
	return m.greeted(ctx, m.host.opts.BootTime, true)
}

// Stop shuts the guest down in an orderly way; the process ends.
func (m *Machine) Stop(ctx context.Context) error {
	if err := m.orderly(ctx, wire.Exit); err != nil {
		return err
	}
	select {
	case <-m.run.ended:
		return m.off()
	case <-time.After(m.host.opts.BootTime):
		return fmt.Errorf("the machine did not switch itself off within %s", m.host.opts.BootTime)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Cut takes the power away.
func (m *Machine) Cut() error {
	if m.run == nil {
		return errOff
	}
	for _, d := range m.run.disks {
		d.cut()
	}
	return m.off()
}

// Close switches the machine off, however it is.
func (m *Machine) Close() {
	if m.run != nil {
		_ = m.Cut()
	}
}

// off ends the process, if it has not ended, and lets go of all it had.
func (m *Machine) off() error {
	r := m.run
	m.run = nil
	if r.process != nil {
		_ = r.process.Kill()
		<-r.ended
	}
	if r.port != nil {
		r.port.Close()
	}
	if r.monitor != nil {
		r.monitor.conn.Close()
	}
	for _, done := range r.served {
		if r.process != nil {
			<-done
		}
	}
	var err error
	for _, d := range r.disks {
		err = errors.Join(err, d.close())
	}
	return err
}
