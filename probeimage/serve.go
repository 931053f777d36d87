//go:build linux

package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"persistencelab/probeimage/wire"
)

// crashCode is the exit code SIGUSR2 asks for: not 0, so that a restart
// policy of "on-failure" answers it.
const crashCode = 3

// serve answers on in/out and on the socket until a signal or a request ends
// the process, and returns the exit code.
func serve(in io.Reader, out, errw io.Writer) int {
	// Broken pipes are answered by the write that meets them. Left alone,
	// one on stdout would end process 1.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR2, syscall.SIGCHLD)

	s := &server{store: newStore(), hello: greet(), leave: make(chan int, 1), machine: isInit()}
	defer s.store.close()
	if l, err := net.Listen("unix", socketName()); err != nil {
		fmt.Fprintf(errw, "probe: not reachable from podman exec: %v\n", err)
	} else {
		go s.accept(l)
	}
	if s.machine {
		// Nobody can know when it is there, so it says so.
		if text, err := wire.AppendLine(nil, wire.Reply{V: wire.Version, Hello: &s.hello}); err == nil {
			_, _ = out.Write(text)
		}
	}
	go s.talk(in, out)

	for {
		select {
		case code := <-s.leave:
			return code
		case sig := <-signals:
			switch sig {
			case syscall.SIGCHLD:
				s.children.reap()
			case syscall.SIGUSR2:
				return crashCode
			default:
				return 0
			}
		}
	}
}

// server answers requests, one at a time whatever stream they come from.
type server struct {
	mu    sync.Mutex
	store *store
	hello wire.Greeting
	leave chan int
	// machine: this is the init of a virtual machine, which can do more.
	machine bool

	children children
	held     []*writerProcess // writers that stand in the middle of a write
}

// accept serves each caller of the socket that is the probe's own user or
// root. An abstract socket has no permissions of its own, and with --network
// host every user of the machine can reach it.
func (s *server) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			if uid, err := peer(conn.(*net.UnixConn)); err == nil && (uid == 0 || int(uid) == os.Getuid()) {
				s.talk(conn, conn)
			}
		}()
	}
}

