package cli

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine/enginetest"
	"persistencelab/lab/internal/matrix"
)

// The truth table was made by hand with the podman command, on other machines
// of these versions; the lab must find the same. By default a part that has
// every group of events and every sort of kind is run, with LAB_TEST_LONG all
// of it.
func TestMatrixAgreesWithTheTruth(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		if target.Rootless() {
			t.Skip("the truth table is of rootful podman")
		}
		parts := [][2]string{
			{"none,vol-precreated,anon,imgvol,bind-O,shm,readonly-/tmp,secret-file,RAM", "stop+start,rm -v+run,commit+run (no mounts),pod rm+create,stop+volume prune+start"},
			{"vol-U-user1234,vol-subpath,vol-opt-bind,volumes-from-named,bind-ro", "pause+unpause,rmi -f+build+run,rm+volume rm+run,clone,rm -v by first, second reads"},
		}
		if enginetest.Long() {
			parts = [][2]string{{"", "stop*,restart,kill*,crash*,pause*,rename*,re*,rm*,run*,clone,commit*,export*,volume*,system*,second*,pod*"}}
		}
		for _, part := range parts {
			agreesWithTheTruth(t, target, part[0], part[1])
		}
	})
}

func agreesWithTheTruth(t *testing.T, target enginetest.Target, mounts, events string) {
	state := testState(t)
	file := filepath.Join(t.TempDir(), "matrix.json")
	args := []string{"matrix", "--mounts", mounts, "--events", events, "-o", file}
	if target.URL != "" {
		args = append(args, "--url", target.URL)
	}
	if out, err := labCommand(t, state, args...).CombinedOutput(); err != nil {
		t.Errorf("lab matrix: %v\n%s", err, out)
	}
	doc, err := readMatrix("--from", file)
	require.NoError(t, err)
	truth := truthOf(t, doc.Engine.Version)
	agree, skipped := 0, 0
	for _, c := range doc.Cells {
		want, ok := truth[c.Mount+" × "+c.Event]
		require.True(t, ok, "%s × %s is not in the truth table", c.Mount, c.Event)
		switch {
		case c.Outcome == matrix.Skipped && target.URL != "" && strings.Contains(c.Detail, "--url"),
			c.Outcome == matrix.Skipped && target.URL != "" && strings.Contains(c.Detail, "podman command beside the service"):
			skipped++
		case agrees(want, c.Outcome):
			agree++
		default:
			t.Errorf("%s × %s: %s, and the truth is %s: %s", c.Mount, c.Event, c.Outcome, want, c.Detail)
		}
	}
	require.Greater(t, agree, skipped, "most cells must be compared")
	t.Logf("%s: %d cells, %d agree, %d skipped in %s", doc.Engine.Version, len(doc.Cells), agree, skipped, doc.Took)
}

// truthOf gives the truth for a version, by mount × event.
func truthOf(t *testing.T, version string) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "matrix", "testdata", "cells.csv"))
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	truth := map[string]string{}
	for column, name := range rows[0] {
		if name != "podman-"+version {
			continue
		}
		for _, row := range rows[1:] {
			truth[row[0]+" × "+row[1]] = row[column]
		}
	}
	if len(truth) == 0 {
		t.Skip("there is no truth table of podman " + version)
	}
	return truth
}

// agrees tells whether a cell says what the truth table says in its words.
func agrees(truth string, o matrix.Outcome) bool {
	switch truth {
	case "survived":
		return o == matrix.Survived
	case "lost":
		return o == matrix.Lost
	case "other-content":
		return o == matrix.Changed
	case "write-refused":
		return o == matrix.Refused
	case "n/a":
		return o == matrix.NotApplicable
	case "not-deterministic":
		return o == matrix.Survived || o == matrix.Lost
	case "event-refused":
		// The podman command refuses what it is too old for; the lab does
		// so before it asks, because the service would not.
		return o == matrix.EventRefused || o == matrix.Skipped
	}
	panic(fmt.Sprintf("the truth table says %q", truth))
}
