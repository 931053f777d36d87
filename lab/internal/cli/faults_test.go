package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/lab/engine/enginetest"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/report"
)

// serviceOf is the process of the service that listens at a socket whose path
// has word in it.
func serviceOf(t *testing.T, word string) int {
	t.Helper()
	for _, pid := range processesOf(word) {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		args := strings.Split(string(b), "\x00")
		if filepath.Base(args[0]) == "podman" && slices.Contains(args, "service") {
			return pid
		}
	}
	t.Fatalf("no service with %s in its arguments", word)
	return 0
}

// requireUnknownNeverLost reads a csv report of a run that lost its engine:
// what was not observed is unknown, and what was is as expected.
func requireUnknownNeverLost(t *testing.T, report string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(report)).ReadAll()
	require.NoError(t, err)
	col := map[string]int{}
	for i, name := range rows[0] {
		col[name] = i
	}
	unknown := 0
	for _, row := range rows[1:] {
		if row[col["outcome"]] == "unknown" {
			unknown++
			require.Equal(t, "unknown", row[col["verdict"]], report)
			require.NotEmpty(t, row[col["detail"]], report)
			continue
		}
		require.Equal(t, "as expected", row[col["verdict"]], report)
	}
	require.NotZero(t, unknown, report)
}

// TestOwnServiceKilled kills the service the lab started, in the middle of a
// run. The containers go on; the next run, or clean, finds and removes them.
func TestOwnServiceKilled(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		if target.URL != "" {
			t.Skip("this engine's service is not the lab's own")
		}
		d := newDesk(t, target)
		b := d.standBy()
		steps := []int{1, 3, 5, 10, 13, 21}
		if !enginetest.Long() {
			steps = []int{3, 13}
		}
		for i, n := range steps {
			r := d.start("run", "--jobs", "1", "--format", "csv")
			what, ok := r.step(n)
			require.True(t, ok, "step %d: %s", n, r.shown())
			id := d.runID()
			require.NoError(t, syscall.Kill(serviceOf(t, id), syscall.SIGKILL))
			res := r.end(t)
			hint := fmt.Sprintf("killed in step %d (%s); it said:\n%s\n%s", n, what, res.stdout, res.stderr)
			require.Equal(t, exitUnknown, res.code, hint)
			require.Contains(t, res.stderr, "lab: hint: lab clean", hint)
			requireUnknownNeverLost(t, res.stdout)
			again := []string{"clean"}
			if i%2 == 1 {
				again = []string{"run", "--jobs", "1"}
			}
			next := d.lab(again...)
			require.Zero(t, next.code, "%s\n%v: %s%s", hint, again, next.stdout, next.stderr)
			d.requireNothingLeft(id, hint)
			b.requireUntouched(hint)
		}
	})
}

// found is a `podman system service` that is not the lab's.
func (d *desk) found(socket string) *exec.Cmd {
	d.t.Helper()
	cmd := exec.Command("podman", "system", "service", "--time=0", "unix://"+socket)
	if _, err := os.Stat("/sys/fs/cgroup/unified"); err == nil {
		// Hosts with both cgroup versions need runc; with a found service
		// that is its owner's to say.
		cmd.Args = slices.Insert(cmd.Args, 1, "--runtime", "runc")
	}
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "PODMAN_IGNORE_CGROUPSV1_WARNING=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	require.NoError(d.t, cmd.Start())
	d.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(d.t, func() bool {
		_, err := os.Stat(socket)
		return err == nil
	}, 30*time.Second, 10*time.Millisecond)
	return cmd
}

