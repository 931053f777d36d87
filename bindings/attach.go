package bindings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/containers/podman/v5/pkg/bindings/containers"
)

// Attach implements engine.Engine. The bindings' own Attach replaces the
// shared client's transport while it connects (its source calls that "one
// giant race condition"), and asks for the container first; this one upgrades
// an ordinary request.
func (p *Podman) Attach(ctx context.Context, nameOrID string) (io.ReadWriteCloser, error) {
	query := url.Values{
		"stdin": {"true"}, "stdout": {"true"}, "stream": {"true"},
		"detachKeys": {""}, // bytes are bytes: nothing detaches
	}
	return p.upgrade(ctx, "/containers/%s/attach", query, nil, "container", nameOrID)
}

// Join implements engine.Engine.
func (p *Podman) Join(ctx context.Context, nameOrID string, command ...string) (io.ReadWriteCloser, error) {
	config, err := json.Marshal(map[string]any{"AttachStdin": true, "AttachStdout": true, "AttachStderr": true, "Cmd": command})
	if err != nil {
		return nil, err
	}
	res, err := p.do(ctx, http.MethodPost, "/containers/%s/exec", nil, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(config), nameOrID)
	if err != nil {
		return nil, p.fail(ctx, err, "container", nameOrID)
	}
	defer res.Body.Close()
	var exec struct {
		ID string `json:"Id"`
	}
	if err := res.Process(&exec); err != nil {
		return nil, p.fail(ctx, err, "container", nameOrID)
	}
	return p.upgrade(ctx, "/exec/%s/start", nil, strings.NewReader(`{"Detach":false,"Tty":false}`), "container", exec.ID)
}

// upgrade makes a request whose connection then carries stdin and stdout.
func (p *Podman) upgrade(ctx context.Context, path string, query url.Values, body io.Reader, kind, name string) (io.ReadWriteCloser, error) {
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"tcp"}}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	// The stream outlives the call that opened it.
	opening, abandon := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, abandon)
	defer stop()
	res, err := p.do(opening, http.MethodPost, path, query, header, body, name)
	if err != nil {
		return nil, p.fail(ctx, err, kind, name)
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		defer res.Body.Close()
		err := res.Process(nil)
		if err == nil {
			err = fmt.Errorf("podman answered %s", res.Status)
		}
		return nil, p.fail(ctx, err, kind, name)
	}
	rw, ok := res.Body.(io.ReadWriteCloser)
	if !ok {
		res.Body.Close()
		return nil, errors.New("the connection can't be written to")
	}
	return &stream{ReadWriteCloser: rw}, nil
}

// stream takes the frames apart in which Podman sends stdout and stderr over
// one connection; what process 1 wrote to stderr is dropped.
type stream struct {
	io.ReadWriteCloser
	left   int  // bytes of the current frame not yet read
	stdout bool // whether they are wanted
	header [8]byte
}

// The frame's channel (Docker's attach protocol, which Podman speaks).
const (
	channelStdin  = 0
	channelStdout = 1
	channelError  = 3
)

func (s *stream) Read(p []byte) (int, error) {
	for {
		if s.left == 0 {
			channel, size, err := containers.DemuxHeader(s.ReadWriteCloser, s.header[:])
			if err != nil {
				return 0, err
			}
			if channel == channelError {
				words, _ := io.ReadAll(io.LimitReader(s.ReadWriteCloser, int64(size)))
				return 0, fmt.Errorf("podman ended the stream: %s", words)
			}
			s.left, s.stdout = size, channel == channelStdin || channel == channelStdout
			continue
		}
		n, err := s.ReadWriteCloser.Read(p[:min(len(p), s.left)])
		s.left -= n
		if s.stdout || err != nil {
			return n, err
		}
	}
}
