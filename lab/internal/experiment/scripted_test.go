package experiment

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// scripted is an engine for the paths that real Podman can't be made to take
// at will: it does as it is told at the call it is told, and keeps a list of
// what it was asked to make and to remove. It simulates nothing: whatever is
// read back through it was "there", so that no run on it has any reason to
// find a loss.
type scripted struct {
	engine.Engine // nil: a call the test does not expect is a panic, and a fault of the run

	at int               // the call that does not go well, from 1; 0 for none
	do func(what string) // before that call
	// err is what that call answers; nil for as if nothing were.
	err error

	mu    sync.Mutex
	calls []string
	there map[Made]bool
	lives int
}

func newScripted() *scripted { return &scripted{there: map[Made]bool{}} }

// call counts a call and tells whether it goes well.
func (s *scripted) call(what string) error {
	s.mu.Lock()
	s.calls = append(s.calls, what)
	n := len(s.calls)
	s.mu.Unlock()
	if n != s.at {
		return nil
	}
	if s.do != nil {
		s.do(what)
	}
	return s.err
}

func (s *scripted) make(kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.there[Made{Kind: kind, Name: name}] = true
}

// take removes it, or says that it is not there.
func (s *scripted) take(kind, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := Made{Kind: kind, Name: strings.TrimPrefix(name, "id of ")}
	if !s.there[m] {
		return &engine.NotFoundError{Kind: kind, Name: name}
	}
	delete(s.there, m)
	return nil
}

func (s *scripted) has(kind, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.there[Made{Kind: kind, Name: strings.TrimPrefix(name, "id of ")}]
}

func (s *scripted) left() (left []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for m := range s.there {
		left = append(left, m.Kind+" "+m.Name)
	}
	return left
}

func (s *scripted) Local() bool                                       { return false }
func (s *scripted) Own() bool                                         { return false }
func (s *scripted) EnsureImage(context.Context, engine.Image) error   { return s.call("image") }
func (s *scripted) Start(context.Context, string) error               { return s.call("start") }
func (s *scripted) Stop(context.Context, string, time.Duration) error { return s.call("stop") }
func (s *scripted) Restart(context.Context, string, time.Duration) error {
	return s.call("restart")
}

func (s *scripted) Create(_ context.Context, spec engine.ContainerSpec) (string, error) {
	if err := s.call("create"); err != nil {
		return "", err
	}
	for _, m := range spec.Mounts {
		if m.Kind == "volume" {
			s.make("volume", m.Source)
		}
	}
	s.make("container", spec.Name)
	return "id of " + spec.Name, nil
}

func (s *scripted) Inspect(_ context.Context, id string) (engine.Container, error) {
	if err := s.call("inspect"); err != nil {
		return engine.Container{}, err
	}
	if !s.has("container", id) {
		return engine.Container{}, &engine.NotFoundError{Kind: "container", Name: id}
	}
	return engine.Container{ID: id, State: "running"}, nil
}

func (s *scripted) Remove(_ context.Context, id string, _ engine.RemoveOptions) error {
	if err := s.call("remove container"); err != nil {
		return err
	}
	return s.take("container", id)
}

func (s *scripted) InspectVolume(_ context.Context, name string) (engine.Volume, error) {
	if err := s.call("inspect volume"); err != nil {
		return engine.Volume{}, err
	}
	if !s.has("volume", name) {
		return engine.Volume{}, &engine.NotFoundError{Kind: "volume", Name: name}
	}
	return engine.Volume{Name: name}, nil
}

func (s *scripted) RemoveVolume(_ context.Context, name string, _ bool) error {
	if err := s.call("remove volume"); err != nil {
		return err
	}
	return s.take("volume", name)
}

