package classroom

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
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

var update = flag.Bool("update", false, "rewrite the goldens")

// answer is a prediction in short: "note lost! lost" is item, predicted (with
// ! for sure), and what came back.
func answer(short string) Answer {
	f := strings.Fields(short)
	a := Answer{Question: Question{"no mount", f[0], "after rm"}}
	word, sure := strings.CutSuffix(f[1], "!")
	if sure {
		a.Sure = &sure
	}
	a.Predicted = scenarios.Outcome(word)
	x := &Result{Expected: scenarios.Lost, Judgement: experiment.AsExpected, Seen: f[2]}
	if f[2] == "unknown" {
		x.Judgement = experiment.NotJudged
	} else {
		x.Actual = scenarios.Outcome(f[2])
		if x.Actual != a.Predicted {
			x.Misconception, x.Belief = f[0]+"-stays", "A "+f[0]+" stays."
		}
	}
	a.Result = x
	return a
}

// sitting is one session of a learner, with one round of each scenario named.
func sitting(n int, learner string, identified bool, rounds ...[]string) *Attempt {
	at := nine.Add(time.Duration(n) * time.Hour)
	a := New("lab test", learner, identified, at, func(k int) string { return fmt.Sprintf("%0*x", 2*k, n) })
	for _, r := range rounds {
		round := Round{Scenario: r[0], Title: "About " + r[0], Lesson: "disposable-on-purpose", Hash: "h", Number: 1}
		for _, short := range r[1:] {
			round.Answers = append(round.Answers, answer(short))
		}
		sealed := a.Seal(round, at)
		sealed.Engine = EngineOf(engine.Facts{Name: "podman", Version: "4.3.1"})
		sealed.Finished = at.Add(time.Minute)
	}
	return a
}

// class is five learners: four answer one scenario, one of them twice in two
// sessions; one answers another; one has only sealed.
func class() []*Attempt {
	sealed := sitting(9, "keen-mole-0009", false)
	sealed.Seal(Round{Scenario: "one", Hash: "h", Number: 1, Answers: []Answer{{Question: Question{"no mount", "note", "after rm"}, Predicted: scenarios.Lost}}}, nine)
	return []*Attempt{
		sitting(1, "amber-otter-0001", false, []string{"one", "note survived! lost", "seen lost lost"}),
		sitting(2, "brave-newt-0002", false, []string{"one", "note survived! lost", "seen lost lost"}),
		sitting(3, "Åsa =Öberg", true, []string{"one", "note survived lost", "seen survived lost"}),
		sitting(4, "calm-seal-0004", false, []string{"one", "note lost lost", "seen lost unknown"}, []string{"two", "note lost lost"}),
		sitting(5, "amber-otter-0001", false, []string{"one", "note lost lost", "seen lost lost"}),
		sealed,
	}
}

func TestCounts(t *testing.T) {
	table := Make(class())
	require.Equal(t, 6, table.Rounds)
	require.Equal(t, 1, table.Sealed)
	require.Len(t, table.Learners, 5)
	require.Len(t, table.Answers, 11)
	one := table.Scenarios[0]
	require.Equal(t, "one", one.Name)
	require.Equal(t, 4, one.Total.Learners)
	require.Equal(t, 1, one.Total.Twice)
	// note: 1 of 4 right, 3 wrong, 2 of them sure. seen: 2 right, 1 wrong, 1 unknown.
	require.Equal(t, Tally{Right: 3, Wrong: 4, SureWrong: 2, NotCounted: 1}, one.Total.Before)
	require.Equal(t, Tally{Right: 1, Wrong: 1, SureWrong: 1}, one.Total.Again)
	require.Equal(t, Tally{Right: 2}, one.Total.After)
	note := one.Questions[0]
	require.Equal(t, map[scenarios.Outcome]int{scenarios.Survived: 3, scenarios.Lost: 1}, note.Before)
	require.Equal(t, map[scenarios.Outcome]int{scenarios.Lost: 1}, note.After)
	require.Equal(t, []Belief{
		{Scenario: "one", ID: "note-stays", Text: "A note stays.", Before: 3, After: 2, Asked: 4},
		{Scenario: "one", ID: "seen-stays", Text: "A seen stays.", Before: 1, After: 1, Asked: 4},
	}, table.Beliefs)
	// Last rounds: otter 2/2, newt 1/2, Åsa 0/2, seal 1/1 and 1/1.
	require.Equal(t, []Lesson{{Key: "disposable-on-purpose", Tally: Tally{Right: 5, Wrong: 3, SureWrong: 1, NotCounted: 1}, Repeat: true}}, table.Lessons)
	worst := table.WrongAndSure()
	require.Len(t, worst, 2)
	require.Equal(t, "note", worst[0].Row.Item)
}

