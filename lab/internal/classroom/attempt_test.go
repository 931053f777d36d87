package classroom

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

var nine = time.Date(2026, 3, 1, 9, 0, 0, 123456789, time.UTC)

// counter gives hex digits that differ at every call.
func counter() func(int) string {
	i := 0
	return func(n int) string {
		i++
		return fmt.Sprintf("%0*x", 2*n, i)
	}
}

func attempt() *Attempt {
	a := New("lab test", "amber-otter-3f2a", false, nine, counter())
	yes := true
	r := a.Seal(Round{
		Scenario: "three-mounts", Hash: "abc", Number: 1,
		Answers: []Answer{
			{Question: Question{"no mount", "note", "after rm and run"}, Predicted: scenarios.Survived, Sure: &yes},
			{Question: Question{"no mount", "seen", "after rm and run"}, Predicted: scenarios.Lost},
		},
	}, nine)
	r.Answers[0].Result = &Result{Seen: "lost", Actual: scenarios.Lost, Expected: scenarios.Lost, Judgement: experiment.AsExpected,
		Misconception: "layer-outlives-rm", Belief: "What is <written> stays & stays."}
	r.Answers[1].Result = &Result{Actual: scenarios.Unknown, Expected: scenarios.Lost, Judgement: experiment.NotJudged}
	r.Engine = EngineOf(engine.Facts{Name: "podman", Version: "4.3.1", URL: "unix:///home/alice/podman.sock", BootID: "b-o-o-t"})
	r.Finished = nine.Add(time.Minute)
	a.Seal(Round{Scenario: "stop-and-start", Hash: "def", Number: 1,
		Answers: []Answer{{Question: Question{"no mount", "note", "after stop"}, Predicted: scenarios.Lost}}}, nine.Add(2*time.Minute))
	return a
}

func encode(t *testing.T, a *Attempt) []byte {
	t.Helper()
	b, err := a.Encode()
	require.NoError(t, err)
	return b
}

func fault(t *testing.T, b []byte) Fault {
	t.Helper()
	_, err := Decode(b)
	var bad *FileError
	require.ErrorAs(t, err, &bad)
	return bad.Fault
}

func TestAnAttemptComesBackAsItWas(t *testing.T) {
	a := attempt()
	dir := t.TempDir()
	file, err := a.WriteFile(dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "amber-otter-3f2a-"+a.Session+".json"), file)
	back, err := ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, encode(t, a), encode(t, back))
	require.Equal(t, "lost", back.Rounds[0].Answers[0].Result.Seen)
	require.Equal(t, scenarios.Unknown, back.Rounds[0].Answers[1].Result.Actual)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file stays")
}

func TestNothingInAFileNamesTheUserOrTheHost(t *testing.T) {
	b := string(encode(t, attempt()))
	require.NotContains(t, b, "alice")
	require.NotContains(t, b, "b-o-o-t")
	require.NotContains(t, b, "url")
}

func TestAFileCutOffAnywhereIsNoticed(t *testing.T) {
	b := bytes.TrimSpace(encode(t, attempt()))
	for n := range b {
		require.Equal(t, Truncated, fault(t, b[:n]), "after %d bytes", n)
	}
}

func TestAFileChangedAnywhereIsNoticed(t *testing.T) {
	b := encode(t, attempt())
	for i, c := range b {
		if c == ' ' || c == '\n' {
			continue // white space between members is not covered
		}
		changed := bytes.Clone(b)
		changed[i] = 'x'
		if c == 'x' {
			changed[i] = 'y'
		}
		_, err := Decode(changed)
		require.Error(t, err, "byte %d, %q", i, b[max(0, i-10):min(len(b), i+10)])
	}
}

func TestWhiteSpaceMayChange(t *testing.T) {
	for _, indent := range []string{"", "    "} {
		var out bytes.Buffer
		require.NoError(t, json.Indent(&out, encode(t, attempt()), "\r", indent))
		_, err := Decode(out.Bytes())
		require.NoError(t, err)
	}
}

