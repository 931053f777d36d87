package cli

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/vm"
	"persistencelab/scenarios"
)

// vmCache is the cache with the kernel for virtual machines. The test is
// skipped where they are not promised (LAB_TEST_VM).
func vmCache(t *testing.T) string {
	t.Helper()
	if os.Getenv("LAB_TEST_VM") == "" {
		t.Skip("needs QEMU and a kernel (" + vm.Setup + "): LAB_TEST_VM is not set")
	}
	dir, err := cacheDir(&Env{Getenv: os.Getenv})
	require.NoError(t, err)
	return dir
}

// vmCommand is the lab as a process that must end within its time: an emulated
// machine on a busy host is slow.
func vmCommand(t *testing.T, state string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	cmd = labCommand(t, state, args...)
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

// machineProcesses are the QEMUs that work below a folder, by their own word.
func machineProcesses(t *testing.T, below string) []int {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	require.NoError(t, err)
	var pids []int
	for _, link := range links {
		cwd, err := os.Readlink(link)
		exe, _ := os.Readlink(filepath.Join(filepath.Dir(link), "exe"))
		if err == nil && strings.HasPrefix(cwd, below) && strings.Contains(filepath.Base(exe), "qemu") {
			var pid int
			fmt.Sscanf(link, "/proc/%d/cwd", &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// requireNoMachine makes sure that no QEMU and no run folder is left.
func requireNoMachine(t *testing.T, state string) {
	t.Helper()
	require.Empty(t, machineProcesses(t, state), "qemu is left")
	runs, _ := filepath.Glob(filepath.Join(state, "runs", "*"))
	require.Empty(t, runs, "a run's folder is left")
}

func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// machineDetails is what exactly must be seen where an outcome alone says too
// little: what the crash tables of real machines showed.
var machineDetails = map[string]string{
	"write-success-is-not-durability/rewritten in place/rewritten":      `^older`,
	"write-success-is-not-durability/a line appended/appended":          `^older`,
	"write-success-is-not-durability/renamed over the old/renamed":      `^older`,
	"write-success-is-not-durability/fsync and rename/half-safe":        `^older`,
	"power-cut-midway/in place, after 20 KiB/in-place":                  `^torn: ends after 20480 of 65536 bytes$`,
	"power-cut-midway/in place, before the first byte/in-place":         `^empty$`,
	"power-cut-midway/aside, after 20 KiB/aside":                        `^65536 bytes`,
	"another-files-fsync/a new file/plain":                              `^empty$`,
	"another-files-fsync/renamed to a new name/renamed":                 `^empty$`,
	"another-files-fsync/a line appended/appended":                      `^zero tail: the last 210 of 420 bytes`,
	"another-files-fsync/renamed over the old, noauto_da_alloc/renamed": `^empty$`,
	"another-files-fsync/rewritten in place, noauto_da_alloc/rewritten": `^empty$`,
	"sqlite-modes/WAL, FULL/wal-full":                                   `^21 rows$`,
	"sqlite-modes/WAL, NORMAL/wal-normal":                               `^21 rows → 1$`,
	"sqlite-modes/WAL, OFF/wal-off":                                     `^21 rows → 1$`,
	"sqlite-modes/DELETE, EXTRA/delete-extra":                           `^21 rows$`,
	"sqlite-modes/DELETE, FULL/delete-full":                             `^21 rows → 20$`,
	"sqlite-modes/DELETE, NORMAL/delete-normal":                         `^21 rows → 20$`,
	"sqlite-modes/DELETE, OFF/delete-off":                               `^21 rows → 1$`,
	"vm-rollback/offline/rows":                                          `^6 rows → 3$`,
	"vm-rollback/overlay/rows":                                          `^6 rows → 3$`,
	"vm-rollback/live/rows":                                             `^6 rows → 3$`,
	"vm-boot-id/reboot/name":                                            `^the same: lab-vm$`,
}

// TestVMScenarios runs the rollbacks and the crash tables once; with
// LAB_TEST_LONG every scenario about a virtual machine five times, and
// rollback and instance store ten.
func TestVMScenarios(t *testing.T) {
	vmCache(t)
	seen := map[string]int{}
	if os.Getenv("LAB_TEST_LONG") == "" {
		// All of them are a hundred boots, and waits.
		runMachines(t, seen, "vm-rollback", "power-cut-midway", "write-success-is-not-durability", "another-files-fsync", "sqlite-modes", "lying-disk")
		requireRows(t, seen, 1, "vm-boot-id")
		return
	}
	var names []string
	for _, s := range scenarios.Catalogue() {
		if s.Machine != "" {
			names = append(names, s.Name)
		}
	}
	require.Len(t, names, 9)
	for range 5 {
		runMachines(t, seen, names...)
		runMachines(t, seen, "vm-rollback", "vm-instance-store")
	}
	requireRows(t, seen, 5)
}

// requireRows makes sure that each row of machineDetails was seen so often, but
// for those of the scenarios left out.
func requireRows(t *testing.T, seen map[string]int, times int, but ...string) {
	t.Helper()
	for row := range machineDetails {
		if scenario, _, _ := strings.Cut(row, "/"); !slices.Contains(but, scenario) {
			require.GreaterOrEqual(t, seen[row], times, "no such row: %s", row)
		}
	}
}

// runMachines runs scenarios and holds every row against what is expected.
func runMachines(t *testing.T, seen map[string]int, names ...string) {
	t.Helper()
	state := t.TempDir()
	cmd, stdout, stderr := vmCommand(t, state, append([]string{"run", "--format", "csv", "--timeout", "20m"}, names...)...)
	require.NoError(t, cmd.Run(), "%s\n%s", stdout, stderr)
	rows, err := csv.NewReader(stdout).ReadAll()
	require.NoError(t, err)
	require.Equal(t, []string{"scenario", "variant", "item", "checkpoint", "written", "outcome", "expected", "verdict", "detail"}, rows[0])
	for _, r := range rows[1:] {
		row := r[0] + "/" + r[1] + "/" + r[2]
		seen[row]++
		require.Equal(t, "true", r[4], row)
		require.Equal(t, "as expected", r[7], "%s: %s", row, r[8])
		if want := machineDetails[row]; want != "" {
			require.Regexp(t, regexp.MustCompile(want), r[8], row)
		}
	}
	requireNoMachine(t, state)
}

// TestVMEnds ends the lab in every way while its machines run.
func TestVMEnds(t *testing.T) {
	vmCache(t)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			state := t.TempDir()
			cmd, _, stderr := vmCommand(t, state, "run", "lying-disk", "vm-instance-store")
			require.NoError(t, cmd.Start())
			require.Eventually(t, func() bool { return len(machineProcesses(t, state)) > 0 }, time.Minute, 20*time.Millisecond)
			require.NoError(t, cmd.Process.Signal(signal))
			err := cmd.Wait()
			if signal != syscall.SIGKILL {
				require.Equal(t, exitInterrupted, exitCode(err), stderr)
				requireNoMachine(t, state)
				return
			}
			require.Eventually(t, func() bool { return len(machineProcesses(t, state)) == 0 }, 10*time.Second, 20*time.Millisecond, "qemu outlives the lab")
			clean, stdout, stderr := vmCommand(t, state, "clean")
			require.NoError(t, clean.Run(), stderr)
			require.Contains(t, stdout.String(), "removed run ")
			requireNoMachine(t, state)
		})
	}
}

// A machine whose process is killed from outside, at both tries, is unknown.
func TestVMIsKilled(t *testing.T) {
	vmCache(t)
	state := t.TempDir()
	cmd, stdout, stderr := vmCommand(t, state, "run", "--format", "csv", "--timeout", "10m", shortestFile(t))
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			require.Less(t, time.Since(began), 30*time.Second, "it waited for a machine that was gone")
			require.Equal(t, exitUnknown, exitCode(err), "%s%s", stdout, stderr)
			require.Contains(t, stdout.String(), "shortest,plain,seen,at once,false,unknown,survived,unknown,")
			require.Contains(t, stdout.String(), "qemu")
			requireNoMachine(t, state)
			return
		case <-time.After(20 * time.Millisecond):
			for _, pid := range machineProcesses(t, state) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

// brokenCache is a cache with a kernel in it that break has spoilt.
func brokenCache(t *testing.T, spoil func(kernel string)) string {
	t.Helper()
	cache := t.TempDir()
	from, err := filepath.Glob(filepath.Join(vmCache(t), "vm", "kernel-*"))
	require.NoError(t, err)
	require.NotEmpty(t, from)
	kernel := filepath.Join(cache, "vm", filepath.Base(from[0]))
	require.NoError(t, os.CopyFS(kernel, os.DirFS(from[0])))
	spoil(kernel)
	return cache
}

const shortest = `
version: 1
name: shortest
title: A boot
machine: vm
data: {seen: {memory: seen}}
steps: [boot, write, read: at once]
expect: {at once: {seen: survived}}
`

func shortestFile(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "shortest.yaml")
	require.NoError(t, os.WriteFile(file, []byte(shortest), 0o600))
	return file
}

// A machine that panics is unknown, with the console's last words, and exit 3.
func TestVMPanics(t *testing.T) {
	state := t.TempDir()
	cache := brokenCache(t, func(kernel string) {
		require.NoError(t, os.WriteFile(filepath.Join(kernel, "virtio.ko"), []byte("no module"), 0o600))
	})
	cmd, stdout, stderr := vmCommand(t, state, "run", "--format", "csv", "--timeout", "10m", shortestFile(t))
	cmd.Env = append(cmd.Env, "LAB_CACHE_DIR="+cache)
	require.Equal(t, exitUnknown, exitCode(cmd.Run()), "%s%s", stdout, stderr)
	require.Contains(t, stdout.String(), "the machine panicked while it booted (at two tries); its console ends:")
	require.Contains(t, stdout.String(), "probe: error: load /modules/1-virtio.ko: exec format error")
	require.Contains(t, stdout.String(), "Kernel panic - not syncing: Attempted to kill init!")
	require.NotContains(t, stdout.String(), "lost,lost")
	requireNoMachine(t, state)
}

// Without QEMU a scenario is skipped, with what to type, and the rest works.
func TestVMMissing(t *testing.T) {
	state := t.TempDir()
	lab, err := exec.LookPath("lab")
	require.NoError(t, err)
	cmd, stdout, stderr := vmCommand(t, state, "run", "vm-rollback", "--format", "csv")
	cmd.Path = lab
	cmd.Env = append(cmd.Env, "PATH=/nonexistent", "LAB_CACHE_DIR="+t.TempDir())
	require.NoError(t, cmd.Run(), stderr)
	rows, err := csv.NewReader(stdout).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 1+15)
	for _, r := range rows[1:] {
		require.Equal(t, []string{"unknown", "skipped"}, []string{r[5], r[7]}, r)
	}

	cmd, stdout, stderr = vmCommand(t, state, "run", "vm-rollback")
	cmd.Path = lab
	cmd.Env = append(cmd.Env, "PATH=/nonexistent", "LAB_CACHE_DIR="+t.TempDir())
	require.NoError(t, cmd.Run(), stderr)
	require.Contains(t, strings.Join(strings.Fields(stdout.String()), " "), "a virtual machine needs")
	require.Contains(t, stdout.String(), vm.Setup)
	requireNoMachine(t, state)
}
