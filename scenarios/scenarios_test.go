package scenarios_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/scenarios"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// Every file under testdata/bad is faulty; the golden beside it holds all
// that an author sees.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.yaml")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 15)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			require.NoError(t, err)
			_, err = scenarios.Parse(filepath.Base(file), src, scenarios.Options{})
			var faults scenarios.Errors
			require.ErrorAs(t, err, &faults)
			for _, e := range faults {
				require.NotEmpty(t, e.Suggestion, "no suggestion: %s", e)
			}
			golden := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(faults.Excerpt()), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), faults.Excerpt())
		})
	}
}

func minimal(steps, rest string) string {
	return "version: 1\nname: x\ntitle: X\ndata:\n  note: {file: /data/note}\nsteps:\n" + steps + rest
}

// A hostile file costs nothing, whatever it is made of.
func TestHostileFilesAreCheap(t *testing.T) {
	bomb, err := os.ReadFile("testdata/bad/alias-bomb.yaml")
	require.NoError(t, err)
	for name, src := range map[string]string{
		"alias bomb":     string(bomb),
		"10 MB":          strings.Repeat("a: b\n", 2<<20),
		"brackets":       strings.Repeat("[", scenarios.MaxBytes),
		"braces":         strings.Repeat("{a: ", 9_000),
		"dashes":         strings.Repeat("- ", scenarios.MaxBytes/2),
		"question marks": strings.Repeat("? ", scenarios.MaxBytes/2),
		"commas":         "[" + strings.Repeat("a,", 19_000) + "]",
		"lines":          strings.Repeat("\n", scenarios.MaxBytes),
		"unknown keys":   unknownKeys(6_000),
		"unknown steps":  "steps:\n" + strings.Repeat("  - rnu\n", 19_000),
		"one long word":  "title: " + strings.Repeat("x", scenarios.MaxBytes-8),
		"aliases":        "a: &a {b: c}\nd: [" + strings.Repeat("*a,", 18_000) + "]\n",
		"documents":      strings.Repeat("---\n", 19_000),
		"steps":          minimal("  - run\n  - write\n"+strings.Repeat("  - restart\n", 15_000), ""),
		"variants":       manyVariants(450),
		"reads":          manyReads(450),
	} {
		t.Run(name, func(t *testing.T) {
			// Processor time, the best of three: a busy machine must not
			// fail it.
			best := time.Hour
			for range 3 {
				start := processorTime(t)
				_, err = scenarios.Parse(name, []byte(src), scenarios.Options{})
				best = min(best, processorTime(t)-start)
			}
			require.Error(t, err)
			limit := 500 * time.Millisecond
			if name == "alias bomb" || name == "10 MB" {
				limit = 50 * time.Millisecond
			}
			require.Less(t, best, limit*slowdown)
			var faults scenarios.Errors
			require.ErrorAs(t, err, &faults)
			require.LessOrEqual(t, len(faults), 100)
			require.Less(t, len(faults.Excerpt()), 100_000)
		})
	}
}

// processorTime is what this process has used so far.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func unknownKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "versionn%d: 1\n", i)
	}
	return b.String()
}

func manyVariants(n int) string {
	var b strings.Builder
	b.WriteString("variants:\n")
	for i := range n {
		fmt.Fprintf(&b, "  v%d:\n", i)
	}
	return minimal("  - run\n  - write\n  - stop\n  - start\n  - read: after\n", b.String())
}

func manyReads(n int) string {
	var b strings.Builder
	b.WriteString("  - run\n  - write\n")
	for i := range n {
		fmt.Fprintf(&b, "  - read: r%d\n", i)
	}
	return minimal(b.String(), "")
}

