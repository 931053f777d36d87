package experiment

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// planOf makes a plan of a scenario with these data and steps.
func planOf(t *testing.T, text string) *Plan {
	t.Helper()
	s, err := scenarios.Parse("x.yaml", []byte("version: 1\nname: x\ntitle: X\n"+text), scenarios.Options{})
	require.NoError(t, err)
	n := 0
	p, err := New(s, &s.Variants[0], PlanOptions{RunID: "r", Folder: "/f", Nonce: func() string { n++; return fmt.Sprintf("n%d", n) },
		Images: func(*scenarios.Image) (engine.Image, error) { return engine.Image{Ref: "probe"}, nil }})
	require.NoError(t, err)
	return p
}

func found(sha string, rows int, nonces ...string) *wire.Found {
	return &wire.Found{Present: true, SHA256: sha, Rows: rows, Nonces: nonces, Size: 10}
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// seconds after the epoch.
func at(s float64) time.Time { return epoch.Add(time.Duration(s * float64(time.Second))) }

// recordOf is a record of the plan's steps, one second apart, with what was
// found by verb and how often the verb came before.
func recordOf(p *Plan, observe func(verb string, n int, sr *StepRecord)) *Record {
	rec := &Record{}
	count := map[string]int{}
	for i, st := range p.Steps {
		sr := StepRecord{Index: st.Index, Verb: st.Verb, On: st.On, Label: st.Label, Started: at(float64(i))}
		observe(st.Verb, count[st.Verb], &sr)
		count[st.Verb]++
		rec.Steps = append(rec.Steps, sr)
	}
	return rec
}

func TestTheFateOfAnInterruptedWrite(t *testing.T) {
	note := scenarios.Item{Kind: scenarios.File}
	rows := scenarios.Item{Kind: scenarios.SQLite, Rows: 3}
	talk := scenarios.Item{Kind: scenarios.Transcript}
	cache := scenarios.Item{Kind: scenarios.Cache}
	old := found("old", 3, "o")
	where, told := &wire.Interrupted{}, &wire.Interrupted{Acknowledged: true}
	torn := found("half", 3, "o")
	torn.Torn = "ends too early"
	for _, c := range []struct {
		name  string
		it    scenarios.Item
		crash Crash
		found *wire.Found
		want  fate
	}{
		{"old", note, Crash{Nonce: "n", Where: where, Old: old}, found("old", 0, "o"), fateOld},
		{"new", note, Crash{Nonce: "n", Where: where, Old: old}, found("new", 0, "n"), fateNew},
		{"torn", note, Crash{Nonce: "n", Where: where, Old: old}, torn, fateTorn},
		{"lost", note, Crash{Nonce: "n", Where: where, Old: old}, &wire.Found{}, fateLost},
		{"told and gone", note, Crash{Nonce: "n", Where: told, Old: old}, found("old", 0, "o"), fateForgotten},
		{"told and there", note, Crash{Nonce: "n", Where: told, Old: old}, found("new", 0, "n"), fateNew},
		{"somebody else's", note, Crash{Nonce: "n", Where: where, Old: old}, found("third", 0, "x"), fateOther},
		{"not looked at", note, Crash{Nonce: "n", Where: where, Old: old}, nil, fateUnknown},
		{"not interrupted", note, Crash{Nonce: "n", Old: old, Error: &wire.Error{}}, found("old", 0, "o"), fateUnknown},
		{"all rows", rows, Crash{Nonce: "n", Where: where, Old: old}, found("new", 6, "o", "n"), fateNew},
		{"half the rows", rows, Crash{Nonce: "n", Where: where, Old: old}, found("new", 4, "o", "n"), fateOther},
		{"a turn", talk, Crash{Nonce: "n", Where: where, Old: old}, found("new", 4, "o", "n"), fateNew},
		{"a turn, and the others gone", talk, Crash{Nonce: "n", Where: where, Old: old}, found("new", 1, "n"), fateOther},
		{"a cache", cache, Crash{Nonce: "n", Where: where, Old: old}, found("new", 0, "n-0123"), fateNew},
	} {
		require.Equal(t, c.want, fateOf(c.it, c.crash, c.found), c.name)
	}
}

// A sweep is as bad as its worst crash, and it is counted.
func TestASweepIsItsWorstCrash(t *testing.T) {
	p := planOf(t, `
data: {note: {file: /n}}
steps: [run, write, crash: {during: note, at: every, points: 3}, read: soon, rm, run, read: later]
expect: {soon: {note: survived}, later: {note: survived}}
`)
	crash := func(f *wire.Found, told bool) Crash {
		return Crash{Item: "note", Nonce: "n", How: ByProbe, Where: &wire.Interrupted{Stage: "writing", Byte: 5, Total: 10, Acknowledged: told}, Old: found("old", 0, "o"), Found: f}
	}
	torn := found("half", 0)
	torn.Torn = "ends too early"
	judge := func(crashes ...Crash) []Verdict {
		return Judge(p, recordOf(p, func(verb string, n int, sr *StepRecord) {
			switch verb {
			case "write":
				sr.Items = []Observation{{Item: "note", Nonce: "n1", Found: found("first", 0, "n1")}}
			case "crash":
				sr.Crashes = crashes
			case "read":
				sr.Items = []Observation{{Item: "note", Found: found("last", 0, "x")}}
			}
		}), engine.Facts{Version: "5.4.2"})
	}
	fine, new, bad, unseen := crash(found("old", 0, "o"), false), crash(found("new", 0, "n"), true), crash(torn, false), crash(nil, false)
	for _, c := range []struct {
		crashes []Crash
		want    scenarios.Outcome
		kills   Kills
	}{
		{[]Crash{fine, new, new}, scenarios.Survived, Kills{Kills: 3, Old: 1, New: 2}},
		{[]Crash{fine, bad, new}, scenarios.Changed, Kills{Kills: 3, Old: 1, New: 1, Torn: 1}},
		{[]Crash{fine, unseen, new}, scenarios.Unknown, Kills{Kills: 3, Old: 1, New: 1, Unknown: 1}},
		{[]Crash{bad, unseen, new}, scenarios.Changed, Kills{Kills: 3, New: 1, Torn: 1, Unknown: 1}},
		{[]Crash{fine, new, crash(found("old", 0, "o"), true)}, scenarios.Changed, Kills{Kills: 3, Old: 1, New: 1, Forgotten: 1}},
		{[]Crash{fine, new, crash(&wire.Found{}, false)}, scenarios.Lost, Kills{Kills: 3, Old: 1, New: 1, Lost: 1}},
	} {
		vs := judge(c.crashes...)
		require.Equal(t, c.want, vs[0].Outcome, c.kills)
		require.Equal(t, &c.kills, vs[0].Kills)
		// What the first look found is what the next is held against.
		require.Equal(t, scenarios.Survived, vs[1].Outcome)
		require.Nil(t, vs[1].Kills)
	}
}

// A cache that is torn in a sweep is one that its program works out again:
// that nothing did so between two kills is no violation.
func TestATornCacheInASweep(t *testing.T) {
	p := planOf(t, `
data: {c: {cache: /c, rebuild: auto, acceptable_loss: all}}
steps: [run, write, crash: {during: c, at: every, points: 3}, read: soon]
expect: {soon: {c: changed}}
`)
	torn := found("half", 0)
	torn.Torn = "ends too early"
	vs := Judge(p, recordOf(p, func(verb string, n int, sr *StepRecord) {
		switch verb {
		case "write":
			sr.Items = []Observation{{Item: "c", Nonce: "n1", Found: found("c", 0, "n1-ab")}}
		case "crash":
			c := Crash{Item: "c", Nonce: "n", Where: &wire.Interrupted{}, Old: found("c", 0, "o"), Found: torn}
			sr.Crashes = []Crash{c, c, c}
		case "read":
			sr.Items = []Observation{{Item: "c", Found: found("last", 0, "x")}}
		}
	}), engine.Facts{Version: "5.4.2"})
	require.Equal(t, AsExpected, vs[0].Judgement, "%+v", vs[0])
	require.Equal(t, 3, vs[0].Kills.Torn)
}

// The acceptable loss is judged whatever is expected, and by the age of what
// was lost.
func TestAcceptableLoss(t *testing.T) {
	gone := &wire.Found{}
	for _, c := range []struct {
		item  string // its keys
		seen  *wire.Found
		want  Judgement
		table string
	}{
		{"", gone, AsExpected, ""},
		{", acceptable_loss: none", gone, Violated, DecisionViolated},
		{", acceptable_loss: none", found("n2", 6, "n1", "n2"), Surprised, DecisionKept},
		{", acceptable_loss: all", gone, AsExpected, DecisionKept},
		// Written at 1 s and 3 s, removed at 4 s.
		{", acceptable_loss: 2s", gone, Violated, DecisionViolated},
		{", acceptable_loss: 3s", gone, AsExpected, DecisionKept},
		{", acceptable_loss: 1m", gone, AsExpected, DecisionKept},
		{", acceptable_loss: all", nil, NotJudged, DecisionUnknown},
		{", acceptable_loss: none", nil, NotJudged, DecisionUnknown},
	} {
		p := planOf(t, "data: {rows: {sqlite: /d, rows: 3"+c.item+"}}\n"+`
steps: [run, write, wait: 1s, write, rm, run, read: end]
expect: {end: {rows: lost}}
`)
		rec := recordOf(p, func(verb string, n int, sr *StepRecord) {
			switch verb {
			case "write":
				nonce := fmt.Sprintf("n%d", n+1)
				sr.Items = []Observation{{Item: "rows", Nonce: nonce, Found: found(nonce, 3*(n+1), nonce)}}
			case "read":
				sr.Items = []Observation{{Item: "rows", Found: c.seen}}
				if c.seen == nil {
					sr.Items[0].Error = &wire.Error{Code: wire.CodeIO, Text: "no answer"}
				}
			}
		})
		vs := Judge(p, rec, engine.Facts{Version: "5.4.2"})
		require.Equal(t, c.want, vs[0].Judgement, "%s %v", c.item, vs[0])
		table := Decide(p, rec, vs)
		if c.table == "" {
			require.Empty(t, table)
			continue
		}
		require.Equal(t, c.table, table[0].Verdict, c.item)
		require.Equal(t, "/d, in the container's writable layer", table[0].Where)
	}
}

// What is older than a rolled back item's acceptable loss is a violation;
// only what came after the state that is there is lost.
func TestOnlyWhatIsMissingIsLost(t *testing.T) {
	p := planOf(t, `
data: {rows: {sqlite: /d, rows: 3, acceptable_loss: 2s}, note: {file: /n, acceptable_loss: 2s}}
steps: [run, write, wait: 1s, write, rm, run, read: end]
expect: {end: {rows: changed, note: changed}}
`)
	rec := recordOf(p, func(verb string, n int, sr *StepRecord) {
		switch verb {
		case "write":
			nonce := fmt.Sprintf("n%d", n+1)
			sr.Items = []Observation{{Item: "rows", Nonce: nonce, Found: found("r"+nonce, 3*(n+1), nonce)}, {Item: "note", Nonce: nonce, Found: found("f"+nonce, 0, nonce)}}
		case "read":
			sr.Items = []Observation{{Item: "rows", Found: found("rn1", 3, "n1")}, {Item: "note", Found: found("fn1", 0, "n1")}}
		}
	})
	for _, v := range Judge(p, rec, engine.Facts{Version: "5.4.2"}) {
		require.Equal(t, scenarios.Changed, v.Outcome)
		require.Empty(t, v.Violation, "the write that is gone was a second old")
	}
}

func TestACacheMustComeBackByItself(t *testing.T) {
	for _, c := range []struct {
		keys    string
		rebuilt *Rebuilt
		expect  string
		want    Judgement
	}{
		{"rebuild: auto, acceptable_loss: all", &Rebuilt{Took: time.Second, Found: found("c", 0)}, "lost", AsExpected},
		{"rebuild: auto, acceptable_loss: all", &Rebuilt{Error: &wire.Error{Text: "no space"}}, "lost", Violated},
		{"rebuild: auto, acceptable_loss: all", nil, "lost", Violated},
		{"rebuild: by hand, acceptable_loss: all", nil, "lost", Violated},
		{"rebuild: by hand", nil, "{outcome: lost, violated: true}", AsExpected},
		{"rebuild: auto", &Rebuilt{Took: time.Second, Found: found("c", 0)}, "{outcome: lost, violated: true}", Surprised},
		{"acceptable_loss: all", nil, "lost", AsExpected},
	} {
		p := planOf(t, "data: {c: {cache: /c, "+c.keys+"}}\nsteps: [run, write, rm, run, read: end]\nexpect: {end: {c: "+c.expect+"}}\n")
		rec := recordOf(p, func(verb string, n int, sr *StepRecord) {
			switch verb {
			case "write":
				sr.Items = []Observation{{Item: "c", Nonce: "n1", Found: found("c", 0, "n1-ab")}}
			case "read":
				sr.Items = []Observation{{Item: "c", Found: &wire.Found{}, Rebuilt: c.rebuilt}}
			}
		})
		vs := Judge(p, rec, engine.Facts{Version: "5.4.2"})
		require.Equal(t, c.want, vs[0].Judgement, "%s: %+v", c.keys, vs[0])
	}
}

func TestLossWords(t *testing.T) {
	for want, l := range map[string]*scenarios.Loss{
		"": nil, "none": {}, "all": {All: true}, "1m": {Within: time.Minute}, "90s": {Within: 90 * time.Second},
		"1h": {Within: time.Hour}, "24h": {Within: 24 * time.Hour}, "30s": {Within: 30 * time.Second}, "10m": {Within: 10 * time.Minute},
	} {
		if want == "90s" {
			want = "1m30s"
		}
		require.Equal(t, want, LossWords(l))
	}
}
