package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// runReport runs scenarios as a user does and gives the report and the exit
// code.
func runReport(t *testing.T, args ...string) (*experiment.Report, int) {
	t.Helper()
	cmd := labCommand(t, testState(t), append(append([]string{"run", "--format", "json"}, testEngine(t)...), args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, _ := cmd.Output()
	var rep experiment.Report
	require.NoError(t, json.Unmarshal(out, &rep), "%s", errs.String())
	return &rep, cmd.ProcessState.ExitCode()
}

func scenarioFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "my.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	return file
}

// Where a lesson shows a loss on purpose, the decision table still calls it a
// violation.
func TestALossOnPurposeIsAViolation(t *testing.T) {
	rep, code := runReport(t, "only-a-cache", "restart-is-not-redeploy")
	require.Zero(t, code)
	decided := map[string]experiment.Decision{}
	for _, d := range rep.Decisions {
		decided[d.Variant+"/"+d.Item] = d
	}
	require.Equal(t, experiment.DecisionViolated, decided["no mount/labels"].Verdict)
	require.Equal(t, experiment.DecisionViolated, decided["no mount/rows"].Verdict)
	require.Equal(t, experiment.DecisionKept, decided["no mount/summaries"].Verdict)
	require.Positive(t, decided["no mount/summaries"].RebuildTook)
	require.Zero(t, decided["named volume/summaries"].RebuildTook, "what was not lost is not rebuilt")
	require.Equal(t, experiment.DecisionKept, decided["named volume/labels"].Verdict)
}

// The naive ways of saving are torn by a kill; an atomic rename and SQLite
// never are, however often.
func TestCrashSweep(t *testing.T) {
	points := 50
	if os.Getenv("LAB_TEST_LONG") != "" {
		points = 500
	}
	rep, code := runReport(t, "--timeout", "10m", scenarioFile(t, fmt.Sprintf(`
version: 1
name: sweep
title: Kills
data:
  rewritten: {file: /d/rewritten, mode: truncate, size: 30KiB}
  renamed: {file: /d/renamed, mode: atomic, size: 30KiB}
  rows: {sqlite: /d/app.db, rows: 60}
  talk: {transcript: /d/talk.jsonl, mode: append, size: 2KiB}
mounts: [{volume: v, target: /d}]
steps:
  - run
  - write
  - crash: {during: [rewritten, renamed, rows, talk], at: every, points: %d}
  - read: after the crashes
  - rm
  - run
  - read: after a redeploy
expect:
  after the crashes: {rewritten: changed, renamed: survived, rows: survived, talk: changed}
  after a redeploy: {rewritten: survived, renamed: survived, rows: survived, talk: survived}
`, points)))
	kills := map[string]*experiment.Kills{}
	for _, v := range rep.Results {
		require.Equal(t, experiment.AsExpected, v.Judgement, "%s %s: %s %s", v.Item, v.Checkpoint, v.Outcome, v.Detail)
		if v.Kills != nil {
			kills[v.Item] = v.Kills
			t.Log(v.Item, v.Kills)
		}
	}
	require.Zero(t, code)
	for item, k := range kills {
		require.Equal(t, points, k.Kills, item)
		require.Positive(t, k.ByPodman, item)
		require.Zero(t, k.Lost+k.Forgotten+k.Other+k.Unknown, item)
		if item == "rewritten" || item == "talk" {
			require.Positive(t, k.Torn, item)
			continue
		}
		require.Zero(t, k.Torn, item)
		require.Positive(t, k.New, item)
		require.Positive(t, k.Old, item)
	}
	require.Len(t, kills, 4)
	for _, st := range rep.Records[0].Steps {
		for _, c := range st.Crashes {
			require.NotNil(t, c.Where, "%+v", c)
			require.NotZero(t, c.Where.PID)
			require.Equal(t, c.How == experiment.ByPodman, c.ExitCode != nil)
			if c.ExitCode != nil {
				require.Equal(t, 137, *c.ExitCode, "killed by SIGKILL")
			}
			if c.Item == "rewritten" && c.Point > 0 && c.Point < c.Of-1 {
				// The record says at which byte, and that is how much is there.
				require.Equal(t, c.Where.Byte, c.Found.Size)
			}
		}
	}
}

// One crash at a named point: the container is really killed, the outcome is
// the item's, and what may not be lost is a violation even when it was
// expected.
func TestCrashAtAPoint(t *testing.T) {
	rep, code := runReport(t, scenarioFile(t, `
version: 1
name: points
title: One kill
data:
  before: {file: /d/before, mode: truncate, size: 8KiB}
  mid: {file: /d/mid, mode: truncate, size: 8KiB, acceptable_loss: none}
  rows: {sqlite: /d/app.db, rows: 10, acceptable_loss: none}
  after: {file: /d/after, mode: truncate, size: 8KiB}
steps:
  - run
  - write
  - crash: {during: before, at: before}
  - start
  - crash: {during: [mid, rows], at: mid}
  - start
  - crash: {during: after, at: after}
  - start
  - read: in the end
expect:
  in the end: {before: survived, mid: changed, rows: survived, after: survived}
`))
	require.Equal(t, exitSurprised, code)
	details := map[string]string{}
	for _, v := range rep.Results {
		details[v.Item] = v.Detail
		if v.Item == "mid" {
			require.Equal(t, experiment.Violated, v.Judgement)
			require.Equal(t, scenarios.Changed, v.Outcome)
			continue
		}
		require.Equal(t, experiment.AsExpected, v.Judgement, v.Detail)
	}
	require.Contains(t, details["before"], "the old content, whole; killed before the write")
	require.Contains(t, details["mid"], "torn: ends after 4096 of 8192 bytes; killed at byte 4096 of 8192")
	require.Contains(t, details["rows"], "the old content, whole; killed at row 5 of 10")
	require.Contains(t, details["after"], "the new content, whole; killed after the write")
	require.Len(t, rep.Decisions, 2)
}

// lab new --decision-table writes a file that runs, and keeps its word.
func TestTheDecisionTableRuns(t *testing.T) {
	dir := t.TempDir()
	cmd := labCommand(t, dir, "new", "--decision-table", filepath.Join(dir, "my-service"))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	rep, code := runReport(t, filepath.Join(dir, "my-service.yaml"))
	require.Zero(t, code)
	require.Len(t, rep.Decisions, 3)
	for _, d := range rep.Decisions {
		require.Equal(t, experiment.DecisionKept, d.Verdict, d.Item)
	}
}
