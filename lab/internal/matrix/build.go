package matrix

import (
	"slices"

	"persistencelab/scenarios"
)

// Names in the scenarios of cells.
const (
	app    = "app"
	source = "source" // holds the volumes another container takes
	writer = "writer" // writes what the app may only read
	second = "second"
	copied = "clone"
	plain  = "plain" // an image without the app's mounts
	item   = "data"
	folder = "folder"
	label  = "afterwards"
)

// builder makes the scenario of one cell.
type builder struct {
	kind       Kind
	containers []scenarios.Container
	steps      []scenarios.Step
	look       string // the container looked into at the end
}

// Scenario is the cell's scenario: the data written in a container of that
// kind, the event, and a look. Where the event does not apply to the kind it
// is the write and the look alone.
func Scenario(k Kind, e Event) *scenarios.Scenario {
	b := &builder{kind: k, look: app}
	data := scenarios.Item{Name: item, Kind: scenarios.File, Path: k.Place, Mode: scenarios.Plain}
	if k.Place == "" {
		data.Kind, data.Path = scenarios.Memory, "token"
	}
	items := []scenarios.Item{data}

	main := b.container(app, k.mounts)
	if k.source != nil {
		b.containers = append(b.containers, b.plainContainer(source, k.source))
		main.VolumesFrom = []string{source}
		b.step(scenarios.Step{Verb: "create", On: source})
	}
	applies := e.applies == nil || e.applies(k)
	if e.arrange != nil && applies {
		e.arrange(&main)
	}
	b.containers = append(b.containers, main)
	write := app
	if k.folder != "" {
		items = append(items, scenarios.Item{Name: folder, Kind: scenarios.File, Path: k.folder, Mode: scenarios.Plain})
		b.beforehand(folder, k.folderMounts, folder)
	}
	if k.writer != nil {
		b.beforehand(writer, k.writer, item)
		write = ""
	}
	b.app("run")
	if write != "" {
		b.step(scenarios.Step{Verb: "write", On: app, Items: []string{item}})
	}
	if applies {
		e.steps(b)
	}
	b.step(scenarios.Step{Verb: "read", On: b.look, Label: label, Items: []string{item}})

	v := scenarios.Variant{Name: k.Name, Containers: b.containers, Steps: b.steps}
	if k.volume != nil {
		v.Volumes = []scenarios.Volume{*k.volume}
	}
	return &scenarios.Scenario{
		Version: 1, Name: e.Name, Title: e.Doc, Data: items,
		Containers: b.containers, Volumes: v.Volumes, Steps: b.steps, Variants: []scenarios.Variant{v},
	}
}

// container is a container of the kind.
func (b *builder) container(name string, mounts []scenarios.Mount) scenarios.Container {
	c := b.plainContainer(name, mounts)
	if b.kind.arrange != nil {
		b.kind.arrange(&c)
	}
	return c
}

// plainContainer is one of the same image and nothing else.
func (b *builder) plainContainer(name string, mounts []scenarios.Mount) scenarios.Container {
	return scenarios.Container{
		Name: name, Mounts: slices.Clone(mounts), Deferred: name != app,
		Image: &scenarios.Image{Files: map[string]string{seedFile: "the image's first version\n"}},
	}
}

// another is a second container with the app's arguments.
func (b *builder) another(name string) {
	c := b.container(name, b.kind.mounts)
	if b.kind.source != nil {
		c.VolumesFrom = []string{source}
	}
	b.containers = append(b.containers, c)
}

// bare runs an image that a step made, without the app's mounts, and looks
// there.
func (b *builder) bare(image string) {
	b.containers = append(b.containers, b.plainContainer(plain, nil))
	b.step(scenarios.Step{Verb: "run", On: plain, Image: image})
	b.look = plain
}

// beforehand has a container write an item and go again.
func (b *builder) beforehand(name string, mounts []scenarios.Mount, what string) {
	b.containers = append(b.containers, b.plainContainer(name, mounts))
	b.step(scenarios.Step{Verb: "run", On: name})
	b.step(scenarios.Step{Verb: "write", On: name, Items: []string{what}})
	b.step(scenarios.Step{Verb: "rm", On: name})
}

func (b *builder) step(s scenarios.Step) { b.steps = append(b.steps, s) }

func (b *builder) app(verb string) { b.step(scenarios.Step{Verb: verb, On: app}) }

// volumeStep is a step about the kind's volume, which may have no name.
func (b *builder) volumeStep(verb string) scenarios.Step {
	if b.kind.volume != nil {
		return scenarios.Step{Verb: verb, Volume: volName}
	}
	return scenarios.Step{Verb: verb, On: app}
}

// remake makes the volume anew where it was made beforehand.
func (b *builder) remake() {
	if b.kind.volume != nil && b.kind.volume.Create {
		b.step(scenarios.Step{Verb: "volume create", Volume: volName})
	}
}
