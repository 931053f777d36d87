package scenarios

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// validate checks what a table can't: that all a scenario names exists and
// that its steps can happen.
func (d *decoder) validate(s *Scenario, seen map[string]*yaml.Node) {
	d.itemsApart(s)
	if len(s.Data) == 0 && seen["data"] != nil && len(d.errs) == 0 {
		d.fault(seen["data"], "add an item: note: {file: /var/lib/app/note.txt}", "data names nothing to write")
	}
	for i := range s.Variants {
		v := &s.Variants[i]
		if len(v.Steps) == 0 {
			if len(d.errs) == 0 {
				d.fault(at(Position{1, 1}), "add steps: with run, write, read and what happens between", "variant %q has no steps", v.Name)
			}
			continue
		}
		if last := v.Steps[len(v.Steps)-1]; !d.brokenSteps && len(s.reads(v)) == 0 {
			d.fault(at(last.Pos), "add - read: and a name for what is seen there", "no step reads: there would be nothing to show")
		}
		d.containersOf(s, v)
		d.playedPods(s, v)
		faults := len(d.errs)
		d.references(s, v)
		if s.Machine != "" {
			d.machineOf(s, v)
		} else if i := slices.IndexFunc(v.Containers, func(c Container) bool { return len(c.Disks) > 0 }); i >= 0 {
			d.fault(at(v.Containers[i].Disks[0].Pos), "add machine: vm at the top, or use mounts", "disks are a virtual machine's")
		}
		if !d.brokenSteps && len(d.errs) == faults {
			d.simulate(s, v)
		}
	}
	d.volumesUsed(s)
	d.expectMatches(s)
	d.misconceptionsMatch(s)
	d.askMatches(s)
}

// at makes a position usable where a node is wanted.
func at(p Position) *yaml.Node { return &yaml.Node{Line: p.Line, Column: p.Col} }

// find gives the node of a word that stands under key in the part at p: the
// value itself or an element of it. Where the part is no mapping, it is the
// value (- stop: web).
func (d *decoder) find(p Position, key, word string) *yaml.Node {
	n := d.nodes[p]
	if n != nil && n.Kind == yaml.MappingNode {
		mapping := n
		n = nil
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if mapping.Content[i].Value == key {
				n = mapping.Content[i+1]
			}
		}
	}
	if n != nil && n.Kind == yaml.SequenceNode {
		list := n
		n = nil
		for _, element := range list.Content {
			if element.Value == word {
				n = element
			}
		}
	}
	if n == nil {
		return at(p)
	}
	return n
}

func itemNames(s *Scenario) []string {
	var out []string
	for _, item := range s.Data {
		out = append(out, item.Name)
	}
	return out
}

func containerNames(list []Container) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.Name)
	}
	return out
}

// itemsApart refuses two items in one place: one would overwrite the other.
func (d *decoder) itemsApart(s *Scenario) {
	type place struct{ kind, path, on string }
	seen := map[place]Item{}
	for _, item := range s.Data {
		if item.Path == "" {
			continue
		}
		p := place{"disk", item.Path, item.On}
		if !item.OnDisk() {
			p.kind = string(item.Kind)
		}
		if item.Kind == Agent && item.OnDisk() {
			p.kind, p.path = "agent", path.Dir(item.Path) // its notes are beside its transcript
		}
		if item.InService() {
			p.kind, p.on = string(item.Kind)+" of "+item.Service, ""
		}
		if first, twice := seen[p]; twice {
			d.fault(at(item.Pos), "give each a place of its own", "items %q and %q are in the same place: %s", first.Name, item.Name, item.Path)
		}
		seen[p] = item
		if _, ok := findContainer(s.Containers, item.On); item.On != "" && !ok {
			d.fault(d.find(item.Pos, "on", item.On), suggest(item.On, containerNames(s.Containers)), "item %q is on a container the scenario does not have: %q", item.Name, item.On)
		}
	}
}