// TestFoundServiceKilled kills somebody else's service in the middle of a run,
// and starts it again.
func TestFoundServiceKilled(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		if target.URL != "" {
			t.Skip("this engine's service can't be started again from here")
		}
		d := newDesk(t, target)
		socket := filepath.Join(shortDir(t), "found.sock")
		url := "unix://" + socket
		d.found(socket)
		r := d.start("run", "--jobs", "1", "--format", "csv", "--url", url)
		_, ok := r.step(5)
		require.True(t, ok, r.shown())
		id := d.runID()
		require.NoError(t, syscall.Kill(serviceOf(t, socket), syscall.SIGKILL))
		res := r.end(t)
		require.Equal(t, exitUnknown, res.code, res.stderr)
		requireUnknownNeverLost(t, res.stdout)
		require.Contains(t, res.stderr, "lab: hint: lab clean")

		down := d.lab("clean")
		require.Equal(t, exitUnknown, down.code, down.stdout+down.stderr)
		require.Contains(t, down.stderr, "lab: error: run "+id+": podman does not answer at "+url)
		require.Contains(t, down.stderr, "lab: hint: ")
		require.DirExists(t, filepath.Join(d.state, "runs", id), "what it left is still known")

		require.NoError(t, os.Remove(socket))
		d.found(socket)
		back := d.lab("clean")
		require.Zero(t, back.code, back.stdout+back.stderr)
		d.requireNothingLeft(id, back.stdout+back.stderr)
	})
}

// TestSecondInterruptQuits: whoever presses Ctrl-C twice waits no longer, and
// is told what is left.
func TestSecondInterruptQuits(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		d := newDesk(t, target)
		r := d.start("run", "--jobs", "1")
		_, ok := r.step(13)
		require.True(t, ok)
		id := d.runID()
		// Stopped, the service answers nobody: the cleanup can't be done
		// before the second signal.
		pid := 0
		if target.URL == "" {
			pid = serviceOf(t, id)
			require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
			defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
		}
		require.NoError(t, r.cmd.Process.Signal(syscall.SIGINT))
		for !strings.Contains(r.shown(), "interrupt again") {
			<-r.news
		}
		began := time.Now()
		require.NoError(t, r.cmd.Process.Signal(syscall.SIGINT))
		res := r.end(t)
		require.Equal(t, exitInterrupted, res.code)
		if target.URL == "" {
			require.Contains(t, res.stderr, "lab: error: quit before the cleanup was done")
			require.Contains(t, res.stderr, "lab: left: container lab-"+id+"-2-app")
			require.Contains(t, res.stderr, "lab: left: volume lab-"+id+"-2-mydata")
			require.Contains(t, res.stderr, "lab: hint: lab clean")
			require.Less(t, time.Since(began), 3*time.Second)
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
		clean := d.lab("clean")
		require.Zero(t, clean.code, clean.stdout+clean.stderr)
		d.requireNothingLeft(id, clean.stdout+clean.stderr)
	})
}

// TestRunAgainAndAgain: the same verdicts each time, and nothing left.
func TestRunAgainAndAgain(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		d := newDesk(t, target)
		b := d.standBy()
		runs := 2
		if enginetest.Long() {
			runs = 50
		}
		var first []experiment.Verdict
		for i := range runs {
			res := d.lab("run", "--format", "json")
			require.Zero(t, res.code, "run %d: %s%s", i, res.stdout, res.stderr)
			require.Empty(t, res.stderr)
			rep, err := report.Read(strings.NewReader(res.stdout))
			require.NoError(t, err)
			if i == 0 {
				first = rep.Results
				require.Len(t, first, 18)
			}
			require.Equal(t, first, rep.Results, "run %d", i)
			d.requireNothingLeft(rep.Records[0].RunID, "")
		}
		b.requireUntouched("")
	})
}

// TestTwoLabsAtOnce: labs that begin, run and clean up in one state folder do
// not get in each other's way.
func TestTwoLabsAtOnce(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		d := newDesk(t, target)
		var wg sync.WaitGroup
		results := make([]result, 3)
		for i := range results {
			wg.Add(1)
			cmd := d.command("run", "--format", "csv")
			if i == 2 {
				cmd = d.command("clean")
			}
			go func() {
				defer wg.Done()
				out, err := cmd.Output()
				results[i] = result{code: cmd.ProcessState.ExitCode(), stdout: string(out)}
				if exit, ok := err.(*exec.ExitError); ok {
					results[i].stderr = string(exit.Stderr)
				}
			}()
		}
		wg.Wait()
		for _, r := range results {
			require.Zero(t, r.code, r.stdout+r.stderr)
		}
		require.Equal(t, results[0].stdout, results[1].stdout)
		require.Equal(t, "nothing to remove\n", results[2].stdout)
	})
}

