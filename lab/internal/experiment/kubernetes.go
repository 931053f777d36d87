package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"persistencelab/lab/internal/kube"
	"persistencelab/scenarios"
)

// Kubernetes is a scenario's containers as Kubernetes YAML, for people whose
// next engine is Kubernetes: a stream of documents that `podman kube play` and
// `kubectl apply` both take. Every variant is in it under names of its own;
// what can be done without stands in a comment, and a variant that needs what
// Kubernetes has no form for is left out. The error is a NoKubeFormError where that is all
// of them.
func Kubernetes(s *scenarios.Scenario, images ImageMaker) ([]byte, error) {
	var docs strings.Builder
	none := &NoKubeFormError{Scenario: s.Name}
	var first *manifest
	refs := map[string]bool{}
	for i := range s.Variants {
		if j := slices.IndexFunc(s.Variants[:i], func(v scenarios.Variant) bool { return sameContainers(v, s.Variants[i]) }); j >= 0 {
			fmt.Fprintf(&docs, "\n# %s: as %s\n", s.Variants[i].Name, s.Variants[j].Name)
			continue
		}
		m := &manifest{scenario: s, variant: &s.Variants[i], images: images, refs: refs}
		m.names()
		fmt.Fprintf(&docs, "\n# %s\n", m.variant.Name)
		if why := m.refusals(); len(why) > 0 {
			fmt.Fprintf(&docs, "# Left out: Kubernetes has no form for %s.\n", strings.Join(why, ", "))
			none.Why = slices.Compact(slices.Sorted(slices.Values(append(none.Why, why...))))
			continue
		}
		text, err := m.text()
		if err != nil {
			return nil, fmt.Errorf("scenario %s, %s: %w", s.Name, m.variant.Name, err)
		}
		docs.WriteString(text)
		if first == nil {
			first = m
		}
	}
	if first == nil {
		return nil, none
	}
	return []byte(first.heading() + docs.String()), nil
}

// NoKubeFormError: nothing of a scenario can be said in Kubernetes YAML.
type NoKubeFormError struct {
	Scenario string
	Why      []string // what of its variants
}

func (e *NoKubeFormError) Error() string {
	return fmt.Sprintf("scenario %s can't be written for kubernetes, which has no form for %s", e.Scenario, strings.Join(e.Why, ", "))
}

// sameContainers tells whether two variants differ in their steps alone.
func sameContainers(a, b scenarios.Variant) bool {
	plain := func(v scenarios.Variant) scenarios.Variant {
		v = scenarios.Variant{Containers: slices.Clone(v.Containers), Volumes: slices.Clone(v.Volumes)}
		for i := range v.Containers {
			c := &v.Containers[i]
			c.Pos, c.Mounts = scenarios.Position{}, slices.Clone(c.Mounts)
			for j := range c.Mounts {
				c.Mounts[j].Pos = scenarios.Position{}
			}
		}
		return v
	}
	return reflect.DeepEqual(plain(a), plain(b))
}

// manifest is one variant being written.
type manifest struct {
	scenario *scenarios.Scenario
	variant  *scenarios.Variant
	images   ImageMaker
	prefix   string            // of every name
	labels   map[string]string // of every object
	refs     map[string]bool   // images that are needed
	notes    []string          // what could not be said
	pods     []string          // names of what was written
}

func (m *manifest) names() {
	m.prefix = m.scenario.Name
	m.labels = map[string]string{"lab.scenario": kubeName(m.scenario.Name)}
	if len(m.scenario.Variants) > 1 {
		m.prefix += "-" + m.variant.Name
		m.labels["lab.variant"] = kubeName(m.variant.Name)
	}
	m.prefix = shortName(m.prefix, 40) // what comes after it is to be read too
}

func (m *manifest) name(thing string) string { return kubeName(m.prefix + "-" + thing) }

// kubeName is a name as Kubernetes takes it: at most 63 small letters, digits
// and hyphens, beginning with a letter.
func kubeName(name string) string { return shortName(name, 63) }

