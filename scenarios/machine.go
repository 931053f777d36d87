package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Virtual machines: a scenario that says machine: vm is about one, and what
// happens in it happens to that machine instead of to containers.

// VirtualMachine is the word after machine:.
const VirtualMachine = "vm"

// MachineName is what the one machine of such a scenario is called where
// containers have a name.
const MachineName = "machine"

// DiskKind says how long a disk lasts.
type DiskKind string

// Disk kinds.
const (
	Durable       DiskKind = "durable"        // it outlasts the machine
	InstanceStore DiskKind = "instance-store" // it belongs to the machine's process on its host, and ends with it
)

// Disk is one disk of a virtual machine, with a file system on it.
type Disk struct {
	Pos     Position
	Kind    DiskKind
	Name    string
	Target  string   // where it is mounted
	Options []string // ext4's words: noauto_da_alloc, data=journal …
	// Flush: "" keeps whatever the machine gave it; FlushHonest and
	// FlushLies have a cache of their own, which a power cut empties.
	Flush string
}

// What a disk with a cache does when it is told to flush.
const (
	FlushHonest = "honest" // it writes its cache out, and then answers
	FlushLies   = "lies"   // it answers
)

// verbPlace says where a step can happen.
type verbPlace int

const (
	inContainers verbPlace = iota
	inMachines
	anywhere
)

// machineVerbs are the rows of the table of steps that only a virtual machine
// has.
func machineVerbs() []Verb {
	during := textField("during", "a file item: the power goes in the middle of a write to it, which is never acknowledged", itemName, func(s *Step) *string { return &s.During })
	return []Verb{
		{Name: "boot", Doc: "a new machine is switched on, with its disks", Event: true, place: inMachines, also: []string{"launch"}, scope: targets, from: absent, to: running},
		{Name: "reboot", Doc: "the machine restarts in an orderly way, on the same host", Event: true, place: inMachines, scope: targets, from: running, to: running},
		{Name: "sync", Doc: "all that was written so far goes to the disks, as sync(1) does", place: inMachines, also: []string{"flush"}, scope: targets, from: running},
		{Name: "power-cut", Doc: "the power goes, without a warning; after says how long after the last step", Event: true, Bare: "after", place: inMachines, also: []string{"poweroff", "crash", "power cut", "powercut"}, scope: targets, from: running, to: stopped,
			options: []field[Step]{
				durationField("after", "how long after the last step", maxDelay, func(s *Step) *time.Duration { return &s.Delay }),
				during,
				sizeField("at", "with during: after how many bytes, all of them on the disk", 0, func(s *Step) *int { return &s.At })}},
		{Name: "terminate", Doc: "the machine is shut down and given up: the next boot is another machine, with the durable disks", Event: true, place: inMachines, also: []string{"rm", "delete"}, scope: targets, from: existing, to: absent},
		{Name: "snapshot", Doc: "the durable disks are kept as they are under a name, while the machine is stopped; live: with its memory, while it runs", Event: true, Bare: "to", place: inMachines, scope: targets, from: existing,
			options: []field[Step]{
				must(textField("to", "the snapshot's name", objName, func(s *Step) *string { return &s.To })),
				boolField("live", "of the running machine, memory and all", func(s *Step, b bool) { s.Live = b }),
				boolField("overlay", "as a new file on top of the old one, which is kept", func(s *Step, b bool) { s.Overlay = b })}},
		{Name: "rollback", Doc: "the machine is put back to a snapshot", Event: true, Bare: "from", place: inMachines, also: []string{"revert"}, scope: targets, from: existing,
			options: []field[Step]{must(textField("from", "the snapshot's name", objName, func(s *Step) *string { return &s.From }))}},
	}
}

// diskFields is the table of a disk's keys beside its kind.
func diskFields() []field[Disk] {
	return []field[Disk]{
		must(pathField("target", "where it is mounted", func(d *Disk) *string { return &d.Target })),
		listField("options", "mount options of ext4, such as noauto_da_alloc or data=journal", mountWord, func(d *Disk) *[]string { return &d.Options }),
		wordField("flush", "gives the disk a cache of its own, which a power cut empties: honest writes it out when told to flush, lies only says so", []string{FlushHonest, FlushLies}, func(d *Disk, s string) { d.Flush = s }),
	}
}

var mountWord = rule{re: regexp.MustCompile(`^[a-z0-9_]{1,40}(=[a-z0-9_]{1,40})?$`), want: "a mount option of ext4", example: "noauto_da_alloc"}

func diskKinds() []string { return []string{string(Durable), string(InstanceStore)} }

// disks reads the list of a machine's disks.
func (d *decoder) disks(n *yaml.Node) []Disk {
	if n.Kind != yaml.SequenceNode {
		d.fault(n, "write it as a list: [{durable: data, target: /data}]", "disks must be a list, not %s", kindOf(n))
		return nil
	}
	var out []Disk
	for _, item := range n.Content {
		disk := Disk{Pos: pos(item)}
		// The kind is the key that carries the name, as with mounts.
		table := diskFields()
		for _, kind := range diskKinds() {
			table = append(table, field[Disk]{name: kind, read: func(d *decoder, n *yaml.Node, into *Disk) {
				if into.Kind != "" {
					d.fault(n, "make it two disks", "a disk is of one kind: %s or %s", into.Kind, kind)
				}
				into.Kind = DiskKind(kind)
				into.Name, _ = d.text(n, "a disk's name", diskName)
			}})
		}
		faults := len(d.errs)
		readMap(d, item, "a disk", table, &disk)
		if disk.Kind == "" && len(d.errs) == faults {
			d.fault(item, "write it as {durable: data, target: /data}", "a disk must say its kind: %s", oneOf(diskKinds()))
		}
		if disk.Kind == InstanceStore && disk.Flush != "" {
			d.fault(item, "remove it", "flush is for a durable disk")
		}
		for _, other := range out {
			if disk.Name != "" && other.Name == disk.Name {
				d.fault(item, "give each a name of its own", "two disks are called %q", disk.Name)
			}
			if disk.Target != "" && (within(disk.Target, other.Target) || within(other.Target, disk.Target)) {
				d.fault(item, "give each a folder of its own", "two disks are at %s and %s", other.Target, disk.Target)
			}
		}
		out = append(out, disk)
	}
	return out
}