func findContainer(list []Container, name string) (Container, bool) {
	return Variant{Containers: list}.Container(name)
}

// containersOf checks what containers say about each other and about items.
func (d *decoder) containersOf(s *Scenario, v *Variant) {
	for _, c := range v.Containers {
		for _, from := range c.VolumesFrom {
			if _, ok := v.Container(from); !ok || from == c.Name {
				d.fault(d.find(c.Pos, "volumes_from", from), suggest(from, slices.DeleteFunc(containerNames(v.Containers), func(n string) bool { return n == c.Name })),
					"container %q takes volumes from %q, which is no other container", c.Name, from)
			}
		}
		for _, m := range c.Mounts {
			if m.Kind == ImageMount && m.Source != "probe" && !makesImage(v.Steps, m.Source) {
				d.fault(at(m.Pos), "use probe, or the name a commit or import step gives", "no step makes an image %q", m.Source)
			}
		}
	}
	for _, item := range s.Data {
		if c, ok := v.Container(item.Path); item.Kind == Health && ok && c.Health == nil {
			d.fault(at(item.Pos), fmt.Sprintf("give %s health: live, or health: {ready: PATH}", c.Name), "item %q is a health check, but container %q has none in variant %q", item.Name, c.Name, v.Name)
		}
		if name, ok := strings.CutPrefix(item.Path, FactEnv); ok && item.Kind == Fact && !slices.ContainsFunc(v.Containers, func(c Container) bool {
			_, set := c.Env[name]
			return set && (item.On == "" || item.On == c.Name)
		}) {
			// What else is in the environment is nobody's business: the
			// address of a store has its password in it.
			d.fault(at(item.Pos), "add env: {"+name+": hello}", "item %q looks at a variable that no container is given: %s", item.Name, name)
		}
		if item.Kind == Agent && item.Tasks != "" && !slices.ContainsFunc(v.Containers, func(c Container) bool {
			return (item.On == "" || item.On == c.Name) && c.Image != nil && c.Image.Files[item.Tasks] != ""
		}) {
			d.fault(d.find(item.Pos, "tasks", item.Tasks), "add image: {files: {"+item.Tasks+": look at /etc/passwd}}", "the tasks of item %q are in no image: %s", item.Name, item.Tasks)
		}
		if item.Seed && !slices.ContainsFunc(v.Containers, func(c Container) bool {
			return (item.On == "" || item.On == c.Name) && c.Image != nil && c.Image.Files[item.Path] != ""
		}) {
			d.fault(at(item.Pos), "add image: {files: {"+item.Path+": some text}}", "item %q is a seed, but no image has a file %s", item.Name, item.Path)
		}
	}
}

func makesImage(steps []Step, name string) bool {
	return slices.ContainsFunc(steps, func(s Step) bool {
		return (s.Verb == "commit" || s.Verb == "import") && s.To == name
	})
}