// shortName is that of at most size characters. One that is cut short ends in
// a digest of the whole.
func shortName(name string, size int) string {
	s := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name)), "-")
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	if s == "" || s[0] <= '9' {
		s = strings.TrimSuffix("x-"+s, "-")
	}
	if len(s) > size {
		sum := sha256.Sum256([]byte(name))
		s = strings.Trim(s[:size-9], "-") + "-" + hex.EncodeToString(sum[:4])
	}
	return s
}

// refusals are what of the variant has no Kubernetes form.
func (m *manifest) refusals() []string {
	var why []string
	if m.scenario.Machine != "" {
		return []string{"a virtual machine"}
	}
	for _, c := range m.variant.Containers {
		for _, what := range c.NoKubeForm() {
			if !slices.Contains(why, what) {
				why = append(why, what)
			}
		}
	}
	for _, v := range m.variant.Volumes {
		if len(v.Options) > 0 {
			why = append(why, "volume options")
		}
	}
	return slices.Compact(why)
}

// text are the variant's documents.
func (m *manifest) text() (string, error) {
	var out strings.Builder
	claimed := map[string]bool{}
	for _, c := range m.variant.Containers {
		for _, mount := range c.Mounts {
			if mount.Kind == scenarios.VolumeMount && !claimed[mount.Source] {
				claimed[mount.Source] = true
				fmt.Fprintf(&out, "---\n%s", kube.ClaimYAML(m.name(mount.Source), m.labels))
			}
		}
	}
	written := map[string]bool{}
	for _, c := range m.variant.Containers {
		name := c.Name
		if c.Group != "" {
			name = c.Group
		}
		if c.Pod != "" {
			name = c.Pod
		}
		if written[name] {
			continue
		}
		written[name] = true
		pod, err := m.pod(name, c)
		if err != nil {
			return "", err
		}
		m.pods = append(m.pods, pod.Name)
		fmt.Fprintf(&out, "---\n")
		for _, note := range m.notes {
			fmt.Fprintf(&out, "# %s\n", note)
		}
		m.notes = nil
		out.Write(pod.YAML())
	}
	return out.String(), nil
}

// pod is the pod of a container: one of the scenario's, or one of its own.
func (m *manifest) pod(name string, c scenarios.Container) (kube.Pod, error) {
	pod := kube.Pod{Name: m.name(name), Labels: maps.Clone(m.labels), Hostname: c.Hostname, Restart: kube.Restart(c.Restart)}
	members := []scenarios.Container{c}
	switch {
	case c.Group != "":
		for _, o := range m.variant.Containers {
			if o.Group == c.Group {
				pod.Replicas++
			}
		}
		m.note("%s: podman may make one pod of it, however many replicas are asked for.", c.Group)
		if c.Pod != "" {
			m.note("%s: in Kubernetes each replica is a pod of its own, not one of pod %s.", c.Group, c.Pod)
		}
	case c.Pod != "":
		members = nil
		for _, o := range m.variant.Containers {
			if o.Pod == c.Pod {
				members = append(members, o)
			}
		}
	}
	for _, o := range members {
		k, err := m.container(o)
		if err != nil {
			return pod, err
		}
		if o.Restart != c.Restart || o.Hostname != c.Hostname {
			m.note("%s: restart and hostname are a pod's in Kubernetes, and %s has said them.", o.Name, c.Name)
		}
		pod.Containers = append(pod.Containers, k)
	}
	return pod, nil
}

func (m *manifest) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(m.notes, text) {
		m.notes = append(m.notes, text)
	}
}

