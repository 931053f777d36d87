package experiment

import (
	"slices"

	"persistencelab/scenarios"
)

// built is how the plan's containers are built, and where items lie in them.
func (p *Plan) built() []ContainerSummary {
	var out []ContainerSummary
	for _, c := range p.Variant.Containers {
		if b := p.backings[c.Name]; b != nil && b.foreign {
			continue // somebody's, somewhere: how it is built is not known
		}
		sum := ContainerSummary{
			Name: c.Name, ReadOnly: c.ReadOnly, Machine: p.onMachine(), Service: c.Service != nil,
			Mounts: p.mountsOf(c, len(p.Variant.Containers)),
		}
		for _, st := range p.Steps {
			for _, name := range st.Items {
				seen := slices.ContainsFunc(sum.Places, func(pl PlaceSummary) bool { return pl.Item == name })
				if st.On != c.Name || seen {
					continue
				}
				pl := sum.place(c, p.items[name])
				if pl.Where == "service" && p.backings[pl.Target] != nil && p.backings[pl.Target].foreign {
					pl.Where = "elsewhere"
				}
				sum.Places = append(sum.Places, pl)
			}
		}
		out = append(out, sum)
	}
	return out
}

// mountsOf are a container's mounts: its own, its image's volumes, and those
// of other containers (depth bounds the way there).
func (p *Plan) mountsOf(c scenarios.Container, depth int) []MountSummary {
	var ms []MountSummary
	add := func(m MountSummary) {
		if !slices.ContainsFunc(ms, func(o MountSummary) bool { return o.Target == m.Target }) {
			ms = append(ms, m)
		}
	}
	for _, d := range c.Disks {
		add(MountSummary{Kind: string(d.Kind), Source: d.Name, Target: d.Target})
	}
	for _, m := range c.Mounts {
		add(MountSummary{Kind: string(m.Kind), Source: m.Source, Target: m.Target, Options: m.Options})
	}
	for _, from := range c.VolumesFrom {
		if depth == 0 {
			break
		}
		for _, m := range p.mountsOf(p.container(from), depth-1) {
			if m.From == "" {
				m.From = from
			}
			add(m)
		}
	}
	if c.Image != nil {
		for _, path := range c.Image.Volumes {
			switch c.ImageVolume {
			case "ignore":
			case "tmpfs":
				add(MountSummary{Kind: string(scenarios.Tmpfs), Target: path})
			default:
				add(MountSummary{Kind: string(scenarios.Anonymous), Target: path})
			}
		}
	}
	return ms
}

// place is where an item lies. What Podman mounts by itself is added to the
// container's mounts when an item lies there.
func (sum *ContainerSummary) place(c scenarios.Container, it scenarios.Item) PlaceSummary {
	pl := PlaceSummary{Item: it.Name, Where: "layer"}
	if sum.Machine {
		pl.Where = "memory" // its root, too: it boots from nothing else
	}
	switch {
	case it.Kind == scenarios.Memory:
		pl.Where = "memory"
		return pl
	case it.Kind == scenarios.Fact, it.Kind == scenarios.Health:
		pl.Where = "elsewhere" // nothing of it is written anywhere
		return pl
	case it.InService():
		pl.Where, pl.Target = "service", it.Service
		return pl
	}
	for _, m := range sum.Mounts {
		if within(it.Path, m.Target) && len(m.Target) > len(pl.Target) {
			pl.Where, pl.Target = "mount", m.Target
		}
	}
	if pl.Where == "layer" && placeOf(c, it) == inTmpfs {
		for _, dir := range []string{"/dev/shm", "/tmp", "/run"} {
			if within(it.Path, dir) {
				sum.Mounts = append(sum.Mounts, MountSummary{Kind: string(scenarios.Tmpfs), Target: dir})
				pl.Where, pl.Target = "mount", dir
				break
			}
		}
	}
	return pl
}
