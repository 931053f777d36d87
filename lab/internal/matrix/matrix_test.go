package matrix

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// leftOut are the kinds of the truth table that the lab does not have.
var leftOut = []string{"vol-driver-image", "ramfs", "glob", "rootfs", "rootfs-O", "etc-hosts", "etc-resolv", "etc-hostname", "etc-other"}

// truth reads the truth table.
func truth(t *testing.T) [][]string {
	t.Helper()
	f, err := os.Open("testdata/cells.csv")
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	return rows[1:]
}

func TestEveryKindAndEventOfTheTruthIsThere(t *testing.T) {
	var mounts, events []string
	for _, k := range Kinds() {
		mounts = append(mounts, k.Name)
	}
	for _, e := range Events() {
		events = append(events, e.Name)
	}
	for _, row := range truth(t) {
		if !slices.Contains(leftOut, row[0]) {
			require.Contains(t, mounts, row[0])
		}
		require.Contains(t, events, row[1])
	}
}

// Every cell's scenario must be one that a plan can be made of, with a line to
// type for every step.
func TestEveryCellCanBePlanned(t *testing.T) {
	nonce := 0
	o := experiment.PlanOptions{
		RunID: "test", Folder: "/folder",
		Images: func(extra *scenarios.Image) (engine.Image, error) {
			if extra != nil && extra.Tag != "" {
				return engine.Image{Ref: extra.Tag}, nil
			}
			return engine.Image{Ref: "localhost/probe:1"}, nil
		},
		Nonce: func() string { nonce++; return fmt.Sprint(nonce) },
	}
	for _, k := range Kinds() {
		for _, e := range Events() {
			sc := Scenario(k, e)
			p, err := experiment.New(sc, &sc.Variants[0], o)
			require.NoError(t, err, "%s, %s", k.Name, e.Name)
			reads := 0
			for _, st := range p.Steps {
				require.NotEmpty(t, st.Commands, "%s, %s: %s", k.Name, e.Name, st.Verb)
				for _, c := range st.Commands {
					require.NotContains(t, c, "%!", "%s, %s: %s", k.Name, e.Name, st.Verb)
				}
				if st.Verb == "read" {
					reads++
				}
			}
			require.Equal(t, 1, reads)
			prunes := strings.Contains(e.Name, "prune") || e.Name == "service restart"
			require.Equal(t, prunes || e.Name == "volume rm -f+run" && strings.HasPrefix(k.Name, "vol-opt"), p.NeedsOwnStore(), "%s, %s", k.Name, e.Name)
		}
	}
}

func TestSelect(t *testing.T) {
	for _, c := range []struct {
		list string
		want []string
	}{
		{"none", []string{"none"}},
		{"tmpfs, none", []string{"none", "tmpfs"}},
		{"none*", []string{"none", "none-/tmp", "none-/run"}},
		{"ANON?MOUNT", []string{"anon-mount"}},
		{"readonly+vol", []string{"readonly+vol"}},
	} {
		kinds, err := SelectMounts(c.list)
		require.NoError(t, err)
		var got []string
		for _, k := range kinds {
			got = append(got, k.Name)
		}
		require.Equal(t, c.want, got, c.list)
	}
	events, err := SelectEvents("restart,rm -v by first, second reads")
	require.NoError(t, err)
	require.Len(t, events, 2)
	all, err := SelectEvents("")
	require.NoError(t, err)
	require.Len(t, all, len(Events()))

	for name, near := range map[string]string{"vol-prcreated": "vol-precreated", "zzz": "", "named": "imgvol+named"} {
		_, err := SelectMounts(name)
		var unknown *SelectError
		require.ErrorAs(t, err, &unknown, name)
		require.Equal(t, near, unknown.Nearest, name)
	}
}

// A cell says what its record shows.
func TestJudge(t *testing.T) {
	kinds, events := Kinds(), Events()
	k, e := kinds[0], events[slices.IndexFunc(events, func(e Event) bool { return e.Name == "rm+run" })]
	inUse := events[slices.IndexFunc(events, func(e Event) bool { return e.Name == "volume rm (in use)" })]
	for name, c := range map[string]struct {
		event  Event
		record func(*experiment.Record)
		want   Outcome
	}{
		"nothing":        {e, func(*experiment.Record) {}, Unknown},
		"a fault":        {e, func(r *experiment.Record) { r.Fault = "the probe does not answer" }, Unknown},
		"skipped":        {e, func(r *experiment.Record) { r.Skipped = "needs podman 5.4" }, Skipped},
		"refused":        {e, func(r *experiment.Record) { r.Fault = "no"; refuse(r) }, EventRefused},
		"refused, yet":   {inUse, func(r *experiment.Record) { r.Fault = "no"; refuse(r) }, EventRefused},
		"refusal taken":  {e, func(r *experiment.Record) { r.Fault = "later"; refuse(r); r.Steps[0].Error = "" }, Unknown},
		"cut short":      {e, func(r *experiment.Record) { r.Fault = "interrupted" }, Unknown},
		"no application": {inUse, func(r *experiment.Record) { r.Fault = "gone" }, Unknown},
	} {
		sc := Scenario(k, c.event)
		p, err := experiment.New(sc, &sc.Variants[0], experiment.PlanOptions{
			Images: func(*scenarios.Image) (engine.Image, error) { return engine.Image{Ref: "x"}, nil },
			Nonce:  func() string { return "n" },
		})
		require.NoError(t, err)
		rec := &experiment.Record{}
		c.record(rec)
		got, _ := Judge(p, rec, engine.Facts{}, c.event, k)
		require.Equal(t, c.want, got, name)
	}
}

