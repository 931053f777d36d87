package bindings

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"persistencelab/lab/engine"
)

// Checkpoint implements engine.Engine. Podman's words for a failure are the
// runtime's exit status: whether the host can't do it at all, or this container
// can't be saved, shows when another container is.
func (p *Podman) Checkpoint(ctx context.Context, nameOrID, file string) error {
	err := p.checkpoint(ctx, nameOrID, file)
	var down *engine.UnreachableError
	if err == nil || ctx.Err() != nil || errors.As(err, &down) {
		return err
	}
	p.criuOnce.Do(func() {
		p.criuWhy = p.withContainer(ctx, p.opts, func(id string) error { return p.checkpoint(ctx, id, "") })
	})
	if p.criuWhy != nil {
		if _, missing := exec.LookPath("criu"); missing != nil && !p.remote {
			return &engine.UnsupportedError{What: "checkpoint", Needs: "criu, which is not installed here", Err: err}
		}
		return &engine.UnsupportedError{
			What: "checkpoint", Needs: "root, criu, and a runtime and kernel that go with it; podman says: " + shortened(p.criuWhy.Error()), Err: err,
		}
	}
	return err
}

func (p *Podman) checkpoint(ctx context.Context, nameOrID, file string) error {
	if file == "" {
		err := p.call(ctx, http.MethodPost, "/containers/%s/checkpoint", nil, nil, nil, nameOrID)
		return p.fail(ctx, err, "container", nameOrID)
	}
	body, err := p.open(ctx, http.MethodPost, "/containers/%s/checkpoint", url.Values{"export": {"true"}}, nameOrID)
	if err != nil {
		return p.fail(ctx, err, "container", nameOrID)
	}
	defer body.Close()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, body)
	return errors.Join(err, f.Close())
}

// Restore implements engine.Engine.
func (p *Podman) Restore(ctx context.Context, nameOrID, file, name string) (string, error) {
	query := url.Values{}
	var body io.Reader
	if file != "" {
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		body, nameOrID = f, "import" // the service does not look at it
		query.Set("import", "true")
		query.Set("name", name)
	}
	var r struct {
		ID string `json:"Id"`
	}
	err := p.call(ctx, http.MethodPost, "/containers/%s/restore", query, body, &r, nameOrID)
	return r.ID, p.fail(ctx, err, "container", nameOrID)
}

func shortened(text string) string {
	r := []rune(strings.Join(strings.Fields(text), " "))
	if len(r) > 240 { // the long part is paths; what matters stands at the end
		return string(r[:40]) + " … " + string(r[len(r)-160:])
	}
	return string(r)
}
