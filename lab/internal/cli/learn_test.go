package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// screen is a pseudo-terminal with a lab in it.
type screen struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
	seen int // how far expect has read
}

func openScreen(t *testing.T, cmd *exec.Cmd) *screen {
	t.Helper()
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 80})
	require.NoError(t, err)
	s := &screen{t: t, cmd: cmd, tty: tty, more: make(chan struct{}, 1)}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := tty.Read(b)
			s.mu.Lock()
			s.text.Write(b[:n])
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				close(s.more)
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		tty.Close()
	})
	return s
}

// expect waits until the screen shows the text after what was expected before.
func (s *screen) expect(text string) {
	s.t.Helper()
	timeout := time.After(2 * time.Minute)
	for {
		s.mu.Lock()
		all := strings.ReplaceAll(s.text.String(), "\r\n", "\n")
		s.mu.Unlock()
		if i := strings.Index(all[s.seen:], text); i >= 0 {
			s.seen += i + len(text)
			return
		}
		select {
		case _, ok := <-s.more:
			if !ok {
				s.t.Fatalf("the lab ended before it showed %q; the screen:\n%s", text, all)
			}
		case <-timeout:
			s.t.Fatalf("no %q within two minutes; the screen:\n%s", text, all)
		}
	}
}

func (s *screen) press(keys string) {
	s.t.Helper()
	_, err := io.WriteString(s.tty, keys)
	require.NoError(s.t, err)
}

// end waits for the lab to end and gives its exit code and all it showed.
func (s *screen) end() (int, string) {
	s.t.Helper()
	err := s.cmd.Wait()
	for range s.more { // until the terminal's side is closed, too
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	text := strings.ReplaceAll(s.text.String(), "\r\n", "\n")
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(s.t, err, text)
	}
	return s.cmd.ProcessState.ExitCode(), text
}

