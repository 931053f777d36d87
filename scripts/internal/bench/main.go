// Bench measures the lab on real Podman, in one run, against what one would
// use instead. Run it by scripts/bench, which builds what it needs.
//
// The work is the built-in scenario three-mounts, done in turn, round after
// round, so that a busy moment of the machine meets all of them:
//
//	(a)  bin/lab run three-mounts, on a service that is up
//	(a') the same, where the lab has to start the service itself
//	(b)  scripts/bench-shell: a careful person's script around the podman command
//	(c)  bin/rest: the bare REST calls for the same containers, on the same
//	     service and as many at a time; the floor
//
// It prints medians and the ratios a/b and a/c with their targets, the
// start-up time of `lab list`, peak memory, and time and memory for scenarios
// of 10, 40 and 160 variants. With -catalogue it does the same with the whole
// catalogue, and shows what it costs twice and four times over. Last comes the
// class table of 10,000 attempts, beside jq counting the same files; -rounds 0
// is that alone. Times are wall clock where nothing else is said; a missed
// target is said, and is not an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 10, "rounds of (a), (a'), (b), (c); 0: only the class table")
	jobs := flag.Int("jobs", 3, "variants at a time, for (a) and (c)")
	sizes := flag.String("variants", "10,40,160", "also run scenarios of this many variants; empty: none")
	lessons := flag.Int("catalogue", 0, "rounds of the whole catalogue, which take minutes; 0: none")
	attempts := flag.Int("attempts", 10_000, "attempts for the class table; 0: no table")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if *rounds != 0 {
		err = bench(ctx, os.Stdout, *rounds, *jobs, *sizes, *lessons)
	}
	if err == nil && *attempts > 0 {
		err = benchTable(ctx, os.Stdout, *attempts)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: error: %v\n", err)
		os.Exit(1)
	}
}

// podman is how Podman has to be called on this host.
type podman struct {
	global []string // before the verb
	run    []string // after run
}

// ways are tried in order; a healthy host takes the first.
func ways() []podman {
	ulimits := []string{"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"}
	runc := []string{"--runtime", "runc"}
	return []podman{{}, {run: ulimits}, {global: runc}, {runc, ulimits}}
}

