package bindings

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/containers/podman/v5/pkg/bindings/containers"
	"github.com/containers/podman/v5/pkg/specgen"
	"github.com/opencontainers/runtime-spec/specs-go"
	nettypes "go.podman.io/common/libnetwork/types"
	"go.podman.io/image/v5/manifest"

	"persistencelab/lab/engine"
)

// Create implements engine.Engine.
func (p *Podman) Create(ctx context.Context, spec engine.ContainerSpec) (string, error) {
	s, err := p.specgen(spec)
	if err != nil {
		return "", err
	}
	res, err := containers.CreateWithSpec(p.ctx(ctx), s, nil)
	if err != nil {
		return "", p.fail(ctx, err, "container", spec.Name)
	}
	return res.ID, nil
}

// specgen is the spec `podman create` would send for the same arguments. The
// service fills in less than the command line does: what a bare flag means
// there is spelled out here.
func (p *Podman) specgen(spec engine.ContainerSpec) (*specgen.SpecGenerator, error) {
	s := specgen.NewSpecGenerator(spec.Image, false)
	s.Name = spec.Name
	s.Entrypoint = spec.Entrypoint
	s.Command = spec.Command
	s.Labels = spec.Labels
	s.Env = spec.Env
	s.Hostname = spec.Hostname
	s.User = spec.User
	s.Stdin = ptr(true)
	s.Pod = spec.Pod
	s.VolumesFrom = spec.VolumesFrom
	s.RestartPolicy = spec.Restart
	if name, n, ok := strings.Cut(spec.Restart, ":"); ok {
		tries, err := strconv.ParseUint(n, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("restart policy %q: the number after the colon is the number of tries", spec.Restart)
		}
		s.RestartPolicy, s.RestartRetries = name, ptr(uint(tries))
	}
	s.Remove = ptr(spec.Remove)
	s.ReadOnlyFilesystem = ptr(spec.ReadOnly)
	// From 5.0 on the service takes it by itself, read-only root or not.
	s.ReadWriteTmpfs = ptr(spec.ReadOnly && (spec.ReadOnlyTmpfs == nil || *spec.ReadOnlyTmpfs))
	switch {
	case spec.Pod != "":
		// The pod has the network.
	case spec.Network == "":
		s.NetNS = specgen.Namespace{NSMode: specgen.NoNetwork}
	case spec.Network == "host":
		s.NetNS = specgen.Namespace{NSMode: specgen.Host}
	case strings.HasPrefix(spec.Network, "container:"):
		s.NetNS = specgen.Namespace{NSMode: specgen.FromContainer, Value: strings.TrimPrefix(spec.Network, "container:")}
	default:
		s.NetNS = specgen.Namespace{NSMode: specgen.Bridge}
		s.Networks = map[string]nettypes.PerNetworkOptions{spec.Network: {}}
	}
	for _, m := range spec.Secrets {
		// 0444 is the command line's default mode (podman-secret-create.1).
		s.Secrets = append(s.Secrets, specgen.Secret{Source: m.Name, Target: m.Target, Mode: 0o444})
	}
	for _, l := range p.limits {
		s.Rlimits = append(s.Rlimits, specs.POSIXRlimit{Type: l.name, Soft: l.value, Hard: l.value})
	}
	s.ImageVolumeMode = spec.ImageVolume
	if s.ImageVolumeMode == "anonymous" && !p.atLeast(5, 0) {
		s.ImageVolumeMode = "bind" // the 4.x spelling of the same thing
	}
	if len(spec.Health) > 0 {
		// Without an interval Podman starts no timer, which would need
		// systemd. One failure is enough to be unhealthy.
		s.HealthConfig = &manifest.Schema2HealthConfig{
			Test: append([]string{"CMD"}, spec.Health...), Timeout: healthTime, Retries: 1,
		}
	}
	for _, m := range spec.Mounts {
		if err := p.addMount(s, m); err != nil {
			return nil, err
		}
	}
	if *s.ReadWriteTmpfs && !p.atLeast(5, 0) {
		addReadOnlyTmpfs(s, spec)
	}
	return s, nil
}

