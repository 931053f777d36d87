//go:build linux

package compare

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/probeimage/bootprobe"
	"persistencelab/scenarios"
)

// script reads output of the Python boot-id probe, made by running it: under
// two boot ids, with the temp folder emptied, with all emptied, with a
// read-only home.
func script(t *testing.T, name string) *Side {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "article", name+".json"))
	require.NoError(t, err)
	defer f.Close()
	s, err := Read(name, f)
	require.NoError(t, err)
	return s
}

// text is the comparison as a person reads it, unwrapped.
func text(t *testing.T, c *Comparison) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Text(&b, c, Options{}))
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestTheScriptsOutput(t *testing.T) {
	for _, test := range []struct {
		second     string
		temp, home scenarios.Outcome
		happened   Event
		says       []string
	}{
		{"rebooted-kept", scenarios.Survived, scenarios.Survived, Rebooted,
			[]string{"The boot id changed", "not redeployed", "(rows 3 → 4)", "hostname is no identity"}},
		{"rebooted-tmp-lost", scenarios.Lost, scenarios.Survived, Rebooted,
			[]string{"temp folder: lost its rows (rows 3 → 1): the disk below it did not survive", "home folder: kept its rows (rows 3 → 5)", "2 places, 1 kept, 1 lost", "1 came back empty"}},
		{"redeployed-all-lost", scenarios.Lost, scenarios.Lost, Rebooted,
			[]string{"was redeployed in between", "both writes went well says nothing"}},
		{"home-read-only", scenarios.Changed, scenarios.Unknown, EventUnknown,
			[]string{"not rebooted", "the files are in the wrong order", "readonly database", "hostname changed and the machine did not"}},
	} {
		t.Run(test.second, func(t *testing.T) {
			c := Explain(script(t, "before"), script(t, test.second))
			require.Equal(t, test.temp, c.Places[0].Outcome)
			require.Equal(t, test.home, c.Places[1].Outcome)
			require.Equal(t, test.happened, c.Happened)
			for _, s := range test.says {
				require.Contains(t, text(t, c), s)
			}
		})
	}
}

