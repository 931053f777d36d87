package bindings

import (
	"context"

	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/bindings/pods"
	"github.com/containers/podman/v5/pkg/bindings/volumes"

	"persistencelab/lab/engine"
)

// Labelled implements engine.Engine.
func (p *Podman) Labelled(ctx context.Context, key string) ([]engine.Object, error) {
	filter := map[string][]string{"label": {key}}
	var found []engine.Object
	cs, err := containers.List(p.ctx(ctx), new(containers.ListOptions).WithAll(true).WithFilters(filter))
	if err != nil {
		return nil, p.fail(ctx, err, "container", "")
	}
	for _, c := range cs {
		name := c.ID
		if len(c.Names) > 0 {
			name = c.Names[0]
		}
		found = append(found, engine.Object{Kind: "container", ID: c.ID, Name: name, Label: c.Labels[key]})
	}
	ps, err := pods.List(p.ctx(ctx), new(pods.ListOptions).WithFilters(filter))
	if err != nil {
		return nil, p.fail(ctx, err, "pod", "")
	}
	for _, x := range ps {
		found = append(found, engine.Object{Kind: "pod", ID: x.Id, Name: x.Name, Label: x.Labels[key]})
	}
	vs, err := volumes.List(p.ctx(ctx), new(volumes.ListOptions).WithFilters(filter))
	if err != nil {
		return nil, p.fail(ctx, err, "volume", "")
	}
	for _, v := range vs {
		found = append(found, engine.Object{Kind: "volume", ID: v.Name, Name: v.Name, Label: v.Labels[key]})
	}
	return found, nil
}
