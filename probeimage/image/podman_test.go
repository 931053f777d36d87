//go:build linux

package image

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOnPodman loads and runs the image on real Podman, as a person would. It
// fails where Podman is missing, unless LAB_NO_PODMAN is set.
func TestOnPodman(t *testing.T) {
	if os.Getenv("LAB_NO_PODMAN") != "" {
		t.Skip("LAB_NO_PODMAN is set")
	}
	plain := load(t, Spec{Arch: arch(t)})
	p := podman(t, plain)
	t.Run("the image runs", func(t *testing.T) { testRuns(t, p, plain) })
	t.Run("a restart policy answers a crash", func(t *testing.T) { testCrash(t, p, plain) })
	t.Run("a shared network is no shared socket", func(t *testing.T) { testSharedNetwork(t, p, plain) })
	t.Run("what a spec adds is there", func(t *testing.T) { testSpec(t, p) })
	t.Run("the Containerfile makes the same", func(t *testing.T) { testContainerfile(t, p, plain) })
}

// podmanCLI runs podman commands on this host.
type podmanCLI struct {
	global, run []string // flags without which no container starts here
}

func (p podmanCLI) try(t *testing.T, args ...string) (string, error) {
	t.Helper()
	all := append([]string{}, p.global...)
	all = append(all, args[0])
	if args[0] == "run" {
		all = append(all, p.run...)
	}
	cmd := exec.Command("podman", append(all, args[1:]...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("podman %s: %w: %s", strings.Join(cmd.Args[1:], " "), err, errs.String())
	}
	return string(out), err
}

func (p podmanCLI) do(t *testing.T, args ...string) string {
	t.Helper()
	out, err := p.try(t, args...)
	require.NoError(t, err)
	return out
}

// podman finds out how containers start on this host; some refuse the default
// runtime or ulimits.
func podman(t *testing.T, image string) podmanCLI {
	t.Helper()
	var failed []error
	for _, p := range []podmanCLI{
		{},
		{run: []string{"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"}},
		{global: []string{"--runtime", "runc"}, run: []string{"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"}},
	} {
		_, err := p.try(t, "run", "--rm", "--network", "none", image, "help")
		if err == nil {
			return p
		}
		failed = append(failed, err)
	}
	t.Fatalf("no container starts here (LAB_NO_PODMAN=1 leaves these tests out): %v", failed)
	return podmanCLI{}
}

func load(t *testing.T, spec Spec) (ref string) {
	t.Helper()
	spec.Tag = fmt.Sprintf("localhost/lab-test-image:%d-%d", os.Getpid(), time.Now().UnixNano())
	_, archive := build(t, spec)
	file := filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, os.WriteFile(file, archive, 0o600))
	podmanCLI{}.do(t, "load", "-q", "-i", file)
	t.Cleanup(func() { podmanCLI{}.do(t, "rmi", spec.Tag) })
	return spec.Tag
}

// startContainer runs a container and gives its name; it goes with the test.
func startContainer(t *testing.T, p podmanCLI, args ...string) string {
	t.Helper()
	name := fmt.Sprintf("lab-test-image-%d-%d", os.Getpid(), time.Now().UnixNano())
	p.do(t, append([]string{"run", "-d", "-i", "--name", name}, args...)...)
	t.Cleanup(func() { p.do(t, "rm", "-f", "-t", "0", "-v", name) })
	return name
}

