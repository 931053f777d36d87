package experiment

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/vm"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// RunLabel is the label everything a run makes carries; its value is the run
// id.
const RunLabel = "lab.run"

// ImageLabel is the label of an image that one run makes for itself; its value
// is the name the image was made under.
const ImageLabel = "lab.image"

// Plan is one variant of a scenario resolved for one run: names, nonces, and
// the podman line for each step. Making one does no I/O.
type Plan struct {
	Scenario *scenarios.Scenario
	Variant  *scenarios.Variant
	RunID    string
	Prefix   string // of every name this plan uses in the engine: lab-<run id>-<n>
	Folder   string // the plan's own folder on the host: its bind mounts are in there
	Steps    []PlannedStep

	images map[string]engine.Image // by the container's name in the scenario
	probe  engine.Image            // the plain probe image
	items  map[string]scenarios.Item
	// ownImages: the steps change or remove images, so that these are the
	// plan's own, under tags of its own.
	ownImages bool

	backings map[string]*backing // by the service's name
	network  string              // of the containers, as ContainerSpec has it; "" for none
	missing  error               // why the plan can be shown and not run

	cleanupLines []string // podman lines that take away what the others made
	remote       bool     // the lines go to a service by its address
}

// PlannedStep is what one step does to one container, with everything about
// it decided. A step about several containers is several of these.
type PlannedStep struct {
	Index int // the scenario's step, from 1
	scenarios.Step
	Nonces   map[string]string // write, edit: item → what this write puts there
	Last     map[string]string // read: item → what it was last written with
	Commands []string          // the podman lines a person would type

	firstSeq int // load: its records are numbered from the one after this

	seq   int              // its place in Plan.Steps
	name  string           // what On is called in the engine when the step begins
	image *engine.Image    // rebuild: what the container's image becomes
	extra *scenarios.Image // rebuild: what that has on top of the probe
}

// ImageMaker makes the lab's images: the probe image, with what extra adds to
// it (nil for nothing).
type ImageMaker func(extra *scenarios.Image) (engine.Image, error)

// PlanOptions is what a plan is made with beside the scenario.
type PlanOptions struct {
	RunID  string
	Number int    // of the plan within the run: names are made of both
	Folder string // the run's folder on the host
	Images ImageMaker
	Stores Stores
	Nonce  func() string // fresh at every call
	Podman Shell
	// Kernel and Initrd are what virtual machines start from; only for the
	// lines a person would type.
	Kernel, Initrd string
}

// Shell is how the podman command is written on this host.
type Shell struct {
	Podman   string   // "podman", or with the global options it needs here
	RunFlags []string // further flags of `podman run`
	Limits   []string // ulimits that podman's settings must name here, for what has no flags
	Pasted   bool     // the lines are to be pasted: what reaches beyond the plan's things gets a store of its own
	Remote   bool     // Podman names a service: then there is no store of one's own
	Rootless bool
}

// NewShell makes a Shell of words, quoted where a shell needs it.
func NewShell(podman, limits []string) Shell {
	s := Shell{Limits: limits}
	for _, l := range limits {
		s.RunFlags = append(s.RunFlags, "--ulimit", l)
	}
	for i, word := range podman {
		if i > 0 {
			s.Podman += " "
		}
		s.Podman += quote(word)
	}
	return s
}

