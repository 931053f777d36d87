package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// labCommand is the lab as a process of its own.
func labCommand(t *testing.T, state string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("lab", args...)
	cmd.Env = append(os.Environ(), "LAB_STATE_DIR="+state, "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=xterm", "NO_COLOR=1")
	return cmd
}

// testEngine gives the flags that reach the engine under test. Without one the
// test is skipped, or fails where Podman was promised.
func testEngine(t *testing.T) []string {
	t.Helper()
	_, url, ok := strings.Cut(os.Getenv("LAB_TEST_ENGINES"), "=")
	switch {
	case ok && url != "":
		return []string{"--url", url}
	case ok:
		return nil
	case os.Getenv("LAB_TEST_REQUIRE_PODMAN") != "":
		t.Fatal("Podman was promised, and LAB_TEST_ENGINES names none")
	}
	t.Skip("needs Podman: LAB_TEST_ENGINES names none")
	return nil
}

// testState is a state folder where the engine under test can see it; it is
// empty of runs when the test ends.
func testState(t *testing.T) string {
	t.Helper()
	parent := os.Getenv("LAB_STATE_DIR")
	if parent == "" {
		parent = os.TempDir()
	}
	require.NoError(t, os.MkdirAll(parent, 0o755))
	dir, err := os.MkdirTemp(parent, "lab-test-*")
	require.NoError(t, err)
	t.Cleanup(func() {
		runs, _ := os.ReadDir(dir + "/runs")
		if len(runs) > 0 {
			t.Errorf("runs are left in %s: %v", dir, runs)
			return
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	return dir
}