func bench(ctx context.Context, w io.Writer, rounds, jobs int, sizes string, lessons int) error {
	if rounds < 1 || jobs < 1 {
		return errors.New("-rounds and -jobs count from 1")
	}
	var variants []int
	for _, s := range strings.FieldsFunc(sizes, func(r rune) bool { return r == ',' }) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return fmt.Errorf("-variants: %q is not a number of variants", s)
		}
		variants = append(variants, n)
	}
	tmp, err := os.MkdirTemp("", "lab-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	// A first run makes the image, and shows that the lab works here.
	if _, err := measure(ctx, nil, "bin/lab", "run", "three-mounts"); err != nil {
		return err
	}
	image, err := imageRef(ctx)
	if err != nil {
		return err
	}
	pod, err := findWay(ctx, image)
	if err != nil {
		return err
	}
	url, stopService, err := startService(ctx, pod, tmp)
	if err != nil {
		return err
	}
	defer stopService()
	onService := []string{"CONTAINER_HOST=" + url}
	asShell := []string{
		"IMAGE=" + image,
		"PODMAN=" + strings.Join(append([]string{"podman"}, pod.global...), " "),
		"PODMAN_RUN_FLAGS=" + strings.Join(pod.run, " "),
	}

	j := strconv.Itoa(jobs)
	works := []*work{
		{title: "a   lab run three-mounts", env: onService, command: []string{"bin/lab", "run", "--jobs", j, "three-mounts"}},
		{title: "a'  the same, starting Podman's service", command: []string{"bin/lab", "run", "--jobs", j, "three-mounts"}},
		{title: "b   shell script around podman", env: asShell, command: []string{"scripts/bench-shell"}},
		{title: "c   bare REST calls", env: onService, command: []string{"bin/rest", "-url", url, "-image", image, "-jobs", j}},
	}
	if _, err := os.Stat("bin/rest"); err != nil {
		works = works[:3]
		fmt.Fprintln(w, "no (c): scripts/internal/rest is not there")
	}
	for _, k := range works { // once unmeasured: caches, and an early error
		if _, err := k.once(ctx); err != nil {
			return err
		}
	}
	for range rounds {
		for _, k := range works {
			u, err := k.once(ctx)
			if err != nil {
				return err
			}
			k.used = append(k.used, u)
		}
	}
	list := &work{title: "    lab list", command: []string{"bin/lab", "list"}}
	for range 20 {
		u, err := list.once(ctx)
		if err != nil {
			return err
		}
		list.used = append(list.used, u)
	}

	fmt.Fprintf(w, "%d rounds, %d variants at a time, %d cpus, %s\n\n", rounds, jobs, runtime.NumCPU(), pod)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "work\tmedian\tleast\tmost\tpeak memory")
	for _, k := range append(works, list) {
		times := k.times()
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", k.title, ms(median(times)), ms(slices.Min(times)), ms(slices.Max(times)), mib(k.peak()))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	a, b := median(works[0].times()), median(works[2].times())
	target(w, "a/b", ratio(a, b), 0.30, "")
	if len(works) > 3 {
		target(w, "a/c", ratio(a, median(works[3].times())), 1.10, "")
	}
	target(w, "lab list", float64(median(list.times()).Microseconds())/1000, 30, " ms")
	if info, err := os.Stat("bin/lab"); err == nil {
		target(w, "size of bin/lab", float64(info.Size())/1e6, 45, " MB")
	}

	if lessons > 0 {
		if err := catalogue(ctx, w, tmp, lessons, j); err != nil {
			return err
		}
	}
	if len(variants) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "variants\ttime\teach\tpeak memory")
	for _, n := range variants {
		file := filepath.Join(tmp, fmt.Sprintf("many-%d.yaml", n))
		if err := os.WriteFile(file, scenario(n), 0o644); err != nil {
			return err
		}
		u, err := measure(ctx, onService, "bin/lab", "run", "--jobs", j, file)
		if err != nil {
			return err
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\n", n, ms(u.wall), ms(u.wall/time.Duration(n)), mib(u.peak))
	}
	return tw.Flush()
}

// work is one of the things compared.
type work struct {
	title   string
	env     []string // beside the caller's
	command []string
	used    []usage
}

// usage is what one process took.
type usage struct {
	wall time.Duration
	cpu  time.Duration // user and system, of the process and its waited-for children
	peak int64         // bytes, the largest of the process and its waited-for children
}

func (k *work) once(ctx context.Context) (usage, error) {
	return measure(ctx, k.env, k.command...)
}

func (k *work) times() []time.Duration {
	var t []time.Duration
	for _, u := range k.used {
		t = append(t, u.wall)
	}
	return t
}

func (k *work) cpu() []time.Duration {
	var t []time.Duration
	for _, u := range k.used {
		t = append(t, u.cpu)
	}
	return t
}

func (k *work) peak() int64 {
	var p int64
	for _, u := range k.used {
		p = max(p, u.peak)
	}
	return p
}

// measure runs a command to its end. One that fails is an error with what it
// printed: a fast failure is no figure.
func measure(ctx context.Context, env []string, command ...string) (usage, error) {
	var out strings.Builder
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it cleans up after itself
	cmd.WaitDelay = 30 * time.Second
	cmd.Env = append(withoutHost(os.Environ()), env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	err := cmd.Run()
	u := usage{wall: time.Since(start)}
	if s := cmd.ProcessState; s != nil {
		u.cpu = s.UserTime() + s.SystemTime()
	}
	if err != nil {
		return u, fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out.String())
	}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.peak = int64(r.Maxrss)
		if runtime.GOOS == "linux" { // kilobytes here, bytes on macOS
			u.peak *= 1024
		}
	}
	return u, nil
}

