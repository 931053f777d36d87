//go:build linux

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"persistencelab/probeimage/wire"
)

// A write is interrupted in a process of its own: process 1 starts its own
// program again as the writer, tells it where to stop, and when it says that
// it stands there, kills it. SIGKILL can't be caught, so nothing of the writer
// runs after that: no deferred close, no rollback, no flush. Held instead of
// killed, the writer stands there until somebody kills the container.
//
// What this shows is the death of a process. What the kernel has taken it
// keeps: a power cut is another, harder test.

// writerCommand is the argument that makes the program a writer. It is for
// process 1 only.
const writerCommand = "interrupted-writer"

// Stages of a write: wire.Interrupted.Stage.
const (
	stageBefore = "before the write"
	stageBytes  = "writing"
	stageRows   = "in the transaction"
	stageCommit = "in the commit"
	stageAfter  = "after the write"
)

// cut is where a writer stops. The nil cut is a write that goes through: all
// methods do nothing then.
type cut struct {
	wire.Cut
	out   *json.Encoder // to process 1
	stop  func()        // does not return
	at    int64         // the byte or row to stop at; -1: not at one
	delay int64         // nanoseconds into the commit; -1: not in the commit
	went  int64
	total int64
	typ   time.Duration // how long a commit usually takes
}

// event is one line a writer tells process 1.
type event struct {
	Stop   *wire.Interrupted `json:"stop,omitempty"`   // it stands here, and waits
	Commit *int64            `json:"commit,omitempty"` // it commits now; kill it after so many nanoseconds
	Ack    bool              `json:"ack,omitempty"`    // the write counts as done
	Shown  string            `json:"shown,omitempty"`  // the answer, to whoever reads it
	Error  *wire.Error       `json:"error,omitempty"`
}

// inner is the point's number among those between the first and the last, and
// how many of these there are.
func (c *cut) inner() (i, n int) { return c.Point - 1, c.Of - 2 }

// start begins a write of total bytes.
func (c *cut) start(total int64) {
	if c == nil {
		return
	}
	c.at, c.delay, c.total = -1, -1, total
	if c.Point == 0 {
		c.here(stageBefore)
	}
	if i, n := c.inner(); i < n {
		c.at = spread(i, n, total)
	}
}

// startRows begins a transaction. Half of the points are between its rows,
// half in its commit; a single one is in the middle of the rows.
func (c *cut) startRows(item wire.Item) {
	if c == nil {
		return
	}
	c.at, c.delay, c.total = -1, -1, int64(item.Rows)
	if c.Point == 0 {
		c.here(stageBefore)
	}
	i, n := c.inner()
	rows := (n + 1) / 2
	switch {
	case i < rows:
		c.at = spread(i, rows, c.total)
	case i < n:
		c.delay = spread(i-rows, n-rows, int64(c.typ))
	}
}

// spread gives the i-th of n places from 0 to total.
func spread(i, n int, total int64) int64 {
	if n < 2 {
		return total / 2
	}
	return total * int64(i) / int64(n-1)
}

// here says where the writer stands and stops it.
func (c *cut) here(stage string) {
	_ = c.out.Encode(event{Stop: &wire.Interrupted{Stage: stage, Byte: c.went, Total: c.total, PID: os.Getpid()}})
	c.stop()
}

// through counts the bytes written to w and stops in the middle of the write
// that would pass the chosen one.
func (c *cut) through(w io.Writer) io.Writer {
	if c == nil {
		return w
	}
	if c.at == 0 {
		c.here(stageBytes)
	}
	return &cutWriter{w, c}
}

type cutWriter struct {
	w io.Writer
	c *cut
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if room := w.c.at - w.c.went; w.c.at >= 0 && int64(len(p)) >= room {
		n, err := w.w.Write(p[:room])
		w.c.went += int64(n)
		if err != nil {
			return n, err
		}
		w.c.here(stageBytes)
	}
	n, err := w.w.Write(p)
	w.c.went += int64(n)
	return n, err
}

