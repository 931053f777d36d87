package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/experiment"
	"persistencelab/probeimage/wire"
)

// Scenarios with services, on real Podman and real stores.

// testStores is the folder of the stores' programs.
func testStores(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("LAB_STORES")
	if dir == "" {
		dir = "../../../bin/stores"
	}
	dir, err := filepath.Abs(dir)
	require.NoError(t, err)
	if _, err := os.Stat(filepath.Join(dir, "store-linux-"+runtime.GOARCH)); err != nil {
		if os.Getenv("LAB_TEST_REQUIRE_PODMAN") != "" {
			t.Fatalf("the stores were promised: %v", err)
		}
		t.Skip("needs the stores' programs: scripts/stores")
	}
	return dir
}

// runServices runs the lab and gives its report and exit code.
func runServices(t *testing.T, args ...string) (experiment.Report, int, string) {
	t.Helper()
	engine := testEngine(t)
	cmd := labCommand(t, testState(t), append(append([]string{"run", "--format", "json", "--timeout", "30m"}, engine...), args...)...)
	cmd.Env = append(cmd.Env, "LAB_STORES="+testStores(t))
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	var rep experiment.Report
	if stdout.Len() > 0 {
		require.NoError(t, json.Unmarshal([]byte(stdout.String()), &rep))
	}
	for _, r := range rep.Records {
		require.Empty(t, r.Cleanup.Left, r.Scenario)
		require.Empty(t, r.Skipped, r.Scenario)
	}
	return rep, cmd.ProcessState.ExitCode(), stderr.String()
}

// outcomes are the results as lines, for one look at all of them.
func outcomes(rep experiment.Report) string {
	var lines []string
	for _, v := range rep.Results {
		lines = append(lines, fmt.Sprintf("%s, %s: %s %s (%s)", v.Variant, v.Checkpoint, v.Item, v.Outcome, v.Detail))
	}
	return strings.Join(lines, "\n")
}

func TestServiceLessons(t *testing.T) {
	rep, exit, stderr := runServices(t, "external-database", "external-bucket", "ten-containers", "kill-any-one", "rolling-replacement", "agent-two-days", "--jobs", "4")
	require.Zero(t, exit, "%s\n%s", outcomes(rep), stderr)
	rolled := false
	for _, r := range rep.Records {
		require.NotEmpty(t, r.Services)
		for _, s := range r.Steps {
			if s.Load == nil {
				continue
			}
			l := s.Load
			require.Equal(t, l.Requests, l.Served+l.Failed)
			require.Len(t, s.Others, len(l.Killed)+len(l.Replaced), "each has its proof")
			for _, p := range s.Others {
				if p.OldIsGone == "" { // a service: the same container, another process
					require.Equal(t, p.Before.ID, p.After.ID)
					require.NotEqual(t, p.Before.Started, p.After.Started)
				} else {
					require.NotEqual(t, p.Before.ID, p.After.ID)
				}
			}
			if len(l.Replaced) == 4 {
				rolled = true
				require.Zero(t, l.Failed, "replaced in order, no request fails: %v", l.Errors)
			}
		}
	}
	require.True(t, rolled)
}

// The store is killed again and again while writes come in: every one it has
// acknowledged is there afterwards.
func TestStoreKilledUnderLoad(t *testing.T) {
	requests, kills := 600, 4
	if os.Getenv("LAB_TEST_LONG") != "" {
		requests, kills = 12_000, 20
	}
	rep, exit, stderr := runServices(t, scenarioFile(t, fmt.Sprintf(`
version: 1
name: hammer
title: Hammer
services: {db: database}
replicas: 3
data: {visits: {row: visits}}
steps:
  - run
  - load: {items: visits, requests: %d, kill: db, kills: %d}
  - read: {label: afterwards, on: app-1}
expect: {afterwards: {visits: survived}}
`, requests, kills)))
	require.Zero(t, exit, "%s\n%s", outcomes(rep), stderr)
	var load *experiment.LoadRecord
	for _, s := range rep.Records[0].Steps {
		if s.Load != nil {
			load = s.Load
		}
	}
	require.Len(t, load.Killed, kills)
	acknowledged, err := wire.InRanges(load.Items[0].Acknowledged)
	require.NoError(t, err)
	require.Greater(t, len(acknowledged), requests*5/6, "%v", load.Errors)
	require.NotZero(t, load.Failed, "no request met a kill: the test shows nothing")
	t.Logf("%d requests, %d served, %d failed, %d kills: %s; %v", requests, load.Served, load.Failed, kills, rep.Results[0].Detail, load.Errors)
}