// Somebody who knows the digest's rule and not the seal's.
func TestAPredictionChangedAfterTheSealIsNoticed(t *testing.T) {
	for name, edit := range map[string]func(a *Attempt){
		"predicted":   func(a *Attempt) { a.Rounds[0].Answers[0].Predicted = scenarios.Lost },
		"sure":        func(a *Attempt) { a.Rounds[0].Answers[0].Sure = nil },
		"time":        func(a *Attempt) { a.Rounds[0].Sealed = a.Rounds[0].Sealed.Add(-time.Hour) },
		"learner":     func(a *Attempt) { a.Learner = "brave-newt-0000" },
		"taken out":   func(a *Attempt) { a.Rounds = a.Rounds[1:] },
		"moved":       func(a *Attempt) { a.Rounds[0], a.Rounds[1] = a.Rounds[1], a.Rounds[0] },
		"answer gone": func(a *Attempt) { a.Rounds[0].Answers = a.Rounds[0].Answers[:1] },
	} {
		a := attempt()
		edit(a)
		require.Equal(t, Tampered, fault(t, encode(t, a)), name)
	}
}

func TestOtherFilesAreForeign(t *testing.T) {
	for name, b := range map[string]string{
		"json":     `{"a": 1}`,
		"a list":   `[]`,
		"text":     "hello",
		"a report": `{"version": 1, "tool": "lab", "results": []}`,
		"newer":    `{"kind": "persistencelab attempt", "version": 2, "rounds": {}, "digest": ""}`,
		"huge":     strings.Repeat(" ", MaxFile+1),
	} {
		require.Equal(t, Foreign, fault(t, []byte(b)), name)
	}
	_, err := ReadFile(filepath.Join(t.TempDir(), "none"))
	var bad *FileError
	require.True(t, errors.As(err, &bad))
	require.Equal(t, Unreadable, bad.Fault)
	_, err = ReadFile(t.TempDir())
	require.Error(t, err)
}

func TestAFieldOfALaterLabIsPassedOver(t *testing.T) {
	b := bytes.TrimSpace(encode(t, attempt()))
	var flat bytes.Buffer
	require.NoError(t, json.Compact(&flat, b))
	text := strings.Replace(flat.String(), `{"kind"`, `{"mood":"good","kind"`, 1)
	cut := strings.LastIndex(text, `"digest"`)
	text = text[:cut] + `"digest":"` + digestOf([]byte(text[:cut]+`"digest":""}`)) + `"}`
	_, err := Decode([]byte(text))
	require.NoError(t, err)
}

// Whatever is in a file, reading it ends in an attempt that holds together or
// in a FileError.
func FuzzDecode(f *testing.F) {
	b, err := attempt().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"kind":"persistencelab attempt","version":1,"rounds":[{"answers":[{"predicted":"x"}]}],"digest":"sha256:"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Decode(b)
		var bad *FileError
		if err != nil {
			if !errors.As(err, &bad) || bad.Reason == "" {
				t.Fatalf("%v is no FileError", err)
			}
			return
		}
		Make([]*Attempt{a})
		if _, err := Decode(encode(t, a)); err != nil {
			t.Fatalf("what was read can't be written and read again: %v", err)
		}
	})
}

func TestNames(t *testing.T) {
	require.Regexp(t, `^[a-z]+-[a-z]+-[0-9a-f]{4}$`, Nickname(func(int) string { return "00ff3f2a" }))
	name, err := CleanName("  Åsa   Öberg ")
	require.NoError(t, err)
	require.Equal(t, "Åsa Öberg", name)
	for _, bad := range []string{"", " ", "a\x1b[31m", "a\u202eb", "\xff", strings.Repeat("a", 65)} {
		_, err := CleanName(bad)
		require.Error(t, err, "%q", bad)
	}
	a := attempt()
	a.Learner = "../Åsa Ö"
	require.Equal(t, "____sa__-"+a.Session+".json", a.FileName())
}
