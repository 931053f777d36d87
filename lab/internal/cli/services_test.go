package cli

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"persistencelab/bindings"
	"persistencelab/lab/engine"
	"persistencelab/lab/engine/enginetest"
	"persistencelab/lab/internal/experiment"
	"persistencelab/probeimage/image"
	drivers "persistencelab/probeimage/stores"
	"persistencelab/probeimage/stores/storestest"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
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
	rep, exit, stderr := runServices(t, "external-database", "external-bucket", "ten-containers", "kill-any-one", "rolling-replacement", "stateless-settings", "agent-two-days", "--jobs", "4")
	require.Zero(t, exit, "%s\n%s", outcomes(rep), stderr)
	// What the agents did by the evening of day two: the one that knew nothing
	// in the morning has done the first three tasks again.
	for item, words := range map[string]string{"in-container": "it knows of 3 tasks done", "in-store": "it knows of 6 tasks done"} {
		i := slices.IndexFunc(rep.Results, func(v experiment.Verdict) bool { return v.Checkpoint == "evening of day two" && v.Item == item })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, words, rep.Results[i].Detail)
	}
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
	requests, kills, enough := 300, 2, 150
	if os.Getenv("LAB_TEST_LONG") != "" {
		requests, kills, enough = 12_000, 20, 10_000
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
	require.GreaterOrEqual(t, len(acknowledged), enough, "%v", load.Errors)
	require.NotZero(t, load.Failed, "no request met a kill: the test shows nothing")
	t.Logf("%d requests, %d served, %d failed, %d kills: %s; %v", requests, load.Served, load.Failed, kills, rep.Results[0].Detail, load.Errors)
}

// Somebody's own store: not the lab's to run, reached by its address.

// foreignStore is a store as its people run it.
type foreignStore struct {
	name    string
	image   string // "" for the lab's own
	kind    string // what the scenario's service is: database, bucket
	scheme  string
	user    string
	env     []string // PORT is its port, and pw everybody's password
	command []string
	denied  string // a wrong password, in its words
	// full makes it one that fills up: its /data is fullBytes large, or it
	// has a limit of its own. With ballast, the rest of /data is filled once it
	// is up: what it packs well would take long to fill that.
	full      []string
	fullBytes int
	ballast   bool
	fullWords []string // any of them

	declared string // in a scenario, where it is more than its kind
}

// foreignStores are the lab's own, and those whose images
// LAB_TEST_STORE_IMAGES names, which scripts/store-images makes.
func foreignStores(t *testing.T) []foreignStore {
	own := []string{"STORE_USER=lab", "STORE_PASSWORD=pw", "STORE_PORT=PORT"}
	list := []foreignStore{
		{
			name: "nats", kind: "database", scheme: "nats", user: "lab", env: own, command: []string{"database"},
			denied: "Authorization Violation", fullBytes: 3 << 20, fullWords: []string{"no space left on device", "insufficient"},
		},
		{
			name: "rclone", kind: "bucket", scheme: "http", user: "lab", env: own, command: []string{"bucket"},
			denied: "signature we calculated does not match", fullBytes: 3 << 20, fullWords: []string{"Internal Error"},
		},
	}
	for _, image := range strings.Fields(os.Getenv("LAB_TEST_STORE_IMAGES")) {
		switch {
		case strings.Contains(image, "redis"):
			redis := []string{"redis-server", "--port", "PORT", "--bind", "127.0.0.1", "--dir", "/data", "--requirepass", "pw"}
			list = append(list, foreignStore{
				name: "redis", image: image, kind: "database", scheme: "redis", user: "default", command: redis,
				denied: "WRONGPASS", full: []string{"--maxmemory", "3mb", "--maxmemory-policy", "noeviction"}, fullWords: []string{"OOM command not allowed"},
			})
		case strings.Contains(image, "postgres"):
			list = append(list, foreignStore{
				name: "postgres", image: image, kind: "database", scheme: "postgres", user: "lab",
				env:    []string{"POSTGRES_USER=lab", "POSTGRES_PASSWORD=pw", "PGPORT=PORT", "PGDATA=/data/pg"},
				denied: "password authentication failed", fullBytes: 64 << 20, ballast: true, fullWords: []string{"No space left on device"},
			})
		case strings.Contains(image, "versitygw"):
			list = append(list, foreignStore{
				name: "versitygw", image: image, kind: "bucket", scheme: "http", user: "lab",
				env: []string{"ROOT_ACCESS_KEY=lab", "ROOT_SECRET_KEY=pw"}, command: []string{"--port", "127.0.0.1:PORT", "posix", "/data"},
				denied: "signature we calculated does not match", fullBytes: 3 << 20, fullWords: []string{"No space left on device"},
			})
		default:
			t.Fatalf("LAB_TEST_STORE_IMAGES: no test knows how to run %s", image)
		}
	}
	return list
}

