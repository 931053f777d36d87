package bindings

import (
	"context"
	"errors"

	"github.com/containers/podman/v5/pkg/bindings/volumes"
	"github.com/containers/podman/v5/pkg/domain/entities/types"

	"persistencelab/lab/engine"
)

// CreateVolume implements engine.Engine.
func (p *Podman) CreateVolume(ctx context.Context, spec engine.VolumeSpec) error {
	_, err := volumes.Create(p.ctx(ctx), types.VolumeCreateOptions{
		Name: spec.Name, Driver: spec.Driver, Labels: spec.Labels, Options: spec.Options,
	}, nil)
	return p.fail(ctx, err, "volume", spec.Name)
}

// InspectVolume implements engine.Engine. Podman matches a unique prefix of a
// name too; a volume of another name is not the one asked for.
func (p *Podman) InspectVolume(ctx context.Context, name string) (engine.Volume, error) {
	v, err := volumes.Inspect(p.ctx(ctx), name, nil)
	if err != nil {
		return engine.Volume{}, p.fail(ctx, err, "volume", name)
	}
	if v.Name != name {
		return engine.Volume{}, &engine.NotFoundError{Kind: "volume", Name: name, Err: errors.New("no volume of exactly that name")}
	}
	return engine.Volume{Name: v.Name, Mountpoint: v.Mountpoint, Anonymous: v.Anonymous, Labels: v.Labels}, nil
}

// RemoveVolume implements engine.Engine. `volume rm PREFIX` removes the volume
// whose name uniquely starts with PREFIX (both 4.3.1 and 5.4.2): the name is
// looked up first, so that nothing else can go.
func (p *Podman) RemoveVolume(ctx context.Context, name string, force bool) error {
	if _, err := p.InspectVolume(ctx, name); err != nil {
		return err
	}
	err := volumes.Remove(p.ctx(ctx), name, new(volumes.RemoveOptions).WithForce(force))
	return p.fail(ctx, err, "volume", name)
}
