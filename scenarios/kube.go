package scenarios

import (
	"fmt"
	"slices"
	"strings"
)

// Pods that `podman kube play` makes of Kubernetes YAML: what a container may
// say there, and what of it has no Kubernetes form at all.

// OptionMemory puts an emptyDir into memory: `emptyDir: {medium: Memory}`.
const OptionMemory = "memory"

// Played tells whether a step of the variant makes the pod with kube play.
func (v Variant) Played(pod string) bool {
	return pod != "" && slices.ContainsFunc(v.Steps, func(s Step) bool { return s.Verb == "kube play" && s.Pod == pod })
}

// NoKubeForm names what of a container no Kubernetes YAML can say, in the
// file's words.
func (c Container) NoKubeForm() []string {
	var out []string
	no := func(is bool, what string) {
		if is {
			out = append(out, what)
		}
	}
	for _, m := range c.Mounts {
		no(m.Kind == Anonymous, "an anonymous volume")
		no(m.Kind == ImageMount, "an image mount")
		for _, o := range m.Options {
			no(!slices.Contains([]string{"ro", "rw", OptionMemory}, o), "the mount option "+o)
		}
	}
	no(c.Service != nil, "a service")
	no(len(c.Disks) > 0, "a virtual machine's disk")
	no(c.Remove, "rm")
	no(len(c.VolumesFrom) > 0, "volumes_from")
	no(len(c.Secrets) > 0, "secrets")
	no(c.ImageVolume != "", "image_volume")
	no(c.ReadOnlyTmpfs != nil, "read_only_tmpfs")
	no(strings.Contains(c.Restart, ":"), "a number of restarts")
	return slices.Compact(out)
}

// notPlayed names what Kubernetes YAML can say of a container and a pod of a
// kube play step can't have: versions of Podman differ in what they make of
// it, or it needs more than the lab's podman has.
func (c Container) notPlayed() []string {
	out := c.NoKubeForm()
	for _, m := range c.Mounts {
		if m.Subpath != "" {
			out = append(out, "subpath")
		}
		if m.Kind == Tmpfs {
			out = append(out, "tmpfs (an emptydir with options: memory is its like)")
		}
	}
	if c.ReadOnly {
		out = append(out, "read_only")
	}
	if c.Health != nil {
		out = append(out, "health")
	}
	if c.Group != "" {
		out = append(out, "replicas")
	}
	return out
}

// notInPlayed are the verbs for containers that podman run makes.
var notInPlayed = []string{"run", "create", "rm", "rename", "clone", "rmi", "restore"}

// playedPods checks the containers that kube play makes, and that nothing
// else has an emptyDir.
func (d *decoder) playedPods(s *Scenario, v *Variant) {
	first := map[string]Container{}
	for _, c := range v.Containers {
		if !v.Played(c.Pod) {
			for _, m := range c.Mounts {
				if m.Kind == EmptyDir {
					d.fault(at(m.Pos), "give the container a pod: NAME, and make it with - kube play: NAME", "an emptydir is a pod's, and no kube play step makes a pod with container %q", c.Name)
				}
			}
			continue
		}
		place := at(c.Pos)
		if len(v.Containers) == 1 {
			place = at(v.Pos) // what is wrong may be the variant's
		}
		if what := c.notPlayed(); len(what) > 0 {
			d.fault(place, "remove it, or make the container with run", "container %q is made by kube play, which can't have %s", c.Name, strings.Join(what, ", "))
		}
		if len(s.Services) > 0 {
			d.fault(place, "make the container with run", "container %q is made by kube play, and its pod has no network to a service", c.Name)
		}
		one, there := first[c.Pod]
		if !there {
			first[c.Pod] = c
			continue
		}
		if one.Restart != c.Restart || one.Hostname != c.Hostname {
			d.fault(place, "say the same of both", "restart and hostname are a pod's: containers %q and %q differ", one.Name, c.Name)
		}
	}
}

// play makes a pod's containers, none of which may be there.
func (sim *simulation) play(step Step, verb Verb) {
	for _, c := range sim.v.Containers {
		if c.Pod != step.Pod {
			continue
		}
		if sim.state[c.Name] != absent {
			sim.d.fault(at(step.Pos), fmt.Sprintf("put \"- kube down: %s\" before it", step.Pod), "%s: container %q %s", step.Verb, c.Name, sim.describe(c.Name))
		}
		sim.set(c.Name, verb.to, step)
	}
}