// New resolves one variant. It fails only when an image can't be made of what
// the scenario adds to it.
func New(s *scenarios.Scenario, v *scenarios.Variant, o PlanOptions) (*Plan, error) {
	p := &Plan{
		Scenario: s, Variant: v, RunID: o.RunID,
		Prefix: fmt.Sprintf("lab-%s-%d", o.RunID, o.Number),
		Folder: filepath.Join(o.Folder, fmt.Sprint(o.Number)),
		images: map[string]engine.Image{},
		items:  map[string]scenarios.Item{},
		remote: o.Podman.Remote,
	}
	var err error
	images := o.Images
	if len(s.Services) > 0 {
		images = p.withClients(o)
		if err := p.services(o); err != nil {
			return nil, err
		}
	}
	if p.probe, err = images(nil); err != nil {
		return nil, err
	}
	p.ownImages = changesImages(v.Steps)
	extras := p.extras()
	for i, c := range v.Containers {
		if c.Service != nil {
			p.images[c.Name] = p.backings[c.Name].image
			continue
		}
		if p.onMachine() {
			break // it boots from no image
		}
		if p.images[c.Name], err = images(extras[i]); err != nil {
			return nil, fmt.Errorf("scenario %s, %s: the image of container %s: %w", s.Name, v.Name, c.Name, err)
		}
	}
	for _, it := range s.Data {
		p.items[it.Name] = p.serviceItem(it)
	}
	sh := newShellWriter(p, o.Podman, extras)
	last := map[string]string{}
	names := map[string]string{}
	requests := 0
	for i, st := range v.Steps {
		for _, st := range p.split(st) {
			ps := PlannedStep{Index: i + 1, Step: st, seq: len(p.Steps)}
			if st.Verb == "run" || st.Verb == "create" || names[st.On] == "" {
				names[st.On] = p.containerName(st.On)
			}
			ps.name = names[st.On]
			switch st.Verb {
			case "write":
				ps.Nonces = map[string]string{}
				for _, name := range st.Items {
					ps.Nonces[name] = o.Nonce()
					last[name] = repeated(ps.Nonces[name], st.Times)[max(st.Times, 1)-1]
				}
			case "power-cut":
				ps.Nonces = map[string]string{}
				if st.During != "" {
					ps.Nonces[st.During] = o.Nonce()
				}
			case "edit":
				ps.Nonces = map[string]string{}
				for _, name := range st.Items {
					ps.Nonces[name] = o.Nonce()
				}
			case "crash":
				ps.Nonces = map[string]string{}
				for _, name := range st.Amid {
					ps.Nonces[name] = o.Nonce()
				}
			case "read":
				ps.Last = maps.Clone(last)
			case "load":
				ps.Nonces = map[string]string{}
				for _, name := range st.Items {
					ps.Nonces[name] = o.Nonce()
				}
				ps.firstSeq = requests
				requests += st.Requests
			case "rename":
				names[st.On] = p.name(st.To)
			case "rebuild":
				ps.extra = p.rebuilt(extras, st)
				img, err := images(ps.extra)
				if err != nil {
					return nil, fmt.Errorf("scenario %s, %s, step %d (rebuild): %w", s.Name, v.Name, i+1, err)
				}
				ps.image = &img
			}
			if p.onMachine() {
				ps.Commands = p.machineLines(ps, o.Kernel, o.Initrd)
			} else {
				ps.Commands = sh.lines(ps)
			}
			p.Steps = append(p.Steps, ps)
		}
	}
	p.cleanupLines = sh.after()
	if p.onMachine() {
		p.cleanupLines = []string{vm.CutLine, "cd - && rm -rf " + quote(p.Folder)}
	}
	return p, nil
}

// split makes of a step one for each container it happens to, with On and
// Items filled in. A step about no container in particular stays as it is.
func (p *Plan) split(st scenarios.Step) []scenarios.Step {
	var parts []scenarios.Step
	if !st.OnItems() {
		for _, on := range p.Variant.Each(st) {
			part := st
			part.On = on
			parts = append(parts, part)
		}
		if parts == nil {
			parts = []scenarios.Step{st}
		}
		return parts
	}
	for _, it := range p.Scenario.ItemsOf(st) {
		on := p.Variant.Where(st, it)
		i := slices.IndexFunc(parts, func(part scenarios.Step) bool { return part.On == on })
		if i < 0 {
			part := st
			part.On, part.Items = on, nil
			parts = append(parts, part)
			i = len(parts) - 1
		}
		parts[i].Items = append(parts[i].Items, it.Name)
	}
	return parts
}

// container is the variant's container of that name, or the network of its
// services, of which the scenario says nothing.
func (p *Plan) container(name string) scenarios.Container {
	if name == networkName {
		return scenarios.Container{Name: name}
	}
	for _, c := range p.Variant.Containers {
		if c.Name == name {
			return c
		}
	}
	panic("experiment: no container " + name + " in a validated scenario")
}

// name is what a thing of the scenario is called in the engine.
func (p *Plan) name(thing string) string { return p.Prefix + "-" + thing }

