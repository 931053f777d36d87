package vm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"persistencelab/probeimage/image"
)

// Setup is what to type where something is missing.
const Setup = "scripts/setup --vm"

// Modules are the kernel modules of the disks, in the order in which they
// load. The folder of a kernel holds them as NAME.ko.
func Modules() []string {
	return []string{"virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "virtio_blk"}
}

// Options say where a host's things are.
type Options struct {
	// CacheDir is the lab's cache; kernels are in vm/ below it.
	CacheDir string
	// Append are further words on the kernel's command line.
	Append string
	// BootTime is how long one boot may take; 0 for 30 s.
	BootTime time.Duration
}

// Host is this machine as far as it can run virtual machines. It is safe for
// concurrent use.
type Host struct {
	opts                Options
	qemu, qemuImg, mkfs string
	version             string // of QEMU
	kernel              string // folder of the kernel

	prepared sync.Once
	fault    error
	initrd   string
	image    string // the kernel to boot
	accel    string
}

// MissingError: this machine can't run virtual machines yet.
type MissingError struct{ What []string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("virtual machines need %s: %s", strings.Join(e.What, ", "), Setup)
}

// Facts is what a record states of the machines it ran.
type Facts struct {
	QEMU        string `json:"qemu"`        // 7.2.22
	Accelerator string `json:"accelerator"` // tcg (QEMU emulates the processor) or kvm
	Kernel      string `json:"kernel"`      // the guest's: 6.1.0-57-cloud-amd64
}

// Find looks for what virtual machines need. The error is a *MissingError
// where something is not there.
func Find(ctx context.Context, opts Options) (*Host, error) {
	h := &Host{opts: opts}
	if h.opts.BootTime == 0 {
		h.opts.BootTime = 30 * time.Second
	}
	missing := &MissingError{}
	if runtime.GOOS != "linux" {
		missing.What = append(missing.What, "Linux")
	}
	for _, p := range []struct {
		name string
		at   *string
	}{{"qemu-system-x86_64", &h.qemu}, {"qemu-img", &h.qemuImg}, {"mkfs.ext4", &h.mkfs}} {
		if *p.at = program(p.name); *p.at == "" {
			missing.What = append(missing.What, p.name)
		}
	}
	if h.kernel = newestKernel(opts.CacheDir); h.kernel == "" {
		missing.What = append(missing.What, "a kernel for them")
	}
	if len(missing.What) > 0 {
		return nil, missing
	}
	out, err := exec.CommandContext(ctx, h.qemu, "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("%s --version: %w", h.qemu, err)
	}
	if words := strings.Fields(string(out)); len(words) > 3 {
		h.version = words[3] // QEMU emulator version 7.2.22 (Debian …)
	}
	return h, nil
}

// program finds a program, also where the search path of a plain user does
// not lead.
func program(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// newestKernel gives the folder of the kernel that was fetched last, or "".
func newestKernel(cache string) string {
	found, _ := filepath.Glob(filepath.Join(cache, "vm", "kernel-*", "vmlinuz"))
	newest, when := "", time.Time{}
	for _, path := range found {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(when) {
			newest, when = filepath.Dir(path), info.ModTime()
		}
	}
	return newest
}

// Facts tells what machines run with here, once Prepare has found it out.
func (h *Host) Facts() Facts {
	return Facts{QEMU: h.version, Accelerator: h.accel, Kernel: h.Release()}
}

// Release is the guests' kernel release.
func (h *Host) Release() string { return strings.TrimPrefix(filepath.Base(h.kernel), "kernel-") }

// Prepare makes what all machines start from, and finds out whether KVM works
// here; folder is for its trial boot. Later calls give the first one's result.
func (h *Host) Prepare(ctx context.Context, folder string) error {
	h.prepared.Do(func() {
		h.image = h.bootImage()
		if h.initrd, h.fault = h.makeInitrd(); h.fault == nil {
			h.accel = h.accelerator(ctx, folder)
		}
	})
	return h.fault
}

// bootImage is the kernel unpacked, made once; or as it was fetched, where it
// is packed in a way only it can unpack.
func (h *Host) bootImage() string {
	packed, unpacked := filepath.Join(h.kernel, "vmlinuz"), filepath.Join(h.kernel, "vmlinux")
	if _, err := os.Stat(unpacked); err == nil {
		return unpacked
	}
	b, err := os.ReadFile(packed)
	if err == nil {
		b, err = unpackKernel(b)
	}
	if err == nil {
		err = writeFile(unpacked, b)
	}
	if err != nil {
		return packed
	}
	return unpacked
}

// makeInitrd gives the initramfs of this lab's probe, making it when the
// kernel's folder does not hold it yet.
func (h *Host) makeInitrd() (string, error) {
	probe, err := image.Probe("amd64")
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	a := &archive{w: &b}
	for _, dir := range []string{"dev", "proc", "sys", "tmp", "modules"} {
		a.folder(dir)
	}
	a.device("dev/console", 5, 1)
	for i, name := range Modules() {
		text, err := os.ReadFile(filepath.Join(h.kernel, name+".ko"))
		if err != nil {
			return "", fmt.Errorf("the kernel of virtual machines: %w", err)
		}
		a.file(fmt.Sprintf("modules/%d-%s.ko", i, name), text)
	}
	a.program("init", probe)
	if err := a.end(); err != nil {
		return "", err
	}
	sum := sha256.Sum256(b.Bytes())
	path := filepath.Join(h.kernel, "initramfs-"+hex.EncodeToString(sum[:6])+".cpio")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	old, _ := filepath.Glob(filepath.Join(h.kernel, "initramfs-*.cpio"))
	for _, name := range old { // of earlier probes; a running QEMU has read its own
		if info, err := os.Stat(name); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(name)
		}
	}
	return path, writeFile(path, b.Bytes())
}

// writeFile writes a file that is whole or not there.
func writeFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(b)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}

// trial is what was found out about KVM, and under which circumstances.
type trial struct {
	Boot        string `json:"boot"` // the host's boot id
	QEMU        string `json:"qemu"`
	Kernel      string `json:"kernel"`
	Accelerator string `json:"accelerator"`
}

// kvmTime is how long a machine with KVM may take to answer.
const kvmTime = 5 * time.Second

// accelerator is kvm where a machine has answered with it since this host
// booted, else tcg.
func (h *Host) accelerator(ctx context.Context, folder string) string {
	const tcg, kvm = "tcg", "kvm"
	if runtime.GOARCH != "amd64" {
		return tcg
	}
	dev, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return tcg
	}
	dev.Close()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	now := trial{Boot: strings.TrimSpace(string(boot)), QEMU: h.version, Kernel: h.Release()}
	file := filepath.Join(h.opts.CacheDir, "vm", "accelerator.json")
	var before trial
	if b, err := os.ReadFile(file); err == nil && json.Unmarshal(b, &before) == nil {
		known := before
		known.Accelerator = ""
		if known == now && slices.Contains([]string{tcg, kvm}, before.Accelerator) {
			return before.Accelerator
		}
	}
	now.Accelerator = tcg
	m := &Machine{host: h, folder: folder, spec: Spec{Name: "trial"}, accel: kvm}
	if os.MkdirAll(folder, 0o700) == nil && m.boot(ctx, kvmTime) == nil {
		now.Accelerator = kvm
	}
	m.Close()
	if ctx.Err() == nil {
		if b, err := json.Marshal(now); err == nil {
			_ = writeFile(file, b)
		}
	}
	return now.Accelerator
}
