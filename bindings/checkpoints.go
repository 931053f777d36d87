package bindings

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"persistencelab/lab/engine"
)

// Checkpoint implements engine.Engine.
func (p *Podman) Checkpoint(ctx context.Context, nameOrID, file string) error {
	query := url.Values{}
	if file == "" {
		err := p.call(ctx, http.MethodPost, "/containers/%s/checkpoint", query, nil, nil, nameOrID)
		return noCriu(p.fail(ctx, err, "container", nameOrID))
	}
	query.Set("export", "true")
	res, err := p.do(ctx, http.MethodPost, "/containers/%s/checkpoint", query, nil, nil, nameOrID)
	if err != nil {
		return p.fail(ctx, err, "container", nameOrID)
	}
	defer res.Body.Close()
	if !res.IsSuccess() {
		return noCriu(p.fail(ctx, res.Process(nil), "container", nameOrID))
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, res.Body)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
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
	return r.ID, noCriu(p.fail(ctx, err, "container", nameOrID))
}

// noCriu tells a host that can't do checkpoints from a container that can't
// be checkpointed, by the words; there is nothing else to tell them by.
func noCriu(err error) error {
	if err == nil {
		return nil
	}
	text := strings.ToLower(err.Error())
	for _, sign := range []struct{ words, needs string }{
		{"vdso", "a criu that works on this kernel"},
		{"iptables-restore", "iptables"},
		{"criu", "a working criu"},
		{"support checkpoint", "an oci runtime that supports it, such as runc"},
		{"configured runtime", "an oci runtime that supports it, such as runc"},
		{"root privileges", "root"},
		{"rootless", "root"},
	} {
		if strings.Contains(text, sign.words) {
			return &engine.UnsupportedError{What: "checkpoint", Needs: sign.needs + "; podman says: " + shortened(err.Error()), Err: err}
		}
	}
	return err
}

func shortened(text string) string {
	return fmt.Sprintf("%.200s", strings.Join(strings.Fields(text), " "))
}
