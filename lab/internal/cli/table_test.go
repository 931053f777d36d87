package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/browsertest"
	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// A class of thirty, made by the real thing: each learner runs
// stop-and-start on Podman with answers from a file. The figures below are
// counted by hand from these rules:
//
//	learner   note               rows       seen
//	0–7       lost, sure         lost 0–4   lost 0–23
//	8–11      lost               survived   survived, unsure 24–29
//	12–29     survived           survived
//
// Learner 0's file is cut off and learner 29's is edited, so 28 count. What
// comes back is note survived, rows survived, seen lost. Learners 1–5 then do
// it again with everything right.
func TestAClassOfThirty(t *testing.T) {
	engine := testEngine(t)
	state := testState(t)
	answers := filepath.Join(state, "answers") // where all hand in
	learn := func(learner int, again bool, predict string) error {
		own := filepath.Join(state, fmt.Sprint("learner", learner))
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
		file := filepath.Join(own, "answers.yaml")
		text := "version: 1\nanswers:\n  stop-and-start: {predict: {no mount: " + predict + "}, seen: as shown}\n"
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
		args := append([]string{"learn", "stop-and-start", "--answers", file, "--attempts", answers}, engine...)
		if again {
			args = append(args, "--again")
		}
		if out, err := labCommand(t, own, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("learner %d: %w\n%s", learner, err, out)
		}
		return os.RemoveAll(filepath.Join(own, "runs")) // empty: a run that leaves something fails
	}
	var wg sync.WaitGroup
	errs := make([]error, 30)
	turns := make(chan int)
	for range runtime.NumCPU() + 1 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range turns {
				note, rows, seen := "survived", "survived", "lost"
				switch {
				case i < 8:
					note = "lost sure"
				case i < 12:
					note = "lost"
				}
				if i < 5 {
					rows = "lost"
				}
				if i >= 24 {
					seen = "survived unsure"
				}
				errs[i] = learn(i, false, fmt.Sprintf("{note: %s, rows: %s, seen: %s}", note, rows, seen))
				if errs[i] == nil && i >= 1 && i <= 5 {
					errs[i] = learn(i, true, "{note: survived, rows: survived sure, seen: lost}")
				}
			}
		}()
	}
	for i := range 30 {
		turns <- i
	}
	close(turns)
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	files, err := filepath.Glob(filepath.Join(answers, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 35)

	of := func(learner int) string {
		var p struct{ Learner string }
		b, err := os.ReadFile(filepath.Join(state, fmt.Sprint("learner", learner), "learn/progress.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &p))
		found, _ := filepath.Glob(filepath.Join(answers, p.Learner+"-*.json"))
		require.Len(t, found, 1)
		return found[0]
	}
	cut, edited := of(0), of(29)
	b, err := os.ReadFile(cut)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(cut, b[:len(b)-100], 0o644))
	b, err = os.ReadFile(edited)
	require.NoError(t, err)
	better := bytes.Replace(b, []byte(`"predicted": "survived"`), []byte(`"predicted": "lost"`), 3)
	require.NotEqual(t, b, better)
	require.NoError(t, os.WriteFile(edited, better, 0o644))

	stdout, stderr, code := labOutput(t, state, "table", "--format", "json", "--reveal", "--anonymous=false", answers)
	require.Equal(t, exitUnknown, code)
	require.Contains(t, stderr, "lab: error: left out: "+cut+": the file is cut off")
	require.Contains(t, stderr, "lab: error: left out: "+edited+": changed after it was written")
	var table struct {
		Rounds   int
		LeftOut  []string `json:"left_out"`
		Learners []struct {
			Before, After *struct{ Right, Wrong int }
		}
		Scenarios []struct {
			Learners, Second_Rounds int
			Questions               []struct {
				Item                  string
				Predicted             map[string]int
				Predicted_Last        map[string]int
				Actual                map[string]int
				Right, Wrong          int
				SureWrong             int `json:"wrong_and_sure"`
				Before, Again, Misled int
			}
		}
		Misconceptions []struct {
			ID              string
			Learners, Asked int
			Last            int `json:"learners_last"`
		}
		Lessons []struct {
			Lesson string
			Last   struct{ Right, Wrong int }
			Repeat bool
		}
		First []struct{ Item string } `json:"wrong_first"`
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &table))
	require.Equal(t, 33, table.Rounds)
	require.Len(t, table.LeftOut, 2)
	require.Len(t, table.Learners, 28)
	s := table.Scenarios[0]
	require.Equal(t, 28, s.Learners)
	require.Equal(t, 5, s.Second_Rounds)
	for i, want := range []struct {
		item                              string
		survived, lost, right, wrong, bad int
		actual                            string
		survivedLast, lostLast            int
	}{
		{"note", 17, 11, 17, 11, 7, "survived", 5, 0},
		{"rows", 24, 4, 24, 4, 0, "survived", 5, 0},
		{"seen", 5, 23, 23, 5, 0, "lost", 0, 5},
	} {
		q := s.Questions[i]
		require.Equal(t, want.item, q.Item)
		require.Equal(t, map[string]int{"survived": want.survived, "lost": want.lost}, q.Predicted, want.item)
		require.Equal(t, want.survivedLast, q.Predicted_Last["survived"], want.item)
		require.Equal(t, want.lostLast, q.Predicted_Last["lost"], want.item)
		require.Equal(t, map[string]int{want.actual: 28}, q.Actual, want.item)
		require.Equal(t, want.right, q.Right, want.item)
		require.Equal(t, want.wrong, q.Wrong, want.item)
		require.Equal(t, want.bad, q.SureWrong, want.item)
	}
	right, wrong := 0, 0
	for _, l := range table.Learners {
		right, wrong = right+l.Before.Right, wrong+l.Before.Wrong
	}
	require.Equal(t, [2]int{64, 20}, [2]int{right, wrong})
	require.Len(t, table.Misconceptions, 2)
	m := table.Misconceptions
	require.Equal(t, "stop-loses-files 11 of 28, 6 last", fmt.Sprintf("%s %d of %d, %d last", m[0].ID, m[0].Learners, m[0].Asked, m[0].Last))
	require.Equal(t, "stop-keeps-memory 5 of 28, 5 last", fmt.Sprintf("%s %d of %d, %d last", m[1].ID, m[1].Learners, m[1].Asked, m[1].Last))
	require.Equal(t, 73, table.Lessons[0].Last.Right) // 64 - 6 + 15
	require.Equal(t, 11, table.Lessons[0].Last.Wrong)
	require.False(t, table.Lessons[0].Repeat)
	require.Equal(t, "note", table.First[0].Item, "wrong and sure first")

	// For people: the same figures, and what the projector may not show.
	text, _, code := labOutput(t, state, "table", "--reveal", "--by", "scenario", answers)
	require.Equal(t, exitUnknown, code)
	for _, row := range []string{
		"no mount  note  17 → 5        11 → 0    survived   17/28 → 5/5  7",
		"no mount  rows  24 → 5        4 → 0     survived   24/28 → 5/5  0",
		"no mount  seen  5 → 0         23 → 5    lost       23/28 → 5/5  0",
		"28 learners, 64/84, 76 % right; the 5 who did it twice had 40 % right before,\n100 % after",
	} {
		require.Contains(t, text, row)
	}
	csv, _, _ := labOutput(t, state, "table", "--format", "csv", answers)
	require.Equal(t, 1+33*3, strings.Count(csv, "\n"))
}