func refuse(r *experiment.Record) {
	r.Steps = []experiment.StepRecord{{Verb: "rm", Error: "no", Proof: &experiment.Proof{Refused: "no"}}}
}

func TestRepeatsThatDifferVary(t *testing.T) {
	var c Cell
	c.add(Survived, "a")
	require.Equal(t, Survived, c.Outcome)
	c.add(Survived, "a")
	require.Equal(t, Survived, c.Outcome)
	c.add(Lost, "b")
	require.Equal(t, Varies, c.Outcome)
	require.Equal(t, "2× survived, 1× lost", c.Detail)
	c.add(Unknown, "down")
	require.Equal(t, Unknown, c.Outcome, "what was not observed can't be summed up")
}

// table makes a table without an engine: outcomes in turn, one of them hostile.
func table(t *testing.T) *Table {
	t.Helper()
	records, err := newSpool(t.TempDir())
	require.NoError(t, err)
	tab := &Table{
		Tool: "lab test", Started: time.Unix(0, 0).UTC(), Took: 90 * time.Second, Mounts: Kinds(), Events: Events(), records: records,
		Engine: engine.Facts{Name: "podman", Version: "4.3.1", StorageDriver: "overlay", Runtime: "runc 1.1.5", Cgroups: "v2", Kernel: "6.1", OS: "debian 12"},
	}
	t.Cleanup(func() { require.NoError(t, tab.Close()) })
	for _, k := range tab.Mounts {
		for _, e := range tab.Events {
			c := Cell{Mount: k.Name, Event: e.Name, Took: time.Second}
			c.add(order[len(tab.Cells)%len(order)], "because | of <b>\x1b[31m\u202e it\nall")
			at, err := records.add(&experiment.Record{RunID: fmt.Sprint(len(tab.Cells))})
			require.NoError(t, err)
			c.evidence = append(c.evidence, at)
			tab.Cells = append(tab.Cells, c)
		}
	}
	return tab
}

func written(t *testing.T, f Format, tab *Table, o Options) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, f.Write(&b, tab, o))
	return b.String()
}

func TestFormatsKeepTheirForm(t *testing.T) {
	tab := table(t)
	var against bytes.Buffer
	require.NoError(t, JSON(&against, tab, Options{}))
	doc, err := Read(&against)
	require.NoError(t, err)
	doc.Cells[3].Outcome = Survived
	tab.Compare(doc)
	_, differ := tab.Count()
	require.Equal(t, 1, differ)

	for _, f := range Formats() {
		s := written(t, f, tab, Options{Unicode: true, Verbose: true})
		require.True(t, utf8.ValidString(s), f.Name)
		if f.Name != "json" { // there they are escaped
			require.NotContains(t, s, "\x1b", f.Name)
			require.NotContains(t, s, "\u202e", f.Name)
		}
	}
	for _, width := range []int{0, 60, 100, 300} {
		for _, line := range strings.Split(written(t, Formats()[0], tab, Options{Width: width, Unicode: true, Verbose: true}), "\n") {
			most := posterWidth
			if width > 0 {
				most = min(width, posterWidth)
			}
			require.LessOrEqual(t, utf8.RuneCountInString(line), most, line)
		}
	}
	for _, r := range written(t, Formats()[0], &Table{Mounts: tab.Mounts, Events: tab.Events, Cells: tab.Cells, Engine: tab.Engine}, Options{}) {
		if r > 0x7f && r != '×' {
			t.Fatalf("%q in a text for a terminal without unicode", r)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(written(t, Formats()[2], tab, Options{}))).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, len(tab.Cells)+1)
	require.Equal(t, []string{"mount", "event", "outcome", "detail", "seconds", "against", "differs"}, rows[0])
	require.Equal(t, "true", rows[4][6])
}

func TestJSONKeepsTheEvidence(t *testing.T) {
	tab := table(t)
	s := written(t, Formats()[3], tab, Options{})
	require.Contains(t, s, `"run_id":"7"`)
	doc, err := Read(strings.NewReader(s))
	require.NoError(t, err)
	require.Len(t, doc.Cells, len(tab.Cells))
	for i := range doc.Cells {
		require.Equal(t, tab.Cells[i].Outcome, doc.Cells[i].Outcome)
	}
	for _, bad := range []string{"", "{}", `{"version":1}`, s[:len(s)/2], `{"version":2,"document":"matrix"}`, strings.Replace(s, `"outcome":"lost"`, `"outcome":"gone"`, 1)} {
		_, err := Read(strings.NewReader(bad))
		require.Error(t, err)
	}
}

