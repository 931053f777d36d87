package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/drill"
)

func runTheDrill(t *testing.T, args ...string) (*drill.Report, string, int) {
	t.Helper()
	cmd := labCommand(t, testState(t), append(append([]string{"drill", "--format", "json", "--points", "12"}, testEngine(t)...), args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, _ := cmd.Output()
	var rep drill.Report
	if len(out) > 0 {
		require.NoError(t, json.Unmarshal(out, &rep), "%s", errs.String())
	}
	return &rep, errs.String(), cmd.ProcessState.ExitCode()
}

// A decision table that keeps its word comes through the drill; what is lost
// is in the list, and accepted.
func TestDrillOfADecisionTable(t *testing.T) {
	dir := t.TempDir()
	out, err := labCommand(t, dir, "new", "--decision-table", filepath.Join(dir, "my-service")).CombinedOutput()
	require.NoError(t, err, string(out))
	rep, errs, code := runTheDrill(t, filepath.Join(dir, "my-service.yaml"))
	require.Zero(t, code, "%s%+v", errs, rep)
	require.Len(t, rep.Drills, 1)
	for _, s := range rep.Drills[0].Steps {
		require.Equal(t, drill.Passed, s.Verdict, "%+v", s)
		require.NotEmpty(t, s.Seen)
	}
	require.Len(t, rep.Drills[0].Losses, 1)
	require.Equal(t, "answers", rep.Drills[0].Losses[0].What)
	require.NotEmpty(t, rep.Drills[0].Losses[0].Accepted)
	require.NotEmpty(t, rep.Drills[0].NotCovered)
}

// Without a mount and without a decision everything is lost, and nobody
// accepted it.
func TestDrillOfAScenario(t *testing.T) {
	rep, errs, code := runTheDrill(t, "healthy-but-empty", "--variant", "no mount, liveness check")
	require.Equal(t, exitSurprised, code, "%s%+v", errs, rep)
	d := rep.Drills[0]
	require.Len(t, d.Losses, 1)
	require.Equal(t, "rows", d.Losses[0].What)
	require.Equal(t, "rm and run", d.Losses[0].When)
	require.Empty(t, d.Losses[0].Accepted)
	require.Equal(t, drill.Failed, d.Steps[4].Verdict, "a liveness check does not notice: %+v", d.Steps[4])
	require.Equal(t, drill.Passed, d.Steps[3].Verdict, "%+v", d.Steps[3])
}

func TestDrillsThatCannotBe(t *testing.T) {
	testEngine(t)
	for _, args := range [][]string{
		{}, {"three-mounts", "--variant", "no such"}, {"no-such-scenario"}, {"three-mounts", "--image", "x"},
		{"one-volume-two-containers"}, {"three-mounts", "--points", "2"}, {"three-mounts", "--format", "pdf"},
		{"--image", "x", "-v", "/home:/data"}, {"--image", "localhost/no-such-image:1"},
	} {
		_, errs, code := runTheDrill(t, args...)
		require.Equal(t, exitUsage, code, "%v: %s", args, errs)
		require.Contains(t, errs, "lab: error: ")
		require.Contains(t, errs, "lab: hint: ")
	}
}
