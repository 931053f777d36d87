package board

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/classroom"
	"persistencelab/scenarios"
)

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

// threeMounts is the built-in scenario as a topic, asked about one checkpoint.
func threeMounts(t testing.TB) Topic {
	t.Helper()
	s, err := scenarios.Find("three-mounts")
	require.NoError(t, err)
	topic := Topic{
		Name: s.Name, Title: s.Title, Lesson: s.Lesson, Question: s.Question, Hash: s.Hash, About: s.About,
		Built:   []Built{{Variant: "named volume", Says: []string{"Outside, mounted at /var/lib/app: named volume mydata."}}},
		Choices: []scenarios.Outcome{scenarios.Survived, scenarios.Lost}, Misconceptions: s.Misconceptions,
	}
	for _, it := range s.Data {
		topic.Items = append(topic.Items, Item{Name: it.Name, Place: cmp.Or(it.Path, "its memory")})
	}
	for _, v := range s.Variants {
		for _, it := range s.Data {
			topic.Questions = append(topic.Questions, classroom.Question{Variant: v.Name, Item: it.Name, Checkpoint: "after rm and run"})
		}
	}
	return topic
}

// served is a board that answers.
type served struct {
	*Board
	url, secret string
	stop        func()
}

func serve(t testing.TB, file string) *served { return serveAt(t, file, "127.0.0.1:0") }

func serveAt(t testing.TB, file, address string) *served {
	t.Helper()
	b, secret, err := Open(Options{File: file, Topics: []Topic{threeMounts(t)}, Seats: 500, Now: time.Now, Random: randomHex})
	require.NoError(t, err)
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Serve(ctx, l) }()
	s := &served{Board: b, url: "http://" + l.Addr().String(), secret: secret}
	stopped := false
	s.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		require.NoError(t, <-done)
		require.NoError(t, b.Close())
	}
	t.Cleanup(s.stop)
	return s
}

func storeFile(t testing.TB) string { return filepath.Join(t.TempDir(), "class.sqlite") }

func newAttempt(name string) *classroom.Attempt {
	return classroom.New("lab test", name, false, time.Now(), randomHex)
}

// predict seals a round in which every question gets the same answer.
func predict(t testing.TB, a *classroom.Attempt, o scenarios.Outcome) *classroom.Round {
	topic := threeMounts(t)
	r := classroom.Round{Scenario: topic.Name, Hash: topic.Hash, Number: 1}
	for _, q := range topic.Questions {
		r.Answers = append(r.Answers, classroom.Answer{Question: q, Predicted: o})
	}
	return a.Seal(r, time.Now())
}

func join(t testing.TB, s *served, a *classroom.Attempt) *Client {
	t.Helper()
	c, err := Join(context.Background(), s.url, s.Code(), a)
	require.NoError(t, err)
	return c
}

// act is the teacher's, past HTTP.
func (s *served) act(t testing.TB, a Action) {
	t.Helper()
	require.NoError(t, s.store.do(func(st *state) ([]event, error) { return st.act(a, "three-mounts") }))
}

func codeOf(t testing.TB, err error) string {
	t.Helper()
	var no *Refusal
	require.ErrorAs(t, err, &no)
	return no.Code
}

func TestAnAnswerIsKeptOnce(t *testing.T) {
	file := storeFile(t)
	s := serve(t, file)
	ctx := context.Background()
	a := newAttempt("amber-otter-0001")
	c := join(t, s, a)
	r := predict(t, a, scenarios.Lost)

	first, err := c.Submit(ctx, r)
	require.NoError(t, err)
	require.False(t, first.Repeated)
	require.Len(t, first.Seal, 64)

	again, err := c.Submit(ctx, r)
	require.NoError(t, err)
	require.True(t, again.Repeated)
	require.Equal(t, first.Seal, again.Seal)

	// Another prediction of the same learner, in this and in another process.
	other := predict(t, a, scenarios.Survived)
	_, err = c.Submit(ctx, other)
	require.Equal(t, Repeated, codeOf(t, err))
	_, err = join(t, s, a).Submit(ctx, other)
	require.Equal(t, Repeated, codeOf(t, err))

	s.act(t, Reveal)
	late := newAttempt("late-owl-0001")
	lc := join(t, s, late)
	_, err = lc.Submit(ctx, predict(t, late, scenarios.Lost))
	require.Equal(t, Late, codeOf(t, err))
	// The same again is still only a repetition.
	again, err = c.Submit(ctx, r)
	require.NoError(t, err)
	require.True(t, again.Repeated)

	s.act(t, Again)
	second, err := c.Submit(ctx, other)
	require.NoError(t, err)
	require.Equal(t, 2, second.Round)
	s.act(t, Reveal)

	before := s.View()
	s.stop()
	s = serve(t, file)
	require.Empty(t, s.secret, "the secret is given once")
	require.Equal(t, before, s.View(), "what the log amounts to is the same after a restart")
	bars := s.View().Topics[0].Bars
	require.Len(t, bars, 2)
	require.Equal(t, []Count{{Outcome: scenarios.Survived}, {Outcome: scenarios.Lost, N: 1}}, bars[0].Bars[0].Counts)
	require.Equal(t, []Count{{Outcome: scenarios.Survived, N: 1}, {Outcome: scenarios.Lost}}, bars[1].Bars[0].Counts)

	attempts := s.Export()
	require.Len(t, attempts, 1, "who answered nothing leaves no file")
	b, err := attempts[0].Encode()
	require.NoError(t, err)
	back, err := classroom.Decode(b)
	require.NoError(t, err, "the seals hold")
	require.Equal(t, a.Session, back.Session)
	require.Len(t, back.Rounds, 2)
	require.Equal(t, first.Seal, back.Rounds[0].Seal)
	require.Equal(t, scenarios.Survived, back.Rounds[1].Answers[0].Predicted)
}

