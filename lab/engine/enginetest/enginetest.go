// Package enginetest tells tests which engines to run on, and holds the
// contract that every engine.Engine must keep.
package enginetest

import (
	"os"
	"strings"
	"testing"
)

// Target is an engine to test on.
type Target struct {
	Name string // podman-4.3.1-rootless
	URL  string // "": found as the lab finds it
}

// Rootless tells whether the target is a plain user's.
func (t Target) Rootless() bool { return strings.HasSuffix(t.Name, "-rootless") }

// Long tells whether the longer sweeps are wanted.
func Long() bool { return os.Getenv("LAB_TEST_LONG") != "" }

// Each runs f once for each engine that LAB_TEST_ENGINES names (name=url, with
// spaces between). Without any it skips, visibly; where Podman was promised,
// that is a failure.
func Each(t *testing.T, f func(t *testing.T, target Target)) {
	t.Helper()
	list := strings.Fields(os.Getenv("LAB_TEST_ENGINES"))
	if len(list) == 0 {
		if os.Getenv("LAB_TEST_REQUIRE_PODMAN") != "" {
			t.Fatal("LAB_TEST_REQUIRE_PODMAN is set, but LAB_TEST_ENGINES names no engine")
		}
		t.Skip("no engine: set LAB_TEST_ENGINES (see CONTRIBUTING.md)")
	}
	for _, entry := range list {
		name, url, _ := strings.Cut(entry, "=")
		t.Run(name, func(t *testing.T) { f(t, Target{Name: name, URL: url}) })
	}
}

// StateDir is a fresh folder that both the engine and this process see at the
// same path, removed when the test ends.
func StateDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("LAB_STATE_DIR"), "test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	// Containers of any user look for their mounts below it.
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
