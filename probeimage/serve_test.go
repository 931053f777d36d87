//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/probeimage/wire"
)

// asProbe makes this test binary be the probe: its main, in a process of its
// own.
const asProbe = "LAB_TEST_AS_PROBE"

func TestMain(m *testing.M) {
	if os.Getenv(asProbe) != "" {
		main()
	}
	os.Exit(m.Run())
}

type process struct {
	*exec.Cmd
	client *wire.Client
	in     io.WriteCloser
	out    io.ReadCloser
	socket string
	ended  chan struct{}
}

// start runs a probe that serves. change may alter the command first.
func start(t *testing.T, change func(*exec.Cmd)) *process {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	p := &process{Cmd: exec.Command(exe), socket: fmt.Sprintf("lab-test-%d-%d", os.Getpid(), time.Now().UnixNano()), ended: make(chan struct{})}
	p.Env = append(os.Environ(), asProbe+"=1", socketEnv+"="+p.socket)
	p.Stderr = os.Stderr
	if change != nil {
		change(p.Cmd)
	}
	p.in, err = p.StdinPipe()
	require.NoError(t, err)
	// Not StdoutPipe: Wait would close it under a reader.
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p.Stdout, p.out = w, r
	require.NoError(t, p.Start())
	w.Close()
	go func() { p.Wait(); close(p.ended) }()
	t.Cleanup(func() { p.Process.Kill(); <-p.ended; r.Close() })
	p.client = wire.NewClient(struct {
		io.Reader
		io.Writer
	}{p.out, p.in})
	return p
}

func (p *process) call(t *testing.T, req wire.Request) wire.Reply {
	t.Helper()
	reply, err := p.client.Call(t.Context(), req)
	require.NoError(t, err)
	return reply
}

// exits waits for the end and gives the exit code.
func (p *process) exits(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.ProcessState.ExitCode()
	case <-time.After(10 * time.Second):
		t.Fatal("the probe does not end")
		return 0
	}
}

// run is what `podman exec NAME /probe ARGS` does beside p.
func (p *process) run(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	return runProbe(t, p.socket, nil, args...)
}

func runProbe(t *testing.T, socket string, change func(*exec.Cmd), args ...string) (out string, code int) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asProbe+"=1", socketEnv+"="+socket)
	if change != nil {
		change(cmd)
	}
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return both.String(), cmd.ProcessState.ExitCode()
}

func TestTheProbeServes(t *testing.T) {
	p := start(t, nil)
	hello := p.call(t, wire.Request{Op: wire.Hello}).Hello
	require.Equal(t, p.Process.Pid, hello.PID)
	require.Len(t, hello.Instance, 16)
	require.WithinDuration(t, time.Now(), time.Unix(0, hello.Started), time.Minute)
	require.Equal(t, os.Getuid(), hello.UID)
	require.NotEmpty(t, hello.BootID)

	dir := t.TempDir()
	for _, item := range []wire.Item{
		fileItem(filepath.Join(dir, "note"), "n1", ""),
		rowsItem(filepath.Join(dir, "db"), "n2", 3),
		{Kind: kindMemory, Path: "visits", Nonce: "n3"},
	} {
		require.False(t, p.call(t, wire.Request{Op: wire.Read, Item: &item}).Found.Present)
		written := p.call(t, wire.Request{Op: wire.Write, Item: &item})
		require.Nil(t, written.Error)
		require.Equal(t, []string{item.Nonce}, written.Found.Nonces)
		read := p.call(t, wire.Request{Op: wire.Read, Item: &item})
		require.Equal(t, written.Found, read.Found)
	}

	other := start(t, nil)
	theirs := other.call(t, wire.Request{Op: wire.Hello}).Hello
	require.NotEqual(t, hello.Instance, theirs.Instance, "another process is another instance")
	require.False(t, other.call(t, wire.Request{Op: wire.Read, Item: &wire.Item{Kind: kindMemory, Path: "visits"}}).Found.Present)
}

