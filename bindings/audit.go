package bindings

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/containers/podman/v5/libpod/define"
	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/bindings/pods"
	"github.com/containers/podman/v5/pkg/bindings/volumes"
	"github.com/containers/podman/v5/pkg/copy"
	"github.com/containers/podman/v5/pkg/domain/entities/types"

	"persistencelab/lab/engine"
)

var _ engine.Auditor = (*Podman)(nil)

// Containers implements engine.Auditor.
func (p *Podman) Containers(ctx context.Context) ([]engine.ContainerRef, error) {
	list, err := p.listContainers(ctx, nil)
	if err != nil {
		return nil, err
	}
	var refs []engine.ContainerRef
	for _, c := range list {
		ref := engine.ContainerRef{ID: c.ID, Name: c.ID, State: c.State, Infra: c.IsInfra}
		if len(c.Names) > 0 {
			ref.Name = c.Names[0]
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

func (p *Podman) listContainers(ctx context.Context, filters map[string][]string) ([]types.ListContainer, error) {
	opts := new(containers.ListOptions).WithAll(true)
	if filters != nil {
		opts.WithFilters(filters)
	}
	list, err := containers.List(p.ctx(ctx), opts)
	return list, p.fail(ctx, err, "container", "")
}

// Holding implements engine.Auditor.
func (p *Podman) Holding(ctx context.Context, nameOrID string) (engine.Holding, error) {
	d, err := containers.Inspect(p.ctx(ctx), nameOrID, nil)
	if err != nil {
		return engine.Holding{}, p.fail(ctx, err, "container", nameOrID)
	}
	h := engine.Holding{
		Container: containerOf(d),
		ImageName: d.ImageName, Created: d.Created, Rootfs: d.Rootfs != "", Infra: d.IsInfra,
	}
	if c := d.HostConfig; c != nil {
		h.AutoRemove, h.ReadOnly, h.Tmpfs = c.AutoRemove, c.ReadonlyRootfs, c.Tmpfs
		if c.RestartPolicy != nil {
			h.RestartPolicy = c.RestartPolicy.Name
		}
	}
	if d.Config != nil {
		h.Command = d.Config.CreateCommand
	}
	if d.GraphDriver != nil {
		h.Upper = d.GraphDriver.Data["UpperDir"]
		if lower := d.GraphDriver.Data["LowerDir"]; lower != "" {
			h.Lower = strings.Split(lower, ":")
		}
	}
	if h.ImageVolumes, err = p.imageVolumes(ctx, d.Image); err != nil {
		return h, err
	}
	if d.Pod != "" {
		pod, err := pods.Inspect(p.ctx(ctx), d.Pod, nil)
		if err != nil {
			return h, p.fail(ctx, err, "pod", d.Pod)
		}
		h.Pod = pod.Name
		for _, c := range pod.Containers {
			if c.ID != d.ID {
				h.PodMembers = append(h.PodMembers, c.Name)
			}
		}
	}
	for _, m := range d.Mounts {
		held := engine.HeldMount{
			Type: m.Type, Name: m.Name, Source: m.Source, Target: m.Destination, Options: m.Options, Write: m.RW,
		}
		if m.Type == "volume" && m.Name != "" {
			if err := p.addVolume(ctx, &held, d.ID); err != nil {
				return h, err
			}
		}
		h.Held = append(h.Held, held)
	}
	return h, nil
}

// imageVolumes are the VOLUME lines of an image; none for a container without
// one, or whose image is gone.
func (p *Podman) imageVolumes(ctx context.Context, id string) ([]string, error) {
	if id == "" {
		return nil, nil
	}
	var image struct {
		Config *struct{ Volumes map[string]struct{} }
	}
	err := p.fail(ctx, p.call(ctx, http.MethodGet, "/images/%s/json", nil, nil, &image, id), "image", id)
	var gone *engine.NotFoundError
	if errors.As(err, &gone) || err == nil && image.Config == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []string
	for target := range image.Config.Volumes {
		list = append(list, path.Clean(target))
	}
	slices.Sort(list)
	return list, nil
}

// addVolume adds what the volume itself says, and who else has it.
func (p *Podman) addVolume(ctx context.Context, m *engine.HeldMount, id string) error {
	v, err := volumes.Inspect(p.ctx(ctx), m.Name, nil)
	if err != nil {
		return p.fail(ctx, err, "volume", m.Name)
	}
	m.Anonymous, m.Driver, m.VolumeOpt = v.Anonymous, v.Driver, v.Options
	list, err := p.listContainers(ctx, map[string][]string{"volume": {m.Name}})
	if err != nil {
		return err
	}
	for _, c := range list {
		if c.ID != id && len(c.Names) > 0 {
			m.Others = append(m.Others, c.Names[0])
		}
	}
	return nil
}

// Changes implements engine.Auditor.
func (p *Podman) Changes(ctx context.Context, id string) ([]engine.Change, error) {
	list, err := containers.Diff(p.ctx(ctx), id, nil)
	if err != nil {
		return nil, p.fail(ctx, err, "container", id)
	}
	out := make([]engine.Change, len(list))
	for i, c := range list {
		out[i] = engine.Change{Path: c.Path, Kind: engine.ChangeKind(c.Kind)}
	}
	return out, nil
}

// LayerSize implements engine.Auditor.
func (p *Podman) LayerSize(ctx context.Context, id string) (int64, error) {
	d, err := containers.Inspect(p.ctx(ctx), id, new(containers.InspectOptions).WithSize(true))
	if err != nil {
		return 0, p.fail(ctx, err, "container", id)
	}
	if d.SizeRw == nil {
		return 0, errors.New("podman does not tell the size of the writable layer")
	}
	return *d.SizeRw, nil
}

// StatIn implements engine.Auditor.
func (p *Podman) StatIn(ctx context.Context, id, file string) (engine.FileInfo, error) {
	info, err := containers.Stat(p.ctx(ctx), id, file)
	if errors.Is(err, copy.ErrENOENT) {
		return engine.FileInfo{}, &engine.NotFoundError{Kind: "file", Name: file, Err: err}
	}
	if err != nil {
		return engine.FileInfo{}, p.fail(ctx, err, "container", id)
	}
	return engine.FileInfo{Path: file, Bytes: info.Size, Modified: info.ModTime, Dir: info.IsDir}, nil
}

// ReadTree implements engine.Auditor.
func (p *Podman) ReadTree(ctx context.Context, id, dir string, limit int64) (files []engine.FileInfo, whole bool, err error) {
	res, err := p.do(ctx, http.MethodGet, "/containers/%s/archive", url.Values{"path": {dir}}, nil, nil, id)
	if err != nil {
		return nil, false, p.fail(ctx, err, "container", id)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, false, p.fail(ctx, res.Process(nil), "container", id)
	}
	body := &io.LimitedReader{R: res.Body, N: limit}
	for r := tar.NewReader(body); ; {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return files, body.N > 0, nil
		case err != nil && body.N <= 0:
			return files, false, nil
		case err != nil:
			return files, false, fmt.Errorf("%s as podman sends it: %w", dir, err)
		}
		// The folder itself comes first, under its own name.
		_, below, _ := strings.Cut(strings.TrimPrefix(h.Name, "./"), "/")
		info := engine.FileInfo{
			Path: path.Join(dir, below), Bytes: h.Size, Modified: h.ModTime, Dir: h.Typeflag == tar.TypeDir,
		}
		files = append(files, info)
	}
}

// containerOf is the part of inspect both ports have.
func containerOf(d *define.InspectContainerData) engine.Container {
	c := engine.Container{ID: d.ID, Name: d.Name, ImageID: d.Image, RestartCount: int(d.RestartCount)}
	if d.State != nil {
		c.State, c.PID, c.ExitCode = d.State.Status, d.State.Pid, int(d.State.ExitCode)
		c.Started, c.Finished = d.State.StartedAt, d.State.FinishedAt
	}
	for _, m := range d.Mounts {
		c.Mounts = append(c.Mounts, engine.ContainerMount{Type: m.Type, Name: m.Name, Source: m.Source, Target: m.Destination})
	}
	return c
}
