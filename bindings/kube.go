package bindings

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/containers/podman/v5/pkg/bindings/kube"

	"persistencelab/lab/engine"
)

// PlayKube implements engine.Engine.
func (p *Podman) PlayKube(ctx context.Context, yaml []byte) error {
	if len(p.limits) > 0 {
		return p.needsLimits("kube play")
	}
	return p.makePod(ctx, func() (bool, error) {
		opts := new(kube.PlayOptions).WithNetwork([]string{"none"})
		report, err := kube.PlayWithBody(p.ctx(ctx), bytes.NewReader(yaml), opts)
		if err != nil {
			return false, p.fail(ctx, err, "pod", "")
		}
		for _, pod := range report.Pods {
			for _, words := range pod.ContainerErrors {
				err = errors.Join(err, errors.New(strings.TrimSpace(words)))
			}
		}
		return len(report.Pods) > 0, err
	})
}

// needsLimits: each container the lab creates is given limits this host
// allows. A pod's infra container, and those of kube play, are created by the
// service, from what has no words for limits: a service the lab starts has them
// in a containers.conf of its own, and one it found must have them in the
// system's.
func (p *Podman) needsLimits(what string) error {
	var limits []string
	for _, l := range p.limits {
		limits = append(limits, fmt.Sprintf("%q", fmt.Sprintf("%s=%d:%d", l.name, l.value, l.value)))
	}
	return &engine.UnsupportedError{What: what,
		Needs: fmt.Sprintf("a podman service with ulimits this host allows: put default_ulimits = [%s] under [containers] in containers.conf and restart it, or end it: the lab starts one of its own", strings.Join(limits, ", ")),
		Err:   errors.New(limitsNote()),
	}
}

// DownKube implements engine.Engine. Before 4.4 the service takes the word
// force, and does nothing of it.
func (p *Podman) DownKube(ctx context.Context, yaml []byte, force bool) error {
	if force && !p.atLeast(4, 4) {
		return p.unsupported("kube down --force", "podman 4.4")
	}
	opts := new(kube.DownOptions)
	if force {
		opts.WithForce(true)
	}
	report, err := kube.DownWithBody(p.ctx(ctx), bytes.NewReader(yaml), *opts)
	if err != nil {
		return p.fail(ctx, err, "pod", "")
	}
	for _, r := range report.StopReport {
		err = errors.Join(err, errors.Join(r.Errs...))
	}
	for _, r := range report.RmReport {
		err = errors.Join(err, r.Err)
	}
	for _, r := range report.VolumeRmReport {
		err = errors.Join(err, r.Err)
	}
	return err
}

// PauseImages implements engine.Engine. Podman names the image by its version
// and the time it was built (pkg/specgen/generate/pause_image.go in 4.3 to
// 5.4); from 5.5 on a pod needs none.
func (p *Podman) PauseImages(ctx context.Context) ([]string, error) {
	var images []struct{ Names []string }
	filter := url.Values{"filters": {`{"reference":["localhost/podman-pause"]}`}}
	p.images.RLock()
	defer p.images.RUnlock()
	if err := p.call(ctx, http.MethodGet, "/images/json", filter, nil, &images); err != nil {
		return nil, p.fail(ctx, err, "image", "localhost/podman-pause")
	}
	var refs []string
	for _, i := range images {
		for _, name := range i.Names {
			if strings.HasPrefix(name, "localhost/podman-pause:"+p.version.String()+"-") {
				refs = append(refs, name)
			}
		}
	}
	return refs, nil
}