// addReadOnlyTmpfs gives a read-only container its places in memory. Before
// 5.0 the podman command adds them, and the service knows nothing of them.
func addReadOnlyTmpfs(s *specgen.SpecGenerator, spec engine.ContainerSpec) {
	for _, target := range []string{"/run", "/tmp", "/var/tmp"} {
		if !slices.ContainsFunc(spec.Mounts, func(m engine.Mount) bool { return m.Target == target }) {
			s.Mounts = append(s.Mounts, specs.Mount{Type: "tmpfs", Source: "tmpfs", Destination: target,
				Options: []string{"rw", "rprivate", "nosuid", "nodev", "tmpcopyup"}})
		}
	}
}

func (p *Podman) addMount(s *specgen.SpecGenerator, m engine.Mount) error {
	overlay := slices.Contains(m.Options, "O")
	options := slices.DeleteFunc(slices.Clone(m.Options), func(o string) bool { return o == "O" })
	if m.Subpath != "" && !p.atLeast(5, 4) {
		// 4.3.1 takes the field, ignores it, and mounts the volume's root
		// without a word: refuse before it can.
		return p.unsupported("volume subpath", "podman 5.4")
	}
	switch m.Kind {
	case "volume", "anonymous", "bind":
		if overlay && m.Kind == "volume" && !strings.HasPrefix(m.Source, "/") {
			// Over a volume it is an option of the volume: among the
			// overlays its name would be taken for a host path.
			options = append(options, "O")
		} else if overlay {
			s.OverlayVolumes = append(s.OverlayVolumes, &specgen.OverlayVolume{
				Source: m.Source, Destination: m.Target, Options: options,
			})
			return nil
		}
		if m.Kind == "bind" {
			s.Mounts = append(s.Mounts, specs.Mount{
				Type: "bind", Source: m.Source, Destination: m.Target, Options: append([]string{"rbind"}, options...),
			})
			return nil
		}
		// A volume among the mounts is taken at create and fails at start:
		// it must be among the volumes.
		s.Volumes = append(s.Volumes, &specgen.NamedVolume{
			Name: m.Source, Dest: m.Target, Options: options, SubPath: m.Subpath,
		})
	case "tmpfs":
		s.Mounts = append(s.Mounts, specs.Mount{Type: "tmpfs", Source: "tmpfs", Destination: m.Target, Options: options})
	case "image":
		s.ImageVolumes = append(s.ImageVolumes, &specgen.ImageVolume{
			Source: m.Source, Destination: m.Target, ReadWrite: slices.Contains(options, "rw"),
		})
	default:
		return fmt.Errorf("mount of kind %q", m.Kind)
	}
	return nil
}

// Start implements engine.Engine.
func (p *Podman) Start(ctx context.Context, nameOrID string) error {
	err := p.fail(ctx, containers.Start(p.ctx(ctx), nameOrID, nil), "container", nameOrID)
	if err != nil && strings.Contains(err.Error(), "netavark: No such file") {
		// Only a clone has Podman's default network: it does not take over none.
		return &engine.UnsupportedError{What: "a container on podman's default network", Needs: "the iptables or nft command, which netavark runs", Err: err}
	}
	if err != nil && p.host != nil && classify(err) != refusedOtherwise {
		p.host.forget() // the host is not any more as it was learned: the next run looks again
	}
	return err
}

// Stop implements engine.Engine.
func (p *Podman) Stop(ctx context.Context, nameOrID string, grace time.Duration) error {
	opts := new(containers.StopOptions).WithTimeout(seconds(grace))
	return p.fail(ctx, containers.Stop(p.ctx(ctx), nameOrID, opts), "container", nameOrID)
}

// Restart implements engine.Engine.
func (p *Podman) Restart(ctx context.Context, nameOrID string, grace time.Duration) error {
	opts := new(containers.RestartOptions).WithTimeout(int(seconds(grace)))
	return p.fail(ctx, containers.Restart(p.ctx(ctx), nameOrID, opts), "container", nameOrID)
}