func (s *scripted) Labelled(context.Context, string) ([]engine.Object, error) {
	if err := s.call("labelled"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []engine.Object
	for m := range s.there {
		if m.Kind == "container" {
			found = append(found, engine.Object{Kind: m.Kind, Name: m.Name, Label: testRun})
		}
	}
	return found, nil
}

// Attach answers as a probe that finds whatever it is asked for.
func (s *scripted) Attach(_ context.Context, id string) (io.ReadWriteCloser, error) {
	if err := s.call("attach"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.lives++
	instance := fmt.Sprint("life ", s.lives)
	s.mu.Unlock()
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		for r := bufio.NewReader(theirs); ; {
			line, err := wire.ReadLine(r)
			if err != nil {
				return
			}
			var req wire.Request
			if json.Unmarshal(line, &req) != nil {
				return
			}
			if s.call(string(req.Op)) != nil {
				return // the process has gone
			}
			reply := wire.Reply{V: wire.Version, ID: req.ID}
			switch req.Op {
			case wire.Hello:
				reply.Hello = &wire.Greeting{PID: 1, Instance: instance}
			case wire.Write, wire.Read:
				reply.Found = &wire.Found{Present: true, SHA256: "the same", Size: 1, Rows: req.Item.Rows}
			}
			answer, _ := wire.AppendLine(nil, reply)
			if _, err := theirs.Write(answer); err != nil || req.Op == wire.Exit {
				return
			}
		}
	}()
	return ours, nil
}

const testRun = "0123abcd"

// testPlan is a plan of one variant, with a ledger.
func testPlan(t *testing.T, yaml string, variant int) (*Plan, *Ledger) {
	t.Helper()
	s, err := scenarios.Parse("test.yaml", []byte(yaml), scenarios.Options{})
	require.NoError(t, err)
	folder := t.TempDir()
	nonces := 0
	p, err := New(s, &s.Variants[variant], PlanOptions{
		RunID: testRun, Number: 1, Folder: folder,
		Images: func(*scenarios.Image) (engine.Image, error) { return engine.Image{Ref: "localhost/probe:test"}, nil },
		Stores: Stores{
			Probe: func(*scenarios.Image) (engine.Image, error) { return engine.Image{Ref: "localhost/probe:test"}, nil },
			Store: func() (engine.Image, error) { return engine.Image{Ref: "localhost/store:test"}, nil },
		},
		Nonce: func() string { nonces++; return fmt.Sprint("n", nonces) },
	})
	require.NoError(t, err)
	l, err := OpenLedger(folder)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return p, l
}

// everyMount writes to a volume, a bind mount and memory, with an event of
// each kind between the checkpoints.
const everyMount = `
version: 1
name: every-mount
title: A run to be broken
data:
  note: {file: /data/note.txt}
  page: {file: /host/page.txt}
  seen: {memory: visits}
steps: [run, write, restart, read: first, stop, start, read: second, rm, run, read: third]
variants:
  both:
    mounts: [{volume: mydata, target: /data}, {bind: appdata, target: /host}]
    expect:
      first: {note: survived, page: survived, seen: survived}
      second: {note: survived, page: survived, seen: survived}
      third: {note: survived, page: survived, seen: survived}
`

func run(ctx context.Context, t *testing.T, s *scripted) (*Record, []Verdict, *Ledger) {
	t.Helper()
	p, l := testPlan(t, everyMount, 0)
	rec := Run(ctx, s, p, Env{Now: time.Now, Ledger: l})
	require.NoDirExists(t, p.Folder)
	return rec, Judge(p, rec, engine.Facts{Version: "4.3.1"}), l
}

// goroutines waits until no more run than before.
func goroutines(t *testing.T, before int) {
	t.Helper()
	for i := 0; runtime.NumGoroutine() > before; i++ {
		if i == 100 {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// callsOfARun are the calls of a run in which all goes well.
func callsOfARun(t *testing.T) []string {
	t.Helper()
	s := newScripted()
	rec, verdicts, l := run(t.Context(), t, s)
	require.Empty(t, rec.Fault)
	require.Empty(t, s.left())
	require.Empty(t, l.Left())
	require.Len(t, verdicts, 9)
	for _, v := range verdicts {
		require.Equal(t, scenarios.Survived, v.Outcome)
	}
	return s.calls
}

// TestBrokenAtEveryCall breaks a run at every call it makes, in every way. It
// always gives a record, never a loss, and what it made is gone, or named.
func TestBrokenAtEveryCall(t *testing.T) {
	calls := callsOfARun(t)
	require.Greater(t, len(calls), 30)
	for way, script := range map[string]func(s *scripted, cancel func(error)){
		"refused":     func(s *scripted, _ func(error)) { s.err = errors.New("no, says podman") },
		"unreachable": func(s *scripted, _ func(error)) { s.err = &engine.UnreachableError{URL: "unix:///x", Err: io.EOF} },
		"panic": func(s *scripted, _ func(error)) {
			s.do = func(what string) {
				// Not where another goroutine than the runner's asks.
				if !slices.Contains([]string{"inspect", "hello", "write", "read", "exit"}, what) {
					panic("a bug")
				}
			}
		},
		"interrupted": func(s *scripted, cancel func(error)) {
			s.do = func(string) { cancel(errors.New("interrupted")) }
		},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			for n, call := range calls {
				s := newScripted()
				s.at = n + 1
				ctx, cancel := context.WithCancelCause(t.Context())
				script(s, cancel)
				if way == "panic" && n >= len(calls)-2 {
					continue // the cleanup itself: nothing is left to clean up after it
				}
				rec, verdicts, l := run(ctx, t, s)
				cancel(nil)
				hint := fmt.Sprintf("call %d (%s): %s", n+1, call, rec.Fault)
				for _, v := range verdicts {
					require.Contains(t, []scenarios.Outcome{scenarios.Survived, scenarios.Unknown}, v.Outcome, hint)
					if v.Outcome == scenarios.Unknown {
						require.Equal(t, NotJudged, v.Judgement)
						require.NotEmpty(t, v.Detail)
						require.NotEmpty(t, rec.Fault, hint)
					}
				}
				if rec.Fault == "" {
					require.Equal(t, scenarios.Survived, verdicts[8].Outcome, hint)
				}
				var named []string
				for _, left := range rec.Cleanup.Left {
					what, _, _ := strings.Cut(left, ":")
					require.Contains(t, left, "by hand: podman ", hint)
					named = append(named, what)
				}
				require.ElementsMatch(t, s.left(), named, hint)
				require.Len(t, l.Left(), len(named), hint)
			}
		})
	}
}

func TestNoGoroutineStays(t *testing.T) {
	before := runtime.NumGoroutine()
	n := len(callsOfARun(t))
	for at := 1; at <= n; at += 5 {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := newScripted()
		s.at, s.do = at, func(string) { cancel(errors.New("interrupted")) }
		run(ctx, t, s)
		cancel(nil)
	}
	goroutines(t, before)
}

// TestTimeoutIsSaid: the cause of a variant's end is what its items say.
func TestTimeoutIsSaid(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s := newScripted()
	s.at, s.do = 8, func(string) { cancel(errors.New("it took longer than 2m0s (--timeout)")) }
	rec, verdicts, _ := run(ctx, t, s)
	require.Contains(t, rec.Fault, "it took longer than 2m0s (--timeout)")
	require.Contains(t, verdicts[8].Detail, "it took longer than 2m0s (--timeout)")
	require.Equal(t, scenarios.Unknown, verdicts[8].Outcome)
}

// late is an engine whose first create is never answered, and is carried out
// all the same, after the run has begun to clean up.
type late struct{ *scripted }

func (e late) Create(_ context.Context, spec engine.ContainerSpec) (string, error) {
	time.AfterFunc(100*time.Millisecond, func() { e.make("container", spec.Name) })
	return "", &engine.UnreachableError{URL: "unix:///x", Err: io.EOF}
}

func TestWhatAppearsLateIsRemoved(t *testing.T) {
	p, l := testPlan(t, everyMount, 0)
	s := newScripted()
	rec := Run(t.Context(), late{s}, p, Env{Now: time.Now, Ledger: l})
	require.NotEmpty(t, rec.Fault)
	time.Sleep(150 * time.Millisecond)
	require.Empty(t, s.left())
	require.Empty(t, rec.Cleanup.Left)
}

// heeds is an engine that takes a while to make a container: broken off, it
// makes it all the same, long after anybody looks.
type heeds struct {
	*scripted
	asked func()
}

func (e heeds) Create(ctx context.Context, spec engine.ContainerSpec) (string, error) {
	e.asked()
	select {
	case <-ctx.Done():
		e.make("container", spec.Name)
		return "", context.Cause(ctx)
	case <-time.After(100 * time.Millisecond):
		return e.scripted.Create(ctx, spec)
	}
}

// TestRequestsAreAnswered: a run that is ended lets the engine answer what it
// was asked last, so that the answer can be undone.
func TestRequestsAreAnswered(t *testing.T) {
	p, l := testPlan(t, everyMount, 0)
	ctx, cancel := context.WithCancelCause(t.Context())
	s := newScripted()
	rec := Run(ctx, heeds{s, func() { cancel(errors.New("interrupted")) }}, p, Env{Now: time.Now, Ledger: l})
	require.Contains(t, rec.Fault, "interrupted")
	require.Contains(t, s.calls, "create", "the request was broken off")
	require.Contains(t, rec.Cleanup.Removed, "container "+p.name("app"))
	require.Empty(t, s.left())
}

// askedTwice is an engine whose client asks twice: the second asking finds what
// the first one made.
type askedTwice struct{ *scripted }

func (e askedTwice) Create(_ context.Context, spec engine.ContainerSpec) (string, error) {
	e.make("container", spec.Name)
	return "", &engine.ExistsError{Kind: "container", Name: spec.Name}
}

func TestWhatTheFirstAskingMadeIsRemoved(t *testing.T) {
	p, l := testPlan(t, everyMount, 0)
	s := newScripted()
	rec := Run(t.Context(), askedTwice{s}, p, Env{Now: time.Now, Ledger: l})
	require.Contains(t, rec.Fault, "already exists")
	require.Empty(t, s.left())
}

// TestForeignVolumeIsRefused: it is neither used nor removed.
func TestForeignVolumeIsRefused(t *testing.T) {
	p, l := testPlan(t, everyMount, 0)
	s := newScripted()
	s.make("volume", p.name("mydata"))
	rec := Run(t.Context(), s, p, Env{Now: time.Now, Ledger: l})
	require.Contains(t, rec.Fault, "already exists")
	require.Equal(t, []string{"volume " + p.name("mydata")}, s.left())
	require.Empty(t, l.Left())
}

// blocked is an engine that answers nothing any more once it is told so.
type blocked struct{ *scripted }

func (e blocked) Remove(ctx context.Context, _ string, _ engine.RemoveOptions) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestCleanupIsBounded(t *testing.T) {
	made := []Made{{Kind: "container", Name: "a"}, {Kind: "volume", Name: "b"}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	removed, left := Remove(ctx, blocked{newScripted()}, made, nil, time.Minute)
	require.Less(t, time.Since(began), 5*time.Second)
	require.Empty(t, removed)
	require.Len(t, left, 1, "what is not there is not left")
	require.Contains(t, left[0], "(by hand: podman rm -f -v a)")
}

// refusing is an engine that refuses to remove a container the first times.
type refusing struct {
	*scripted
	times int
}

func (e *refusing) Remove(ctx context.Context, id string, o engine.RemoveOptions) error {
	if e.times--; e.times >= 0 {
		return errors.New("container state improper: stopped")
	}
	return e.scripted.Remove(ctx, id, o)
}

// TestRefusalsPass: what the engine will not remove just now is asked for again,
// a few times.
func TestRefusalsPass(t *testing.T) {
	for times, want := range map[int]int{1: 0, removalTries - 1: 0, removalTries: 1} {
		s := newScripted()
		s.make("container", "a")
		removed, left := Remove(t.Context(), &refusing{s, times}, []Made{{Kind: "container", Name: "a"}}, nil, 0)
		require.Len(t, left, want, "refused %d times", times)
		require.Len(t, removed, 1-want)
		require.Len(t, s.left(), want)
	}
}

func TestKeepRemovesNothing(t *testing.T) {
	p, l := testPlan(t, everyMount, 0)
	s := newScripted()
	rec := Run(t.Context(), s, p, Env{Now: time.Now, Ledger: l, Keep: true})
	require.True(t, rec.Cleanup.Kept)
	require.Len(t, s.left(), 2)
	require.Len(t, l.Left(), 2)
	require.DirExists(t, p.Folder)
	require.NoError(t, os.RemoveAll(p.Folder))
}
