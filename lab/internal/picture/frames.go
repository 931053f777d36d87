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
	"fmt"
	"slices"
	"strings"

	"persistencelab/lab/internal/experiment"
	"persistencelab/probeimage/wire"
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

// all are the lists of items in all places.
func (d *drawing) all() []*[]Item {
	var out []*[]Item
	for i := range d.containers {
		out = append(out, &d.containers[i].Memory, &d.containers[i].Layer)
	}
	for i := range d.stores {
		out = append(out, &d.stores[i].Items)
	}
	return out
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

// place is the list an item belongs to, seen from a container, and what that
// place is called; nil where the report does not say.
func (d *drawing) place(container, item string) (*[]Item, string) {
	for _, b := range d.built {
		if b.Name != container {
			continue
		}
		for _, pl := range b.Places {
			if pl.Item != item {
				continue
			}
			c := d.container(container)
			switch pl.Where {
			case "memory":
				if c.Machine {
					return &c.Memory, "its memory"
				}
				return &c.Memory, "the memory of its process"
			case "layer":
				return &c.Layer, "the writable layer"
			case "service":
				return d.kept(pl.Target)
			case "elsewhere":
				return nil, pl.Target
			}
			for _, m := range b.Mounts {
				for i := range d.stores {
					if m.Target == pl.Target && d.stores[i].key == storeKey(container, m) {
						return &d.stores[i].Items, d.stores[i].Name
					}
				}
			}
		}
	}
	return nil, ""
}

// kept is where a service keeps what it is given.
func (d *drawing) kept(service string) (*[]Item, string) {
	c := d.container(service)
	if c == nil {
		return nil, ""
	}
	for _, m := range c.Mounts {
		if m.Target == scenarios.ServiceData {
			s := &d.stores[m.Store]
			return &s.Items, s.Name
		}
	}
	return &c.Layer, "the writable layer of " + service
}

// look is a step about data items: a write, a checkpoint.
func (d *drawing) look(sr *experiment.StepRecord) []string {
	type group struct{ place, what string }
	var order []group
	names := map[group][]string{}
	for i := range sr.Items {
		o := &sr.Items[i]
		status, what := d.status(sr, o)
		items, place := d.place(sr.On, o.Item)
		if items != nil {
			put(items, Item{Name: o.Item, Status: status, New: true})
		}
		g := group{place, what}
		if names[g] == nil {
			order = append(order, g)
		}
		names[g] = append(names[g], o.Item)
	}
	var says []string
	for _, g := range order {
		s := fmt.Sprintf("%s: %s", list(names[g]), g.what)
		if g.place != "" {
			s = fmt.Sprintf("%s, in %s: %s", list(names[g]), g.place, g.what)
		}
		says = append(says, s+".")
	}
	if len(says) == 0 {
		says = []string{"Nothing was observed."}
	}
	return says
}

func put(items *[]Item, it Item) {
	for i := range *items {
		if (*items)[i].Name == it.Name {
			(*items)[i] = it
			return
		}
	}
	*items = append(*items, it)
}

// status is an item's after a look, and the same in words.
func (d *drawing) status(sr *experiment.StepRecord, o *experiment.Observation) (Status, string) {
	if sr.Verb != "read" {
		switch {
		case o.Error != nil && (o.Error.Code == wire.CodeReadOnly || o.Error.Code == wire.CodePermission || o.Error.Code == wire.CodeNoSpace):
			return Failed, "not accepted (" + o.Error.Text + ")"
		case o.Error != nil || o.Found == nil:
			return Unknown, "unknown"
		case o.Found.Present:
			return Written, map[bool]string{true: "written, and read back at once", false: "changed by hand, and read back at once"}[sr.Verb == "write"]
		}
		return Missing, "taken away"
	}
	for _, v := range d.results {
		if v.Scenario != d.rec.Scenario || v.Variant != d.rec.Variant || v.Checkpoint != sr.Label || v.Item != o.Item {
			continue
		}
		what := v.Outcome.String()
		if v.Detail != "" {
			what += " (" + v.Detail + ")"
		}
		if v.Judgement == experiment.Surprised || v.Judgement == experiment.Violated {
			what += ", expected " + v.Expected.String()
		}
		switch v.Outcome {
		case scenarios.Survived, scenarios.Lost, scenarios.Changed, scenarios.Refused:
			return Status(v.Outcome), what
		}
		return Unknown, what
	}
	switch {
	case o.Found == nil:
		return Unknown, "unknown"
	case o.Found.Present:
		return Present, "there"
	}
	return Missing, "not there"
}

// event is a step that happened to containers, volumes, pods.
func (d *drawing) event(sr *experiment.StepRecord) []string {
	var says []string
	if sr.Proof != nil {
		on := sr.On
		if sr.Proof.On != "" {
			on = sr.Proof.On
		}
		says = append(says, d.proof(on, sr.Proof)...)
	}
	for i := range sr.Others {
		says = append(says, d.proof(sr.Others[i].On, &sr.Others[i])...)
	}
	if sr.Proof != nil && sr.Proof.Refused != "" {
		return says // nothing happened
	}
	// Whatever happened: nobody has looked since.
	if sr.Verb != "wait" {
		for _, items := range d.all() {
			for i := range *items {
				if it := &(*items)[i]; it.Status != Failed && it.Status != Missing {
					*it = Item{Name: it.Name, Status: Unseen}
				}
			}
		}
	}
	if len(says) == 0 {
		says = []string{"No container was seen to change."}
		switch {
		case d.machine() && sr.Verb == "snapshot":
			says = []string{"What is on the durable disks now is kept, under a name."}
		case d.machine() && sr.Verb == "rollback":
			says = []string{"The durable disks were put back to what they held at the snapshot."}
		case d.machine():
			says = []string{"The machine was not seen to change."}
		}
	}
	return says
}

// proof draws what one proof shows, and says it.
func (d *drawing) proof(on string, p *experiment.Proof) (says []string) {
	if p.Refused != "" {
		return []string{"Podman refused: " + p.Refused + ". Nothing happened."}
	}
	if p.Made != "" {
		says = append(says, "Podman made: "+p.Made+".")
	}
	c := d.container(on)
	if c == nil {
		for i := range d.stores {
			s := &d.stores[i]
			if _, source, ok := strings.Cut(s.key, " "); ok && p.OldIsGone != "" && strings.HasSuffix(p.OldIsGone, "-"+source) {
				s.State = Gone
			}
		}
		if p.OldIsGone != "" {
			says = append(says, "Asked for it, Podman says: "+p.OldIsGone+".")
		}
		return says
	}
	if c.Machine {
		return append(says, d.machineProof(c, p)...)
	}
	who := "Container " + c.Name
	if d.alone() {
		who = "The container"
	}
	switch {
	case p.OldIsGone != "":
		gone := "Its writable layer and the memory of its process went with it"
		if c.ReadOnly {
			gone = "The memory of its process went with it"
		}
		says = append(says, fmt.Sprintf("%s %s is gone (%s). %s.", who, c.ID, strings.SplitN(p.OldIsGone, ":", 2)[0], gone))
		c.State, c.Word, c.Process = Gone, "", false
	case p.After == nil:
	case p.Before == nil || p.Before.ID != p.After.ID:
		before := c.ID
		*c = Container{
			Name: c.Name, ReadOnly: c.ReadOnly, ID: short(p.After.ID), State: There, Word: p.After.State, New: true,
			Memory: c.Memory, Layer: c.Layer, Mounts: c.Mounts,
		}
		layer := "with a writable layer of its own"
		if c.ReadOnly {
			layer = "without a writable layer"
		}
		image := "from the image"
		if p.SameImage != nil {
			image = map[bool]string{true: "from the same image", false: "from another image"}[*p.SameImage]
		}
		s := fmt.Sprintf("%s %s is new: %s, %s.", who, c.ID, image, layer)
		if before != "" {
			s = fmt.Sprintf("%s %s is new, not %s again: %s, %s.", who, c.ID, before, image, layer)
		}
		says = append(says, s)
		c.Process = p.After.State == "running"
		c.Started = c.Process
		d.mount(c)
	default:
		c.Word, c.ID, c.State = p.After.State, short(p.After.ID), There
		same := fmt.Sprintf("%s is still %s, with its writable layer", strings.ToLower(who[:1])+who[1:], c.ID)
		if c.ReadOnly {
			same = fmt.Sprintf("%s is still %s", strings.ToLower(who[:1])+who[1:], c.ID)
		}
		was := c.Process
		c.Process = p.After.State == "running" || p.After.State == "paused"
		switch {
		case !c.Process:
			code := ""
			if p.ExitCode != nil {
				code = fmt.Sprintf(" (exit code %d)", *p.ExitCode)
			}
			says = append(says, fmt.Sprintf("Its process has ended%s; %s.", code, same))
		case !was, p.Before.Instance != "" && p.After.Instance != "" && p.Before.Instance != p.After.Instance:
			c.Started = true
			says = append(says, fmt.Sprintf("Another process runs; %s.", same))
		default:
			says = append(says, fmt.Sprintf("The same process, %s; %s.", c.Word, same))
		}
	}
	return says
}

// machineProof draws what one proof shows of a virtual machine, and says it.
func (d *drawing) machineProof(c *Container, p *experiment.Proof) []string {
	id := func(i *experiment.Identity) string { return i.ID[strings.LastIndex(i.ID, "-")+1:] } // …-machine-2
	switch {
	case p.After == nil:
		return nil
	case p.OldIsGone != "":
		c.Word, c.Process = p.After.State, false
		went := "Its memory"
		for i := range d.stores {
			if s := &d.stores[i]; !s.lasting() && s.State == There {
				s.State = Gone
				went += ", and what was on " + s.Name + ","
			}
		}
		return []string{fmt.Sprintf("The machine is %s (%s). %s went with it.", c.Word, p.OldIsGone, went)}
	}
	before := c.ID
	c.State, c.ID, c.Word = There, id(p.After), p.After.State
	d.mount(c)
	same := p.Before != nil && p.Before.ID == p.After.ID
	switch booted := p.Before == nil || p.Before.BootID != p.After.BootID; {
	case !booted:
		c.Process = true
		return []string{"The same boot, as its boot id says."}
	case same:
		c.Process, c.Started = true, true
		return []string{"Another boot, of the same machine: the boot id is a new one."}
	}
	c.Process, c.Started, c.New = true, true, true
	if before == "" {
		return []string{"A machine has booted."}
	}
	return []string{fmt.Sprintf("Machine %s has booted; it is not machine %s again.", c.ID, before)}
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

// list is "a", "a and b", "a, b and c".
func list(names []string) string {
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// Alt is the frame in words, for who can't see it.
func (f *Frame) Alt() string {
	var out []string
	for _, c := range f.Containers {
		switch c.State {
		case Absent:
			if c.Machine {
				out = append(out, "No machine is there.")
				continue
			}
			out = append(out, fmt.Sprintf("Container %s is not there.", c.Name))
			continue
		case Gone:
			out = append(out, fmt.Sprintf("Container %s is gone, and with it its memory and writable layer.", c.Name))
			continue
		}
		s := "Container " + c.Name
		if c.Machine {
			s = "Virtual machine"
		}
		for _, more := range []string{c.ID, c.Word} {
			if more != "" {
				s += ", " + more
			}
		}
		s += ". "
		if c.Process {
			s += "In its memory: " + inWords(c.Memory) + ". "
		} else {
			s += "No process. "
		}
		if c.Machine {
			out = append(out, strings.TrimSpace(s))
			continue
		}
		if c.ReadOnly {
			s += "No writable layer. "
		} else {
			s += "In its writable layer: " + inWords(c.Layer) + ". "
		}
		out = append(out, s+"Below it the image layers, read-only.")
	}
	for _, s := range f.Stores {
		switch s.State {
		case There:
			mounted := "not mounted by any container"
			if len(s.Mounted) > 0 {
				mounted = "mounted " + list(s.Mounted)
			}
			out = append(out, fmt.Sprintf("Outside, %s, %s: %s.", s.Name, mounted, inWords(s.Items)))
		case Gone:
			out = append(out, fmt.Sprintf("Outside, %s is gone.", s.Name))
		}
	}
	return strings.Join(out, " ")
}

func inWords(items []Item) string {
	if len(items) == 0 {
		return "nothing of ours"
	}
	var out []string
	for _, it := range items {
		out = append(out, it.Name+" "+statusWords[it.Status])
	}
	return strings.Join(out, ", ")
}

var statusWords = map[Status]string{
	Written: "just written", Unseen: "not looked at since", Failed: "not accepted", Present: "there", Missing: "not there",
	Survived: "survived", Lost: "lost", Changed: "changed", Refused: "refused", Unknown: "unknown", Planned: "is written",
}