// labOutput runs the lab and gives what it said.
func labOutput(t *testing.T, state string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := labCommand(t, state, args...)
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	_ = cmd.Run()
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

func TestATableOfNothing(t *testing.T) {
	for _, args := range [][]string{{"table"}, {"table", t.TempDir()}, {"table", "/no/such/folder"}, {"table", "--by", "week", "."}, {"table", "--format", "pdf", "."}} {
		_, stderr, code := labOutput(t, t.TempDir(), args...)
		require.Equal(t, exitUsage, code, args)
		require.Contains(t, stderr, "lab: error: ", args)
	}
}

func TestTheTableIsFollowed(t *testing.T) {
	dir, page := t.TempDir(), filepath.Join(t.TempDir(), "class.html")
	cmd := labCommand(t, t.TempDir(), "table", "--watch", "--reveal", "-o", page, dir)
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	shows := func(text string) func() bool {
		return func() bool {
			b, _ := os.ReadFile(page)
			return strings.Contains(string(b), text)
		}
	}
	require.Eventually(t, shows("0 learners"), 20*time.Second, 50*time.Millisecond)
	require.True(t, shows(`http-equiv="refresh"`)())
	for i, want := range []string{"1 learner,", "2 learners,"} {
		write(t, dir, i)
		require.Eventually(t, shows(want), 20*time.Second, 50*time.Millisecond)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait()
	require.Equal(t, exitInterrupted, cmd.ProcessState.ExitCode())
}

// write makes the attempt of learner i: nine answers to three-mounts, of which
// i decides what was predicted.
func write(t *testing.T, dir string, i int) {
	t.Helper()
	a := classroom.New("lab test", fmt.Sprintf("learner-%05d", i), false, time.Unix(1_760_000_000, 0), func(n int) string { return fmt.Sprintf("%0*x", 2*n, i) })
	round := classroom.Round{Scenario: "three-mounts", Title: "What comes back", Lesson: "mounting-something-that-lasts", Hash: threeMounts(t).Hash, Number: 1}
	for v, variant := range []string{"no mount", "named volume", "bind mount"} {
		for k, item := range []string{"note", "rows", "seen"} {
			x := classroom.Answer{Question: classroom.Question{Variant: variant, Item: item, Checkpoint: "after rm and run"}, Predicted: scenarios.Survived}
			if (i+3*v+k)%4 == 0 {
				x.Predicted = scenarios.Lost
			}
			sure := i%3 == 0
			x.Sure = &sure
			x.Result = &classroom.Result{Seen: "survived", Actual: scenarios.Survived, Expected: scenarios.Survived, Judgement: experiment.AsExpected, Detail: "210 bytes, byte for byte"}
			if v == 0 || item == "seen" {
				x.Result.Actual, x.Result.Expected, x.Result.Seen, x.Result.Detail = scenarios.Lost, scenarios.Lost, "lost", "no such file"
			}
			if x.Result.Actual != x.Predicted {
				x.Result.Misconception, x.Result.Belief = "belief-of-"+item, "A file that was written to disk stays until somebody deletes it."
			}
			round.Answers = append(round.Answers, x)
		}
	}
	sealed := a.Seal(round, time.Unix(1_760_000_100, 0))
	sealed.Finished = time.Unix(1_760_000_200, 0).UTC()
	b, err := a.Encode()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, a.FileName()), b, 0o644))
}