// diskName leaves out what QEMU's options can't carry.
var diskName = rule{re: regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`), want: "a name of small letters, digits and -", example: "data", fix: slug}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func disksSchema() schema {
	var forms []any
	for _, kind := range diskKinds() {
		forms = append(forms, objectSchema(append(diskFields(), must(field[Disk]{name: kind, doc: "its name", schema: diskName.schema()}))))
	}
	return schema{"type": "array", "items": schema{"anyOf": forms}}
}

// machineKeys reports keys of containers in a scenario of a virtual machine,
// and the other way round.
func (d *decoder) machineKeys(s *Scenario, seen map[string]*yaml.Node) {
	if s.Machine == "" {
		return // validate finds its disks
	}
	names := []string{"containers", "volumes"}
	for _, f := range containerFields() {
		if f.name != "disks" {
			names = append(names, f.name)
		}
	}
	for _, name := range names {
		if key := seen[name]; key != nil {
			d.fault(key, "remove it; a machine has disks", "%s is a container's, and this scenario is about a virtual machine", name)
		}
	}
}

// machineOf checks what only a scenario of a virtual machine can have wrong.
func (d *decoder) machineOf(s *Scenario, v *Variant) {
	for _, items := range v.Expect {
		for _, e := range items {
			if slices.ContainsFunc(e.Rules, func(r Rule) bool { return r.When != "" }) {
				d.fault(at(e.Pos), "leave when out", "when asks which podman it is, and no podman runs a virtual machine")
			}
		}
	}
	for i, step := range v.Steps {
		if step.Verb == "snapshot" && step.Live && step.Overlay {
			d.fault(at(step.Pos), "remove one of them", "a snapshot is live or an overlay, not both")
		}
		if step.Verb == "snapshot" && !slices.ContainsFunc(v.Containers[0].Disks, func(k Disk) bool { return k.Kind == Durable && k.Flush == "" }) {
			d.fault(at(step.Pos), "add a disk without flush: {durable: data, target: /data}", "snapshot: no disk of the machine can be kept")
		}
		if step.Verb == "snapshot" && slices.ContainsFunc(v.Steps[:i], func(b Step) bool { return b.Verb == "snapshot" && b.To == step.To }) {
			d.fault(at(step.Pos), "give each a name of its own", "two snapshots are called %q", step.To)
		}
		if step.Verb != "power-cut" {
			continue
		}
		item, ok := s.Item(step.During)
		switch {
		case step.During == "" && step.At > 0:
			d.fault(at(step.Pos), "add during: ITEM", "at says where in a write, and no item is written")
		case step.During == "":
		case !ok:
			d.fault(at(step.Pos), suggest(step.During, itemNames(s)), "power-cut names an item that data: does not have: %q", step.During)
		case item.Kind != File:
			d.fault(at(step.Pos), "name a file item", "the power can go in the middle of writing a file, and %q is none", item.Name)
		case step.At > item.Size:
			d.fault(at(step.Pos), fmt.Sprintf("give %s a size, such as 64KiB", item.Name), "at is beyond the end of %q (%d bytes)", item.Name, item.Size)
		}
	}
}

// misplaced reports a step that can't happen in this kind of scenario.
func (d *decoder) misplaced(s *Scenario, step Step, verb Verb) bool {
	switch {
	case s.Machine == "" && verb.place == inMachines:
		hint := "add machine: vm at the top"
		if verb.Name == "reboot" {
			hint = `did you mean "restart"?`
		}
		d.fault(at(step.Pos), hint, "%s happens to a virtual machine, not to a container", step.Verb)
		return true
	case s.Machine != "" && verb.place == inContainers:
		var known []string
		for _, v := range Verbs() {
			if v.place != inContainers {
				known = append(known, v.Name)
			}
			if v.place == inMachines && slices.Contains(v.also, step.Verb) || step.Verb == "run" && v.Name == "boot" || step.Verb == "restart" && v.Name == "reboot" {
				d.fault(at(step.Pos), fmt.Sprintf("did you mean %q?", v.Name), "%s happens to a container, not to a virtual machine", step.Verb)
				return true
			}
		}
		d.fault(at(step.Pos), "the steps are: "+strings.Join(known, ", "), "%s happens to a container, not to a virtual machine", step.Verb)
		return true
	}
	return false
}

// LiveSnapshot tells whether a snapshot step, or the one a rollback goes back
// to, is of the running machine.
func (v Variant) LiveSnapshot(step Step) bool {
	if step.Verb == "snapshot" {
		return step.Live
	}
	return slices.ContainsFunc(v.Steps, func(s Step) bool { return s.Verb == "snapshot" && s.To == step.From && s.Live })
}