// arch is this machine's: the tests run what they build.
func arch(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOARCH").Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

func testRuns(t *testing.T, p podmanCLI, image string) {
	name := startContainer(t, p, "--network", "none", image)
	for _, step := range []struct{ args, want string }{
		{"write note file /var/lib/app/note.txt n1", "note: written\n"},
		{"write rows sqlite /var/lib/app/app.db n1 --rows 3", "rows: written\n"},
		{"write seen memory visits n1", "seen: written\n"},
		{"read seen memory visits n1", "seen: survived\n"},
	} {
		require.Equal(t, step.want, p.do(t, append([]string{"exec", name, "/probe"}, strings.Fields(step.args)...)...))
	}
	begin := time.Now()
	p.do(t, "stop", "-t", "8", name)
	require.Less(t, time.Since(begin), 5*time.Second, "SIGTERM is answered at once")
	require.Equal(t, "0\n", p.do(t, "inspect", "-f", "{{.State.ExitCode}}", name))
	p.do(t, "start", name)
	for _, step := range []struct{ args, want string }{
		{"read note file /var/lib/app/note.txt n1", "note: survived\n"},
		{"read rows sqlite /var/lib/app/app.db n1 --rows 3", "rows: survived\n"},
		{"read seen memory visits n1", "seen: lost (process 1 does not know it)\n"},
	} {
		require.Equal(t, step.want, p.do(t, append([]string{"exec", name, "/probe"}, strings.Fields(step.args)...)...))
	}

	pid := strings.TrimSpace(p.do(t, "inspect", "-f", "{{.State.Pid}}", name))
	status, err := os.ReadFile("/proc/" + pid + "/status")
	require.NoError(t, err)
	var rss int
	for _, line := range strings.Split(string(status), "\n") {
		fmt.Sscanf(line, "VmHWM: %d kB", &rss)
	}
	require.NotZero(t, rss)
	require.Less(t, rss, 12<<10, "memory, KiB, SQLite read included")
}

func testCrash(t *testing.T, p podmanCLI, image string) {
	name := startContainer(t, p, "--network", "none", "--restart", "on-failure:3", image)
	instance := func() string {
		out, _ := p.try(t, "exec", name, "/probe", "hello")
		var hello struct{ Instance string }
		json.Unmarshal([]byte(out), &hello)
		return hello.Instance
	}
	first := instance()
	require.NotEmpty(t, first)
	pid := strings.TrimSpace(p.do(t, "inspect", "-f", "{{.State.Pid}}", name))
	// Not `podman kill`, which counts as the user's wish to stop.
	require.NoError(t, exec.Command("kill", "-USR2", pid).Run())
	require.Eventually(t, func() bool {
		now := instance()
		return now != "" && now != first
	}, 20*time.Second, 100*time.Millisecond)
	require.Equal(t, "1\n", p.do(t, "inspect", "-f", "{{.RestartCount}}", name))
}

func testSharedNetwork(t *testing.T, p podmanCLI, image string) {
	one := startContainer(t, p, "--network", "none", image)
	two := startContainer(t, p, "--network", "container:"+one, image)
	require.Equal(t, "seen: written\n", p.do(t, "exec", one, "/probe", "write", "seen", "memory", "visits", "n"))
	require.Equal(t, "seen: survived\n", p.do(t, "exec", one, "/probe", "read", "seen", "memory", "visits", "n"))
	require.Equal(t, "seen: lost (process 1 does not know it)\n", p.do(t, "exec", two, "/probe", "read", "seen", "memory", "visits", "n"))
}

func testSpec(t *testing.T, p podmanCLI) {
	image := load(t, Spec{
		Arch:    arch(t),
		Files:   map[string]string{"/srv/app/config": "colour = blue\n"},
		Volumes: []string{"/data"},
		User:    "1000:1000",
		Labels:  map[string]string{"lab.test": "yes"},
		Env:     map[string]string{"COLOUR": "blue"},
	})
	name := startContainer(t, p, "--network", "none", image)
	inspect := func(format string) string {
		return strings.TrimSpace(p.do(t, "inspect", "-f", format, name))
	}
	require.Equal(t, "1000:1000", inspect("{{.Config.User}}"))
	require.Equal(t, "yes", inspect(`{{index .Config.Labels "lab.test"}}`))
	require.Contains(t, inspect("{{.Config.Env}}"), "COLOUR=blue")
	require.Equal(t, "/data", inspect("{{range .Mounts}}{{.Destination}}{{end}}"), "an anonymous volume for VOLUME")
	require.Contains(t, p.do(t, "exec", name, "/probe", "hello"), `"uid": 1000`)
	require.Equal(t, "seed: there\n", p.do(t, "exec", name, "/probe", "read", "seed", "file", "/srv/app/config"))
	require.Equal(t, "note: written\n", p.do(t, "exec", name, "/probe", "write", "note", "file", "/tmp/note", "n"))
	require.Equal(t, "note: refused (permission denied)\n", p.do(t, "exec", name, "/probe", "write", "note", "file", "/note", "n"))
}

// testContainerfile needs ./scripts/probe to have run, as the embedded probe
// does.
func testContainerfile(t *testing.T, p podmanCLI, ours string) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	theirs := fmt.Sprintf("localhost/lab-test-containerfile:%d-%d", os.Getpid(), time.Now().UnixNano())
	p.do(t, "build", "-q", "--layers=false", "-t", theirs, "-f", filepath.Join(root, "Containerfile"), root)
	t.Cleanup(func() { p.do(t, "rmi", theirs) })

	config := "{{.Architecture}} {{.Os}} {{.Config.Entrypoint}} {{.Config.Cmd}} {{.Config.StopSignal}} {{.Config.User}} {{.Config.Volumes}} {{.Config.WorkingDir}}"
	require.Equal(t, p.do(t, "image", "inspect", "-f", config, ours), p.do(t, "image", "inspect", "-f", config, theirs))

	files := func(image string) map[string]string {
		name := fmt.Sprintf("lab-test-image-%d-%d", os.Getpid(), time.Now().UnixNano())
		p.do(t, "create", "--name", name, image)
		defer p.do(t, "rm", name)
		content, headers := entries(t, []byte(p.do(t, "export", name)))
		found := map[string]string{}
		for path, h := range headers {
			found[path] = fmt.Sprintf("%c %o %d:%d %d %x", h.Typeflag, h.Mode, h.Uid, h.Gid, h.Size, content[path][:min(len(content[path]), 1<<20)])
		}
		return found
	}
	a, b := files(ours), files(theirs)
	require.Contains(t, a, "probe")
	require.Equal(t, len(a), len(b))
	for path := range a {
		require.True(t, a[path] == b[path], "%s differs: %.60s, %.60s", path, a[path], b[path])
	}
	name := startContainer(t, p, "--network", "none", theirs)
	require.Equal(t, "note: written\n", p.do(t, "exec", name, "/probe", "write", "note", "file", "/var/lib/app/note.txt", "n"))
}