// run starts it on the engine under test, on the host's network, and gives its
// address.
func (s foreignStore) run(t *testing.T, eng *bindings.Podman, full bool) (address string) {
	t.Helper()
	if s.image == "" {
		ref, archive, err := image.FindStores(testStores(t), runtime.GOARCH).BuildStore()
		require.NoError(t, err)
		require.NoError(t, eng.EnsureImage(t.Context(), engine.Image{Ref: ref, Archive: archive}))
		s.image = ref
	}
	port := freePort(t)
	spec := engine.ContainerSpec{
		Name: "lab-test-" + s.name + "-" + port, Image: s.image, Network: "host", Env: map[string]string{},
		Mounts: []engine.Mount{{Kind: "tmpfs", Target: "/data"}},
	}
	if full && s.fullBytes > 0 {
		spec.Mounts[0].Options = []string{fmt.Sprintf("size=%d", s.fullBytes)}
	}
	for _, e := range s.env {
		k, v, _ := strings.Cut(e, "=")
		spec.Env[k] = strings.ReplaceAll(v, "PORT", port)
	}
	for _, arg := range s.command {
		spec.Command = append(spec.Command, strings.ReplaceAll(arg, "PORT", port))
	}
	if full {
		spec.Command = append(spec.Command, s.full...)
	}
	id, err := eng.Create(t.Context(), spec)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, eng.Remove(context.Background(), id, engine.RemoveOptions{Force: true, Volumes: true}))
	})
	require.NoError(t, eng.Start(t.Context(), id))
	store, err := drivers.Open(s.url("pw", port))
	require.NoError(t, err)
	defer store.Close()
	require.Eventually(t, func() bool { return store.Ping(t.Context()) == nil }, 60*time.Second, 50*time.Millisecond)
	if full && s.ballast {
		require.ErrorContains(t, eng.CopyIn(t.Context(), id, "/data", ballast(t, s.fullBytes)), "no space left on device")
	}
	return s.url("pw", port)
}

// ballast is an archive of one file of that many bytes.
func ballast(t *testing.T, size int) io.Reader {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: "ballast", Mode: 0o644, Size: int64(size)}))
	_, err := w.Write(make([]byte, size))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return &archive
}

func (s foreignStore) url(password, port string) string {
	return fmt.Sprintf("%s://%s:%s@127.0.0.1:%s", s.scheme, s.user, password, port)
}

// engineItself is the engine under test without the lab around it.
func engineItself(t *testing.T) *bindings.Podman {
	t.Helper()
	testEngine(t)
	name, url, _ := strings.Cut(os.Getenv("LAB_TEST_ENGINES"), "=")
	return newDesk(t, enginetest.Target{Name: name, URL: url}).eng
}

func freePort(t *testing.T) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer free.Close()
	_, port, _ := net.SplitHostPort(free.Addr().String())
	return port
}

// twoItems is a scenario that puts two things of that size into the store.
func (s foreignStore) twoItems(t *testing.T, size string) string {
	data := fmt.Sprintf("{first: {key: first, size: %[1]s}, second: {key: second, size: %[1]s}}", size)
	if s.kind == "bucket" {
		data = fmt.Sprintf("{first: {object: some/first, size: %[1]s}, second: {object: some/second, size: %[1]s}}", size)
	}
	return scenarioFile(t, fmt.Sprintf(`
version: 1
name: two-items
title: Two items
services: {store: %s}
data: %s
steps: [run, write, rm, run, read: afterwards]
expect: {afterwards: {first: survived, second: survived}}
`, cmp.Or(s.declared, s.kind), data))
}

// A store that can't be had is unknown, in its own words: exit 3, and nothing
// is left.
func TestStoreThatCannotBeHad(t *testing.T) {
	eng := engineItself(t)
	for _, s := range foreignStores(t) {
		nobody := "connection refused"
		if s.scheme == "nats" { // it has words of its own
			nobody = "no servers available"
		}
		for _, c := range []struct{ what, url, words string }{
			{"nobody listens", s.url("pw", freePort(t)), nobody},
			{"wrong password", strings.Replace(s.run(t, eng, false), ":pw@", ":wrong@", 1), s.denied},
		} {
			t.Run(s.name+", "+c.what, func(t *testing.T) {
				t.Parallel()
				rep, exit, stderr := runServices(t, s.twoItems(t, "1KiB"), "--service", "store="+c.url)
				require.Equal(t, exitUnknown, exit, stderr)
				require.Len(t, rep.Results, 2)
				for _, v := range rep.Results {
					require.Equal(t, scenarios.Unknown, v.Outcome)
					require.Contains(t, v.Detail, c.words)
				}
				all, err := json.Marshal(rep)
				require.NoError(t, err)
				require.NotContains(t, string(all), ":wrong@", "the password is in the report")
				t.Log(rep.Results[0].Detail)
			})
		}
	}
}