func TestTheProbeRefuses(t *testing.T) {
	p := start(t, nil)
	r := bufio.NewReader(p.out)
	for _, tc := range []struct {
		line string
		code wire.Code
		id   int64
	}{
		{``, wire.CodeBadRequest, 0},
		{`nonsense`, wire.CodeBadRequest, 0},
		{`[]`, wire.CodeBadRequest, 0},
		{`{"v":2,"id":7,"op":"hello"}`, wire.CodeVersion, 7},
		{`{"id":7,"op":"hello"}`, wire.CodeVersion, 7},
		{`{"v":2,"id":7,"op":{"new":"shape"}}`, wire.CodeVersion, 7},
		{`{"v":1,"id":8,"op":"dance"}`, wire.CodeUnknownOp, 8},
		{`{"v":1,"id":8,"op":5}`, wire.CodeBadRequest, 8},
		{`{"v":1,"id":9,"op":"write"}`, wire.CodeBadRequest, 9},
		{`{"v":1,"id":9,"op":"write","item":{"kind":"file","path":"relative","nonce":"n"}}`, wire.CodeBadRequest, 9},
		{`{"v":1,"id":9,"op":"exit","code":256}`, wire.CodeBadRequest, 9},
		{strings.Repeat("x", wire.MaxLine+1), wire.CodeBadRequest, 0},
		{`{"v":1,"id":10,"op":"hello","unknown":"field"}`, "", 10},
	} {
		_, err := io.WriteString(p.in, tc.line+"\n")
		require.NoError(t, err)
		line, err := wire.ReadLine(r)
		require.NoError(t, err)
		var reply wire.Reply
		require.NoError(t, json.Unmarshal(line, &reply))
		require.Equal(t, wire.Version, reply.V)
		require.Equal(t, tc.id, reply.ID, "%.60s", tc.line)
		if tc.code == "" {
			require.NotNil(t, reply.Hello)
			continue
		}
		require.NotNil(t, reply.Error, "%.60s", tc.line)
		require.Equal(t, tc.code, reply.Error.Code, "%.60s: %s", tc.line, reply.Error.Text)
	}
}

func TestTheProbeLeaves(t *testing.T) {
	for _, code := range []int{0, 3, 255} {
		p := start(t, nil)
		reply := p.call(t, wire.Request{Op: wire.Exit, Code: code})
		require.Equal(t, wire.Reply{V: wire.Version, ID: reply.ID}, reply)
		require.Equal(t, code, p.exits(t))
	}
	p := start(t, nil)
	_, err := p.client.Call(t.Context(), wire.Request{Op: wire.Crash, Code: 7})
	require.ErrorIs(t, err, io.EOF, "no answer")
	require.Equal(t, 7, p.exits(t))
	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 0, syscall.SIGINT: 0, syscall.SIGUSR2: 3} {
		p := start(t, nil)
		p.call(t, wire.Request{Op: wire.Hello}) // signals are listened for by now
		require.NoError(t, p.Process.Signal(sig))
		require.Equal(t, code, p.exits(t), "%v", sig)
	}
}

func TestAStopDoesNotWaitForAWrite(t *testing.T) {
	p := start(t, nil)
	path := filepath.Join(t.TempDir(), "big")
	require.NoError(t, os.WriteFile(path, note("old", 0), 0o644))
	item := fileItem(path, "new", modeTruncate)
	item.Size = maxSize // far longer than a stop may take
	line, err := wire.AppendLine(nil, wire.Request{V: wire.Version, ID: 1, Op: wire.Write, Item: &item})
	require.NoError(t, err)
	_, err = p.in.Write(line)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > 1<<20
	}, 10*time.Second, time.Millisecond)
	begin := time.Now()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 0, p.exits(t))
	require.Less(t, time.Since(begin), time.Second)
	found, fault := newStore().read(item)
	require.Nil(t, fault)
	require.Contains(t, found.Torn, fmt.Sprintf("of %d bytes", maxSize))
	require.Equal(t, []string{"new"}, found.Nonces)
}

func TestTheEndOfStdinIsNotTheEnd(t *testing.T) {
	p := start(t, nil)
	p.call(t, wire.Request{Op: wire.Write, Item: &wire.Item{Kind: kindMemory, Path: "visits", Nonce: "n"}})
	// The reader goes first, so that the answer meets a broken pipe.
	require.NoError(t, p.out.Close())
	_, err := io.WriteString(p.in, `{"v":1,"id":1,"op":"hello"}`+"\n")
	require.NoError(t, err)
	require.NoError(t, p.in.Close())
	time.Sleep(50 * time.Millisecond)
	out, code := p.run(t, "read", "seen", "memory", "visits", "n")
	require.Equal(t, "seen: survived\n", out)
	require.Zero(t, code)
}