func peer(conn *net.UnixConn) (uid uint32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var sockErr error
	err = raw.Control(func(fd uintptr) {
		cred, sockErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err = errors.Join(err, sockErr); err != nil {
		return 0, err
	}
	return cred.Uid, nil
}

// talk answers the requests of one stream until the stream ends.
func (s *server) talk(in io.Reader, out io.Writer) {
	r := bufio.NewReader(in)
	for {
		line, err := wire.ReadLine(r)
		if err != nil && !errors.Is(err, wire.ErrTooLong) {
			return
		}
		var reply wire.Reply
		leave := -1
		if err != nil {
			reply.Error = badRequest("%v: at most %d bytes", err, wire.MaxLine)
		} else {
			reply, leave = s.answer(line)
		}
		reply.V = wire.Version
		text, err := wire.AppendLine(nil, reply)
		if err == nil {
			_, err = out.Write(text)
		}
		if leave >= 0 {
			s.leave <- leave
		}
		if err != nil {
			return
		}
	}
}

// answer carries out one request line. leave is the code to end the process
// with once the reply is written, or -1.
func (s *server) answer(line []byte) (reply wire.Reply, leave int) {
	req, fault := decode(line)
	reply.ID = req.ID
	if fault != nil {
		reply.Error = fault
		return reply, -1
	}
	if !s.machine && (req.Op == wire.Sync || req.Op == wire.Begin || req.Op == wire.Reboot) {
		reply.Error = &wire.Error{Code: wire.CodeUnknownOp, Text: fmt.Sprintf("%s is for the init of a virtual machine", req.Op)}
		return reply, -1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch req.Op {
	case wire.Hello:
		hello := s.hello
		reply.Hello = &hello
	case wire.Write:
		reply.Found, reply.Error = s.store.write(*req.Item)
	case wire.Read:
		reply.Found, reply.Error = s.store.read(*req.Item)
	case wire.Erase:
		reply.Found, reply.Error = s.store.erase(*req.Item)
	case wire.Rebuild:
		var took time.Duration
		reply.Found, took, reply.Error = s.store.rebuild(*req.Item)
		reply.Took = int64(took)
	case wire.Interrupt:
		reply.Interrupted, reply.Found, reply.Error = s.interrupt(*req.Item, *req.Cut)
	case wire.Ping:
		reply.Error = s.store.services.ping(req.Item.Service)
	case wire.Drop:
		reply.Error = s.store.services.drop(*req.Item)
	case wire.Exit:
		return reply, req.Code
	case wire.Sync:
		syscall.Sync()
	case wire.Begin:
		reply.Error = s.store.begin(*req.Item)
	case wire.Reboot:
		return reply, leaveToReboot
	case wire.Crash:
		os.Exit(req.Code)
	}
	return reply, -1
}

// decode reads and checks a request. The ID is set whenever it could be read,
// so that a refusal reaches the one who asked.
func decode(line []byte) (wire.Request, *wire.Error) {
	// The version and ID come first, by themselves: a later version may
	// have given other fields another type.
	var head struct {
		V  int   `json:"v"`
		ID int64 `json:"id"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return wire.Request{}, badRequest("not a request: %v", err)
	}
	req := wire.Request{V: head.V, ID: head.ID}
	if head.V != wire.Version {
		return req, &wire.Error{Code: wire.CodeVersion, Text: fmt.Sprintf("version %d asked for, this probe speaks %d", head.V, wire.Version)}
	}
	if err := json.Unmarshal(line, &req); err != nil {
		return req, badRequest("not a request: %v", err)
	}
	switch req.Op {
	case wire.Hello, wire.Sync, wire.Reboot:
		return req, nil
	case wire.Exit, wire.Crash:
		if req.Code < 0 || req.Code > 255 {
			return req, badRequest("exit code %d: 0 to 255", req.Code)
		}
		return req, nil
	case wire.Ping, wire.Drop:
		if req.Item == nil || !word(req.Item.Service) {
			return req, badRequest("%s which service?", req.Op)
		}
		return req, nil
	case wire.Write, wire.Read, wire.Erase, wire.Begin, wire.Rebuild, wire.Interrupt:
		if req.Item == nil {
			return req, badRequest("%s what? no item", req.Op)
		}
		if c := req.Cut; req.Op == wire.Interrupt && (c == nil || c.Of < 3 || c.Of > maxCuts || c.Point < 0 || c.Point >= c.Of) {
			return req, badRequest("interrupt where? a point of 3 to %d is needed", maxCuts)
		}
		return req, checkItem(req.Op, *req.Item)
	}
	return req, &wire.Error{Code: wire.CodeUnknownOp, Text: fmt.Sprintf("unknown operation %.40q", req.Op)}
}

func badRequest(format string, args ...any) *wire.Error {
	return &wire.Error{Code: wire.CodeBadRequest, Text: fmt.Sprintf(format, args...)}
}

func greet() wire.Greeting {
	var instance [8]byte
	rand.Read(instance[:])
	boot, _ := bootID()
	host, _ := os.Hostname()
	return wire.Greeting{
		PID:      os.Getpid(),
		Instance: hex.EncodeToString(instance[:]),
		Started:  time.Now().UnixNano(),
		BootID:   boot,
		Hostname: host,
		UID:      os.Getuid(),
		Version:  version,
	}
}

// socketEnv names the environment variable that overrides the socket's name.
const socketEnv = "LAB_SOCKET"

// socketName is the abstract unix socket on which process 1 and a probe
// exec'd beside it meet. Containers of a pod share a network namespace and a
// hostname, and with them the names of abstract sockets; what each container
// has of its own, and an exec'd process joins, is the mount namespace.
func socketName() string {
	if name := os.Getenv(socketEnv); name != "" {
		return "@" + name
	}
	mnt, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		mnt, _ = os.Hostname()
	}
	return socketPrefix + mnt
}

const socketPrefix = "@persistencelab-probe-"