func threeMounts(t *testing.T) *scenarios.Scenario {
	t.Helper()
	s, err := scenarios.Find("three-mounts")
	require.NoError(t, err)
	return s
}

// The class page has the picture: before the reveal how containers are built
// and nothing more, after it the teacher's own run.
func TestTheClassPageHasThePicture(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	for i := range 4 {
		write(t, dir, i)
	}
	b, err := os.ReadFile("../picture/testdata/three-mounts.json")
	require.NoError(t, err)
	r, err := report.Read(bytes.NewReader(b))
	require.NoError(t, err)
	run := filepath.Join(out, "run.json")
	require.NoError(t, os.WriteFile(run, bytes.ReplaceAll(b, []byte(r.Scenarios[0].Hash), []byte(threeMounts(t).Hash)), 0o644))
	page := func(name string, args ...string) string {
		t.Helper()
		file := filepath.Join(out, name+".html")
		_, stderr, code := labOutput(t, t.TempDir(), append(append([]string{"table", "-o", file}, args...), dir)...)
		require.Equal(t, 0, code, stderr)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(b)
	}
	before := page("before", "--run", run)
	require.Equal(t, 3, strings.Count(before, "<svg"), "a variant each")
	require.Contains(t, before, "named volume mydata")
	_, body, _ := strings.Cut(before, "</style>")
	for _, word := range []string{"survived", "lost", "podman rm"} {
		require.NotContains(t, strings.ReplaceAll(strings.ToLower(body), "after podman rm and a fresh run", ""), word, "nothing is given away")
	}
	require.Equal(t, 3*7, strings.Count(page("after", "--run", run, "--reveal"), "<svg"))

	// Another run: its pictures would be of another scenario.
	require.NoError(t, os.WriteFile(run, bytes.ReplaceAll(b, []byte(r.Scenarios[0].Hash), []byte(strings.Repeat("0", 64))), 0o644))
	require.Equal(t, 3, strings.Count(page("other", "--run", run, "--reveal"), "<svg"))
	_, stderr, code := labOutput(t, t.TempDir(), "table", "--run", filepath.Join(dir, "none.json"), dir)
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "lab: hint: lab run --all --format json -o run.json")

	browser := browsertest.Start(t)
	for _, name := range []string{"before", "after"} {
		for _, width := range []int{390, 1920} {
			p := browser.Page(t)
			p.Size(width, 1080)
			p.Open("file://" + filepath.Join(out, name+".html"))
			p.Look(t)
			players, wide := 0, 0
			p.Eval(`document.querySelectorAll(".picture.playing .player").length`, &players)
			require.Equal(t, map[string]int{"before": 0, "after": 3}[name], players)
			p.Eval(`document.documentElement.scrollWidth`, &wide)
			require.LessOrEqual(t, wide, width, "%s: nothing scrolls sideways but the tables", name)
			require.Empty(t, p.Problems())
			p.Picture(fmt.Sprintf("class-%s-%d", name, width))
		}
	}
}