func (m *manifest) container(c scenarios.Container) (kube.Container, error) {
	img, err := m.images(c.Image)
	if err != nil {
		return kube.Container{}, err
	}
	m.refs[img.Ref] = true
	name := c.Name
	if c.Group != "" {
		name = c.Group
	}
	k := kube.Container{Name: kubeName(name), Image: img.Ref, Env: c.Env, User: c.User, ReadOnly: c.ReadOnly}
	if c.Image != nil {
		for _, path := range c.Image.Volumes {
			m.note("%s: the image's VOLUME %s is in no pod's YAML; each engine does with it what it does.", c.Name, path)
		}
	}
	if c.Health != nil {
		m.note("%s: its health check is left out: podman's only answers, a livenessProbe kills.", c.Name)
	}
	if c.Deferred {
		m.note("%s: the scenario runs it later; apply it when its time has come.", c.Name)
	}
	if c.Restart == "unless-stopped" {
		m.note("%s: unless-stopped is Always in Kubernetes.", c.Name)
	}
	for _, mount := range c.Mounts {
		k.Mounts = append(k.Mounts, m.mount(c, mount))
	}
	return k, nil
}

// hostFolders is where the folders behind bind mounts are on whichever host
// the pod runs on.
const hostFolders = "/var/tmp/persistencelab"

func (m *manifest) mount(c scenarios.Container, mount scenarios.Mount) kube.Mount {
	k := kube.Mount{
		Kind: kube.Claim, Name: m.name(mount.Source), Target: mount.Target, Subpath: mount.Subpath, ReadOnly: slices.Contains(mount.Options, "ro"),
	}
	switch mount.Kind {
	case scenarios.Bind:
		k.Kind, k.Path = kube.HostPath, mount.Source
		k.Name = kubeName(m.prefix + "-host-" + mount.Source)
		if !filepath.IsAbs(k.Path) {
			k.Path, k.Made = filepath.Join(hostFolders, m.prefix, mount.Source), true
		}
	case scenarios.Tmpfs:
		k.Kind, k.Name = kube.Memory, kubeName(m.prefix+"-"+c.Name+"-tmpfs"+mount.Target)
		m.note("%s: the tmpfs at %s is memory of the pod here: in Kubernetes it outlives the container in it.", c.Name, mount.Target)
	case scenarios.EmptyDir:
		k.Kind = kube.EmptyDir
		if slices.Contains(mount.Options, scenarios.OptionMemory) {
			k.Kind = kube.Memory
		}
		k.Name = m.name(c.Pod + "-" + mount.Source)
	}
	return k
}

// heading tells what the documents are, and what to do with them.
func (m *manifest) heading() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("# "+format, args...), " "))
	}
	line("%s: %s", m.scenario.Name, m.scenario.Title)
	line("")
	line("Play it:    podman kube play FILE      or  kubectl apply -f FILE")
	line("Replace it: podman kube down FILE      or  kubectl delete pod POD, and play it again")
	for _, it := range m.scenario.Data {
		on := m.variant.Where(scenarios.Step{}, it)
		c, ok := m.variant.Container(on)
		if !it.OnDisk() || !ok || c.Group != "" {
			continue
		}
		pod := m.name(c.Name)
		if c.Pod != "" {
			pod = m.name(c.Pod)
		}
		probe := func(verb string) string {
			return fmt.Sprintf("/probe %s %s %s %s hello%s", verb, quote(it.Name), it.Kind, quote(it.Path), itemFlags(it))
		}
		line("Write:      podman exec %s-%s %s", pod, kubeName(c.Name), probe("write"))
		line("            kubectl exec %s -c %s -- %s", pod, kubeName(c.Name), probe("write"))
		line("Look:       the same with: %s", probe("read"))
		break
	}
	line("")
	line("The images are the lab's: lab run %s makes them in podman's store, and", m.scenario.Name)
	line("no registry has them. For a cluster: podman save IMAGE, and load the archive")
	line("into its nodes.")
	for _, ref := range slices.Sorted(maps.Keys(m.refs)) {
		line("  %s", ref)
	}
	line("Before 4.4 podman plays a file with a PersistentVolumeClaim only once: move the")
	line("claims to a file of their own.")
	return b.String()
}
