package experiment

import (
	"context"
	"io"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
)

// session is a conversation with process 1 of one container: opened once,
// ended with the process. The nil session is one that has ended.
type session struct {
	stream io.ReadWriteCloser
	client *wire.Client
	hello  wire.Greeting
}

// openSession attaches to a running container and greets the probe.
func openSession(ctx context.Context, eng engine.Engine, id string) (*session, error) {
	stream, err := eng.Attach(ctx, id)
	if err != nil {
		return nil, err
	}
	return greet(ctx, stream)
}

// openRelay is openSession by way of a second process in the container. Once
// whoever was attached has gone, Podman's monitor has closed the stdin of
// process 1 for good; its socket is open.
func openRelay(ctx context.Context, eng engine.Engine, id string) (*session, error) {
	stream, err := eng.Join(ctx, id, "/probe", "relay")
	if err != nil {
		return nil, err
	}
	return greet(ctx, stream)
}

func greet(ctx context.Context, stream io.ReadWriteCloser) (*session, error) {
	s := &session{stream: stream, client: wire.NewClient(stream)}
	reply, err := s.client.Call(ctx, wire.Request{Op: wire.Hello})
	switch {
	case err != nil:
	case reply.Error != nil:
		err = reply.Error
	case reply.Hello == nil:
		err = io.ErrUnexpectedEOF
	default:
		s.hello = *reply.Hello
		return s, nil
	}
	stream.Close()
	return nil, err
}

// exitTime is how long the probe is given to leave when asked over the
// session. Whoever asked goes on after it: the engine can end it too.
const exitTime = 2 * time.Second

// exit asks the probe to leave and waits until it has.
func (s *session) exit(ctx context.Context) {
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, exitTime)
	defer cancel()
	if _, err := s.client.Call(ctx, wire.Request{Op: wire.Exit}); err == nil {
		done := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, s.stream)
			close(done)
		}()
		select {
		case <-done:
		case <-ctx.Done():
		}
	}
}

func (s *session) close() {
	if s != nil {
		s.stream.Close()
	}
}