const oneRow = `
version: 1
name: one-row
title: One row
services: {db: database}
data: {entry: {row: notes}, colour: {key: colour}}
steps: [run, write, rm, run, read: afterwards]
expect: {afterwards: {entry: survived, colour: survived}}
`

// A store that can't be had is unknown, in its own words, and nothing is left.
func TestStoreThatCannotBeHad(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	nobody := dead.Addr().String()
	dead.Close()
	address := startStore(t)

	for name, c := range map[string]struct{ url, words string }{
		"nobody listens": {"nats://lab:pw@" + nobody, "no servers available"},
		"wrong password": {"nats://lab:wrong@" + address, "Authorization Violation"},
	} {
		t.Run(name, func(t *testing.T) {
			rep, exit, stderr := runServices(t, scenarioFile(t, oneRow), "--service", "db="+c.url)
			require.Equal(t, exitUnknown, exit, stderr)
			require.Len(t, rep.Results, 2)
			for _, v := range rep.Results {
				require.EqualValues(t, "", v.Outcome)
				require.Contains(t, v.Detail, c.words)
			}
			all, err := json.Marshal(rep)
			require.NoError(t, err)
			require.NotContains(t, string(all), ":wrong@", "the password is in the report")
		})
	}
}

// A store that is full refuses, in its own words.
func TestStoreThatIsFull(t *testing.T) {
	rep, exit, stderr := runServices(t, scenarioFile(t, `
version: 1
name: full
title: Full
services: {db: {kind: database, limit: 64KiB}}
data:
  first: {key: first, size: 100KiB}
  second: {key: second, size: 100KiB}
steps: [run, write, read: afterwards]
expect: {afterwards: {first: survived, second: refused}}
`))
	require.Zero(t, exit, "%s\n%s", outcomes(rep), stderr)
	require.Contains(t, rep.Results[1].Detail, "nats: ")
}

// A store at an address is used as it is, and what was put into it is taken
// out again.
func TestStoreAtAnAddress(t *testing.T) {
	url := "nats://lab:pw@" + startStore(t)
	for range 2 {
		rep, exit, stderr := runServices(t, scenarioFile(t, oneRow), "--service", "db="+url)
		require.Zero(t, exit, "%s\n%s", outcomes(rep), stderr)
	}
}

// startStore runs the lab's database on this machine, as somebody's own, and
// gives its address. Password pw.
func startStore(t *testing.T) string {
	t.Helper()
	testEngine(t) // no store where there is no engine
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	cmd := exec.Command(filepath.Join(testStores(t), "store-linux-"+runtime.GOARCH), "database")
	cmd.Env = []string{"STORE_USER=lab", "STORE_PASSWORD=pw", "STORE_PORT=" + port, "STORE_DATA=" + t.TempDir()}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, 10*time.Second, 20*time.Millisecond)
	return address
}

// The lessons about databases come out the same on the stores people run.
// LAB_TEST_STORE_IMAGES names their images, which scripts/store-images makes.
func TestLessonsOnRealStores(t *testing.T) {
	images := strings.Fields(os.Getenv("LAB_TEST_STORE_IMAGES"))
	if len(images) == 0 {
		t.Skip("needs images of real stores: LAB_TEST_STORE_IMAGES names none")
	}
	for _, image := range images {
		t.Run(image, func(t *testing.T) {
			rep, exit, stderr := runServices(t, "external-database", "ten-containers", "kill-any-one", "rolling-replacement", "--service", "db="+image)
			require.Zero(t, exit, "%s\n%s", outcomes(rep), stderr)
			for _, r := range rep.Records {
				require.Equal(t, image, r.Services[0].Store)
				t.Logf("%s: took requests after %s", r.Scenario, r.Services[0].Ready)
			}
		})
	}
}