// What the design shows as the scenario file parses, and means what it says.
func TestThreeMounts(t *testing.T) {
	s, err := scenarios.Find("three-mounts")
	require.NoError(t, err)
	require.Len(t, s.Hash, 64)
	require.Equal(t, []scenarios.Container{{Pos: scenarios.Position{Line: 1, Col: 1}, Name: scenarios.DefaultContainer}}, s.Containers)
	require.Len(t, s.Variants, 3)
	require.Equal(t, "no mount", s.Variants[0].Name)
	require.Empty(t, s.Variants[0].Containers[0].Mounts)

	volume := s.Variants[1]
	require.Len(t, volume.Containers, 1)
	m := volume.Containers[0].Mounts[0]
	m.Pos = scenarios.Position{}
	require.Equal(t, scenarios.Mount{Kind: scenarios.VolumeMount, Source: "mydata", Target: "/var/lib/app"}, m)
	require.Equal(t, scenarios.Bind, s.Variants[2].Containers[0].Mounts[0].Kind)

	want := map[string][]scenarios.Outcome{ // note, rows, seen
		"no mount":     {scenarios.Lost, scenarios.Lost, scenarios.Lost},
		"named volume": {scenarios.Survived, scenarios.Survived, scenarios.Lost},
		"bind mount":   {scenarios.Survived, scenarios.Survived, scenarios.Lost},
	}
	for _, v := range s.Variants {
		require.NotEmpty(t, v.Explain)
		for i, item := range []string{"note", "rows", "seen"} {
			rule, ok := v.Expect["after rm and run"][item].For("4.3.1", false)
			require.True(t, ok)
			require.Equal(t, want[v.Name][i], rule.Outcome, "%s, %s", v.Name, item)
		}
		rule, _ := v.Expect["after restart"]["rows"].For("4.3.1", false)
		require.Equal(t, scenarios.Survived, rule.Outcome)
	}
}

// A key of a variant replaces the scenario's; the rest is inherited.
func TestMerge(t *testing.T) {
	s := parse(t, `
version: 1
name: x
title: X
data:
  note: {file: /data/note, acceptable_loss: none, rebuild: by hand}
  log: {file: /data/log, mode: append, size: 64KiB, acceptable_loss: 1m}
mounts: [{volume: shared, target: /data, options: [nocopy]}]
env: {A: 1}
hostname: host
volumes:
  shared: {options: {type: tmpfs, device: tmpfs, o: size=16m}}
steps: [run, write: , {rm: {volumes: true}}, run, read: after]
expect:
  after: {note: lost, log: [{when: podman < 5.1, outcome: lost}, {outcome: varies, because: it is a race}]}
variants:
  as it is:
  other:
    mounts: [{anonymous: /data}]
    env: {B: 2}
    expect: {after: {note: changed}}
  own steps:
    steps: [run, write: note, read: {label: at once, items: note}]
    expect: {at once: {note: survived}}
  named:
    containers: {app: {read_only: true, restart: on-failure:3}}
`)
	require.Len(t, s.Variants, 4)
	same, other, own, named := s.Variants[0], s.Variants[1], s.Variants[2], s.Variants[3]

	require.Equal(t, "shared", same.Containers[0].Mounts[0].Source)
	require.Equal(t, []string{"nocopy"}, same.Containers[0].Mounts[0].Options)
	require.True(t, same.Volumes[0].Create, "a volume with options can only be made beforehand")

	require.Equal(t, scenarios.Anonymous, other.Containers[0].Mounts[0].Kind)
	require.Equal(t, map[string]string{"B": "2"}, other.Containers[0].Env)
	require.Equal(t, "host", other.Containers[0].Hostname)
	require.Equal(t, scenarios.Changed, other.Expect["after"]["note"].Rules[0].Outcome)
	require.Len(t, other.Expect["after"]["log"].Rules, 2)

	require.Len(t, own.Steps, 3)
	require.Len(t, same.Steps, 5)
	require.Equal(t, []string{"note", "log"}, same.Steps[1].Items, "a bare write writes all")
	require.True(t, same.Steps[2].Volumes)

	require.True(t, named.Containers[0].ReadOnly)
	require.Equal(t, "on-failure:3", named.Containers[0].Restart)
	require.False(t, same.Containers[0].ReadOnly, "a variant's change stays its own")

	require.Equal(t, &scenarios.Loss{}, s.Data[0].AcceptableLoss)
	require.Equal(t, &scenarios.Loss{Within: time.Minute}, s.Data[1].AcceptableLoss)
	require.Equal(t, 64<<10, s.Data[1].Size)
	require.Equal(t, scenarios.Append, s.Data[1].Mode)
}

// A container with replicas is several, a step on its name is about all of
// them, and a service is a deferred container of its own.
func TestServicesAndReplicas(t *testing.T) {
	s := parse(t, aLoad)
	v := s.Variants[0]
	var names []string
	for _, c := range v.Containers {
		names = append(names, c.Name)
	}
	require.Equal(t, []string{"app-1", "app-2", "db", "files"}, names)
	require.Equal(t, []string{"app-1", "app-2"}, v.Targets(scenarios.Step{Verb: "run"}))
	require.Equal(t, []string{"app-1", "app-2"}, v.Targets(scenarios.Step{Verb: "stop", On: "app"}))
	db, _ := v.Container("db")
	require.Equal(t, scenarios.Database, db.Service.Kind)
	require.Equal(t, "db", db.Mounts[0].Source)
	files, _ := v.Container("files")
	require.Empty(t, files.Mounts, "volume: none")
	require.Equal(t, "files", s.Data[1].Service, "the only one that fits")
}