func TestCommands(t *testing.T) {
	p := start(t, nil)
	dir := t.TempDir()
	file, db := filepath.Join(dir, "note.txt"), filepath.Join(dir, "app.db")
	for _, tc := range []struct {
		args string
		want string
		code int
	}{
		{"read note file FILE n1", "note: lost (no such file)\n", 0},
		{"write note file FILE n1", "note: written\n", 0},
		{"read note file FILE n1", "note: survived\n", 0},
		{"read note file FILE", "note: there (written with n1)\n", 0},
		{"read note file FILE n2", "note: changed (n2 -> n1)\n", 0},
		{"read note file FILE n1 --size 4096", "note: changed (different content)\n", 0},
		{"write note file FILE n3 --size=4096 --mode atomic", "note: written\n", 0},
		{"read note file FILE n3 --size 4096", "note: survived\n", 0},
		{"write --mode append note file FILE n4", "note: written\n", 0},
		{"read note file FILE n4 --mode append", "note: survived\n", 0},
		{"write rows sqlite DB n1 --rows 3", "rows: written\n", 0},
		{"read rows sqlite DB n1 --rows 3", "rows: survived\n", 0},
		{"read rows sqlite DB n1 --rows 5", "rows: changed (5 rows -> 3)\n", 0},
		{"read rows sqlite DB n2 --rows 3", "rows: changed (n2 -> n1)\n", 0},
		{"read seen memory visits n1", "seen: lost (process 1 does not know it)\n", 0},
		{"write seen memory visits n1", "seen: written\n", 0},
		{"read seen memory visits n1", "seen: survived\n", 0},
		{"write dir file DIR n1", "dir: unknown (open DIR: is a directory)\n", 3},
		{"write rows sqlite DB n1", "probe: error: no rows to write\nprobe: hint: /probe help\n", 2},
		{"write note file", "probe: error: write takes ITEM KIND PLACE NONCE, not 2 words\nprobe: hint: /probe help\n", 2},
		{"write note file FILE n1 --rows", "probe: error: --rows needs a value\nprobe: hint: /probe help\n", 2},
		{"write note file FILE n1 --rows x", "probe: error: --rows \"x\": a number is needed\nprobe: hint: /probe help\n", 2},
		{"write note file FILE n1 --fast 1", "probe: error: unknown flag --fast\nprobe: hint: /probe help\n", 2},
		{"sing", "probe: error: unknown command \"sing\"\nprobe: hint: /probe help\n", 2},
		{"help", usage, 0},
	} {
		args := strings.Fields(strings.NewReplacer("FILE", file, "DB", db, "DIR", dir).Replace(tc.args))
		out, code := p.run(t, args...)
		require.Equal(t, strings.ReplaceAll(tc.want, "DIR", dir), out, tc.args)
		require.Equal(t, tc.code, code, tc.args)
	}
	out, code := p.run(t, "hello")
	require.Zero(t, code)
	var hello wire.Greeting
	require.NoError(t, json.Unmarshal([]byte(out), &hello))
	require.Equal(t, p.call(t, wire.Request{Op: wire.Hello}).Hello, &hello, "process 1 answers")
}

func TestCommandsWithoutAProcess1(t *testing.T) {
	file := filepath.Join(t.TempDir(), "note.txt")
	for _, tc := range []struct {
		args string
		want string
		code int
	}{
		{"write note file FILE n1", "note: written\n", 0},
		{"read note file FILE n1", "note: survived\n", 0},
		{"write seen memory visits n1", "seen: unknown (no probe is process 1 of this container)\n", 3},
		{"read seen memory visits n1", "seen: unknown (no probe is process 1 of this container)\n", 3},
		{"hello", "probe: error: no probe answers\n", 3},
	} {
		out, code := runProbe(t, "lab-test-nobody-listens", nil, strings.Fields(strings.ReplaceAll(tc.args, "FILE", file))...)
		require.Equal(t, tc.want, out, tc.args)
		require.Equal(t, tc.code, code, tc.args)
	}
}

// nobody runs a command as a user that may do little. Being root, the tests
// would be let past every permission.
func nobody(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	return func(cmd *exec.Cmd) {
		// The test binary may lie where only root can look.
		exe, err := os.ReadFile(cmd.Path)
		require.NoError(t, err)
		dir, err := os.MkdirTemp("", "lab-test-")
		require.NoError(t, err)
		t.Cleanup(func() { os.RemoveAll(dir) })
		require.NoError(t, os.Chmod(dir, 0o755))
		cmd.Path = filepath.Join(dir, "probe")
		require.NoError(t, os.WriteFile(cmd.Path, exe, 0o755))
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

func TestPermission(t *testing.T) {
	dir, err := os.MkdirTemp("", "lab-test-")
	require.NoError(t, err)
	t.Cleanup(func() { os.Chmod(dir, 0o755); os.RemoveAll(dir) })
	file, db := filepath.Join(dir, "note"), filepath.Join(dir, "db")
	mustWrite(t, newStore(), fileItem(file, "n", ""))
	mustWrite(t, newStore(), rowsItem(db, "n", 1))
	require.NoError(t, os.Chmod(dir, 0o555))
	p := start(t, nobody(t))

	for _, item := range []wire.Item{fileItem(file, "n", ""), rowsItem(db, "n", 1)} {
		require.NoError(t, os.Chmod(item.Path, 0o444))
		read := p.call(t, wire.Request{Op: wire.Read, Item: &item})
		require.Nil(t, read.Error, "%v", read.Error)
		require.True(t, read.Found.Present, "a folder that can't be written can be read")

		write := p.call(t, wire.Request{Op: wire.Write, Item: &item})
		require.NotNil(t, write.Error, item.Kind)
		require.Equal(t, wire.CodePermission, write.Error.Code, write.Error.Text)

		require.NoError(t, os.Chmod(item.Path, 0o666)) // but no room for a log beside it
		write = p.call(t, wire.Request{Op: wire.Write, Item: &item})
		if item.Kind == kindSQLite {
			require.NotNil(t, write.Error)
			require.Equal(t, wire.CodePermission, write.Error.Code, write.Error.Text)
		}

		require.NoError(t, os.Chmod(item.Path, 0))
		read = p.call(t, wire.Request{Op: wire.Read, Item: &item})
		require.NotNil(t, read.Error, "not lost: it could not be looked at")
		require.Equal(t, wire.CodePermission, read.Error.Code, read.Error.Text)
	}
	for _, kind := range []string{kindFile, kindSQLite} {
		item := wire.Item{Kind: kind, Path: filepath.Join(dir, "new", "x"), Nonce: "n", Rows: 1}
		write := p.call(t, wire.Request{Op: wire.Write, Item: &item})
		require.NotNil(t, write.Error)
		require.Equal(t, wire.CodePermission, write.Error.Code, write.Error.Text)
	}
}

func TestTheSocketIsForTheProbesUserAndRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to be two users")
	}
	p := start(t, nil)
	require.NotEmpty(t, p.call(t, wire.Request{Op: wire.Hello}).Hello)
	out, code := runProbe(t, p.socket, nobody(t), "hello")
	require.Equal(t, "probe: error: no probe answers\n", out)
	require.Equal(t, exitUnknown, code)
	_, code = p.run(t, "hello")
	require.Zero(t, code)
}

