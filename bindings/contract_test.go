package bindings

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/lab/engine/enginetest"
	"persistencelab/probeimage/image"
)

func probe(t *testing.T) engine.Image {
	t.Helper()
	ref, archive, err := image.Build(image.Spec{Arch: runtime.GOARCH})
	require.NoError(t, err)
	return engine.Image{Ref: ref, Archive: archive}
}

// shortDir is a folder whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lab")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

func dial(t *testing.T, target enginetest.Target) *Podman {
	t.Helper()
	p, err := Dial(t.Context(), Options{
		URL: target.URL, Getenv: os.Getenv, UID: os.Getuid(), RunDir: shortDir(t), Image: probe(t),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func TestContract(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		enginetest.Contract(t, dial(t, target), probe(t))
	})
}

// TestServiceGone: when the service is gone, every call says so by type and
// soon, and Close still works.
func TestServiceGone(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		if target.URL != "" {
			t.Skip("this engine's service is not ours to kill")
		}
		p := dial(t, target)
		require.NoError(t, syscall.Kill(-p.service.cmd.Process.Pid, syscall.SIGKILL))
		<-p.service.done
		ctx := t.Context()
		for what, call := range map[string]func() error{
			"inspect":        func() error { _, err := p.Inspect(ctx, "none"); return err },
			"create":         func() error { _, err := p.Create(ctx, engine.ContainerSpec{Image: "none"}); return err },
			"attach":         func() error { _, err := p.Attach(ctx, "none"); return err },
			"remove":         func() error { return p.Remove(ctx, "none", engine.RemoveOptions{Force: true}) },
			"inspect volume": func() error { _, err := p.InspectVolume(ctx, "none"); return err },
			"create volume":  func() error { return p.CreateVolume(ctx, engine.VolumeSpec{Name: "none"}) },
			"image":          func() error { return p.EnsureImage(ctx, probe(t)) },
			"labelled":       func() error { _, err := p.Labelled(ctx, "lab.run"); return err },
		} {
			began := time.Now()
			err := call()
			var down *engine.UnreachableError
			require.ErrorAs(t, err, &down, what)
			require.Equal(t, p.url, down.URL)
			require.Less(t, time.Since(began), 5*time.Second, what)
		}
	})
}

// TestServiceEndsWithItsLab: nothing of the lab's own service is left. What is
// left when the lab is killed the command line's tests look for.
func TestServiceEndsWithItsLab(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		if target.URL != "" {
			t.Skip("this engine's service is not the lab's own")
		}
		p := dial(t, target)
		require.NotEmpty(t, servicesAt(p.url))
		require.NoError(t, p.Close())
		require.Empty(t, servicesAt(p.url))
		require.NoFileExists(t, strings.TrimPrefix(p.url, "unix://"))
		require.NoError(t, p.Close(), "closing twice is closing")
	})
}

// TestPrunesAreClosed: on a store that is not the lab's own, nothing is asked
// of the service that would touch what others made. (This Podman has no
// connection: asking would panic.)
func TestPrunesAreClosed(t *testing.T) {
	p := &Podman{}
	require.ErrorIs(t, p.PruneContainers(t.Context()), errNotOwn)
	require.ErrorIs(t, p.PruneVolumes(t.Context()), errNotOwn)
	require.ErrorIs(t, p.PruneSystem(t.Context(), true), errNotOwn)
	require.ErrorIs(t, p.RestartService(t.Context()), errNotOwn)
}

// TestOnlyBindingsImportsPodman: everything else builds without Podman's build
// tags and its five hundred packages. Tests may reach Podman through bindings.
func TestOnlyBindingsImportsPodman(t *testing.T) {
	if _, err := os.Stat("../go.mod"); err != nil {
		t.Skip("the module's source is not here")
	}
	if os.Getenv("LAB_TEST_ENGINES") != "" {
		t.Skip("no engine is involved: this runs once, not for each")
	}
	list := exec.Command("go", "list", "-tags", "remote,containers_image_openpgp", "-f",
		`{{.ImportPath}}|{{join .Imports " "}}|{{join .TestImports " "}} {{join .XTestImports " "}}`, "../...")
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	require.NoError(t, err, stderr.String())
	// Those whose business is to reach Podman, by importing bindings.
	users := []string{"persistencelab/bindings", "persistencelab/lab", "persistencelab/lab/internal/cli"}
	seen := 0
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		require.Len(t, parts, 3)
		pkg, imports, inTests := parts[0], strings.Fields(parts[1]), strings.Fields(parts[2])
		seen++
		for _, imported := range slices.Concat(imports, inTests) {
			if isPodman(imported) && pkg != "persistencelab/bindings" {
				t.Errorf("%s → %s: only persistencelab/bindings imports Podman", pkg, imported)
			}
		}
		if slices.Contains(imports, "persistencelab/bindings") && !slices.Contains(users, pkg) {
			t.Errorf("%s → persistencelab/bindings → podman: only the command line reaches Podman", pkg)
		}
	}
	require.Greater(t, seen, 10)
}

func isPodman(path string) bool {
	for _, prefix := range []string{"github.com/containers/", "go.podman.io/", "github.com/opencontainers/"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
