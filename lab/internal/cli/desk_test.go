package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"persistencelab/bindings"
	"persistencelab/lab/engine"
	"persistencelab/lab/engine/enginetest"
	"persistencelab/lab/internal/experiment"
)

// desk is a place to run the lab as a process on one engine, with a state
// folder of its own.
type desk struct {
	t      *testing.T
	target enginetest.Target
	state  string
	cache  string
	eng    *bindings.Podman // to look at what the lab did
}

func newDesk(t *testing.T, target enginetest.Target) *desk {
	t.Helper()
	d := &desk{t: t, target: target, state: enginetest.StateDir(t), cache: t.TempDir()}
	img, err := imageMaker()(nil)
	require.NoError(t, err)
	d.eng, err = bindings.Dial(t.Context(), bindings.Options{
		URL: target.URL, Getenv: os.Getenv, UID: os.Getuid(), RunDir: shortDir(t), CacheDir: d.cache, Image: img,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.eng.Close()) })
	require.NoError(t, d.eng.EnsureImage(t.Context(), img))
	return d
}

// shortDir is a folder whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lab")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// command is the lab with the target's engine. Its own name comes first.
func (d *desk) command(args ...string) *exec.Cmd {
	cmd := exec.Command("lab", args...)
	if d.target.URL != "" {
		cmd.Args = append(cmd.Args, "--url", d.target.URL)
	}
	cmd.Env = append(os.Environ(), "LAB_STATE_DIR="+d.state, "LAB_CACHE_DIR="+d.cache, "NO_COLOR=1", "TERM=xterm")
	return cmd
}

// result is how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

func (d *desk) lab(args ...string) result {
	d.t.Helper()
	return finished(d.t, d.command(args...))
}

func finished(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// running is a lab at work on a terminal: what it shows there tells which step
// of which variant begins.
type running struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	done   chan struct{} // it has ended

	mu     sync.Mutex
	screen bytes.Buffer
	news   chan struct{}
}

// start starts the lab with a terminal for its stderr.
func (d *desk) start(args ...string) *running {
	d.t.Helper()
	terminal, screen, err := pty.Open()
	require.NoError(d.t, err)
	r := &running{cmd: d.command(args...), done: make(chan struct{}), news: make(chan struct{}, 1)}
	r.cmd.Stdout, r.cmd.Stderr = &r.stdout, screen
	require.NoError(d.t, r.cmd.Start())
	screen.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		b := make([]byte, 4096)
		for {
			n, err := terminal.Read(b)
			r.mu.Lock()
			r.screen.Write(b[:n])
			r.mu.Unlock()
			select {
			case r.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	go func() {
		_ = r.cmd.Wait()
		<-read
		close(r.done)
	}()
	d.t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.done
		terminal.Close()
	})
	return r
}

func (r *running) shown() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.screen.String()
}

var progressLine = regexp.MustCompile(`\[\d+/\d+\] ([^\r\x1b]*)`)

// step waits until step n (from 1) of the run begins and gives what the screen
// calls it; false when the run ends before.
func (r *running) step(n int) (string, bool) {
	for {
		if m := progressLine.FindAllStringSubmatch(r.shown(), -1); len(m) >= n {
			return strings.TrimSpace(m[n-1][1]), true
		}
		select {
		case <-r.news:
		case <-r.done:
			return "", false
		}
	}
}

// end waits until the lab has ended by itself.
func (r *running) end(t *testing.T) result {
	t.Helper()
	select {
	case <-r.done:
	case <-time.After(60 * time.Second):
		t.Fatalf("the lab does not end; it showed:\n%s", r.shown())
	}
	return result{r.cmd.ProcessState.ExitCode(), r.stdout.String(), r.shown()}
}

// runID is the id of the one run in the state folder.
func (d *desk) runID() string {
	d.t.Helper()
	entries, err := os.ReadDir(filepath.Join(d.state, "runs"))
	require.NoError(d.t, err)
	require.Len(d.t, entries, 1)
	return entries[0].Name()
}

// requireNothingLeft looks for whatever a run can leave behind.
func (d *desk) requireNothingLeft(id string, hint string) {
	d.t.Helper()
	// Podman's own cleanup processes may take their time.
	for deadline := time.Now().Add(20 * time.Second); len(d.leftOf(id)) > 0 && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	require.Empty(d.t, d.leftOf(id), hint)
}