func TestContainersOfAPodDoNotCollide(t *testing.T) {
	// Two mount namespaces, one network namespace. No LAB_SOCKET.
	unshare := func(cmd *exec.Cmd) {
		for i, v := range cmd.Env {
			if strings.HasPrefix(v, socketEnv+"=") {
				cmd.Env[i] = socketEnv + "="
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	}
	if os.Getuid() != 0 {
		t.Skip("needs root for a mount namespace")
	}
	names := map[string]bool{}
	for range 2 {
		p := start(t, unshare)
		hello := p.call(t, wire.Request{Op: wire.Hello}).Hello
		mnt, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", p.Process.Pid))
		require.NoError(t, err)
		name := "@persistencelab-probe-" + mnt
		names[name] = true
		conn, err := net.Dial("unix", name)
		require.NoError(t, err)
		defer conn.Close()
		reply, err := wire.NewClient(conn).Call(t.Context(), wire.Request{Op: wire.Hello})
		require.NoError(t, err)
		require.Equal(t, hello, reply.Hello)
	}
	require.Len(t, names, 2)
}

func TestProcess1TakesInOrphans(t *testing.T) {
	nsenter, err := exec.LookPath("nsenter")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs root and nsenter (util-linux) to hand an orphan to process 1 of a pid namespace")
	}
	p := start(t, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	})
	require.Equal(t, 1, p.call(t, wire.Request{Op: wire.Hello}).Hello.PID)
	pid := fmt.Sprint(p.Process.Pid)
	for range 3 {
		require.NoError(t, exec.Command(nsenter, "-t", pid, "-p", "sh", "-c", "sleep 0.2 & sleep 0.2 & exit").Run())
	}
	children := func() string {
		b, err := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		require.NoError(t, err)
		return string(b)
	}
	require.NotEmpty(t, children(), "the orphans arrived")
	require.Eventually(t, func() bool { return children() == "" }, 5*time.Second, 20*time.Millisecond, "zombies stay: %s", children())
	require.NotNil(t, p.call(t, wire.Request{Op: wire.Hello}).Hello)
}

func FuzzDecode(f *testing.F) {
	for _, req := range []wire.Request{
		{V: 1, ID: 1, Op: wire.Hello},
		{V: 1, ID: 2, Op: wire.Write, Item: &wire.Item{Kind: kindFile, Path: "/a", Nonce: "n"}},
		{V: 1, ID: 3, Op: wire.Exit, Code: 3},
		{V: 2, ID: 4},
	} {
		line, err := json.Marshal(req)
		require.NoError(f, err)
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		req, fault := decode(line)
		if fault != nil {
			require.NotEmpty(t, fault.Text)
			_, err := wire.AppendLine(nil, wire.Reply{Error: fault})
			require.NoError(t, err)
			return
		}
		require.Equal(t, wire.Version, req.V)
		if req.Op == wire.Write || req.Op == wire.Read {
			require.NotNil(t, req.Item)
			require.Nil(t, checkItem(req.Op, *req.Item))
		}
		again, err := json.Marshal(req)
		require.NoError(t, err)
		req2, fault := decode(again)
		require.Nil(t, fault)
		require.Equal(t, req, req2)
	})
}