// Every verb that will ever be run is understood, and its states followed.
func TestAllVerbs(t *testing.T) {
	s := parse(t, everyVerb)
	used := map[string]bool{}
	for _, step := range append(s.Steps[:len(s.Steps):len(s.Steps)], slices.Concat(parse(t, everyMachineVerb).Steps, parse(t, aLoad).Steps, parse(t, aPlayedPod).Steps)...) {
		used[step.Verb] = true
	}
	for _, v := range scenarios.Verbs() {
		if v.Name != "restart" {
			require.True(t, used[v.Name], "the test has no %s", v.Name)
		}
		require.NotEmpty(t, v.Doc)
	}
	require.Equal(t, 2*time.Second, s.Steps[28].Delay)
	require.Equal(t, 7, s.Steps[7].Code)
	require.Equal(t, 3, s.Steps[22].Code)
	require.Equal(t, []string{"app"}, s.Variants[0].Targets(s.Steps[0]))
	require.Equal(t, "other", s.Variants[0].Where(s.Steps[23], s.Data[0]))
}

// everyMachineVerb is a scenario with all steps that happen to a virtual
// machine.
const everyMachineVerb = `
version: 1
name: x
title: X
machine: vm
data:
  note: {file: /data/note, mode: fsync-rename, size: 64KiB}
  rows: {sqlite: /data/app.db, journal: wal, synchronous: normal}
  boot: {fact: boot-id}
disks:
  - {durable: data, target: /data, options: [noauto_da_alloc]}
  - {instance-store: scratch, target: /scratch}
  - {durable: own, target: /own, flush: lies}
steps:
  - boot
  - write
  - write: {items: rows, times: 20}
  - sync
  - snapshot: {to: warm, live: true}
  - rollback: warm
  - reboot
  - stop
  - snapshot: cold
  - rollback: cold
  - start
  - power-cut: {during: note, at: 20KiB}
  - start
  - power-cut: 10s
  - start
  - terminate
  - boot
  - read: at the end
expect:
  at the end: {note: survived, rows: changed, boot: changed}
`

// aPlayedPod is a scenario with what can happen to a pod of kube play.
const aPlayedPod = `
version: 1
name: x
title: X
data:
  note: {file: /data/note, on: one}
containers:
  one: {pod: web, restart: always, user: "1000:1000", mounts: [{volume: v, target: /data}, {emptydir: shared, target: /run/shared, options: memory}]}
  two: {pod: web, restart: always, mounts: [{emptydir: shared, target: /shared, options: ro}, {bind: b, target: /b}]}
  beside: {deferred: true}
steps:
  - kube play: web
  - run: beside
  - write
  - crash: one
  - pod restart: web
  - kube down: {pod: web, force: true}
  - kube play: {pod: web}
  - read: afterwards
expect:
  afterwards: {note: lost}
`

const aLoad = `
version: 1
name: x
title: X
services: {db: database, files: {kind: bucket, volume: none}}
replicas: 2
data:
  visits: {row: visits}
  upload: {object: uploads/a.pdf, size: 4KiB}
steps:
  - run
  - load: {items: visits, requests: 10, kill: [app, db], kills: 3, replace: app-2}
  - write: {items: upload, on: app-1}
  - stop: app
  - start: app
  - read: {label: afterwards, on: app-2}
expect:
  afterwards: {visits: survived, upload: survived}
`

