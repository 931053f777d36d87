package bindings

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"persistencelab/lab/engine"
)

// Commit implements engine.Engine. `podman commit` leaves mounts out, and so
// does the service.
func (p *Podman) Commit(ctx context.Context, nameOrID, ref string) (string, error) {
	repo, tag := splitRef(ref)
	var image struct {
		ID string `json:"Id"`
	}
	query := url.Values{"container": {nameOrID}, "repo": {repo}, "tag": {tag}, "pause": {"false"}}
	p.images.Lock()
	defer p.images.Unlock()
	err := p.call(ctx, http.MethodPost, "/commit", query, nil, &image)
	return image.ID, p.fail(ctx, err, "container", nameOrID)
}

func splitRef(ref string) (repo, tag string) {
	if i := strings.LastIndexByte(ref, ':'); i > strings.LastIndexByte(ref, '/') {
		return ref[:i], ref[i+1:]
	}
	return ref, "latest"
}

// ExportContainer implements engine.Engine.
func (p *Podman) ExportContainer(ctx context.Context, nameOrID string) (io.ReadCloser, error) {
	body, err := p.download(ctx, "/containers/%s/export", nil, nameOrID)
	return body, p.fail(ctx, err, "container", nameOrID)
}

// ImportImage implements engine.Engine.
func (p *Podman) ImportImage(ctx context.Context, ref string, archive io.Reader) (string, error) {
	var image struct {
		ID string `json:"Id"`
	}
	p.images.Lock()
	defer p.images.Unlock()
	err := p.call(ctx, http.MethodPost, "/images/import", url.Values{"reference": {ref}}, archive, &image)
	return image.ID, p.fail(ctx, err, "image", ref)
}

// CopyOut implements engine.Engine.
func (p *Podman) CopyOut(ctx context.Context, nameOrID, path string) (io.ReadCloser, error) {
	body, err := p.download(ctx, "/containers/%s/archive", url.Values{"path": {path}}, nameOrID)
	return body, p.fail(ctx, err, "path", path)
}

// CopyIn implements engine.Engine.
func (p *Podman) CopyIn(ctx context.Context, nameOrID, dir string, archive io.Reader) error {
	err := p.call(ctx, http.MethodPut, "/containers/%s/archive", url.Values{"path": {dir}}, archive, nil, nameOrID)
	return p.fail(ctx, err, "path", dir)
}

// ExportVolume implements engine.Engine. Services know it from 5.6 on; before
// that only the podman command does, on the engine's own host.
func (p *Podman) ExportVolume(ctx context.Context, name string) (io.ReadCloser, error) {
	if p.atLeast(5, 6) {
		body, err := p.download(ctx, "/volumes/%s/export", nil, name)
		return body, p.fail(ctx, err, "volume", name)
	}
	return p.commandOutput(ctx, "volume export", "volume", "export", name)
}

// ImportVolume implements engine.Engine.
func (p *Podman) ImportVolume(ctx context.Context, name string, archive io.Reader) error {
	if p.atLeast(5, 6) {
		err := p.call(ctx, http.MethodPost, "/volumes/%s/import", nil, archive, nil, name)
		return p.fail(ctx, err, "volume", name)
	}
	_, err := p.command(ctx, "volume import", archive, "volume", "import", name, "-")
	return err
}

// Clone implements engine.Engine. There is no call for it in any service's
// API: `podman container clone` works on the host only.
func (p *Podman) Clone(ctx context.Context, nameOrID, name string) (string, error) {
	out, err := p.command(ctx, "container clone", nil, "container", "clone", "--name", name, nameOrID)
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(out))
	if id == "" {
		return "", errors.New("podman container clone gave no id")
	}
	return id, nil
}

// download opens a body that is a file.
func (p *Podman) download(ctx context.Context, path string, query url.Values, values ...string) (io.ReadCloser, error) {
	return p.open(ctx, http.MethodGet, path, query, values...)
}

func (p *Podman) open(ctx context.Context, method, path string, query url.Values, values ...string) (io.ReadCloser, error) {
	res, err := p.do(ctx, method, path, query, nil, nil, values...)
	if err != nil {
		return nil, err
	}
	if !res.IsSuccess() {
		defer res.Body.Close()
		return nil, res.Process(nil)
	}
	return res.Body, nil
}

var _ engine.Archives = (*Podman)(nil)
