package bindings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"persistencelab/lab/engine"
)

// service is a `podman system service` the lab started for as long as a run
// lasts. It ends with the lab, however the lab ends: by stop, by the kernel's
// parent-death signal, and by its own idle time-out.
type service struct {
	cmd    *exec.Cmd
	done   chan struct{} // closed when the process has ended
	err    error         // why, once done
	stderr bytes.Buffer
	binary string
	args   []string
	// storeArgs are podman's global options for the store; root is its
	// folder, "" for the user's own store.
	storeArgs []string
	root      string
	quit      chan struct{} // ends the keep-alive
	socket    string
}

// idle is how long the service waits for a request before it ends by itself;
// the keep-alive asks three times as often.
const idle = 30 * time.Second

// startUp bounds the time until the service answers. A rootless store on a
// slow disk takes seconds at its first start.
const startUp = 30 * time.Second

// startService starts a service and connects to it.
func startService(ctx context.Context, binary string, h *host, opts Options) (*Podman, error) {
	socket := filepath.Join(opts.RunDir, "podman.sock")
	if opts.Root != "" {
		socket = storeSocket(opts)
	}
	s := &service{socket: socket, binary: binary, root: opts.Root}
	env := append(os.Environ(), "PODMAN_IGNORE_CGROUPSV1_WARNING=1")
	if opts.Root != "" {
		// Else the command would be another service's client.
		env = slices.DeleteFunc(env, func(e string) bool {
			return strings.HasPrefix(e, "CONTAINER_HOST=") || strings.HasPrefix(e, "CONTAINER_CONNECTION=")
		})
		if err := prepareStore(opts); err != nil {
			return nil, err
		}
		s.storeArgs = storeArgs(opts)
	}
	s.args = append(slices.Clone(s.storeArgs), "system", "service", fmt.Sprintf("--time=%d", int(idle.Seconds())), "unix://"+socket)
	conf, err := h.writeConf(opts)
	if err != nil {
		return nil, err
	}
	if conf != "" {
		env = append(env, conf)
	}
	return s.start(ctx, h, env)
}

// start starts the service's process and connects to it.
func (s *service) start(ctx context.Context, h *host, env []string) (*Podman, error) {
	s.done, s.quit = make(chan struct{}), make(chan struct{})
	s.stderr.Reset()
	s.cmd = exec.Command(s.binary, s.args...)
	s.cmd.Env = env
	s.cmd.Dir = "/" // conmon refuses to start from a folder that is gone
	s.cmd.Stderr = &s.stderr
	s.cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		// The parent-death signal follows the thread that started the child:
		// this one stays as long as the service does.
		runtime.LockOSThread()
		err := s.cmd.Start()
		started <- err
		if err == nil {
			s.err = s.cmd.Wait()
			close(s.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("podman could not be started: %w", err)
	}
	p, err := s.connect(ctx, h)
	if err != nil {
		_ = s.stop()
		return nil, err
	}
	go s.keepAlive(p)
	return p, nil
}

// connect waits until the service answers.
func (s *service) connect(ctx context.Context, h *host) (*Podman, error) {
	deadline := time.NewTimer(startUp)
	defer deadline.Stop()
	for {
		if _, err := os.Stat(s.socket); err == nil {
			p, err := connect(ctx, target{url: "unix://" + s.socket}, 0)
			if err == nil {
				p.service, p.host, p.adjusted = s, h, h.notes()
				return p, nil
			}
		}
		select {
		case <-time.After(3 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.done:
			return nil, &engine.UnreachableError{URL: "unix://" + s.socket, Err: errors.New("the service ended: " + s.words())}
		case <-deadline.C:
			return nil, &engine.UnreachableError{URL: "unix://" + s.socket, Err: fmt.Errorf("the service the lab started did not answer within %s: %s", startUp, s.words())}
		}
	}
}

// words is what the service said on stderr. Only read once it has ended, or
// for a message: it is never parsed.
func (s *service) words() string {
	text := strings.TrimSpace(s.stderr.String())
	if text == "" {
		return "it said nothing"
	}
	return text
}

func (s *service) keepAlive(p *Podman) {
	tick := time.NewTicker(idle / 3)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			ctx, cancel := context.WithTimeout(context.Background(), idle/3)
			if res, err := p.do(ctx, "GET", "/_ping", nil, nil, nil); err == nil {
				res.Body.Close()
			}
			cancel()
		case <-s.quit:
			return
		case <-s.done:
			return
		}
	}
}

// stop ends the service and waits for its end. Containers go on without it.
func (s *service) stop() error {
	select {
	case <-s.quit:
		return nil
	default:
		close(s.quit)
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(5 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
	_ = os.Remove(s.socket)
	return nil
}