const everyVerb = `
version: 1
name: x
title: X
data:
  note: {file: /data/note}
  seed: {file: /etc/seed, seed: true, on: app}
containers:
  app: {mounts: [{volume: mydata, target: /data}], image: {files: {/etc/seed: hello}, volumes: [/v]}, pod: group}
  copy: {deferred: true}
  other: {deferred: true, volumes_from: app, restart: always}
steps:
  - run
  - write: note
  - edit: seed
  - erase: seed
  - pause
  - unpause
  - kill: {signal: USR1}
  - crash: {code: 7}
  - start
  - rename: elsewhere
  - commit: saved
  - clone: copy
  - start: copy
  - rm: {on: copy, volumes: true}
  - export: archive
  - import: {from: archive, to: imported}
  - cp: {path: /data/note, to: out}
  - cp: {path: /data/note, from: out}
  - rebuild: {files: {/etc/seed: new}}
  - volume export: {volume: mydata, to: backup}
  - volume import: {volume: mydata, from: backup}
  - run: other
  - crash: other
  - read: {label: elsewhere, items: note, on: other}
  - run: {on: other, replace: true}
  - rm: {on: other}
  - checkpoint
  - restore
  - wait: 2s
  - service restart
  - volume rm: {volume: mydata, refused: true}
  - pod stop: group
  - pod start: group
  - pod restart: group
  - pod rm: group
  - run: {image: imported}
  - stop
  - container prune
  - system prune: {volumes: true}
  - volume prune
  - volume create: mydata
  - create
  - start
  - read: last
  - volume rm: {volume: mydata, force: true}
  - rmi
expect:
  elsewhere: {note: survived}
  last: {note: lost, seed: survived}
`

func parse(t *testing.T, src string) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(strings.TrimPrefix(src, "\n")), scenarios.Options{})
	var faults scenarios.Errors
	if errors.As(err, &faults) {
		t.Fatal(faults.Excerpt())
	}
	require.NoError(t, err)
	return s
}

// A host path is a matter of the command line, not of the file.
func TestAllowHostPaths(t *testing.T) {
	src := minimal("  - run\n  - write\n  - read: r\n", "expect: {r: {note: survived}}\nmounts: [{bind: /srv/data/app, target: /data}]\n")
	for allowed, fine := range map[string]bool{
		"/srv/data": true, "/srv/data/app": true, "/srv/data/": true, "/": true,
		"/srv/dat": false, "/srv/data/app/deeper": false, "": false,
	} {
		s, err := scenarios.Parse("x", []byte(src), scenarios.Options{AllowHostPaths: []string{allowed}})
		require.Equal(t, fine, err == nil, "allowed %q: %v", allowed, err)
		if fine {
			require.Equal(t, "/srv/data/app", s.Containers[0].Mounts[0].Source)
		}
	}
}

func TestWhen(t *testing.T) {
	for _, c := range []struct {
		when, version string
		rootless      bool
		want          bool
	}{
		{"", "", true, true},
		{"podman < 5.1", "5.0.3", false, true},
		{"podman < 5.1", "5.1.0", false, false},
		{"podman < 5.1", "4.9.4", false, true},
		{"podman <= 5.1", "5.1.2", false, true},
		{"podman > 5.1", "5.1.2", false, false},
		{"podman > 5.1.1", "5.1.2", false, true},
		{"podman >= 6", "6.0.0-dev", false, true},
		{"podman = 5", "5.4.2", false, true},
		{"podman==5", "4.3.1", false, false},
		{"podman != 4.3", "4.3.1", false, false},
		{"podman < 10", "9.0.0", false, true},
		{"rootless", "5.4.2", true, true},
		{"rootful", "5.4.2", true, false},
		{"podman >= 5 and rootful", "5.4.2", false, true},
		{"podman >= 5 and rootful", "5.4.2", true, false},
		{"podman >= 4.3 and podman < 5", "4.9", false, true},
		{"podman >= 4", "", false, false},
		{"podman >= 4", "nonsense", false, false},
		{"nonsense", "5.0.0", false, false},
	} {
		require.Equal(t, c.want, scenarios.Rule{When: c.when}.Holds(c.version, c.rootless), "%+v", c)
	}
}

// Rules that leave some engine without an expectation are refused.
func TestRulesCoverEveryEngine(t *testing.T) {
	for rules, gap := range map[string]string{
		"[{when: podman < 5, outcome: lost}, {when: podman >= 5, outcome: survived}]":                                                    "",
		"[{when: rootless, outcome: lost}, {when: rootful, outcome: survived}]":                                                          "",
		"[{when: podman < 5, outcome: lost}, {when: podman > 5, outcome: survived}]":                                                     "podman 5.0.0",
		"[{when: podman < 5, outcome: lost}, {when: podman >= 5 and rootless, outcome: survived}]":                                       "rootful podman 5.0.0",
		"[{when: podman < 5, outcome: lost}, {when: podman = 5, outcome: survived}]":                                                     "podman 6.0.0",
		"[{when: podman = 5, outcome: lost}, {when: podman > 5, outcome: lost}]":                                                         "any other version",
		"[{when: podman <= 4.3, outcome: lost}, {when: podman > 4.3 and podman <= 6, outcome: lost}, {when: podman > 6, outcome: lost}]": "",
	} {
		_, err := scenarios.Parse("x", []byte(minimal("  - run\n  - write\n  - read: r\n", "expect: {r: {note: "+rules+"}}\n")), scenarios.Options{})
		if gap == "" {
			require.NoError(t, err, rules)
		} else {
			require.ErrorContains(t, err, gap, rules)
		}
	}
}