// A table that was written is shown as it was, and in part.
func TestShownAgain(t *testing.T) {
	tab := table(t)
	doc, err := Read(strings.NewReader(written(t, Formats()[3], tab, Options{})))
	require.NoError(t, err)
	again, err := doc.Table("", "")
	require.NoError(t, err)
	again.Compared = tab.Compared
	for i := range again.Cells {
		again.Cells[i].Against = tab.Cells[i].Against
	}
	for _, f := range Formats() {
		if f.Name != "json" {
			require.Equal(t, written(t, f, tab, Options{Verbose: true}), written(t, f, again, Options{Verbose: true}), f.Name)
		}
	}
	part, err := doc.Table(tab.Mounts[0].Name, tab.Events[0].Name)
	require.NoError(t, err)
	require.Len(t, part.Cells, 1)
	require.Equal(t, tab.Cells[0].Outcome, part.Cells[0].Outcome)

	doc.Cells = doc.Cells[1:]
	_, err = doc.Table("", "")
	require.ErrorContains(t, err, tab.Mounts[0].Name+" × "+tab.Events[0].Name+" is not there")
}

// Mounts with the same events and the same reason stand on one line.
func TestReasonsAreFolded(t *testing.T) {
	tab := &Table{Events: []Event{{Name: "checkpoint+restore"}, {Name: "restart"}}}
	for i := range manyMounts + 2 {
		k := Kind{Name: fmt.Sprint("kind-", i)}
		tab.Mounts = append(tab.Mounts, k)
		detail := "criu is not there"
		if i < 2 {
			detail = "the kernel is too old"
		}
		tab.Cells = append(tab.Cells,
			Cell{Mount: k.Name, Event: "checkpoint+restore", Outcome: Skipped, Detail: detail},
			Cell{Mount: k.Name, Event: "restart", Outcome: Survived})
	}
	require.Equal(t, []string{
		"kind-0, kind-1: checkpoint+restore: skipped: the kernel is too old",
		"kind-2, kind-3, kind-4, kind-5, kind-6, kind-7: checkpoint+restore: skipped: criu is not there",
	}, tab.special())
	for i := range tab.Cells {
		if tab.Cells[i].Detail != "" {
			tab.Cells[i].Detail = "criu is not there"
		}
	}
	require.Equal(t, []string{"8 mount kinds: checkpoint+restore: skipped: criu is not there"}, tab.special())
}

// The poster is one page that needs nothing else, and its drawing is whole.
func TestPoster(t *testing.T) {
	tab := table(t)
	s := written(t, Formats()[4], tab, Options{})
	for _, outside := range []string{"http://", "https://", "url(", "<script", "<img", "@import"} {
		require.NotContains(t, strings.ReplaceAll(s, `xmlns="http://www.w3.org/2000/svg"`, ""), outside)
	}
	svg := s[strings.Index(s, "<svg") : strings.Index(s, "</svg>")+6]
	rects := 0
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "rect" {
			rects++
		}
	}
	require.GreaterOrEqual(t, rects, len(tab.Cells))
	// Nothing but a letter or a shape tells two outcomes apart.
	seen := map[string]bool{}
	for _, o := range order {
		p := paints[o]
		require.False(t, seen[p.letter+p.shape], "%s looks like another", o)
		seen[p.letter+p.shape] = true
	}
	if file := os.Getenv("LAB_TEST_POSTER"); file != "" {
		require.NoError(t, os.WriteFile(file, []byte(s), 0o644))
	}
}

// Evidence goes to disk: what stays in memory of a cell is small.
func TestSweepKeepsNoEvidenceInMemory(t *testing.T) {
	dir := t.TempDir()
	tab, err := Sweep{
		Mounts: Kinds()[:2], Events: Events()[:3], Jobs: 3, Timeout: time.Minute, Folder: dir, Now: time.Now,
		Facts: func() engine.Facts { return engine.Facts{} },
		Plan: experiment.PlanOptions{
			Images: func(*scenarios.Image) (engine.Image, error) { return engine.Image{Ref: "x"}, nil },
			Nonce:  func() string { return "n" },
		},
		CarryOut: func(_ context.Context, p *experiment.Plan) *experiment.Record {
			return &experiment.Record{Variant: p.Variant.Name, Scenario: p.Scenario.Name, Skipped: "a test"}
		},
	}.Run(context.Background())
	require.NoError(t, err)
	defer tab.Close()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left, "the spool has no name: it goes with the lab")
	for i := range tab.Cells {
		c := &tab.Cells[i]
		require.Equal(t, Skipped, c.Outcome)
		rec, err := tab.records.read(c.evidence[0])
		require.NoError(t, err)
		require.Contains(t, string(rec), c.Mount)
		require.Contains(t, string(rec), c.Event)
	}
}
