package bindings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/containers/podman/v5/pkg/api/handlers"
	"github.com/containers/podman/v5/pkg/bindings/containers"

	"persistencelab/lab/engine"
)

var _ engine.Executor = (*Podman)(nil)

// maxExecOutput bounds what is kept of each stream of a command.
const maxExecOutput = 1 << 20

// Exec implements engine.Executor.
func (p *Podman) Exec(ctx context.Context, nameOrID string, command ...string) (engine.Executed, error) {
	id, err := p.execCreate(ctx, nameOrID, command, true)
	if err != nil {
		return engine.Executed{}, err
	}
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"tcp"}, "Content-Type": {"application/json"}}
	res, err := p.do(ctx, http.MethodPost, "/exec/%s/start", nil, header, strings.NewReader(`{"Detach":false,"Tty":false}`), id)
	if err != nil {
		return engine.Executed{}, p.fail(ctx, err, "container", nameOrID)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSwitchingProtocols && res.StatusCode != http.StatusOK {
		err := res.Process(nil)
		if err == nil {
			err = fmt.Errorf("exec answered %s", res.Status)
		}
		return engine.Executed{}, p.fail(ctx, err, "container", nameOrID)
	}
	// The command may never end; then the caller's context ends the reading.
	stop := context.AfterFunc(ctx, func() { res.Body.Close() })
	defer stop()
	stdout, stderr, err := split(res.Body)
	if err != nil {
		return engine.Executed{}, p.fail(ctx, fmt.Errorf("exec %s: %w", command[0], err), "container", nameOrID)
	}
	d, err := containers.ExecInspect(p.ctx(ctx), id, nil)
	if err != nil {
		return engine.Executed{}, p.fail(ctx, err, "container", nameOrID)
	}
	return engine.Executed{Exit: d.ExitCode, Stdout: stdout, Stderr: stderr}, nil
}

// ExecDetached implements engine.Executor.
func (p *Podman) ExecDetached(ctx context.Context, nameOrID string, command ...string) error {
	id, err := p.execCreate(ctx, nameOrID, command, false)
	if err != nil {
		return err
	}
	return p.fail(ctx, containers.ExecStart(p.ctx(ctx), id, nil), "container", nameOrID)
}

func (p *Podman) execCreate(ctx context.Context, nameOrID string, command []string, attach bool) (string, error) {
	config := new(handlers.ExecCreateConfig)
	config.Cmd, config.AttachStdout, config.AttachStderr = command, attach, attach
	id, err := containers.ExecCreate(p.ctx(ctx), nameOrID, config)
	return id, p.fail(ctx, err, "container", nameOrID)
}

// split takes the frames of Docker's attach protocol apart.
func split(r io.Reader) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	header := make([]byte, 8)
	for {
		channel, size, err := containers.DemuxHeader(r, header)
		if errors.Is(err, io.EOF) {
			return out.String(), errs.String(), nil
		}
		if err != nil {
			return "", "", err
		}
		into := &out
		switch channel {
		case channelStdin, channelStdout:
		case channelError:
			words, _ := io.ReadAll(io.LimitReader(r, int64(size)))
			return "", "", errors.New(string(words))
		default:
			into = &errs
		}
		keep := min(size, max(maxExecOutput-into.Len(), 0))
		if _, err := io.CopyN(into, r, int64(keep)); err != nil {
			return "", "", err
		}
		if _, err := io.CopyN(io.Discard, r, int64(size-keep)); err != nil {
			return "", "", err
		}
	}
}