// lab makes a report by running the probe in three folders.
func lab(t *testing.T, dir string, change func(r *bootprobe.Report)) *Side {
	t.Helper()
	env := map[string]string{"TMPDIR": dir + "/tmp", "HOME": dir + "/home"}
	for _, d := range []string{"tmp", "home"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	r := bootprobe.Run(bootprobe.Options{Now: time.Now, Getenv: func(k string) string { return env[k] }})
	r.Places = r.Places[:2] // the working folder is the source tree's
	if change != nil {
		change(r)
	}
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	s, err := Read("run-"+r.Run, bytes.NewReader(raw))
	require.NoError(t, err)
	return s
}

func boots(id, machine string) func(*bootprobe.Report) {
	return func(r *bootprobe.Report) { r.BootID, r.Machine, r.Container = id, machine, nil }
}

func contained(id string, ticks int64) func(*bootprobe.Report) {
	return func(r *bootprobe.Report) {
		r.Container, r.Machine = &bootprobe.Container{ID: id}, ""
		r.Process1 = &bootprobe.Process{Name: "app", Ticks: ticks}
	}
}

func TestTheLabsReports(t *testing.T) {
	t.Chdir(t.TempDir())
	emptyTemp := func(t *testing.T, dir string) { require.NoError(t, os.RemoveAll(filepath.Join(dir, "tmp"))) }
	for _, test := range []struct {
		name          string
		first, second func(*bootprobe.Report)
		between       func(t *testing.T, dir string)
		swap          bool
		happened      Event
		machine       Sameness
		temp, home    scenarios.Outcome
		says          []string
	}{
		{name: "nothing happened", happened: Nothing, machine: Same, temp: scenarios.Survived, home: scenarios.Survived,
			says: []string{"These two runs test nothing"}},
		{name: "rebooted", first: boots("b1", "m"), second: boots("b2", "m"), between: emptyTemp,
			happened: Rebooted, machine: Same, temp: scenarios.Lost, home: scenarios.Survived,
			says: []string{"The machine was rebooted", "lost its file and its rows (rows 1 → 1)", "kept its file and its rows (rows 1 → 2)"}},
		{name: "wrong order", first: boots("b1", "m"), second: boots("b2", "m"), swap: true,
			happened: Rebooted, machine: Same, temp: scenarios.Survived, home: scenarios.Survived,
			says: []string{"The order was wrong"}},
		{name: "another machine of the same name", first: boots("b1", "m1"), second: boots("b2", "m2"),
			between:  func(t *testing.T, dir string) { emptyTemp(t, dir); require.NoError(t, os.RemoveAll(dir+"/home")) },
			happened: OtherMachine, machine: Different, temp: scenarios.Unknown, home: scenarios.Unknown,
			says: []string{"two different machines", "hostname is no identity"}},
		{name: "restarted container", first: contained("aaaa", 10), second: contained("aaaa", 20),
			happened: Restarted, machine: Same, temp: scenarios.Survived, home: scenarios.Survived,
			says: []string{"restarted, not recreated", "no proof of a durable place"}},
		{name: "recreated container", first: contained("aaaa", 10), second: contained("bbbb", 20), between: emptyTemp,
			happened: Recreated, machine: Same, temp: scenarios.Lost, home: scenarios.Survived,
			says: []string{"The container was recreated", "the container is another"}},
		{name: "rolled back", first: boots("b1", "m"), second: boots("b2", "m"), between: nil,
			happened: Rebooted, machine: Same, temp: scenarios.Changed, home: scenarios.Survived,
			says: []string{"as after a rollback"}},
		{name: "others wrote meanwhile", first: boots("b1", "m"), second: boots("b2", "m"),
			between:  func(t *testing.T, dir string) { emptyTemp(t, dir); lab(t, dir, nil) },
			happened: Rebooted, machine: Same, temp: scenarios.Lost, home: scenarios.Survived,
			says: []string{"lost its file and its rows (rows 1 → 2)"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			between := test.between
			if test.name == "rolled back" {
				lab(t, dir, nil)
				require.NoError(t, os.CopyFS(dir+"/snapshot", os.DirFS(dir+"/tmp")))
				between = func(t *testing.T, dir string) {
					emptyTemp(t, dir)
					require.NoError(t, os.Rename(dir+"/snapshot", dir+"/tmp"))
				}
			}
			a := lab(t, dir, test.first)
			if between != nil {
				between(t, dir)
			}
			b := lab(t, dir, test.second)
			if test.swap {
				a, b = b, a
			}
			c := Explain(a, b)
			require.Equal(t, test.happened, c.Happened)
			require.Equal(t, test.machine, c.Machine)
			require.Equal(t, test.swap, c.Swapped)
			require.Equal(t, test.temp, c.Places[0].Outcome, text(t, c))
			require.Equal(t, test.home, c.Places[1].Outcome, text(t, c))
			for _, s := range test.says {
				require.Contains(t, text(t, c), s)
			}
		})
	}
}

func TestOneReportTwiceTellsNothing(t *testing.T) {
	t.Chdir(t.TempDir())
	a := lab(t, t.TempDir(), nil)
	c := Explain(a, a)
	require.Equal(t, 2, c.Count(scenarios.Unknown))
	require.Contains(t, text(t, c), "the same run of the probe")
}

func TestMixedProbesAreNotCompared(t *testing.T) {
	before := script(t, "before")
	t.Chdir(t.TempDir())
	c := Explain(before, lab(t, t.TempDir(), nil))
	require.Equal(t, 2, c.Count(scenarios.Unknown))
	require.Contains(t, text(t, c), "neither finds what the other left")
}

func TestFilesThatAreNoReport(t *testing.T) {
	whole, err := os.ReadFile(filepath.Join("testdata", "article", "before.json"))
	require.NoError(t, err)
	for name, test := range map[string]struct{ content, says string }{
		"empty":     {" \n", "is empty"},
		"truncated": {string(whole[:len(whole)/2]), "ends in the middle"},
		"not json":  {"boot_id: 12", "is not JSON at byte 1"},
		"a list":    {"[1]", "holds no JSON object"},
		"other":     {`{"name": "x"}`, "no probe's report"},
		"two":       {string(whole) + string(whole), "more than one report"},
		"newer":     {`{"kind": "persistencelab boot probe", "version": 9}`, "newer lab"},
		"foreign":   {`{"kind": "Pod"}`, `a "Pod"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("x.json", strings.NewReader(test.content))
			require.ErrorContains(t, err, test.says)
			require.ErrorAs(t, err, new(*Damaged))
		})
	}
}

// No report steers the reader's terminal or the page it ends up in.
func TestHostileText(t *testing.T) {
	t.Chdir(t.TempDir())
	a := lab(t, t.TempDir(), func(r *bootprobe.Report) {
		r.Hostname = "web\x1b[2J|<script>"
		r.Places[0].Path = "/tmp\x1b]0;x\x07|`"
	})
	for _, f := range Formats() {
		var b bytes.Buffer
		require.NoError(t, f.Write(&b, Explain(a, a), Options{}))
		require.NotContains(t, b.String(), "\x1b")
		if f.Name == "markdown" {
			require.NotContains(t, b.String(), "<script>")
		}
	}
}