// namedVolumes gives the volumes a variant's containers mount or its
// volumes: declare.
func (v *Variant) namedVolumes() []string {
	var out []string
	for _, c := range v.Containers {
		for _, m := range c.Mounts {
			if m.Kind == VolumeMount {
				out = append(out, m.Source)
			}
		}
	}
	for _, volume := range v.Volumes {
		out = append(out, volume.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// source says which verb's To a verb's From takes up.
var source = map[string]string{"import": "export", "volume import": "volume export", "cp": "cp", "restore": "checkpoint", "rollback": "snapshot"}

// references checks that what steps name exists.
func (d *decoder) references(s *Scenario, v *Variant) {
	volumes, containers := v.namedVolumes(), append(containerNames(v.Containers), groups(v.Containers)...)
	labels := map[string]int{}
	for i, step := range v.Steps {
		if d.misplaced(s, step, d.verbs[step.Verb]) {
			continue
		}
		if step.On != "" && !slices.Contains(containers, step.On) {
			d.fault(d.find(step.Pos, "on", step.On), suggest(step.On, containers), "%s names a container the scenario does not have: %q", step.Verb, step.On)
		}
		for _, name := range step.Amid {
			if _, ok := s.Item(name); !ok {
				d.fault(d.find(step.Pos, "during", name), suggest(name, itemNames(s)), "%s names an item that data: does not have: %q", step.Verb, name)
			}
		}
		for _, name := range step.Items {
			if _, ok := s.Item(name); !ok {
				d.fault(d.find(step.Pos, "items", name), suggest(name, itemNames(s)), "%s names an item that data: does not have: %q", step.Verb, name)
			}
		}
		if step.Verb == "read" {
			if line, twice := labels[step.Label]; twice {
				d.fault(d.find(step.Pos, "label", step.Label), fmt.Sprintf("the first is on line %d: give each read a name of its own", line), "two checkpoints are called %q", step.Label)
			}
			labels[step.Label] = step.Pos.Line
		}
		if step.Volume != "" && !slices.Contains(volumes, step.Volume) && !d.brokenStorage {
			d.fault(d.find(step.Pos, "volume", step.Volume), suggest(step.Volume, volumes), "%s: variant %q has no volume %q", step.Verb, v.Name, step.Volume)
		}
		if step.Pod != "" && !slices.ContainsFunc(v.Containers, func(c Container) bool { return c.Pod == step.Pod }) {
			d.fault(d.find(step.Pos, "pod", step.Pod), "give a container pod: "+step.Pod, "%s: no container is in a pod %q", step.Verb, step.Pod)
		}
		if d.brokenSteps {
			continue
		}
		if step.Image != "" && !makesImage(v.Steps[:i], step.Image) {
			d.fault(d.find(step.Pos, "image", step.Image), "put a commit or import step before it", "no step before this one makes an image %q", step.Image)
		}
		if step.From != "" && !slices.ContainsFunc(v.Steps[:i], func(b Step) bool { return b.Verb == source[step.Verb] && b.To == step.From }) {
			d.fault(d.find(step.Pos, "from", step.From), fmt.Sprintf("put - %s: {to: %s, …} before it", source[step.Verb], step.From), "no %s step before this one makes %q", source[step.Verb], step.From)
		}
	}
}

// volumesUsed reports volumes: entries that nothing mounts: a slip in a name
// would make two volumes.
func (d *decoder) volumesUsed(s *Scenario) {
	used := map[Position]bool{}
	mounted := map[string]bool{}
	for _, v := range s.Variants {
		plain := v
		plain.Volumes = nil
		for _, name := range plain.namedVolumes() {
			mounted[name] = true
		}
		for _, volume := range v.Volumes {
			used[volume.Pos] = used[volume.Pos] || slices.Contains(plain.namedVolumes(), volume.Name)
		}
	}
	if d.brokenStorage {
		return
	}
	for _, v := range s.Variants {
		for _, volume := range v.Volumes {
			if !used[volume.Pos] {
				var known []string
				for name := range mounted {
					known = append(known, name)
				}
				slices.Sort(known)
				d.fault(at(volume.Pos), suggest(volume.Name, known), "no container mounts the volume %q", volume.Name)
			}
		}
	}
}

// expectMatches holds reads and expectations against each other.
func (d *decoder) expectMatches(s *Scenario) {
	type gap struct{ label, items, first string }
	missing := map[gap][]*Variant{}
	readers := map[string]int{}
	readAt := map[gap]Position{}
	all := map[string]map[string]bool{} // checkpoint → items read there in any variant
	for i := range s.Variants {
		v := &s.Variants[i]
		reads := s.reads(v)
		for label, items := range reads {
			if all[label] == nil {
				all[label] = map[string]bool{}
			}
			for item := range items {
				all[label][item] = true
			}
		}
	}
	stray := d.strayExpectations(d.expectAt, all, s)
	for i := range s.Variants {
		v := &s.Variants[i]
		own := d.strayExpectations(d.variantExpectAt[v.Name], s.reads(v), s)
		for _, step := range v.Steps {
			if step.Verb != "read" {
				continue
			}
			readers[step.Label]++
			var lacking []string
			for _, item := range s.ItemsOf(step) {
				if _, ok := v.Expect[step.Label][item.Name]; !ok {
					lacking = append(lacking, item.Name)
				}
			}
			if len(lacking) > 0 && !stray && !own {
				g := gap{step.Label, described(lacking), lacking[0]}
				missing[g] = append(missing[g], v)
				readAt[g] = step.Pos
			}
		}
	}
	if d.brokenExpect {
		return
	}
	for g, variants := range missing {
		fix := fmt.Sprintf("add to expect: %s: {%s: …}", g.label, g.first)
		if len(variants) == readers[g.label] {
			d.fault(at(readAt[g]), fix, "nobody says what to expect of %s at %q", g.items, g.label)
			continue
		}
		for _, v := range variants {
			d.fault(at(v.Pos), fix, "variant %q does not say what to expect of %s at %q", v.Name, g.items, g.label)
		}
	}
}

// reads gives the items a variant reads at each checkpoint.
func (s *Scenario) reads(v *Variant) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, step := range v.Steps {
		if step.Verb != "read" {
			continue
		}
		if out[step.Label] == nil {
			out[step.Label] = map[string]bool{}
		}
		for _, item := range s.ItemsOf(step) {
			out[step.Label][item.Name] = true
		}
	}
	return out
}

// placed are the keys of an expect: as they stand in the file.
type placed struct {
	checkpoint string
	at         *yaml.Node
	items      []*yaml.Node
}

// strayExpectations reports expectations of what is never read.
func (d *decoder) strayExpectations(expect []placed, reads map[string]map[string]bool, s *Scenario) bool {
	if d.brokenSteps {
		return len(expect) > 0
	}
	var labels []string
	for label := range reads {
		labels = append(labels, label)
	}
	slices.Sort(labels)
	stray := false
	for _, p := range expect {
		items, ok := reads[p.checkpoint]
		if !ok {
			stray = true
			d.fault(p.at, suggest(p.checkpoint, labels), "no step reads at a checkpoint %q", p.checkpoint)
			continue
		}
		for _, item := range p.items {
			if _, defined := s.Item(item.Value); !defined {
				stray = true
				d.fault(item, suggest(item.Value, itemNames(s)), "data: has no item %q", item.Value)
			} else if !items[item.Value] {
				stray = true
				d.fault(item, "remove it, or add it to the read's items", "%q is not read at %q", item.Value, p.checkpoint)
			}
		}
	}
	return stray
}

func (d *decoder) misconceptionsMatch(s *Scenario) {
	var variants, labels []string
	for i := range s.Variants {
		variants = append(variants, s.Variants[i].Name)
		for label := range s.reads(&s.Variants[i]) {
			labels = append(labels, label)
		}
	}
	slices.Sort(labels)
	labels = slices.Compact(labels)
	for _, m := range s.Misconceptions {
		if m.Variant != "" && !slices.Contains(variants, m.Variant) {
			d.fault(d.find(m.Pos, "variant", m.Variant), suggest(m.Variant, variants), "misconception %q names no variant: %q", m.ID, m.Variant)
		}
		if _, ok := s.Item(m.Item); m.Item != "" && !ok {
			d.fault(d.find(m.Pos, "item", m.Item), suggest(m.Item, itemNames(s)), "misconception %q names no item: %q", m.ID, m.Item)
		}
		if m.Checkpoint != "" && !slices.Contains(labels, m.Checkpoint) && !d.brokenSteps {
			d.fault(d.find(m.Pos, "checkpoint", m.Checkpoint), suggest(m.Checkpoint, labels), "misconception %q names no checkpoint: %q", m.ID, m.Checkpoint)
		}
	}
}
