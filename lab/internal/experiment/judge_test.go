package experiment

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// looked is what one step showed of the note.
type looked struct {
	found *wire.Found
	err   *wire.Error
	host  *HostLook
	none  bool // the step was not reached
}

func there(sha string) looked {
	return looked{found: &wire.Found{Present: true, SHA256: sha, Size: 10}}
}
func absent() looked { return looked{found: &wire.Found{}} }
func failed(c wire.Code) looked {
	return looked{err: &wire.Error{Code: c, Text: "the kernel says " + string(c)}}
}

var notReached = looked{none: true}

// TestOutcomes: what was seen → what it is called.
func TestOutcomes(t *testing.T) {
	const yaml = `
version: 1
name: judged
title: Judged
data: {note: {file: /data/note.txt}}
steps: [run, write, write, rm, run, read: at last]
mounts: [{bind: appdata, target: /data}]
variants: {one: {expect: {at last: {note: survived}}}}
`
	torn := there("b")
	torn.found.Torn = "it ends in the middle"
	shorter := there("b")
	shorter.found.Size = 4
	empty := there("b")
	empty.found.Size = 0
	hostSees := there("2")
	hostSees.host = &HostLook{Path: "/h", Present: true}
	hostBlind := there("2")
	hostBlind.host = &HostLook{Path: "/h", Skipped: "podman runs on another machine"}
	hostEmpty := there("2")
	hostEmpty.host = &HostLook{Path: "/h"}
	for _, c := range []struct {
		what          string
		first, second looked // the two writes
		last          looked // the read
		fault         string
		want          scenarios.Outcome
		detail        string
		written       bool
	}{
		{"as last written", there("1"), there("2"), there("2"), "", scenarios.Survived, "10 bytes", true},
		{"seen on the host", there("1"), there("2"), hostSees, "", scenarios.Survived, "seen on the host too", true},
		{"host not looked at", there("1"), there("2"), hostBlind, "", scenarios.Survived, "not looked at from the host: podman runs on another machine", true},
		{"not on the host", there("1"), there("2"), hostEmpty, "", scenarios.Changed, "not on the host", true},
		{"gone", there("1"), there("2"), absent(), "", scenarios.Lost, "no such file", true},
		{"rolled back", there("1"), there("2"), there("1"), "", scenarios.Changed, "rolled back", true},
		{"torn", there("1"), there("2"), torn, "", scenarios.Changed, "torn: it ends in the middle", true},
		{"shorter", there("1"), there("2"), shorter, "", scenarios.Changed, "shorter: 4 of 10 bytes", true},
		{"empty", there("1"), there("2"), empty, "", scenarios.Changed, "empty", true},
		{"other content", there("1"), there("2"), there("b"), "", scenarios.Changed, "different content", true},

		{"read-only", failed(wire.CodeReadOnly), failed(wire.CodeReadOnly), absent(), "", scenarios.Refused, "read-only", false},
		{"may not write", failed(wire.CodePermission), failed(wire.CodePermission), absent(), "", scenarios.Refused, "permission", false},
		{"no space", failed(wire.CodeNoSpace), failed(wire.CodeNoSpace), absent(), "", scenarios.Refused, "no-space", false},
		{"refused, then accepted, then gone", failed(wire.CodeNoSpace), there("2"), absent(), "", scenarios.Lost, "no such file", true},
		{"accepted, then refused: the first is what was written", there("1"), failed(wire.CodeNoSpace), there("1"), "", scenarios.Survived, "10 bytes", true},
		{"accepted, then refused, then gone", there("1"), failed(wire.CodeNoSpace), absent(), "", scenarios.Lost, "no such file", true},

		// What could not be observed is never lost.
		{"may not read", there("1"), there("2"), failed(wire.CodePermission), "", scenarios.Unknown, "permission", true},
		{"input/output error", there("1"), there("2"), failed(wire.CodeIO), "", scenarios.Unknown, "io", true},
		{"probe of another version", there("1"), there("2"), failed(wire.CodeVersion), "", scenarios.Unknown, "version", true},
		{"an answer that says nothing", there("1"), there("2"), looked{}, "", scenarios.Unknown, "says nothing", true},
		{"checkpoint not reached", there("1"), there("2"), notReached, "the engine went away", scenarios.Unknown, "the engine went away", true},
		{"not reached, nobody knows why", there("1"), there("2"), notReached, "", scenarios.Unknown, "not reached", true},
		{"write failed", failed(wire.CodeIO), failed(wire.CodeIO), absent(), "", scenarios.Unknown, "its write failed: the kernel says io", false},
		{"write not seen back", absent(), absent(), absent(), "", scenarios.Unknown, "its write failed", false},
		{"never written", notReached, notReached, absent(), "", scenarios.Unknown, "never written", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			p, _ := testPlan(t, yaml, 0)
			rec := &Record{Fault: c.fault}
			for i, st := range p.Steps {
				l := map[int]looked{1: c.first, 2: c.second, 5: c.last}[i]
				if i == 5 && l.none {
					break
				}
				sr := StepRecord{Index: st.Index, Verb: st.Verb}
				if (st.Verb == "write" || st.Verb == "read") && !l.none {
					sr.Items = []Observation{{Item: "note", Found: l.found, Error: l.err, Host: l.host}}
				}
				rec.Steps = append(rec.Steps, sr)
			}
			verdicts := Judge(p, rec, engine.Facts{Version: "4.3.1"})
			require.Len(t, verdicts, 1)
			v := verdicts[0]
			require.Equal(t, c.want, v.Outcome, v.Detail)
			require.Contains(t, v.Detail, c.detail)
			require.Equal(t, c.written, v.Written)
			require.NotEmpty(t, v.Why)
			switch c.want {
			case scenarios.Unknown:
				require.Equal(t, NotJudged, v.Judgement)
			case scenarios.Survived:
				require.Equal(t, AsExpected, v.Judgement)
			default:
				require.Equal(t, Surprised, v.Judgement)
			}
		})
	}
}