func (d *desk) leftOf(id string) []string {
	d.t.Helper()
	var left []string
	found, err := d.eng.Labelled(d.t.Context(), experiment.RunLabel)
	require.NoError(d.t, err)
	for _, o := range found {
		if strings.Contains(o.Name, id) || o.Label == id {
			left = append(left, o.Kind+" "+o.Name)
		}
	}
	// Volumes that Podman made by itself carry no label.
	for n := 1; n <= 3; n++ {
		for _, volume := range []string{"mydata", "web-scratch"} {
			name := fmt.Sprintf("lab-%s-%d-%s", id, n, volume)
			if _, err := d.eng.InspectVolume(d.t.Context(), name); err == nil {
				left = append(left, "volume "+name)
			}
		}
	}
	folders, _ := filepath.Glob(filepath.Join(d.state, "runs", "*"))
	left = append(left, folders...)
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(d.t, err)
	if strings.Contains(string(mounts), id) {
		left = append(left, "a mount")
	}
	// The service, and conmon, which has the container's name.
	for i := 0; ; i++ {
		pids := processesOf(id)
		if len(pids) == 0 {
			return left
		}
		if i == 50 { // a process on its way out has a second
			return append(left, fmt.Sprintf("processes %v", pids))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// processesOf are the processes with the word in their arguments.
func processesOf(word string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		// Podman's monitor of a command that was run in a container stays for
		// five minutes after it, when a rootless podman has no means to end it.
		if bytes.Contains(b, []byte(word)) && !bytes.Contains(b, []byte("--exit-delay")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// bystanders are a container and a volume that are nobody's of the lab's; the
// volume has the name that three-mounts uses.
type bystanders struct {
	d         *desk
	container engine.Container
	volume    engine.Volume
}

func (d *desk) standBy() *bystanders {
	d.t.Helper()
	ctx := d.t.Context()
	img, err := imageMaker()(nil)
	require.NoError(d.t, err)
	const volume, container = "mydata", "bystander-of-lab-tests"
	require.NoError(d.t, d.eng.CreateVolume(ctx, engine.VolumeSpec{Name: volume}))
	d.t.Cleanup(func() { require.NoError(d.t, d.eng.RemoveVolume(context.Background(), volume, false)) })
	id, err := d.eng.Create(ctx, engine.ContainerSpec{
		Name: container, Image: img.Ref, Mounts: []engine.Mount{{Kind: "volume", Source: volume, Target: "/var/lib/app"}},
	})
	require.NoError(d.t, err)
	d.t.Cleanup(func() {
		require.NoError(d.t, d.eng.Remove(context.Background(), container, engine.RemoveOptions{Force: true}))
	})
	require.NoError(d.t, d.eng.Start(ctx, id))
	b := &bystanders{d: d}
	b.container, err = d.eng.Inspect(ctx, id)
	require.NoError(d.t, err)
	b.volume, err = d.eng.InspectVolume(ctx, volume)
	require.NoError(d.t, err)
	return b
}

func (b *bystanders) requireUntouched(hint string) {
	b.d.t.Helper()
	c, err := b.d.eng.Inspect(b.d.t.Context(), b.container.Name)
	require.NoError(b.d.t, err, hint)
	require.Equal(b.d.t, b.container, c, hint)
	v, err := b.d.eng.InspectVolume(b.d.t.Context(), b.volume.Name)
	require.NoError(b.d.t, err, hint)
	require.Equal(b.d.t, b.volume, v, hint)
}

// stepsOfThreeMounts is how many steps its three variants have together.
func stepsOfThreeMounts(t *testing.T) int {
	list, err := loadScenarios([]string{defaultScenario}, false, nil)
	require.NoError(t, err)
	n := 0
	for _, v := range list[0].Variants {
		n += len(v.Steps)
	}
	return n
}

var signals = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL}

// TestSignalAtEveryStep ends the lab in every way at every step of every
// variant: at its beginning, and later and later within it. Without
// LAB_TEST_LONG each engine has a third of the steps, each with one of the
// signals, so that together they have all steps, and all signals at each verb.
func TestSignalAtEveryStep(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		d := newDesk(t, target)
		b := d.standBy()
		share := 0
		switch {
		case target.Rootless():
			share = 1
		case !strings.HasPrefix(target.Name, "podman-4."):
			share = 2
		}
		steps := stepsOfThreeMounts(t)
		variant := steps / 3 // as many steps as each has
		for n := 1; n <= steps; n++ {
			for i, s := range signals {
				if !enginetest.Long() && ((n+share)%3 != 0 || ((n-1)/variant*2+n)%len(signals) != i) {
					continue
				}
				d.endAt(b, n, time.Duration(n*13%50)*time.Millisecond, s)
			}
		}
		_, more := d.endAt(b, steps+1, 0, syscall.SIGINT)
		require.False(t, more, "the run has more steps than were tried")
	})
}

// endAt ends a run with a signal a while after step n has begun.
func (d *desk) endAt(b *bystanders, n int, later time.Duration, s syscall.Signal, scenario ...string) (result, bool) {
	d.t.Helper()
	r := d.start(append([]string{"run", "--jobs", "1"}, scenario...)...)
	what, more := r.step(n)
	if !more {
		return r.end(d.t), false
	}
	id := d.runID()
	time.Sleep(later)
	err := r.cmd.Process.Signal(s)
	res := r.end(d.t)
	hint := fmt.Sprintf("%s after step %d (%s); it said:\n%s\n%s", s, n, what, res.stdout, res.stderr)
	if errors.Is(err, os.ErrProcessDone) { // the run was sooner
		require.Zero(d.t, res.code, hint)
	} else if require.NoError(d.t, err); s == syscall.SIGKILL {
		clean := d.lab("clean")
		require.Zero(d.t, clean.code, "%s\nclean: %s%s", hint, clean.stdout, clean.stderr)
		hint += "\nclean: " + clean.stdout + clean.stderr
	} else {
		require.Equal(d.t, exitInterrupted, res.code, hint)
		require.NotContains(d.t, res.stderr, "not removed", hint)
	}
	d.requireNothingLeft(id, hint)
	b.requireUntouched(hint)
	return res, true
}
