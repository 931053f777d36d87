package bindings

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"persistencelab/lab/engine"
)

// The bindings' images package brings Buildah's client with it; the calls the
// lab needs are made over the bindings' connection instead.

// EnsureImage implements engine.Engine.
func (p *Podman) EnsureImage(ctx context.Context, img engine.Image) error {
	_, err := p.ImageID(ctx, img.Ref)
	var missing *engine.NotFoundError
	if !errors.As(err, &missing) {
		return err
	}
	return p.LoadImage(ctx, img)
}

// LoadImage implements engine.Engine.
func (p *Podman) LoadImage(ctx context.Context, img engine.Image) error {
	archive, err := img.Archive()
	if err != nil {
		return err
	}
	defer archive.Close()
	p.images.Lock()
	defer p.images.Unlock()
	err = p.call(ctx, http.MethodPost, "/images/load", nil, archive, nil)
	return p.fail(ctx, err, "image", img.Ref)
}

// ImageID implements engine.Engine.
func (p *Podman) ImageID(ctx context.Context, ref string) (string, error) {
	var image struct {
		ID string `json:"Id"`
	}
	p.images.RLock()
	defer p.images.RUnlock()
	var err error
	for range 4 {
		// A service that looks at an image while another of the same store
		// makes or removes one can fall over its own feet (seen on 4.3.1).
		// Looking again does no harm.
		err = p.call(ctx, http.MethodGet, "/images/%s/json", nil, nil, &image, ref)
		if err == nil || !strings.Contains(err.Error(), "runtime error: ") {
			break
		}
	}
	return image.ID, p.fail(ctx, err, "image", ref)
}

// RemoveImage implements engine.Engine.
func (p *Podman) RemoveImage(ctx context.Context, ref string, force bool) error {
	query := url.Values{}
	if force {
		query.Set("force", "true")
	}
	p.images.Lock()
	defer p.images.Unlock()
	err := p.call(ctx, http.MethodDelete, "/images/%s", query, nil, nil, ref)
	return p.fail(ctx, err, "image", ref)
}