// A whole lesson at a terminal: right and wrong predictions, kill -9 while
// predicting, Ctrl-C during the run, and the rest.
func TestALessonThroughATerminal(t *testing.T) {
	engine := testEngine(t)
	state := testState(t)
	learn := append([]string{"learn", "three-mounts"}, engine...)

	s := openScreen(t, labCommand(t, state, learn...))
	s.expect("Is the note still\nthere?")
	s.expect("no mount (1 of 3)")
	s.expect("$ podman")
	s.expect("note  /var/lib/app/note.txt ? ")
	s.press("h")
	s.expect("hint: Ask of each thing")
	s.expect("note  /var/lib/app/note.txt ? ")
	s.press("Y")
	s.expect("survives, sure\n")
	s.expect("app.db ? ")
	s.press("y")
	s.expect("survives\n")
	s.expect("process 1 ? ")
	s.press("b") // back to the rows
	s.expect("app.db ? ")
	s.press("n")
	s.expect("lost\n")
	s.expect("process 1 ? ")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGKILL))
	s.end()
	files, _ := filepath.Glob(filepath.Join(state, "learn/attempts/*"))
	require.Empty(t, files, "nothing was sealed yet")

	s = openScreen(t, labCommand(t, state, learn...))
	s.expect("2 of 9 answers are there from last time")
	s.expect("process 1 ? ")
	for _, keys := range []string{"n", "y", "y", "n", "y", "y", "N"} {
		s.press(keys)
		s.expect("\n")
	}
	s.expect("Enter seals these 9 predictions")
	s.press("-")
	s.expect("seen: lost, unsure")
	s.press("\r")
	s.expect("sealed at ")
	files, _ = filepath.Glob(filepath.Join(state, "learn/attempts/*.json"))
	require.Len(t, files, 1, "sealed on disk before the run")
	sealed, err := classroom.ReadFile(files[0])
	require.NoError(t, err)
	require.True(t, sealed.Rounds[0].Finished.IsZero())
	s.expect("write note file") // the run goes on
	s.press("\x03")
	code, text := s.end()
	require.Equal(t, exitInterrupted, code, text)
	require.NotContains(t, text, "What came back", "no verdict was named")
	out, err := labCommand(t, state, append([]string{"clean"}, engine...)...).CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "nothing to remove\n", string(out))

	s = openScreen(t, labCommand(t, state, learn...))
	s.expect("Your predictions are sealed since")
	s.expect("podman")
	for _, variant := range []string{"no mount", "named volume", "bind mount"} {
		for _, key := range map[bool]string{true: "nnn", false: "yyn"}[variant == "no mount"] {
			s.expect("you see? ")
			s.press(string(key))
			s.expect("\n")
		}
	}
	s.expect("What came back")
	s.expect("WRONG, and sure of it")
	s.expect("The belief behind it may be: “A file that was")
	s.expect("You predicted 8 of 9 right.")
	code, text = s.end()
	require.Equal(t, exitAsExpected, code, "a wrong prediction is no error:\n%s", text)
	for _, line := range strings.Split(text, "\n") {
		if len(strings.Fields(line)) > 2 && !strings.Contains(line, "your answers are in") {
			require.LessOrEqual(t, report.Columns(line), 80, line)
		}
	}
	require.Regexp(t, `podman rm +gone +gone +\? note \? rows\n`, text, "the picture, step by step")
	require.NotContains(t, text, "\x1b", "NO_COLOR, and no cursor movement at all")

	a, err := classroom.ReadFile(files[0])
	require.NoError(t, err)
	require.Len(t, a.Rounds, 1)
	r := a.Rounds[0]
	require.Equal(t, sealed.Rounds[0].Seal, r.Seal)
	require.Equal(t, 1, r.Hints)
	require.Len(t, r.Answers, 9)
	require.True(t, r.Finished.After(r.Sealed))
	first := r.Answers[0]
	require.Equal(t, scenarios.Survived, first.Predicted)
	require.True(t, *first.Sure)
	require.Equal(t, scenarios.Lost, first.Result.Actual)
	require.Equal(t, "lost", first.Result.Seen)
	require.Equal(t, "layer-outlives-rm", first.Result.Misconception)
	require.False(t, *r.Answers[8].Sure)
	raw, err := os.ReadFile(files[0])
	require.NoError(t, err)
	host, _ := os.Hostname()
	require.NotContains(t, string(raw), host)
	require.NotContains(t, string(raw), state)

	// Done is done; again is a second round.
	out, err = labCommand(t, state, append(learn, "--answers", answersFile(t, "three-mounts", "lost"))...).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), "you have done all of this")
	out, err = labCommand(t, state, append(learn, "--again", "--answers", answersFile(t, "three-mounts", "lost"))...).CombinedOutput()
	require.NoError(t, err, string(out))
	files, _ = filepath.Glob(filepath.Join(state, "learn/attempts/*.json"))
	require.Len(t, files, 2)
	rounds := map[int]string{}
	for _, f := range files {
		a, err := classroom.ReadFile(f)
		require.NoError(t, err)
		rounds[a.Rounds[0].Number] = a.Learner
	}
	require.Equal(t, map[int]string{1: a.Learner, 2: a.Learner}, rounds)
}