// row is called before row n is inserted, and with the number of rows when
// all are.
func (c *cut) row(n int) {
	if c == nil {
		return
	}
	if c.went = int64(n); c.went == c.at {
		c.here(stageRows)
	}
}

// commit is called right before a transaction is committed.
func (c *cut) commit() {
	if c != nil && c.delay >= 0 {
		_ = c.out.Encode(event{Commit: &c.delay})
	}
}

// acknowledge: from here on the write counts as done for somebody else.
func (c *cut) acknowledge() {
	if c != nil {
		_ = c.out.Encode(event{Ack: true})
	}
}

// show is an answer that reaches its reader.
func (c *cut) show(answer string) {
	if c != nil {
		_ = c.out.Encode(event{Shown: answer, Ack: true})
	}
}

// end is called when all is done.
func (c *cut) end() {
	if c != nil {
		c.here(stageAfter)
	}
}

// order is what a writer is told on its stdin.
type order struct {
	Item   wire.Item     `json:"item"`
	Cut    wire.Cut      `json:"cut"`
	Commit time.Duration `json:"commit"` // how long a commit takes here
}

// writer is the process that is interrupted. It gives an exit code, but it is
// not meant to come to that.
func writer(in io.Reader, out io.Writer) int {
	orders := json.NewDecoder(in)
	var o order
	if err := orders.Decode(&o); err != nil {
		return exitUsage
	}
	c := &cut{Cut: o.Cut, out: json.NewEncoder(out), typ: o.Commit, stop: func() {
		// Until process 1 ends, if nobody kills this one before.
		_, _ = io.Copy(io.Discard, in)
		os.Exit(exitUnknown)
	}}
	if err := newStore().put(o.Item, c); err != nil {
		_ = c.out.Encode(event{Error: fault(err)})
	}
	return exitUnknown
}

// commitTime is taken for the length of a commit where none was seen yet.
const commitTime = 5 * time.Millisecond

// patience bounds the wait for a writer to reach its point.
const patience = time.Minute

// interrupt writes item in another process and ends that, or holds it, where
// at says.
func (s *server) interrupt(item wire.Item, at wire.Cut) (*wire.Interrupted, *wire.Found, *wire.Error) {
	w, err := s.startWriter(order{Item: item, Cut: at, Commit: s.longestCommit()})
	if err != nil {
		return nil, nil, fault(fmt.Errorf("start the writer: %w", err))
	}
	where, bad := w.watch(at.Hold)
	if bad == nil && at.Hold && where.Held {
		s.held = append(s.held, w) // its stdin must stay open
		return where, nil, nil
	}
	status := w.kill()
	if bad == nil && !(status.Signaled() && status.Signal() == syscall.SIGKILL) {
		bad = &wire.Error{Code: wire.CodeIO, Text: fmt.Sprintf("the writer ended by itself (status %#x), not by SIGKILL", int(status))}
	}
	if bad != nil {
		return nil, nil, bad
	}
	if where.Stage == stageCommit {
		if info, err := os.Stat(item.Path + "-wal"); err == nil {
			where.Byte = info.Size()
		}
	}
	found, bad := s.store.read(item)
	return where, found, bad
}

// longestCommit is what the points in a commit are spread over: somewhat more
// than the last one took, so that the end is among them.
func (s *server) longestCommit() time.Duration {
	if s.store.committing == 0 {
		return commitTime
	}
	return s.store.committing * 5 / 4
}

// writerProcess is a writer as process 1 has it.
type writerProcess struct {
	pid    int
	stdin  *os.File // its end ends the writer
	lines  *bufio.Reader
	out    *os.File
	status chan syscall.WaitStatus // one value, when it has ended
}