func TestASessionCountsOnce(t *testing.T) {
	short := sitting(1, "amber-otter-0001", false, []string{"one", "note lost lost"})
	long := sitting(1, "amber-otter-0001", false, []string{"one", "note lost lost"}, []string{"two", "note lost lost"})
	for _, order := range [][]*Attempt{{short, long, short}, {long, short}} {
		table := Make(order)
		require.Equal(t, 2, table.Rounds)
		require.Equal(t, []string{long.FileName()}, table.Repeated)
	}
}

func TestTheTableDoesNotDependOnTheOrderOfItsFiles(t *testing.T) {
	attempts := class()
	var first, second bytes.Buffer
	require.NoError(t, CSV(&first, Make(attempts), Options{}))
	attempts[0], attempts[4], attempts[2], attempts[3] = attempts[4], attempts[0], attempts[3], attempts[2]
	require.NoError(t, CSV(&second, Make(attempts), Options{}))
	require.Equal(t, first.String(), second.String())
}

func TestHide(t *testing.T) {
	for cells, want := range map[[3]int]string{
		{5, 7, 0}: "5 7 0",
		{9, 1, 0}: "· · 0", // 1 can be had from the sum: 9 goes too
		{9, 4, 1}: "9 · ·",
		{9, 2, 1}: "9 · ·", // two hidden that are three together
		{1, 1, 9}: "· · ·", // two hidden that are two: both are 1
		{0, 0, 2}: "0 0 ·",
		{3, 3, 3}: "3 3 3",
	} {
		hidden := Hide(cells[:])
		var got []string
		for i, c := range cells {
			if hidden[i] {
				got = append(got, hiddenCell)
			} else {
				got = append(got, fmt.Sprint(c))
			}
		}
		require.Equal(t, want, strings.Join(got, " "), "%v", cells)
	}
}

// The formats, each as it is asked for in class; rewritten by -update.
func TestFormats(t *testing.T) {
	left := []error{&FileError{File: "x/bad.json", Fault: Truncated, Reason: "the file is cut off after 10 bytes"}}
	roster := Roster{"amber-otter-0001": {Name: "Otter, Amber", Email: "a@example.org", SISLoginID: "otter"}}
	views := map[string]Options{
		"projector":          {By: ByScenario, View: View{Anonymous: true}, Unicode: true},
		"projector-revealed": {By: ByScenario, View: View{Anonymous: true, Reveal: true}, Unicode: true},
		"teacher":            {By: ByLearner, View: View{Reveal: true}, Roster: roster},
	}
	for view, o := range views {
		o.LeftOut = left
		for _, f := range Formats() {
			if strings.HasPrefix(f.Name, "gradebook") && len(o.Roster) == 0 {
				continue
			}
			var b bytes.Buffer
			require.NoError(t, f.Write(&b, Make(class()), o))
			golden(t, view+"."+f.Name, b.Bytes())
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got), "go test ./lab/internal/classroom -update writes it anew")
}