// TestStoreThatRefuses: what a store does not take is as expected where that
// was the question, and no answer where it was not.
func TestStoreThatRefuses(t *testing.T) {
	for want, judgement := range map[string]Judgement{"refused": AsExpected, "survived": NotJudged, "lost": NotJudged} {
		p, _ := testPlan(t, `
version: 1
name: t
title: T
services: {db: database}
data: {colour: {key: colour}}
steps: [run, write, read: end]
expect: {end: {colour: `+want+`}}
`, 0)
		rec := &Record{Steps: []StepRecord{
			{Verb: "run"},
			{Verb: "write", Items: []Observation{{Item: "colour", Error: &wire.Error{Code: wire.CodeNoSpace, Text: "no room at all"}}}},
			{Verb: "read", Items: []Observation{{Item: "colour", Found: &wire.Found{}}}},
		}}
		v := Judge(p, rec, engine.Facts{Version: "4.3.1"})[0]
		require.Equal(t, scenarios.Refused, v.Outcome)
		require.Equal(t, judgement, v.Judgement, want)
		require.Equal(t, "no room at all", v.Detail)
	}
}

// TestSkippedIsNotUnknown: what this engine can't do is skipped, with what it
// needs.
func TestSkippedIsNotUnknown(t *testing.T) {
	p, _ := testPlan(t, everyMount, 0)
	rec := &Record{Skipped: "volume subpath needs podman 5.4"}
	for _, v := range Judge(p, rec, engine.Facts{Version: "4.3.1"}) {
		require.Equal(t, Skipped, v.Judgement)
		require.Contains(t, v.Why, "needs podman 5.4")
		require.Equal(t, rec.Skipped, v.Detail, "and so says a table of plain rows")
	}
}

// TestWhy: one sentence that names the place and the event.
func TestWhy(t *testing.T) {
	const yaml = `
version: 1
name: why
title: Why
data:
  layer: {file: /var/note.txt}
  volume: {file: /vol/note.txt}
  inner: {file: /vol/host/note.txt}
  tmp: {file: /tmp/mem/note.txt}
  memory: {memory: visits}
steps: [run, write, restart, read: restarted, rm, run, read: removed]
mounts: [{volume: v, target: /vol}, {bind: h, target: /vol/host}, {tmpfs: /tmp/mem}]
variants:
  one:
    expect:
      restarted: {layer: survived, volume: survived, inner: survived, tmp: lost, memory: lost}
      removed: {layer: lost, volume: survived, inner: survived, tmp: lost, memory: lost}
`
	p, _ := testPlan(t, yaml, 0)
	read := map[string]PlannedStep{}
	for _, st := range p.Steps {
		read[st.Label] = st
	}
	for _, c := range []struct {
		at, item string
		outcome  scenarios.Outcome
		place    place
		event    string
	}{
		{"restarted", "layer", scenarios.Survived, inLayer, "restart"},
		{"restarted", "memory", scenarios.Lost, inMemory, "restart"},
		{"restarted", "tmp", scenarios.Lost, inTmpfs, "restart"},
		{"removed", "layer", scenarios.Lost, inLayer, "rm and run"},
		{"removed", "volume", scenarios.Survived, inVolume, "rm and run"},
		{"removed", "inner", scenarios.Survived, onHost, "rm and run"},
	} {
		got := why(p, read[c.at], sight{item: p.items[c.item]}, c.outcome)
		require.Contains(t, got, string(c.place))
		require.Contains(t, got, c.event)
		require.NotContains(t, got, "\n")
	}
	require.NotContains(t, strings.ToLower(why(p, read["removed"], sight{item: p.items["layer"]}, scenarios.Unknown)), "lost")
}