// A whole lesson, scenario after scenario, by somebody who answers what is
// asked: first always "survives", and with Ctrl-C in the second run.
func TestAWholeLesson(t *testing.T) {
	engine := testEngine(t)
	state := testState(t)
	const lesson = "the-writable-layer-is-temporary"
	var names []string
	for _, s := range scenarios.Catalogue() {
		if s.Lesson == lesson {
			names = append(names, s.Name)
		}
	}
	require.GreaterOrEqual(t, len(names), 2)
	learn := append([]string{"learn", "--lesson", lesson}, engine...)

	s := openScreen(t, labCommand(t, state, learn...))
	s.answer(map[string]string{"q quits: ": "\r", "b goes back: ": "\r", "you see? ": "y", " ? ": "y"}, "b goes back: ", 2)
	s.expect("The run, on Podman")
	s.expect("$ podman")
	s.press("\x03")
	code, text := s.end()
	require.Equal(t, exitInterrupted, code, text)
	require.Contains(t, text, "lab: hint: lab learn goes on from here")

	s = openScreen(t, labCommand(t, state, learn...))
	s.answer(map[string]string{"q quits: ": "\r", "b goes back: ": "\r", "you see? ": "n", " ? ": "n"}, "", 0)
	code, text = s.end()
	// Last, so that it is seen where a log shows an end only.
	_, reason, _ := strings.Cut(text, "could not be looked at")
	require.Equal(t, exitAsExpected, code, "%s\nwhy something is unknown: %.1000s", text, reason)
	require.Contains(t, text, "Your predictions are sealed since")

	files, err := filepath.Glob(filepath.Join(state, "learn/attempts/*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1, "one session, though it was interrupted")
	a, err := classroom.ReadFile(files[0])
	require.NoError(t, err)
	var done []string
	right, wrong := 0, 0
	for _, r := range a.Rounds {
		require.False(t, r.Finished.IsZero())
		done = append(done, r.Scenario)
		for _, x := range r.Answers {
			if x.Result.Actual == x.Predicted {
				right++
			} else {
				wrong++
			}
		}
	}
	require.Equal(t, names, done)
	require.Positive(t, right)
	require.Positive(t, wrong)
}

// answer gives the key for each prompt as it comes, until the lab ends or the
// prompt last has been answered n times.
func (s *screen) answer(keys map[string]string, last string, n int) {
	s.t.Helper()
	timeout := time.After(3 * time.Minute)
	for {
		s.mu.Lock()
		all := strings.ReplaceAll(s.text.String(), "\r\n", "\n")
		s.mu.Unlock()
		line := all[strings.LastIndex(all, "\n")+1:]
		for prompt, key := range keys {
			if len(all) > s.seen && strings.HasSuffix(line, prompt) && !(prompt == " ? " && strings.Contains(line, "you see")) {
				s.seen = len(all)
				s.press(key)
				if prompt == last {
					if n--; n == 0 {
						return
					}
				}
				break
			}
		}
		select {
		case _, ok := <-s.more:
			if !ok {
				return
			}
		case <-timeout:
			s.t.Fatalf("the lesson did not end; the screen:\n%s", all)
		}
	}
}

func answersFile(t *testing.T, scenario, predict string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "answers.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "version: 1\nanswers:\n  %s: {predict: %s, seen: as shown}\n", scenario, predict), 0o644))
	return file
}

// A screen reader's learner: whole lines, no drawing, skip and quit.
func TestALessonInPlainWords(t *testing.T) {
	engine := testEngine(t)
	state := testState(t)
	s := openScreen(t, labCommand(t, state, append([]string{"learn", "1", "--plain"}, engine...)...))
	s.expect("Enter goes on")
	s.press("\n")
	s.expect("Container app has, from the inside out:")
	s.expect(": ")
	s.press("s\n")
	s.expect("Skipped: lab learn memory-goes-first comes back to it.")
	s.expect("Enter goes on")
	s.press("q\n")
	code, text := s.end()
	require.Equal(t, 0, code, text)
	require.Contains(t, text, "lab learn goes on from here")
	for _, r := range text {
		if r > 0x7e {
			t.Fatalf("%q is no plain text: %s", r, text)
		}
	}
}

// Nobody predicts what can't be seen here: it is passed over with the reason,
// and the lesson goes on.
func TestALessonThatLacksSomething(t *testing.T) {
	engine := testEngine(t)
	state := testState(t)
	file := filepath.Join(t.TempDir(), "answers.yaml")
	require.NoError(t, os.WriteFile(file, []byte("version: 1\nanswers:\n  external-database: {predict: lost}\n  stop-and-start: {predict: lost}\n"), 0o644))
	for scenario, want := range map[string]string{
		"external-database": "Not here: a store needs its programs, which ./scripts/stores builds.",
		"stop-and-start":    "You predicted",
	} {
		cmd := labCommand(t, state, append([]string{"learn", scenario, "--answers", file}, engine...)...)
		cmd.Env = append(cmd.Env, "LAB_STORES="+t.TempDir())
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), want)
		require.Equal(t, scenario == "stop-and-start", strings.Contains(string(out), "Predict, "), string(out))
	}
	var progress struct{ Skipped []string }
	b, err := os.ReadFile(filepath.Join(state, "learn/progress.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &progress))
	require.Equal(t, []string{"external-database"}, progress.Skipped)
}

// The whole catalogue in one sitting, in the study guide's order: each scenario
// is finished, or passed over with the reason. Behind LAB_TEST_LONG.
func TestTheWholeCatalogueInOneSitting(t *testing.T) {
	if os.Getenv("LAB_TEST_LONG") == "" {
		t.Skip("takes minutes, with virtual machines half an hour: LAB_TEST_LONG=1")
	}
	engine := testEngine(t)
	state := testState(t)
	var b strings.Builder
	b.WriteString("version: 1\nanswers:\n")
	var guide []string
	for _, l := range scenarios.Lessons() {
		for _, s := range scenarios.Catalogue() {
			if s.Lesson == l.Key {
				guide = append(guide, s.Name)
				fmt.Fprintf(&b, "  %s: {predict: lost, seen: as shown}\n", s.Name)
			}
		}
	}
	file := filepath.Join(t.TempDir(), "answers.yaml")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
	out, err := labCommand(t, state, append([]string{"learn", "--all", "--answers", file}, engine...)...).CombinedOutput()
	if err != nil {
		for _, line := range strings.Split(string(out), "\n") { // the whole is ten thousand lines
			for _, word := range []string{"ended early", "not counted", "could not be", "SURPRISED", "lab: "} {
				if strings.Contains(line, word) {
					t.Log(line)
					break
				}
			}
		}
	}
	require.NoError(t, err)
	for _, line := range strings.Split(string(out), "\n") {
		if strings.HasPrefix(line, "──") {
			require.LessOrEqual(t, report.Columns(line), 80, line)
		}
	}

	files, err := filepath.Glob(filepath.Join(state, "learn/attempts/*.json"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	a, err := classroom.ReadFile(files[0])
	require.NoError(t, err)
	var done []string
	for _, r := range a.Rounds {
		require.False(t, r.Finished.IsZero(), r.Scenario)
		done = append(done, r.Scenario)
	}
	var order []string
	for _, name := range guide {
		if slices.Contains(done, name) {
			order = append(order, name)
			continue
		}
		require.Contains(t, string(out), "Skipped: lab learn "+name+" comes back to it.")
	}
	require.Equal(t, order, done, "in the study guide's order")
	require.GreaterOrEqual(t, strings.Count(string(out), "\nNot here: "), len(guide)-len(done), "each says why")
	t.Logf("%d of %d scenarios, the others were lacking something", len(done), len(guide))
}

func TestLearningNeedsATerminalOrAnswers(t *testing.T) {
	cmd := labCommand(t, t.TempDir(), "learn")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.Error(t, cmd.Run())
	require.Equal(t, exitUsage, cmd.ProcessState.ExitCode())
	require.Contains(t, stderr.String(), "lab: error: a lesson needs a terminal")
	require.Contains(t, stderr.String(), "lab: hint: lab learn --answers FILE")
}

func TestAnAnswersFileIsCheckedBeforeAnythingRuns(t *testing.T) {
	for answers, want := range map[string]string{
		"version: 1\nanswers:\n  three-mounts: {predict: {no mount: lost}}\n":    "has nothing for named volume",
		"version: 1\nanswers:\n  three-mounts: {predict: changed}\n":             `"changed" can't be predicted here`,
		"version: 1\nanswers:\n  three-mounts: {predict: gone}\n":                `"gone" is no prediction`,
		"version: 1\nanswers:\n  three-mounts: {predict: lost, seen: nothing}\n": `"nothing" can't be seen`,
		"version: 1\nanswers:\n  three-mounts: {predicts: lost}\n":               "predicts not found",
		"version: 1\nanswers:\n  three-mounts: {predict: lost, hints: -1}\n":     "hints must be 0 to",
		"version: 2\nanswers:\n  three-mounts: {predict: lost}\n":                "version must be 1",
		"":                                   "version must be 1",
		"version: 1\nanswers: &a\n  x: *a\n": "anchors and aliases",
	} {
		file := filepath.Join(t.TempDir(), "answers.yaml")
		require.NoError(t, os.WriteFile(file, []byte(answers), 0o644))
		cmd := labCommand(t, t.TempDir(), "learn", "three-mounts", "--answers", file)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, exitUsage, cmd.ProcessState.ExitCode(), string(out))
		require.Contains(t, string(out), want)
	}
}