func TestTheProjectorShowsNoNameAndNoAnswerTooEarly(t *testing.T) {
	for _, f := range Formats()[:5] {
		for _, by := range []Rows{ByLearner, ByScenario} {
			var b bytes.Buffer
			require.NoError(t, f.Write(&b, Make(class()), Options{By: by, View: View{Anonymous: true}}))
			for _, a := range class() {
				require.NotContains(t, b.String(), a.Learner, f.Name)
				require.NotContains(t, b.String(), a.Session, f.Name)
			}
			if f.Name != "csv" { // the teacher's
				for _, word := range []string{"came back", "stays", `"right"`, `"actual"`, "wrong and sure"} {
					require.NotContains(t, strings.ReplaceAll(b.String(), "What came back, and so", ""), word, f.Name)
				}
			}
		}
	}
}

func TestHostileNamesStayText(t *testing.T) {
	a := sitting(1, "x", false, []string{"<script>alert(1)</script>", "note lost lost"})
	a.Rounds[0].Answers[0].Variant = "=cmd|' /C calc'!A0\x1b[31m"
	for _, f := range Formats() {
		var b bytes.Buffer
		require.NoError(t, f.Write(&b, Make([]*Attempt{a}), Options{By: ByScenario, View: View{Reveal: true}}))
		require.NotContains(t, b.String(), "\x1b", f.Name)
		if f.Name == "html" || f.Name == "markdown" {
			require.NotContains(t, b.String(), "<script", f.Name)
		}
		if f.Name == "csv" {
			require.Contains(t, b.String(), ",'=cmd")
		}
	}
}

func TestAnEmptyClass(t *testing.T) {
	for _, f := range Formats() {
		var b bytes.Buffer
		require.NoError(t, f.Write(&b, Make(nil), Options{By: ByLearner, View: View{Anonymous: true, Reveal: true}}), f.Name)
	}
}

func TestJSONIsOneDocument(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, JSON(&b, Make(class()), Options{View: View{Anonymous: true, Reveal: true}}))
	var d map[string]any
	require.NoError(t, json.Unmarshal(b.Bytes(), &d))
	require.Equal(t, "persistencelab class table", d["kind"])
}

func TestReadFollowsAFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(a *Attempt) string {
		file, err := a.WriteFile(dir)
		require.NoError(t, err)
		return file
	}
	attempts := class()
	write(attempts[0])
	cut := write(attempts[1])
	b, err := os.ReadFile(cut)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cut, b[:len(b)/2], 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "other.json"), []byte("{}"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".hidden.json"), []byte("{}"), 0o644))

	var r Reader
	got, bad := r.Read([]string{dir, dir, filepath.Join(dir, "none")})
	require.Len(t, got, 1)
	faults := map[Fault]string{}
	for _, err := range bad {
		var f *FileError
		require.True(t, errors.As(err, &f))
		faults[f.Fault] = f.File
	}
	require.Equal(t, map[Fault]string{
		Truncated: cut, Foreign: filepath.Join(dir, "sub", "other.json"), Unreadable: filepath.Join(dir, "none"),
	}, faults)

	before := r.State()
	same, _ := r.Read([]string{dir})
	require.Same(t, got[0], same[0], "not read again")
	require.Equal(t, before, r.State())
	write(attempts[2])
	require.NoError(t, os.WriteFile(cut, b, 0o644)) // handed in again
	more, bad := r.Read([]string{dir})
	require.Len(t, more, 3)
	require.Len(t, bad, 1)
	require.NotEqual(t, before, r.State())
}

func TestARoster(t *testing.T) {
	r, err := ReadRoster(strings.NewReader("\ufeffLearner,email,SIS_Login_ID\namber-otter-0001, a@example.org ,otter\n"))
	require.NoError(t, err)
	require.Equal(t, Roster{"amber-otter-0001": {Email: "a@example.org", SISLoginID: "otter"}}, r)
	for _, bad := range []string{"", "name,email\n", "learner,phone\n", "learner\na\na\n", "learner,email\na\n"} {
		_, err := ReadRoster(strings.NewReader(bad))
		require.Error(t, err, "%q", bad)
	}
	require.Equal(t, []string{"brave-newt-0002", "calm-seal-0004", "keen-mole-0009"}, Make(class()).Unmatched(r))
}
