// Package picture shows a run: image layers, the writable layer on top of
// them and the memory of the process inside the container's outline, what is
// mounted outside it, and step by step what happened to each.
//
// It promises to show what was observed and nothing else:
//
//   - A container, a life of its process and a volume are drawn as the step's
//     proof in the record has them: new, the same, ended, gone.
//   - A data item is drawn as it was last seen. After an event it is a
//     question ("? note") until a step looks for it again, however sure we are
//     what will be found: that is the moment to predict.
//   - At a checkpoint it carries the outcome of the report's verdict. Nothing
//     is judged here.
//   - Where a run ended early, a last frame says so.
//
// Frames are values; html.go draws them as SVG, with a description in words of
// every one, and package teach draws them as text. Built is the one frame that
// nothing was observed for: how containers are built, before a run.
package picture

import (
	"slices"
	"strings"

	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// Picture is one variant's run.
type Picture struct {
	Scenario, Variant string
	Frames            []Frame
}

// Frame is how things stand after one step.
type Frame struct {
	Step       int    // from 1, as the scenario counts; 0: not a step, the run ended early
	Title      string // "podman rm", "write", "look: after rm and run"
	Command    string // the podman line; for write and read that of the last item
	Says       []string
	Containers []Container
	Stores     []Store
}

// Container is a container in a frame.
type Container struct {
	Name     string
	ID       string // short; "" before its first run; of the last one while none is there
	State    State
	Word     string // Podman's word: running, exited, paused; "" where it is not there
	New      bool   // this step made it
	Process  bool   // a process runs in it
	Started  bool   // … since this step
	ReadOnly bool   // it has no writable layer
	Machine  bool   // it is a virtual machine: it has memory, and disks among the stores
	Memory   []Item
	Layer    []Item
	Mounts   []Mount // whether or not it is there
}

// Mount is a path in a container behind which a store lies.
type Mount struct {
	Target string
	Store  int // among the frame's stores
}

// State is whether a thing is there.
type State int

// States.
const (
	Absent State = iota // not there, or not yet
	There
	Gone // this step removed it
)

// Store is storage outside the containers.
type Store struct {
	Name    string   // "named volume mydata"
	Mounted []string // "at /var/lib/app in app", by containers that are there
	State   State
	New     bool
	Items   []Item

	key   string
	users []string // containers that mount it, by name
}

// Item is a data item in a place.
type Item struct {
	Name   string
	Status Status
	New    bool // its status is of this step
}

// Status is what is known of an item.
type Status string

// Statuses: those of an item between looks, and the outcomes.
const (
	Written  Status = "written"  // and read back at once
	Unseen   Status = "unseen"   // something happened since it was last seen
	Failed   Status = "failed"   // its write was not accepted, or is not known
	Present  Status = "present"  // looked for and found; nothing was expected of it
	Missing  Status = "missing"  // … and not found
	Survived Status = "survived" // outcomes
	Lost     Status = "lost"
	Changed  Status = "changed"
	Refused  Status = "refused"
	Unknown  Status = "unknown"

	Planned Status = "planned" // before a run: this is where it will lie
)

// Of makes the picture of a variant's run. It is nil where there is nothing to
// draw: the variant was not run, or the report says nothing of how its
// containers are built.
func Of(r *experiment.Report, scenario, variant string) *Picture {
	var built []experiment.ContainerSummary
	for _, s := range r.Scenarios {
		for _, v := range s.Variants {
			if s.Name == scenario && v.Name == variant {
				built = v.Containers
			}
		}
	}
	i := slices.IndexFunc(r.Records, func(rec experiment.Record) bool { return rec.Scenario == scenario && rec.Variant == variant })
	if i < 0 || len(built) == 0 || len(r.Records[i].Steps) == 0 {
		return nil
	}
	d := &drawing{built: built, rec: &r.Records[i], results: r.Results}
	d.begin()
	p := &Picture{Scenario: scenario, Variant: variant}
	for i := range d.rec.Steps {
		p.Frames = append(p.Frames, d.step(&d.rec.Steps[i]))
	}
	if d.rec.Fault != "" {
		f := d.frame("the run ended early", []string{d.rec.Fault, "What would have come after this is unknown."})
		p.Frames = append(p.Frames, f)
	}
	return p
}

// Built is how containers are built, before anything is run: each of them as
// if it were there. With items it also says where each will lie.
func Built(containers []experiment.ContainerSummary, items bool) Frame {
	d := &drawing{built: containers}
	d.begin()
	for i := range d.containers {
		c := &d.containers[i]
		c.State, c.Process = There, true
		d.mount(c)
		for _, pl := range containers[i].Places {
			if place, _ := d.place(c.Name, pl.Item); items && place != nil {
				put(place, Item{Name: pl.Item, Status: Planned})
			}
		}
	}
	for i := range d.stores {
		d.stores[i].New = false
	}
	return d.frame("how it is built", nil)
}

// drawing is a record being followed.
type drawing struct {
	built   []experiment.ContainerSummary
	rec     *experiment.Record
	results []experiment.Verdict

	containers []Container
	stores     []Store
}

func (d *drawing) begin() {
	for _, c := range d.built {
		d.containers = append(d.containers, Container{Name: c.Name, ReadOnly: c.ReadOnly, Machine: c.Machine})
		for _, m := range c.Mounts {
			key := storeKey(c.Name, m)
			i := slices.IndexFunc(d.stores, func(s Store) bool { return s.key == key })
			if i < 0 {
				d.stores = append(d.stores, Store{Name: storeName(m), key: key})
				i = len(d.stores) - 1
			}
			d.stores[i].users = append(d.stores[i].users, c.Name)
			mounts := &d.containers[len(d.containers)-1].Mounts
			*mounts = append(*mounts, Mount{m.Target, i})
		}
	}
	for i, c := range d.built {
		if c.Service { // no step is taken before it has answered
			d.containers[i].State, d.containers[i].Word, d.containers[i].Process = There, "running", true
			d.mount(&d.containers[i])
		}
	}
}

// storeKey tells stores apart: a named one is the same for all who mount it.
func storeKey(container string, m experiment.MountSummary) string {
	switch scenarios.MountKind(m.Kind) {
	case scenarios.VolumeMount, scenarios.Bind, scenarios.ImageMount, scenarios.EmptyDir, durable:
		return m.Kind + " " + m.Source
	}
	if m.From != "" {
		container = m.From
	}
	return m.Kind + " " + container + " " + m.Target
}

// A machine's disks stand among the mounts.
const (
	durable       = scenarios.MountKind(scenarios.Durable)
	instanceStore = scenarios.MountKind(scenarios.InstanceStore)
)

func storeName(m experiment.MountSummary) string {
	name := m.Kind
	switch scenarios.MountKind(m.Kind) {
	case scenarios.VolumeMount:
		name = "named volume " + m.Source
	case scenarios.Anonymous:
		name = "volume without a name"
	case scenarios.Bind:
		name = "the host’s folder " + m.Source
	case scenarios.Tmpfs:
		name = "tmpfs: memory behind a path"
	case scenarios.ImageMount:
		name = "files of another image"
	case durable:
		name = "durable disk " + m.Source
	case instanceStore:
		name = "instance store " + m.Source
	case scenarios.EmptyDir:
		name = "emptyDir " + m.Source
	}
	if slices.Contains(m.Options, "O") {
		name += ", under an overlay"
	}
	if slices.Contains(m.Options, "ro") {
		name += ", read-only"
	}
	return name
}

// lasting tells stores that can be seen by another container later from those
// that come with one.
func (s *Store) lasting() bool {
	kind, _, _ := strings.Cut(s.key, " ")
	return slices.Contains([]scenarios.MountKind{scenarios.VolumeMount, scenarios.Bind, durable}, scenarios.MountKind(kind))
}

// step carries the picture past one step.
func (d *drawing) step(sr *experiment.StepRecord) Frame {
	for i := range d.containers {
		c := &d.containers[i]
		c.New, c.Started = false, false
		if c.State == Gone {
			// The next container of the name is looked into for the same.
			*c = Container{Name: c.Name, ReadOnly: c.ReadOnly, Machine: c.Machine, ID: c.ID, Memory: c.Memory, Layer: c.Layer, Mounts: c.Mounts}
		}
	}
	for i := range d.stores {
		d.stores[i].New = false
		if d.stores[i].State == Gone {
			d.stores[i].State = Absent
		}
	}
	for _, items := range d.all() {
		for i := range *items {
			(*items)[i].New = false
		}
	}

	var says []string
	switch {
	case sr.Label != "" || len(sr.Items) > 0:
		says = d.look(sr)
	default:
		says = d.event(sr)
	}
	if sr.Error != "" {
		says = append(says, "It went wrong: "+sr.Error)
	}
	f := d.frame(d.title(sr), says)
	f.Step, f.Command = sr.Index, sr.Command
	return f
}

func (d *drawing) title(sr *experiment.StepRecord) string {
	on := ""
	if sr.On != "" && sr.On != scenarios.DefaultContainer && !d.machine() {
		on = " (" + sr.On + ")"
	}
	switch sr.Verb {
	case "read":
		return "look: " + sr.Label + on
	case "write", "edit", "erase", "wait", "crash", "service restart", "load":
		return sr.Verb + on
	}
	if d.machine() {
		return sr.Verb
	}
	return "podman " + sr.Verb + on
}

// frame copies how things stand.
func (d *drawing) frame(title string, says []string) Frame {
	f := Frame{Title: title, Says: says}
	for _, c := range d.containers {
		c.Memory, c.Layer = slices.Clone(c.Memory), slices.Clone(c.Layer)
		f.Containers = append(f.Containers, c)
	}
	for _, s := range d.stores {
		s.Items, s.Mounted = slices.Clone(s.Items), d.mounted(s.key)
		f.Stores = append(f.Stores, s)
	}
	return f
}

// mounted says where a store is mounted by containers that are there.
func (d *drawing) mounted(key string) (at []string) {
	var targets []string
	by := map[string][]string{}
	for _, b := range d.built {
		for _, m := range b.Mounts {
			if storeKey(b.Name, m) != key || d.container(b.Name).State != There {
				continue
			}
			if by[m.Target] == nil {
				targets = append(targets, m.Target)
			}
			by[m.Target] = append(by[m.Target], b.Name)
		}
	}
	for _, target := range targets {
		if d.alone() {
			at = append(at, "at "+target)
			continue
		}
		at = append(at, "at "+target+" in "+list(by[target]))
	}
	return at
}

func (d *drawing) container(name string) *Container {
	for i := range d.containers {
		if d.containers[i].Name == name {
			return &d.containers[i]
		}
	}
	return nil
}

func (d *drawing) alone() bool { return len(d.built) == 1 }

// machine tells whether it is all about a virtual machine.
func (d *drawing) machine() bool { return len(d.built) > 0 && d.built[0].Machine }

// mount draws what a new container mounts.
func (d *drawing) mount(c *Container) {
	for i := range d.stores {
		s := &d.stores[i]
		if !slices.Contains(s.users, c.Name) {
			continue
		}
		s.New = s.State != There || !s.lasting() && !c.Machine // a machine keeps what it has until it is off
		s.State = There
	}
}

func short(id string) string { return id[:min(len(id), 12)] }
