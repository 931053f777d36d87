// Package kube writes pods and claims as the Kubernetes YAML that `podman kube
// play` and Kubernetes itself read. It is given names and paths that are
// decided, and decides nothing but their form.
//
// The few types of the Kubernetes API that a scenario can fill are written out
// here: Podman's copies of them are Podman's, which only package bindings
// imports, and Kubernetes' own module brings more than the lab has.
package kube

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Pod is a pod.
type Pod struct {
	Name     string
	Labels   map[string]string
	Restart  string // Always, OnFailure, Never
	Hostname string
	// Replicas: not 0 for a Deployment of so many, whose pods Kubernetes
	// names and always restarts.
	Replicas   int
	Containers []Container
}

// Container is one container of a pod.
type Container struct {
	Name     string
	Image    string
	Env      map[string]string
	User     string // uid[:gid]
	ReadOnly bool   // its own file system
	Mounts   []Mount
}

// Kind says what a mount is in Kubernetes' words.
type Kind int

// Kinds of mounts.
const (
	Claim    Kind = iota // persistentVolumeClaim
	EmptyDir             // emptyDir
	Memory               // emptyDir in memory
	HostPath             // hostPath
)

// Mount is a volume of the pod and where the container has it.
type Mount struct {
	Kind     Kind
	Name     string // of the volume in the pod; of the claim too
	Path     string // HostPath: on the host
	Made     bool   // HostPath: the folder is made where it is missing
	Target   string
	Subpath  string
	ReadOnly bool
}

// Restart is the pod's word for a container's restart policy as Podman has it.
func Restart(policy string) string {
	switch {
	case policy == "" || policy == "no":
		return "Never"
	case strings.HasPrefix(policy, "on-failure"):
		return "OnFailure"
	}
	return "Always" // always, unless-stopped
}

// YAML is the pod as one document.
func (p Pod) YAML() []byte {
	meta := metadata{Name: p.Name, Labels: p.Labels}
	if p.Replicas == 0 {
		return document(object{APIVersion: "v1", Kind: "Pod", Metadata: meta, Spec: p.spec()})
	}
	app := map[string]string{"app": p.Name}
	labels := maps.Clone(app)
	maps.Copy(labels, p.Labels)
	p.Restart = "" // Always, and nothing else is accepted
	return document(object{APIVersion: "apps/v1", Kind: "Deployment", Metadata: meta, Spec: deployment{
		Replicas: p.Replicas,
		Selector: selector{MatchLabels: app},
		Template: template{Metadata: metadata{Labels: labels}, Spec: p.spec()},
	}})
}

// ClaimYAML is a claim for storage as one document. A claim must name a size;
// Podman takes no notice of it.
func ClaimYAML(name string, labels map[string]string) []byte {
	c := claim{AccessModes: []string{"ReadWriteOnce"}}
	c.Resources.Requests.Storage = "64Mi"
	return document(object{APIVersion: "v1", Kind: "PersistentVolumeClaim", Metadata: metadata{Name: name, Labels: labels}, Spec: c})
}

type (
	object struct {
		APIVersion string   `yaml:"apiVersion"`
		Kind       string   `yaml:"kind"`
		Metadata   metadata `yaml:"metadata"`
		Spec       any      `yaml:"spec"`
	}
	metadata struct {
		Name   string            `yaml:"name,omitempty"`
		Labels map[string]string `yaml:"labels,omitempty"`
	}
	claim struct {
		AccessModes []string `yaml:"accessModes,flow"`
		Resources   struct {
			Requests struct {
				Storage string `yaml:"storage"`
			} `yaml:"requests"`
		} `yaml:"resources"`
	}
	deployment struct {
		Replicas int      `yaml:"replicas"`
		Selector selector `yaml:"selector"`
		Template template `yaml:"template"`
	}
	selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
	template struct {
		Metadata metadata `yaml:"metadata"`
		Spec     podSpec  `yaml:"spec"`
	}
	podSpec struct {
		Hostname   string      `yaml:"hostname,omitempty"`
		Restart    string      `yaml:"restartPolicy,omitempty"`
		Containers []container `yaml:"containers"`
		Volumes    []volume    `yaml:"volumes,omitempty"`
	}
	container struct {
		Name     string     `yaml:"name"`
		Image    string     `yaml:"image"`
		Pull     string     `yaml:"imagePullPolicy"`
		Env      []variable `yaml:"env,omitempty"`
		Security *security  `yaml:"securityContext,omitempty"`
		Mounts   []mount    `yaml:"volumeMounts,omitempty"`
	}
	variable struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	}
	security struct {
		User     *int64 `yaml:"runAsUser,omitempty"`
		Group    *int64 `yaml:"runAsGroup,omitempty"`
		ReadOnly bool   `yaml:"readOnlyRootFilesystem,omitempty"`
	}
	mount struct {
		Name     string `yaml:"name"`
		Path     string `yaml:"mountPath"`
		Subpath  string `yaml:"subPath,omitempty"`
		ReadOnly bool   `yaml:"readOnly,omitempty"`
	}
	volume struct {
		Name     string    `yaml:"name"`
		Claim    *claimRef `yaml:"persistentVolumeClaim,omitempty"`
		EmptyDir *emptyDir `yaml:"emptyDir,omitempty"`
		HostPath *hostPath `yaml:"hostPath,omitempty"`
	}
	claimRef struct {
		Name string `yaml:"claimName"`
	}
	emptyDir struct {
		Medium string `yaml:"medium,omitempty"`
	}
	hostPath struct {
		Path string `yaml:"path"`
		Type string `yaml:"type"`
	}
)

func (p Pod) spec() podSpec {
	spec := podSpec{Hostname: p.Hostname, Restart: p.Restart}
	for _, c := range p.Containers {
		// The image is in the engine's store: no registry has it.
		k := container{Name: c.Name, Image: c.Image, Pull: "IfNotPresent", Security: c.security()}
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			k.Env = append(k.Env, variable{name, c.Env[name]})
		}
		for _, m := range c.Mounts {
			k.Mounts = append(k.Mounts, mount{Name: m.Name, Path: m.Target, Subpath: m.Subpath, ReadOnly: m.ReadOnly})
			if !slices.ContainsFunc(spec.Volumes, func(v volume) bool { return v.Name == m.Name }) {
				spec.Volumes = append(spec.Volumes, m.volume())
			}
		}
		spec.Containers = append(spec.Containers, k)
	}
	return spec
}

func (c Container) security() *security {
	if c.User == "" && !c.ReadOnly {
		return nil
	}
	number := func(s string) *int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil // not given
		}
		return &n
	}
	user, group, _ := strings.Cut(c.User, ":")
	return &security{User: number(user), Group: number(group), ReadOnly: c.ReadOnly}
}

func (m Mount) volume() volume {
	v := volume{Name: m.Name}
	switch m.Kind {
	case Claim:
		v.Claim = &claimRef{m.Name}
	case EmptyDir:
		v.EmptyDir = &emptyDir{}
	case Memory:
		v.EmptyDir = &emptyDir{Medium: "Memory"}
	case HostPath:
		v.HostPath = &hostPath{Path: m.Path, Type: "Directory"}
		if m.Made {
			v.HostPath.Type = "DirectoryOrCreate"
		}
	}
	return v
}

func document(o object) []byte {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(o); err != nil {
		panic(fmt.Sprintf("kube: %v", err)) // structs of strings and numbers can be written
	}
	return b.Bytes()
}