// TestKeepAndClean: what was kept stays until it is cleaned away, and cleaning
// takes nothing else.
func TestKeepAndClean(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		d := newDesk(t, target)
		b := d.standBy()
		res := d.lab("run", "--keep")
		require.Zero(t, res.code, res.stdout+res.stderr)
		id := d.runID()
		require.Contains(t, res.stderr, "podman ps -a --filter label=lab.run="+id)
		require.Contains(t, res.stderr, "lab: hint: lab clean")
		require.Len(t, d.containersOf(id), 3)
		note, err := os.ReadFile(filepath.Join(d.state, "runs", id, "3", "appdata", "note.txt"))
		if !target.Rootless() {
			require.NoError(t, err)
			require.NotEmpty(t, note)
		}

		res = d.lab("run")
		require.Zero(t, res.code, res.stdout+res.stderr)
		require.Len(t, d.containersOf(id), 3, "another run takes away what was kept")

		// Somebody else's things in the lab's folder.
		precious := filepath.Join(d.state, "runs", "precious")
		require.NoError(t, os.Mkdir(precious, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(precious, "lock"), nil, 0o600))
		link := filepath.Join(d.state, "runs", "0123abcd")
		require.NoError(t, os.Symlink(precious, link))

		clean := d.lab("clean")
		require.Zero(t, clean.code, clean.stdout+clean.stderr)
		require.Contains(t, clean.stdout, "removed run "+id+"\n")
		require.FileExists(t, filepath.Join(precious, "lock"))
		require.NoError(t, os.RemoveAll(precious))
		require.NoError(t, os.Remove(link))
		d.requireNothingLeft(id, clean.stdout)
		b.requireUntouched(clean.stdout)
		require.Equal(t, "nothing to remove\n", d.lab("clean").stdout)
	})
}

func (d *desk) containersOf(id string) (names []string) {
	found, err := d.eng.Labelled(d.t.Context(), experiment.RunLabel)
	require.NoError(d.t, err)
	for _, o := range found {
		if o.Kind == "container" && o.Label == id {
			names = append(names, o.Name)
		}
	}
	return names
}

// TestCleanRemovesOnlyWhatIsItsOwn: a ledger and a label are claims; what has
// neither the dead run's name nor its ledger's line stays.
func TestCleanRemovesOnlyWhatIsItsOwn(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		d := newDesk(t, target)
		ctx := t.Context()
		const id = "ab12cd34"
		folder := filepath.Join(d.state, "runs", id)
		require.NoError(t, os.MkdirAll(folder, 0o755))
		info := fmt.Sprintf(`{"id":%q,"url":%q,"service":%t}`, id, target.URL, target.URL == "")
		require.NoError(t, os.WriteFile(filepath.Join(folder, "run.json"), []byte(info), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "lock"), nil, 0o600))
		ledger := `{"kind":"volume","name":"lab-ab12cd34-1-listed"}` + "\n" + `{"kind":"volume","name":"lab-ab12cd34-1-to`
		require.NoError(t, os.WriteFile(filepath.Join(folder, "made.jsonl"), []byte(ledger), 0o600))

		label := map[string]string{experiment.RunLabel: id}
		volumes := map[string]map[string]string{
			"lab-ab12cd34-1-listed":  nil,
			"lab-ab12cd34-1-listed2": nil, // what the listed one's name is a prefix of
			"lab-ab12cd34-1-label":   label,
			"of-a-person-e":          label,
			"lab-ab12cd35-1-other":   {experiment.RunLabel: "ab12cd35"},
		}
		for name, labels := range volumes {
			require.NoError(t, d.eng.CreateVolume(ctx, engine.VolumeSpec{Name: name, Labels: labels}))
			t.Cleanup(func() { _ = d.eng.RemoveVolume(context.Background(), name, false) })
		}
		clean := d.lab("clean")
		require.Zero(t, clean.code, clean.stdout+clean.stderr)
		require.NoDirExists(t, folder)
		var there []string
		for name := range volumes {
			if _, err := d.eng.InspectVolume(ctx, name); err == nil {
				there = append(there, name)
			}
		}
		require.ElementsMatch(t, []string{"lab-ab12cd34-1-listed2", "of-a-person-e", "lab-ab12cd35-1-other"}, there)
	})
}
