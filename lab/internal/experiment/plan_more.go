package experiment

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"persistencelab/scenarios"
)

// imageRef is the reference of an image a commit or import step makes.
func (p *Plan) imageRef(name string) string { return "localhost/" + p.name(name) + ":latest" }

// archive is the file of something exported or copied out.
func (p *Plan) archive(name string) string {
	return filepath.Join(p.Folder, "archives", name+".tar")
}

// copied is where a person's podman cp puts a copy.
func (p *Plan) copied(name string) string { return filepath.Join(p.Folder, "archives", name) }

// imported tells whether the image comes from a podman import.
func (p *Plan) imported(image string) bool {
	return slices.ContainsFunc(p.Variant.Steps, func(st scenarios.Step) bool { return st.Verb == "import" && st.To == image })
}

// changesImages tells whether steps change or remove a container's image:
// nobody else may use it then.
func changesImages(steps []scenarios.Step) bool {
	return slices.ContainsFunc(steps, func(st scenarios.Step) bool { return st.Verb == "rebuild" || st.Verb == "rmi" })
}

// extras are what each container's image has on top of the probe, under a tag
// of the plan's own where steps change images. Containers that say the same of
// their image share it, as they would on a command line.
func (p *Plan) extras() []*scenarios.Image {
	var list []*scenarios.Image
	for i, c := range p.Variant.Containers {
		extra := c.Image
		if p.ownImages {
			first := slices.IndexFunc(p.Variant.Containers[:i], func(o scenarios.Container) bool { return sameImage(o.Image, c.Image) })
			if first >= 0 {
				list = append(list, list[first])
				continue
			}
			extra = cloneImage(c.Image)
			extra.Tag = p.imageRef(fmt.Sprintf("image%d", i))
		}
		list = append(list, extra)
	}
	return list
}

func sameImage(a, b *scenarios.Image) bool {
	x, y := cloneImage(a), cloneImage(b)
	x.Pos, y.Pos = scenarios.Position{}, scenarios.Position{}
	return reflect.DeepEqual(x, y)
}

func cloneImage(i *scenarios.Image) *scenarios.Image {
	if i == nil {
		return &scenarios.Image{Files: map[string]string{}}
	}
	c := *i
	c.Files = maps.Clone(i.Files)
	if c.Files == nil {
		c.Files = map[string]string{}
	}
	return &c
}

// rebuilt is the image of the step's container with the step's changes; they
// stay for the next rebuild.
func (p *Plan) rebuilt(extras []*scenarios.Image, st scenarios.Step) *scenarios.Image {
	i := slices.IndexFunc(p.Variant.Containers, func(c scenarios.Container) bool { return c.Name == st.On })
	extra := cloneImage(extras[i])
	maps.Copy(extra.Files, st.Files)
	if reflect.DeepEqual(extra.Files, extras[i].Files) {
		extra.Files[rebuiltFile] += "built again\n"
	}
	old := extras[i]
	for j := range extras {
		if extras[j] == old {
			extras[j] = extra
		}
	}
	return extra
}

// rebuiltFile is what is new in an image that is rebuilt without a word about
// what changes.
const rebuiltFile = "/etc/lab-build"

// volume is what the variant says of a volume.
func (p *Plan) volume(name string) scenarios.Volume {
	for _, v := range p.Variant.Volumes {
		if v.Name == name {
			return v
		}
	}
	return scenarios.Volume{Name: name}
}

// volumeOptions are a volume's driver options as the engine is given them,
// and the folders on the host behind them.
func (p *Plan) volumeOptions(v scenarios.Volume) (options map[string]string, folders []string) {
	options = maps.Clone(v.Options)
	if device := options["device"]; options["type"] == "none" && device != "" {
		options["device"] = p.onHost(device)
		folders = append(folders, options["device"])
	}
	return options, folders
}

// onHost is a folder a scenario names, on the host.
func (p *Plan) onHost(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.Folder, name)
}

// folderOptions are mount options whose value is a folder of the host.
var folderOptions = []string{"upperdir=", "workdir="}

// options are a mount's options with the folders they name on the host.
func (p *Plan) options(m scenarios.Mount) []string {
	options := slices.Clone(m.Options)
	for i, o := range options {
		for _, key := range folderOptions {
			if folder, ok := strings.CutPrefix(o, key); ok {
				options[i] = key + p.onHost(folder)
			}
		}
	}
	return options
}

// hostFolders are the folders on the host behind a mount.
func (p *Plan) hostFolders(m scenarios.Mount) []string {
	var folders []string
	if m.Kind == scenarios.Bind {
		folders = append(folders, p.hostFolder(m))
	}
	for _, o := range p.options(m) {
		for _, key := range folderOptions {
			if folder, ok := strings.CutPrefix(o, key); ok {
				folders = append(folders, folder)
			}
		}
	}
	return folders
}

// NeedsOwnStore tells whether a step would reach beyond what the plan made:
// it runs only on an engine with a store of the lab's own.
func (p *Plan) NeedsOwnStore() bool { return p.ownStoreVerb() != "" }

func (p *Plan) ownStoreVerb() string {
	for _, st := range p.Variant.Steps {
		switch st.Verb {
		case "container prune", "volume prune", "system prune", "service restart":
			return st.Verb
		case "volume rm":
			// Before Podman 5.3 this one hangs and takes the service with it.
			if st.Force && p.volume(st.Volume).Options != nil {
				return "volume rm --force of a volume with driver options"
			}
		}
	}
	return ""
}