// A store that was asked for and is not here is unknown; what is no store, or
// one of another kind, is a mistake of whoever typed it.
func TestStoreThatIsNotThere(t *testing.T) {
	database := foreignStore{kind: "database"}.twoItems(t, "1KiB")
	rep, exit, stderr := runServices(t, database, "--service", "store=localhost/not-here/postgres:1")
	require.Equal(t, exitUnknown, exit, stderr)
	for _, v := range rep.Results {
		require.Equal(t, scenarios.Unknown, v.Outcome)
		require.Contains(t, v.Detail, "podman pull localhost/not-here/postgres:1")
	}
	for store, words := range map[string]string{
		"localhost/mysql:8":       "the lab knows how to run postgres, redis,",
		"localhost/minio:1":       "it is a database, and minio is not one",
		"http://a:secret@host":    "it is a database, and http:// is not one",
		"redis://a:secret@ho%zzt": "the address is no URL",
	} {
		_, exit, stderr := runServices(t, database, "--service", "store="+store)
		require.Equal(t, exitUsage, exit, store)
		require.Contains(t, stderr, words)
		require.NotContains(t, stderr, "secret")
		require.Contains(t, stderr, "lab: hint: lab run two-items")
	}
}

// A store whose address nobody gave is left out, with what it needs; one that
// is no address is a mistake of whoever gave it.
func TestStoreByVariable(t *testing.T) {
	s := foreignStore{kind: "database", declared: "{kind: database, dsn: $LAB_STORE}"}
	cmd := labCommand(t, testState(t), append(append([]string{"run"}, testEngine(t)...), s.twoItems(t, "1KiB"))...)
	cmd.Env = append(cmd.Env, "LAB_STORES="+testStores(t))
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Regexp(t, `SKIPPED: service store needs its address: export\s+LAB_STORE=postgres://USER:PASSWORD@HOST/DB`, string(out))
	for store, words := range map[string]string{
		"sesame":        "LAB_STORE holds no address\nlab: hint: export LAB_STORE=postgres://USER:PASSWORD@HOST/DB\n",
		"http://a:b@h/": "it is a database, and http:// is not one\n",
	} {
		t.Setenv("LAB_STORE", store)
		_, exit, stderr := runServices(t, s.twoItems(t, "1KiB"))
		require.Equal(t, exitUsage, exit, stderr)
		require.Contains(t, stderr, words)
	}
}

// A store that fills up refuses, or is lost sight of, in its own words. That
// says nothing about what the scenario asks: exit 3. Nothing is left, neither
// here nor there.
func TestStoreThatFillsUp(t *testing.T) {
	eng := engineItself(t)
	for _, s := range foreignStores(t) {
		t.Run(s.name, func(t *testing.T) {
			rep, exit, stderr := runServices(t, s.twoItems(t, "2MiB"), "--service", "store="+s.run(t, eng, true))
			require.Equal(t, exitUnknown, exit, "%s\n%s", outcomes(rep), stderr)
			t.Log(outcomes(rep))
			second := rep.Results[1]
			require.Contains(t, []scenarios.Outcome{scenarios.Refused, scenarios.Unknown}, second.Outcome)
			require.True(t, slices.ContainsFunc(s.fullWords, func(w string) bool { return strings.Contains(second.Detail, w) }), second.Detail)
		})
	}
}

// A store that is to be full, because that is what the scenario is about, is
// as expected.
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
	eng := engineItself(t)
	for _, s := range foreignStores(t) {
		t.Run(s.name, func(t *testing.T) {
			address := s.run(t, eng, false)
			storestest.Contract(t, address)
			store, err := drivers.Open(address)
			require.NoError(t, err)
			defer store.Close()
			if s.name == "postgres" {
				requireFoundAgain(t, address, store)
			}
			// By the file, as every time a team runs it.
			t.Setenv("LAB_STORE", address)
			field := map[string]string{"database": "dsn", "bucket": "endpoint"}[s.kind]
			s.declared = fmt.Sprintf("{kind: %s, %s: $LAB_STORE}", s.kind, field)
			rep, exit, stderr := runServices(t, s.twoItems(t, "100KiB"))
			require.Zero(t, exit, "%s\n%s", outcomes(rep), stderr)
			dropped := 0
			for _, what := range rep.Records[0].Cleanup.Removed {
				if collection, ok := strings.CutSuffix(what, " in service store"); ok {
					dropped++
					_, err = store.List(t.Context(), collection)
					require.ErrorIs(t, err, drivers.ErrNotFound)
				}
			}
			require.Equal(t, 1, dropped)
		})
	}
}