// Ten thousand attempts, counted by the lab and by jq in one run, with
// LAB_TEST_LONG; a thousand without.
func TestTenThousandAttempts(t *testing.T) {
	n := 1000
	long := os.Getenv("LAB_TEST_LONG") != ""
	if long {
		n = 10_000
	}
	dir := t.TempDir()
	for i := range n {
		write(t, dir, i)
	}
	cmd := labCommand(t, t.TempDir(), "table", "--reveal", "--format", "json", dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	start := time.Now()
	require.NoError(t, cmd.Run())
	took := time.Since(start)
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss / 1024
	if runtime.GOOS == "darwin" {
		peak /= 1024 // bytes there
	}
	var table struct {
		Scenarios []struct {
			Questions []struct {
				Variant, Item string
				Right, Wrong  int
			}
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &table))
	questions := table.Scenarios[0].Questions
	require.Len(t, questions, 9)
	for k, q := range questions {
		// Every fourth predicted lost; what came back was lost in the first
		// variant, and of seen.
		lost := 0
		for i := range n {
			if (i+k)%4 == 0 {
				lost++
			}
		}
		if k >= 3 && k%3 != 2 {
			lost = n - lost
		}
		require.Equal(t, lost, q.Right, "%s, %s", q.Variant, q.Item)
		require.Equal(t, n-lost, q.Wrong)
	}
	work := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	t.Logf("lab table: %d attempts in %.2f s (%.2f s of processor time), peak %d MB", n, took.Seconds(), work.Seconds(), peak)
	if !long {
		return
	}
	// Reading uses every core. Other tests may be using them, too: what two
	// cores would take is the promise.
	require.Less(t, min(took, work/2), 2*time.Second)
	require.Less(t, peak, int64(300))

	jq, err := exec.LookPath("jq")
	if err != nil {
		t.Log("no jq here to compare with: apt-get install jq")
		return
	}
	count := exec.Command("sh", "-c", `find "$1" -name '*.json' -print0 | xargs -0 cat | "$2" -n -c '
		reduce (inputs | .rounds[].answers[]) as $a ({};
			.[$a.variant + "/" + $a.item] |= {right: ((.right // 0) + (if $a.predicted == $a.result.actual then 1 else 0 end)), of: ((.of // 0) + 1)})'`,
		"sh", dir, jq)
	pipe, err := count.StdoutPipe()
	require.NoError(t, err)
	start = time.Now()
	require.NoError(t, count.Start())
	b, err := io.ReadAll(pipe)
	require.NoError(t, err)
	require.NoError(t, count.Wait())
	jqTook := time.Since(start)
	counted := map[string]struct{ Right, Of int }{}
	require.NoError(t, json.Unmarshal(b, &counted))
	for _, q := range questions {
		c := counted[q.Variant+"/"+q.Item]
		require.Equal(t, [2]int{c.Right, c.Of}, [2]int{q.Right, q.Right + q.Wrong}, "%s, %s", q.Variant, q.Item)
	}
	jqWork := count.ProcessState.UserTime() + count.ProcessState.SystemTime()
	t.Logf("jq: one count of the same files in %.2f s (%.2f s of processor time)", jqTook.Seconds(), jqWork.Seconds())
}
