package bindings

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/containers/podman/v5/pkg/bindings/pods"
	"github.com/containers/podman/v5/pkg/domain/entities/types"
	"github.com/containers/podman/v5/pkg/specgen"

	"persistencelab/lab/engine"
)

// CreatePod implements engine.Engine.
func (p *Podman) CreatePod(ctx context.Context, spec engine.PodSpec) (string, error) {
	if len(p.limits) > 0 {
		return "", p.needsLimits("a pod")
	}
	s := types.PodSpec{PodSpecGen: *specgen.NewPodSpecGenerator()}
	s.PodSpecGen.Name = spec.Name
	s.PodSpecGen.Labels = spec.Labels
	s.PodSpecGen.NetNS = specgen.Namespace{NSMode: specgen.NoNetwork}
	s.PodSpecGen.InfraName = spec.Name + "-infra"
	var id string
	err := p.makePod(ctx, func() (bool, error) {
		r, err := pods.CreatePodFromSpec(p.ctx(ctx), &s)
		if err != nil {
			return false, p.fail(ctx, err, "pod", spec.Name)
		}
		id = r.Id
		return true, nil
	})
	return id, err
}

// makePod makes a pod; the first one by itself where it may bring the pause
// image with it. Two at once would build it twice, and leave one of them
// without a name. pod tells whether it made one.
func (p *Podman) makePod(ctx context.Context, pod func() (bool, error)) error {
	if p.podMade.Load() {
		_, err := pod()
		return err
	}
	p.podOnce.Lock()
	defer p.podOnce.Unlock()
	refs, err := p.PauseImages(ctx)
	if err != nil {
		return err
	}
	if len(refs) == 0 && !p.podMade.Load() {
		p.images.Lock()
		defer p.images.Unlock()
	}
	made, err := pod()
	if made {
		p.podMade.Store(true)
	}
	return err
}

// StartPod implements engine.Engine.
func (p *Podman) StartPod(ctx context.Context, nameOrID string) error {
	r, err := pods.Start(p.ctx(ctx), nameOrID, nil)
	if err == nil {
		err = errors.Join(r.Errs...)
	}
	return p.fail(ctx, err, "pod", nameOrID)
}

// StopPod implements engine.Engine.
func (p *Podman) StopPod(ctx context.Context, nameOrID string, grace time.Duration) error {
	r, err := pods.Stop(p.ctx(ctx), nameOrID, new(pods.StopOptions).WithTimeout(int(seconds(grace))))
	if err == nil {
		err = errors.Join(r.Errs...)
	}
	return p.fail(ctx, err, "pod", nameOrID)
}

// RestartPod implements engine.Engine.
func (p *Podman) RestartPod(ctx context.Context, nameOrID string) error {
	r, err := pods.Restart(p.ctx(ctx), nameOrID, nil)
	if err == nil {
		err = errors.Join(r.Errs...)
	}
	return p.fail(ctx, err, "pod", nameOrID)
}

// RemovePod implements engine.Engine.
func (p *Podman) RemovePod(ctx context.Context, nameOrID string, force bool) error {
	r, err := pods.Remove(p.ctx(ctx), nameOrID, new(pods.RemoveOptions).WithForce(force))
	if err == nil {
		err = r.Err
	}
	return p.fail(ctx, err, "pod", nameOrID)
}

// CreateSecret implements engine.Engine. Secrets carry labels from 4.6 on
// only; the run's ledger knows them.
func (p *Podman) CreateSecret(ctx context.Context, name, content string) error {
	err := p.call(ctx, http.MethodPost, "/secrets/create", map[string][]string{"name": {name}}, strings.NewReader(content), nil)
	return p.fail(ctx, err, "secret", name)
}

// RemoveSecret implements engine.Engine.
func (p *Podman) RemoveSecret(ctx context.Context, name string) error {
	err := p.call(ctx, http.MethodDelete, "/secrets/%s", nil, nil, nil, name)
	return p.fail(ctx, err, "secret", name)
}