// requireFoundAgain: a connection that the database ended while nobody used it
// is not what the next call gets.
func requireFoundAgain(t *testing.T, address string, store drivers.Store) {
	t.Helper()
	ctx := t.Context()
	admin, err := pgx.Connect(ctx, address)
	require.NoError(t, err)
	defer admin.Close(ctx)
	for range 5 {
		require.NoError(t, store.Put(ctx, "again", "note", []byte("kept")))
		ended, err := admin.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
		require.NoError(t, err)
		require.NotZero(t, ended.RowsAffected(), "no connection to end: the test shows nothing")
		time.Sleep(50 * time.Millisecond) // its last words arrive
		value, err := store.Get(ctx, "again", "note")
		require.NoError(t, err)
		require.Equal(t, "kept", string(value))
	}
	require.NoError(t, store.Drop(ctx, "again"))
}

// What a killed run put into a store that is somebody's is taken out by lab
// clean: the store's address stands in no file, but in a container that is
// still there, running or, as after the host's restart, not.
func TestCleanReachesStores(t *testing.T) {
	eng := engineItself(t)
	for i, s := range foreignStores(t) {
		t.Run(s.name, func(t *testing.T) {
			address := s.run(t, eng, false)
			store, err := drivers.Open(address)
			require.NoError(t, err)
			defer store.Close()
			file := s.twoItems(t, "1KiB")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, bytes.Replace(text, []byte("write, rm,"), []byte("write, wait: 60s, rm,"), 1), 0o644))
			state := testState(t)
			run := labCommand(t, state, append(append([]string{"run"}, testEngine(t)...), "--service", "store="+address, file)...)
			run.Env = append(run.Env, "LAB_STORES="+testStores(t))
			require.NoError(t, run.Start())
			defer func() { _ = run.Process.Kill() }()
			var id, collection string
			require.Eventually(t, func() bool {
				runs, err := os.ReadDir(filepath.Join(state, "runs"))
				if err != nil || len(runs) == 0 {
					return false
				}
				id = runs[0].Name()
				collection = "lab-" + id + "-1-" + map[string]string{"database": "keys", "bucket": "some"}[s.kind]
				all, err := store.List(t.Context(), collection)
				return err == nil && len(all) == 2
			}, 60*time.Second, 50*time.Millisecond)
			require.NoError(t, run.Process.Kill())
			_ = run.Wait()
			if i%2 == 1 {
				require.NoError(t, eng.Kill(t.Context(), "lab-"+id+"-1-_network", "KILL"))
			}
			out, err := labCommand(t, state, append([]string{"clean"}, testEngine(t)...)...).CombinedOutput()
			require.NoError(t, err, string(out))
			require.Contains(t, string(out), "removed "+collection+" in service store\n")
			_, err = store.List(t.Context(), collection)
			require.ErrorIs(t, err, drivers.ErrNotFound)
			nothing, err := labCommand(t, state, append([]string{"clean"}, testEngine(t)...)...).CombinedOutput()
			require.NoError(t, err)
			require.Equal(t, "nothing to remove\n", string(nothing))
		})
	}
}

// The lessons about stores come out the same on the stores people run.
func TestLessonsOnRealStores(t *testing.T) {
	if os.Getenv("LAB_TEST_STORE_IMAGES") == "" {
		t.Skip("needs images of real stores: LAB_TEST_STORE_IMAGES names none")
	}
	verdicts := func(rep experiment.Report) (lines []string) {
		for _, v := range rep.Results {
			lines = append(lines, fmt.Sprintln(v.Scenario, v.Variant, v.Checkpoint, v.Item, v.Outcome, v.Judgement))
		}
		return lines
	}
	own := map[string]experiment.Report{}
	for _, s := range foreignStores(t) {
		lessons, service := []string{"external-bucket"}, "bucket"
		if s.kind == "database" {
			lessons, service = []string{"external-database", "ten-containers", "kill-any-one", "rolling-replacement"}, "db"
		}
		t.Run(s.name, func(t *testing.T) {
			args := append(lessons, "--jobs", "2")
			if s.image != "" {
				args = append(args, "--service", service+"="+s.image)
			}
			rep, exit, stderr := runServices(t, args...)
			require.Zero(t, exit, "%s\n%s", outcomes(rep), stderr)
			if s.image == "" {
				own[s.kind] = rep
				return
			}
			require.Equal(t, verdicts(own[s.kind]), verdicts(rep))
			for _, r := range rep.Records {
				require.Equal(t, s.image, r.Services[0].Store)
				t.Logf("%s: took requests after %s", r.Scenario, r.Services[0].Ready)
			}
		})
	}
}