func TestOutcomeText(t *testing.T) {
	out, err := json.Marshal(map[string]scenarios.Outcome{"a": scenarios.Unknown, "b": scenarios.Lost})
	require.NoError(t, err)
	require.JSONEq(t, `{"a":"unknown","b":"lost"}`, string(out))
	var back map[string]scenarios.Outcome
	require.NoError(t, json.Unmarshal(out, &back))
	require.Equal(t, map[string]scenarios.Outcome{"a": scenarios.Unknown, "b": scenarios.Lost}, back)
	require.Error(t, json.Unmarshal([]byte(`{"a":"gone"}`), &back))
}

func TestCatalogue(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	all := scenarios.Catalogue()
	require.Len(t, all, len(files))
	heads := scenarios.Headings()
	for i, s := range all {
		require.Equal(t, scenarios.Heading{Name: s.Name, Title: s.Title, Lesson: s.Lesson}, heads[i])
	}
	last := -1
	for _, s := range all {
		require.Equal(t, s.Name+".yaml", s.File)
		require.NotEmpty(t, s.About, s.Name)
		require.NotEmpty(t, s.Question, s.Name)
		require.NotEmpty(t, s.Hints, s.Name)
		order := -1
		for i, l := range scenarios.Lessons() {
			if l.Key == s.Lesson {
				order = i
			}
		}
		require.GreaterOrEqual(t, order, last, "%s stands in no or the wrong lesson", s.Name)
		last = order
		for _, v := range s.Variants {
			require.NotEmpty(t, v.Explain, "%s, %s", s.Name, v.Name)
		}
		src, err := scenarios.Source(s.Name)
		require.NoError(t, err)
		require.NotEmpty(t, src)
	}
	_, err = scenarios.Find("three-mount")
	var unknown *scenarios.UnknownError
	require.ErrorAs(t, err, &unknown)
	require.Equal(t, `did you mean "three-mounts"?`, unknown.Suggestion)
}

func TestDecisionTable(t *testing.T) {
	s := parse(t, string(scenarios.DecisionTable("my-service")))
	require.Equal(t, "my-service", s.Name)
	for _, item := range s.Data {
		require.NotNil(t, item.AcceptableLoss, item.Name)
	}
}

// A crash in the middle of a write leaves its container down, a sweep leaves
// it up.
func TestCrashAmid(t *testing.T) {
	crash := func(step, then string) error {
		_, err := scenarios.Parse("x.yaml", []byte(minimal("  - run\n  - write\n  - "+step+"\n"+then+"  - read: end\n", "expect: {end: {note: survived}}\n")), scenarios.Options{})
		return err
	}
	require.NoError(t, crash("crash: {during: note}", "  - start\n"))
	require.Error(t, crash("crash: {during: note}", ""))
	require.NoError(t, crash("crash: {during: note, at: every}", ""))
	require.Error(t, crash("crash: {during: note, at: every}", "  - start\n"))

	s := parse(t, minimal("  - run\n  - write\n  - crash: {during: note, at: every}\n  - read: end\n", "expect: {end: {note: survived}}\n"))
	step := s.Steps[2]
	require.Equal(t, []string{"note"}, step.Amid)
	require.Equal(t, 50, step.Points)
	require.Zero(t, step.Code)
}

func TestStarter(t *testing.T) {
	for name, want := range map[string]string{"my-lesson": "my-lesson", "My Lesson!": "my-lesson", "": "my-scenario", strings.Repeat("x", 99): strings.Repeat("x", 60)} {
		s := parse(t, string(scenarios.Starter(name)))
		require.Equal(t, want, s.Name)
		require.Len(t, s.Variants, 2)
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	require.NoError(t, os.WriteFile(path, scenarios.Starter("x"), 0o644))
	s, err := scenarios.Load(path, scenarios.Options{})
	require.NoError(t, err)
	require.Equal(t, path, s.File)

	_, err = scenarios.Load(path+"x", scenarios.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)

	if runtime.GOOS == "linux" { // a file without an end is read no further than the limit
		_, err = scenarios.Load("/dev/zero", scenarios.Options{})
		require.ErrorContains(t, err, "too large")
	}
}