func (s *server) startWriter(o order) (*writerProcess, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer inR.Close()
	outR, outW, err := os.Pipe()
	if err != nil {
		inW.Close()
		return nil, err
	}
	defer outW.Close()
	w := &writerProcess{stdin: inW, out: outR, lines: bufio.NewReader(outR)}
	w.pid, w.status, err = s.children.start(exe, []string{exe, writerCommand}, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{inR, outW, os.Stderr}})
	if err == nil {
		_, err = inW.Write(append(text, '\n'))
		if err != nil {
			w.kill()
		}
	}
	if err != nil {
		inW.Close()
		outR.Close()
		return nil, err
	}
	_ = outR.SetReadDeadline(time.Now().Add(patience))
	return w, nil
}

// watch follows a writer to where it stops, and kills it itself where that is
// a matter of microseconds.
func (w *writerProcess) watch(hold bool) (*wire.Interrupted, *wire.Error) {
	var acknowledged bool
	for {
		e, err := w.next()
		switch {
		case err != nil:
			return nil, &wire.Error{Code: wire.CodeIO, Text: fmt.Sprintf("the writer: %v", err)}
		case e.Error != nil:
			return nil, e.Error
		case e.Ack:
			acknowledged = true
		case e.Stop != nil:
			e.Stop.Acknowledged, e.Stop.Held, e.Stop.PID = acknowledged, hold, w.pid
			return e.Stop, nil
		case e.Commit != nil:
			return w.killInCommit(time.Duration(*e.Commit))
		}
	}
}

// killInCommit kills a writer a while after its commit began. Sleeping is too
// coarse for the fractions of a millisecond that this is about.
func (w *writerProcess) killInCommit(delay time.Duration) (*wire.Interrupted, *wire.Error) {
	began := time.Now()
	for time.Since(began) < delay {
	}
	took := time.Since(began)
	_ = syscall.Kill(w.pid, syscall.SIGKILL)
	where := &wire.Interrupted{Stage: stageCommit, Delay: int64(took), PID: w.pid}
	// What it had said by then is still in the pipe, which ends with it.
	for {
		e, err := w.next()
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return where, nil
		case err != nil:
			return nil, &wire.Error{Code: wire.CodeIO, Text: fmt.Sprintf("the writer: %v", err)}
		case e.Error != nil:
			return nil, e.Error
		case e.Ack:
			where.Acknowledged = true
		case e.Stop != nil:
			where.Stage, where.Byte, where.Total = e.Stop.Stage, e.Stop.Byte, e.Stop.Total // it was faster
		}
	}
}

func (w *writerProcess) next() (event, error) {
	var e event
	line, err := wire.ReadLine(w.lines)
	if err == nil {
		err = json.Unmarshal(line, &e)
	}
	return e, err
}

// kill sends SIGKILL and waits for the end.
func (w *writerProcess) kill() syscall.WaitStatus {
	_ = syscall.Kill(w.pid, syscall.SIGKILL)
	status := <-w.status
	w.stdin.Close()
	w.out.Close()
	return status
}

// children are the processes that process 1 has started: the only ones whose
// end somebody waits for.
type children struct {
	mu sync.Mutex
	of map[int]chan syscall.WaitStatus
}

func (c *children) start(exe string, args []string, attr *os.ProcAttr) (int, chan syscall.WaitStatus, error) {
	c.mu.Lock() // so that reap can't meet it before it is known
	defer c.mu.Unlock()
	p, err := os.StartProcess(exe, args, attr)
	if err != nil {
		return 0, nil, err
	}
	pid := p.Pid
	_ = p.Release()
	ended := make(chan syscall.WaitStatus, 1)
	if c.of == nil {
		c.of = map[int]chan syscall.WaitStatus{}
	}
	c.of[pid] = ended
	return pid, ended, nil
}

// reap takes in every child that has ended: those of the server, and orphans
// of a `podman exec`, which are handed to process 1.
func (c *children) reap() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if ended := c.of[pid]; ended != nil {
			ended <- status
			delete(c.of, pid)
		}
	}
}