// withoutHost is the environment without a choice of engine: each work is
// given its own.
func withoutHost(env []string) []string {
	return slices.DeleteFunc(env, func(s string) bool {
		return strings.HasPrefix(s, "CONTAINER_HOST=") || strings.HasPrefix(s, "CONTAINER_CONNECTION=")
	})
}

// imageRef is the image the lab runs, from the commands it would type.
func imageRef(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "bin/lab", "run", "--dry-run", "three-mounts").Output()
	if err != nil {
		return "", fmt.Errorf("lab run --dry-run: %w", err)
	}
	ref := regexp.MustCompile(`localhost/persistencelab/probe:\w+`).FindString(string(out))
	if ref == "" {
		return "", errors.New("lab run --dry-run names no image")
	}
	return ref, nil
}

// findWay tries how a container starts on this host.
func findWay(ctx context.Context, image string) (podman, error) {
	name := fmt.Sprintf("bench-try-%d", os.Getpid())
	var said []byte
	for _, p := range ways() {
		args := append(slices.Clone(p.global), "run", "--detach", "--network", "none", "--name", name)
		args = append(append(args, p.run...), image)
		var err error
		said, err = exec.CommandContext(ctx, "podman", args...).CombinedOutput()
		exec.Command("podman", append(slices.Clone(p.global), "rm", "--force", "--time", "0", "--ignore", name)...).Run()
		if err == nil {
			return p, nil
		}
	}
	return podman{}, fmt.Errorf("no way found to run a container here: %s", said)
}

func (p podman) String() string {
	return strings.Join(slices.Concat([]string{"podman"}, p.global, []string{"run"}, p.run), " ")
}

// startService starts a Podman service that lives until stop.
func startService(ctx context.Context, p podman, dir string) (url string, stop func(), err error) {
	socket := filepath.Join(dir, "podman.sock")
	url = "unix://" + socket
	cmd := exec.Command("podman", append(slices.Clone(p.global), "system", "service", "--time=0", url)...)
	cmd.SysProcAttr = diesWithParent()
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}
	for range 100 {
		if exec.CommandContext(ctx, "podman", "--url", url, "version").Run() == nil {
			return url, stop, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	return "", nil, errors.New("podman system service does not answer")
}

// scenario is three-mounts with n variants, the mounts taken in turn.
func scenario(n int) []byte {
	var b strings.Builder
	b.WriteString(`version: 1
name: many
title: Many variants
about: The work of three-mounts, many times over.
question: How long does it take?
data:
  note: {file: /var/lib/app/note.txt}
  rows: {sqlite: /var/lib/app/app.db, rows: 3}
  seen: {memory: visits}
steps:
  - run
  - write: [note, rows, seen]
  - restart
  - read: after restart
  - rm
  - run
  - read: after rm and run
expect:
  after restart: {note: survived, rows: survived, seen: lost}
variants:
`)
	mounts := []string{"", "{volume: mydata, target: /var/lib/app}", "{bind: appdata, target: /var/lib/app}"}
	for i := range n {
		fmt.Fprintf(&b, "  variant %03d:\n", i+1)
		outcome := "lost"
		if m := mounts[i%len(mounts)]; m != "" {
			fmt.Fprintf(&b, "    mounts: [%s]\n", m)
			outcome = "survived"
		}
		fmt.Fprintf(&b, "    expect: {after rm and run: {note: %s, rows: %s, seen: lost}}\n", outcome, outcome)
	}
	return []byte(b.String())
}

// target prints a figure beside what it should at most be.
func target(w io.Writer, name string, is, most float64, unit string) {
	verdict := "met"
	if is > most {
		verdict = "missed"
	}
	fmt.Fprintf(w, "%-16s %.2f%s, target at most %g%s: %s\n", name, is, unit, most, unit, verdict)
}

func median(t []time.Duration) time.Duration {
	t = slices.Sorted(slices.Values(t))
	return (t[(len(t)-1)/2] + t[len(t)/2]) / 2
}

func ratio(a, b time.Duration) float64 { return a.Seconds() / b.Seconds() }

func ms(d time.Duration) string { return fmt.Sprintf("%.0f ms", float64(d.Microseconds())/1000) }

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
