package cli

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/board"
	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/teach"
	"persistencelab/scenarios"
)

// TestTheBoardFromTheCommandLine: it starts, says where to go, takes an answer,
// and Ctrl-C makes attempt files of it. The same store goes on with the class.
func TestTheBoardFromTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	store := filepath.Join(dir, "class.sqlite")
	a := classroom.New("lab test", "amber-otter-0001", false, time.Now(), randomHex)
	sc, err := scenarios.Find("three-mounts")
	require.NoError(t, err)

	line := regexp.MustCompile(`lab learn --board (\S+) --code (\S+)`)
	run := func(during func(url, code, said string)) (stderr string) {
		cmd := labCommand(t, dir, "board", "--listen", "127.0.0.1:0", "--store", store)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		in := bufio.NewReader(out)
		said := ""
		for i := 0; i < 4; i++ {
			l, err := in.ReadString('\n')
			require.NoError(t, err, "%s", &errs)
			said += l
		}
		m := line.FindStringSubmatch(said)
		require.NotNil(t, m, said)
		during(m[1], m[2], said)
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		rest, err := io.ReadAll(in)
		require.NoError(t, err)
		require.NoError(t, cmd.Wait(), "%s", &errs)
		require.Contains(t, string(rest), "1 attempt file in")
		return errs.String()
	}
	secret := regexp.MustCompile(`/teacher#[0-9a-f]{32} `)
	stderr := run(func(url, code, said string) {
		require.Regexp(t, secret, said)
		c, err := board.Join(context.Background(), url, code, a)
		require.NoError(t, err)
		r := classroom.Round{Scenario: sc.Name, Hash: sc.Hash, Number: 1}
		for _, q := range teach.Questions(sc) {
			r.Answers = append(r.Answers, classroom.Answer{Question: q, Predicted: scenarios.Lost})
		}
		_, err = c.Submit(context.Background(), a.Seal(r, time.Now()))
		require.NoError(t, err)
		// The file is in use: said, not waited for.
		other := labCommand(t, dir, "board", "--listen", "127.0.0.1:0", "--store", store, "--export")
		said2, err := other.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, exitUsage, other.ProcessState.ExitCode())
		require.Contains(t, string(said2), "in use by a board that runs")
	})
	require.Contains(t, stderr, "lab: interrupted: writing the attempt files")

	file := filepath.Join(dir, "class-attempts", a.FileName())
	back, err := classroom.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, a.Session, back.Session)
	require.NoError(t, os.Remove(file))

	run(func(url, code, said string) {
		require.NotRegexp(t, secret, said, "the secret is printed once")
		_, err := board.Join(context.Background(), url, code, a)
		require.NoError(t, err)
	})
	require.NoError(t, os.Remove(file))
	out, err := labCommand(t, dir, "board", "--store", store, "--export").Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "1 attempt file in")
	_, err = classroom.ReadFile(file)
	require.NoError(t, err)
}

// TestALessonAtTheBoard: a learner's lesson on real Podman, with its sealed
// prediction at the board before the run and its results there after it.
func TestALessonAtTheBoard(t *testing.T) {
	engine := testEngine(t)
	state := testState(t)
	sc, err := scenarios.Find("three-mounts")
	require.NoError(t, err)
	b, secret, err := board.Open(board.Options{
		File: filepath.Join(t.TempDir(), "class.sqlite"), Topics: topics([]*scenarios.Scenario{sc}), Seats: 10, Now: time.Now, Random: randomHex,
	})
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- b.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-served)
		require.NoError(t, b.Close())
	})
	url := "http://" + l.Addr().String()

	learn := append([]string{"learn", "three-mounts", "--answers", answersFile(t, "three-mounts", "survived")}, engine...)
	out, err := labCommand(t, state, append(learn, "--board", url, "--code", "AAA-AAA")...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), `no class here has the code "AAA-AAA"`, "before the lesson begins")
	require.NotContains(t, string(out), "sealed")
	out, err = labCommand(t, state, append(learn, "--board", url, "--code", secret)...).CombinedOutput()
	require.Error(t, err, "%s", out)
	require.Zero(t, b.View().Joined)

	out, err = labCommand(t, state, append(learn, "--board", url, "--code", b.Code())...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "your prediction is on the board: round 1")
	require.Equal(t, 1, b.View().Topics[0].Answered)

	attempts := b.Export()
	require.Len(t, attempts, 1)
	r := attempts[0].Rounds[0]
	require.False(t, r.Finished.IsZero(), "with the results of the learner's own run")
	require.True(t, r.Sealed.Before(r.Finished))
	for _, a := range r.Answers {
		require.Equal(t, scenarios.Survived, a.Predicted)
		require.NotNil(t, a.Result)
		lost := a.Item == "seen" || a.Variant == "no mount" && a.Checkpoint == "after rm and run"
		require.Equal(t, lost, a.Result.Actual == scenarios.Lost, "%s, %s, %s: %s", a.Variant, a.Item, a.Checkpoint, a.Result.Actual)
	}
	content, err := attempts[0].Encode()
	require.NoError(t, err)
	_, err = classroom.Decode(content)
	require.NoError(t, err)
}