func TestAnswersThatMakeNoSenseAreRefused(t *testing.T) {
	s := serve(t, storeFile(t))
	ctx := context.Background()
	for name, c := range map[string]struct {
		edit func(*classroom.Round)
		code string
	}{
		"other scenario": {func(r *classroom.Round) { r.Scenario = "<b>" }, NoTopic},
		"other text":     {func(r *classroom.Round) { r.Hash = "0" }, OtherText},
		"nothing":        {func(r *classroom.Round) { r.Answers = nil }, BadRequest},
		"not asked":      {func(r *classroom.Round) { r.Answers[0].Item = "cat" }, BadRequest},
		"no choice":      {func(r *classroom.Round) { r.Answers[0].Predicted = scenarios.Varies }, BadRequest},
		"twice":          {func(r *classroom.Round) { r.Answers[1] = r.Answers[0] }, BadRequest},
	} {
		a := newAttempt("a-b-" + randomHex(2))
		r := predict(t, a, scenarios.Lost)
		c2 := join(t, s, a)
		c.edit(r)
		_, err := c2.Submit(ctx, r)
		require.Equal(t, c.code, codeOf(t, err), name)
	}
	require.Zero(t, s.View().Topics[0].Answered)
}

// TestNobodyGuesses: a wrong code is refused, a right one after too many wrong
// ones as well, and a learner can't be somebody else.
func TestNobodyGuesses(t *testing.T) {
	s := serve(t, storeFile(t))
	ctx := context.Background()
	a := newAttempt("amber-otter-0001")
	join(t, s, a)
	b := newAttempt("brave-newt-0002")
	b.Session = a.Session
	_, err := Join(ctx, s.url, s.Code(), b)
	require.Equal(t, BadRequest, codeOf(t, err))

	var last string
	for range 40 {
		_, err := Join(ctx, s.url, "AAA-AAA", newAttempt("x-y-0000"))
		last = codeOf(t, err)
		require.Contains(t, []string{WrongCode, TooMany}, last)
	}
	require.Equal(t, TooMany, last)
	_, err = Join(ctx, s.url, s.Code(), newAttempt("x-y-0000"))
	require.Equal(t, TooMany, codeOf(t, err))
	require.Equal(t, 1, s.View().Joined)
}

// TestWithoutJoiningThereIsNothing: every way in, by somebody who knows
// nothing.
func TestWithoutJoiningThereIsNothing(t *testing.T) {
	s := serve(t, storeFile(t))
	for _, path := range []string{"/api/board", "/events"} {
		require.Equal(t, http.StatusUnauthorized, status(t, s.url, "GET", path, "", ""), path)
	}
	require.Equal(t, http.StatusUnauthorized, status(t, s.url, "POST", "/api/answers", "{}", ""))
	require.Equal(t, http.StatusUnauthorized, status(t, s.url, "POST", "/api/attempt", "{}", ""))
	require.Equal(t, http.StatusForbidden, status(t, s.url, "POST", "/api/join", `{"code": ""}`, "http://evil.example"))
	require.Equal(t, http.StatusRequestEntityTooLarge, status(t, s.url, "POST", "/api/join", `{"code": "`+strings.Repeat("a", 1<<17)+`"}`, ""))
}

func status(t testing.TB, base, method, path, body, origin string) int {
	t.Helper()
	req, err := http.NewRequest(method, base+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestNothingIsGivenAwayBeforeTheReveal compares everything a learner can get,
// byte for byte, between two classes that answered in opposite ways.
func TestNothingIsGivenAwayBeforeTheReveal(t *testing.T) {
	look := func(o scenarios.Outcome) string {
		s := serve(t, storeFile(t))
		a := newAttempt("amber-otter-0001")
		c := join(t, s, a)
		_, err := c.Submit(context.Background(), predict(t, a, o))
		require.NoError(t, err)
		v, err := c.View(context.Background())
		require.NoError(t, err)
		require.Equal(t, 1, v.Topics[0].Answered)
		require.Empty(t, v.Topics[0].Bars)
		v.ID = ""
		b, err := json.Marshal(v)
		require.NoError(t, err)
		return string(b) + firstPulse(t, s.url, a.Session)
	}
	require.Equal(t, look(scenarios.Survived), look(scenarios.Lost))
}

func firstPulse(t testing.TB, base, session string) string {
	t.Helper()
	req, err := http.NewRequest("GET", base+"/events", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+session)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	buf := make([]byte, 4096)
	n, err := resp.Body.Read(buf)
	require.NoError(t, err)
	return string(bytes.TrimSpace(buf[:n]))
}

func TestOneBoardToAStoreAndNoOtherFile(t *testing.T) {
	file := storeFile(t)
	s := serve(t, file)
	_, _, err := Open(Options{File: file, Now: time.Now, Random: randomHex})
	require.ErrorContains(t, err, "in use by a board that runs")
	s.stop()
	_, err = Export(file, time.Now)
	require.NoError(t, err)
	_, err = Export(filepath.Join(t.TempDir(), "none"), time.Now)
	require.ErrorIs(t, err, os.ErrNotExist)

	text := filepath.Join(t.TempDir(), "notes.txt")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("not a database\n", 100)), 0o644))
	_, err = Export(text, time.Now)
	require.ErrorContains(t, err, "is no board's store")

	other := filepath.Join(t.TempDir(), "other.sqlite")
	db, err := sql.Open("sqlite", other)
	require.NoError(t, err)
	_, err = db.Exec("CREATE TABLE mine (a)")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = Export(other, time.Now)
	require.ErrorIs(t, err, errForeign)
}