// Kill implements engine.Engine.
func (p *Podman) Kill(ctx context.Context, nameOrID, signal string) error {
	opts := new(containers.KillOptions).WithSignal(signal)
	return p.fail(ctx, containers.Kill(p.ctx(ctx), nameOrID, opts), "container", nameOrID)
}

// Pause implements engine.Engine. Rootless, the freezer is cgroup v2's
// (podman-pause(1)). On cgroup v1 runc gives up freezing a container once in a
// while on a busy host, and leaves it running: asked again, up to four times in
// all, it freezes it (seen with runc 1.1.15).
func (p *Podman) Pause(ctx context.Context, nameOrID string) error {
	var err error
	for range 4 {
		err = p.fail(ctx, containers.Pause(p.ctx(ctx), nameOrID, nil), "container", nameOrID)
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "runc pause ") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil && strings.Contains(err.Error(), "rootless containers with cgroup V1") {
		return &engine.UnsupportedError{What: "pausing a rootless container", Needs: "a host with cgroups v2", Err: err}
	}
	return err
}

// Unpause implements engine.Engine.
func (p *Podman) Unpause(ctx context.Context, nameOrID string) error {
	return p.fail(ctx, containers.Unpause(p.ctx(ctx), nameOrID, nil), "container", nameOrID)
}

// Rename implements engine.Engine.
func (p *Podman) Rename(ctx context.Context, nameOrID, name string) error {
	opts := new(containers.RenameOptions).WithName(name)
	return p.fail(ctx, containers.Rename(p.ctx(ctx), nameOrID, opts), "container", nameOrID)
}

// Wait implements engine.Engine. Podman polls; its default of 250 ms would
// be most of a short wait.
func (p *Podman) Wait(ctx context.Context, nameOrID string) (int, error) {
	opts := new(containers.WaitOptions).WithInterval("5ms")
	code, err := containers.Wait(p.ctx(ctx), nameOrID, opts)
	return int(code), p.fail(ctx, err, "container", nameOrID)
}

// Remove implements engine.Engine.
func (p *Podman) Remove(ctx context.Context, nameOrID string, o engine.RemoveOptions) error {
	opts := new(containers.RemoveOptions).WithVolumes(o.Volumes)
	if o.Force {
		opts.WithForce(true).WithTimeout(seconds(o.Grace))
	}
	reports, err := containers.Remove(p.ctx(ctx), nameOrID, opts)
	if err != nil {
		return p.fail(ctx, err, "container", nameOrID)
	}
	for _, r := range reports {
		if r.Err != nil {
			return p.fail(ctx, r.Err, "container", nameOrID)
		}
	}
	return nil
}

// Inspect implements engine.Engine.
func (p *Podman) Inspect(ctx context.Context, nameOrID string) (engine.Container, error) {
	d, err := containers.Inspect(p.ctx(ctx), nameOrID, nil)
	if err != nil {
		return engine.Container{}, p.fail(ctx, err, "container", nameOrID)
	}
	return containerOf(d), nil
}

// healthTime is how long a health check may take.
const healthTime = 30 * time.Second

// HealthCheck implements engine.Engine.
func (p *Podman) HealthCheck(ctx context.Context, nameOrID string) (engine.Health, error) {
	res, err := containers.RunHealthCheck(p.ctx(ctx), nameOrID, nil)
	if err != nil {
		if strings.Contains(err.Error(), "has no defined healthcheck") {
			return engine.Health{}, &engine.UnsupportedError{What: "a health check", Needs: "a HEALTHCHECK in the image or --health-cmd", Err: err}
		}
		return engine.Health{}, p.fail(ctx, err, "container", nameOrID)
	}
	h := engine.Health{Status: res.Status}
	if n := len(res.Log); n > 0 {
		h.Exit, h.Output = res.Log[n-1].ExitCode, strings.TrimSpace(res.Log[n-1].Output)
	}
	return h, nil
}

func ptr[T any](v T) *T { return &v }

// seconds rounds a grace period up: Podman counts in whole seconds, and 0
// means "kill at once".
func seconds(d time.Duration) uint {
	return uint((d + time.Second - 1) / time.Second)
}