// hostFolder is the folder on the host behind a bind mount: the lab's own,
// unless the author named a real path and the user allowed it.
func (p *Plan) hostFolder(m scenarios.Mount) string {
	if filepath.IsAbs(m.Source) {
		return m.Source
	}
	return filepath.Join(p.Folder, m.Source)
}

// specOf is the container a run or create step asks for.
func (p *Plan) specOf(st PlannedStep) engine.ContainerSpec {
	s := p.spec(p.container(st.On))
	if st.Image != "" {
		s.Image = p.imageRef(st.Image)
		if p.imported(st.Image) {
			s.Entrypoint = []string{"/probe"} // an import has lost it
		}
	}
	return s
}

// spec is the container as the engine is asked for it.
func (p *Plan) spec(c scenarios.Container) engine.ContainerSpec {
	s := engine.ContainerSpec{
		Name: p.name(c.Name), Image: p.images[c.Name].Ref,
		Labels: map[string]string{RunLabel: p.RunID},
		Env:    c.Env, Hostname: c.Hostname, User: c.User,
		ImageVolume: c.ImageVolume, ReadOnly: c.ReadOnly, ReadOnlyTmpfs: c.ReadOnlyTmpfs,
		Remove: c.Remove, Restart: c.Restart, Health: healthCommand(c.Health),
	}
	s.Network = p.network
	if c.Service != nil {
		p.serviceSpec(c, &s)
	} else if len(p.backings) > 0 {
		s.Env = maps.Clone(c.Env)
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		maps.Copy(s.Env, p.serviceEnv())
	}
	for _, m := range c.Mounts {
		s.Mounts = append(s.Mounts, engine.Mount{
			Kind: string(m.Kind), Source: p.source(m), Target: m.Target, Options: p.options(m), Subpath: m.Subpath,
		})
	}
	for _, from := range c.VolumesFrom {
		s.VolumesFrom = append(s.VolumesFrom, p.name(from))
	}
	for _, secret := range c.Secrets {
		s.Secrets = append(s.Secrets, engine.SecretMount{Name: p.name(secret), Target: secret})
	}
	if c.Pod != "" {
		s.Pod = p.name(c.Pod)
	}
	return s
}

// source is a mount's source as the engine knows it.
func (p *Plan) source(m scenarios.Mount) string {
	switch m.Kind {
	case scenarios.VolumeMount:
		return p.name(m.Source)
	case scenarios.Bind:
		return p.hostFolder(m)
	case scenarios.ImageMount:
		if m.Source == "probe" {
			return p.probe.Ref
		}
		return p.imageRef(m.Source)
	}
	return m.Source
}

// volumes are the names of all volumes the variant's containers mount, with
// their declarations where there are any, in a fixed order.
func (p *Plan) volumes() []scenarios.Volume {
	found := map[string]scenarios.Volume{}
	for _, c := range p.Variant.Containers {
		for _, m := range c.Mounts {
			if m.Kind == scenarios.VolumeMount {
				found[m.Source] = scenarios.Volume{Name: m.Source}
			}
		}
	}
	for _, v := range p.Variant.Volumes {
		found[v.Name] = v
	}
	return slices.SortedFunc(maps.Values(found), func(a, b scenarios.Volume) int { return strings.Compare(a.Name, b.Name) })
}

// wireItem is an item as the probe is asked for it.
func wireItem(it scenarios.Item, nonce string) *wire.Item {
	return &wire.Item{
		Kind: string(it.Kind), Path: it.Path, Nonce: nonce,
		Rows: it.Rows, Size: it.Size, Mode: string(it.Mode), Persist: it.Persist, Tasks: it.Tasks, Work: it.Work, Service: it.Service,
		Journal: it.Journal, Synchronous: it.Synchronous,
	}
}

// mountOver is the mount of c that the path lies in, the innermost; nil for
// the container's own file system.
func mountOver(c scenarios.Container, path string) *scenarios.Mount {
	var best *scenarios.Mount
	for i, m := range c.Mounts {
		if within(path, m.Target) && (best == nil || len(m.Target) > len(best.Target)) {
			best = &c.Mounts[i]
		}
	}
	return best
}

// within tells whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
