package scenarios

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// simulation follows the states of a variant's containers through its steps,
// so that a file whose steps can't happen is refused before anything runs.
// It knows states only, nothing of what survives: that is what runs are for.
type simulation struct {
	d       *decoder
	s       *Scenario
	v       *Variant
	state   map[string]state
	why     map[string]Step // the step that put a container into its state
	written map[string]bool
}

func (d *decoder) simulate(s *Scenario, v *Variant) {
	sim := &simulation{d, s, v, map[string]state{}, map[string]Step{}, map[string]bool{}}
	for _, c := range v.Containers {
		sim.state[c.Name] = absent
		if c.Service != nil {
			sim.state[c.Name] = running // before the first step
		}
	}
	for _, step := range v.Steps {
		verb := d.verbs[step.Verb]
		switch {
		case step.OnItems():
			sim.items(step, verb)
		case step.Verb == "load":
			sim.load(step, verb)
		case step.Refused:
			if step.Verb == "run" { // a refused run may leave a created container
				for _, name := range v.Targets(step) {
					sim.state[name] |= created
				}
			}
		default:
			sim.event(step, verb)
		}
	}
}

// items checks a write or read: each item's container must run, and what is
// read must have been put there.
func (sim *simulation) items(step Step, verb Verb) {
	asked := map[string]bool{}
	var unwritten []string
	for _, item := range sim.s.ItemsOf(step) {
		where := sim.v.Where(step, item)
		if _, ok := sim.state[where]; !ok {
			if where == "" {
				sim.d.fault(at(step.Pos), fmt.Sprintf("add on: %s", strings.Join(containerNames(sim.v.Containers), " or on: ")),
					"%s must say in which container", step.Verb)
			}
			return // an undefined one is reported elsewhere
		}
		if c, _ := sim.v.Container(where); c.Service != nil {
			sim.d.fault(at(step.Pos), "name a container", "%s happens in a container, and %q is a service", step.Verb, where)
			return
		}
		if !asked[where] {
			asked[where] = true
			sim.require(step, verb, where)
			sim.state[where] = running // or all that follows would be at fault too
		}
		switch {
		case step.Verb == "write" && item.Seed:
			sim.d.fault(at(step.Pos), "remove it from the write, or remove its seed: true", "item %q is content of the image: it is not written", item.Name)
		case step.Verb == "erase" && item.InService():
			sim.d.fault(at(step.Pos), "remove the step", "item %q is in a service, where nothing is erased by hand", item.Name)
		case step.Verb == "edit" && !item.Seed:
			sim.d.fault(at(step.Pos), fmt.Sprintf("- write: %s", item.Name), "item %q is not content of the image: it is written, not edited", item.Name)
		case step.Verb == "write":
			sim.written[item.Name] = true
		case !item.Seed && !sim.written[item.Name]:
			unwritten = append(unwritten, item.Name)
		}
	}
	if len(unwritten) > 0 {
		sim.d.fault(at(step.Pos), fmt.Sprintf("put - write: [%s] before it, or name the items to read", strings.Join(unwritten, ", ")),
			"no step before this read writes %s", described(unwritten))
	}
}

func (sim *simulation) event(step Step, verb Verb) {
	switch verb.scope {
	case targets:
		sim.onTargets(step, verb)
	case members:
		if step.Verb == "kube play" {
			sim.play(step, verb)
			return
		}
		sim.onPod(step, verb)
	case everyone: // prunes
		for name, now := range sim.state {
			if now&(created|stopped) != 0 && now&(running|paused) == 0 {
				sim.set(name, absent, step)
			}
		}
	case sharers: // rmi
		for _, name := range sim.v.Targets(step) {
			c, _ := sim.v.Container(name)
			for _, o := range sim.v.Containers {
				if reflect.DeepEqual(imageContent(o.Image), imageContent(c.Image)) {
					sim.set(o.Name, absent, step)
				}
			}
		}
	case users: // volume rm
		for _, c := range sim.v.Containers {
			if !mountsVolume(c, step.Volume) || sim.state[c.Name]&absent != 0 {
				continue
			}
			if !step.Force {
				sim.d.fault(at(step.Pos), fmt.Sprintf("put - rm before it, or write - volume rm: {volume: %s, refused: true}", step.Volume),
					"podman refuses to remove a volume in use, and container %q uses %q", c.Name, step.Volume)
			}
			sim.set(c.Name, absent, step)
		}
	}
}

func (sim *simulation) onTargets(step Step, verb Verb) {
	names := sim.v.Targets(step)
	single := slices.Contains([]string{"rename", "commit", "clone", "export", "cp"}, step.Verb) || step.To != "" || step.From != ""
	if single && len(names) != 1 {
		sim.d.fault(at(step.Pos), "add on: "+strings.Join(containerNames(sim.v.Containers), " or on: "), "%s is about one container and must say which", step.Verb)
		return
	}
	if len(step.Amid) > 0 {
		sim.amid(step, names)
	}
	for _, name := range names {
		c, ok := sim.v.Container(name)
		if !ok {
			continue // reported as undefined
		}
		if c.Service != nil && !slices.Contains(serviceVerbs, step.Verb) {
			sim.d.fault(at(step.Pos), "a service can "+strings.Join(serviceVerbs, ", "), "%s can't happen to the service %q", step.Verb, name)
			continue
		}
		if sim.v.Played(c.Pod) && slices.Contains(notInPlayed, step.Verb) {
			sim.d.fault(at(step.Pos), fmt.Sprintf("write kube play: %[1]s and kube down: %[1]s", c.Pod), "%s can't happen to container %q: kube play makes it", step.Verb, name)
			continue
		}
		if step.Verb == "restore" && step.From != "" {
			verb.from = absent // from an archive it is a new container
		}
		if verb.place == inMachines && (step.Verb == "snapshot" || step.Verb == "rollback") {
			verb.from = stopped
			if sim.v.LiveSnapshot(step) {
				verb.from = running
			}
		}
		if !step.Replace {
			sim.require(step, verb, name)
		}
		if step.Verb == "run" {
			for _, from := range c.VolumesFrom {
				if now, ok := sim.state[from]; ok && now == absent {
					sim.d.fault(at(step.Pos), fmt.Sprintf("run %s first", from), "container %q takes volumes from %q, which is not there yet", name, from)
				}
			}
		}
		sim.set(name, after(step, verb, c, sim.state[name]), step)
	}
	if step.Verb == "clone" {
		sim.clone(step)
	}
}

// amid checks the items that a crash interrupts.
func (sim *simulation) amid(step Step, on []string) {
	for _, name := range step.Amid {
		item, ok := sim.s.Item(name)
		switch {
		case !ok: // reported elsewhere
		case !item.OnDisk():
			sim.d.fault(at(step.Pos), "name a file, sqlite, transcript or cache item", "a %s item is not written in pieces: %q", item.Kind, name)
		case item.Journal != "" || item.Synchronous != "":
			sim.d.fault(at(step.Pos), "remove journal and synchronous", "process 1 keeps the database of %q open: its writes can't be made by another process", name)
		case item.Seed:
			sim.d.fault(at(step.Pos), "name an item that is written", "item %q is content of the image: it is not written", name)
		case !sim.written[name]:
			sim.d.fault(at(step.Pos), fmt.Sprintf("put - write: %s before it: the crash is in the write after that", name), "no step before this crash writes %q", name)
		case len(on) != 1 || sim.v.Where(Step{On: step.On}, item) != on[0]:
			sim.d.fault(at(step.Pos), "add on: "+strings.Join(containerNames(sim.v.Containers), " or on: "), "crash is about one container and must say which")
		}
	}
	if len(on) != 1 {
		return
	}
	if c, ok := sim.v.Container(on[0]); ok && c.Remove && step.Point == "every" {
		sim.d.fault(at(step.Pos), "remove rm: true", "container %q is removed by its first crash: it can't be started again", c.Name)
	}
}

func (sim *simulation) clone(step Step) {
	c, ok := sim.v.Container(step.To)
	if !ok || !c.Deferred {
		sim.d.fault(at(step.Pos), fmt.Sprintf("declare it: containers: {%s: {deferred: true}}", step.To), "clone makes %q, which is no deferred container", step.To)
		return
	}
	if sim.state[step.To] != absent {
		sim.d.fault(at(step.Pos), "clone to another name", "clone makes %q, which is there already", step.To)
	}
	sim.set(step.To, created, step)
}

func (sim *simulation) onPod(step Step, verb Verb) {
	some := false
	for _, c := range sim.v.Containers {
		if c.Pod != step.Pod || sim.state[c.Name] == absent {
			continue
		}
		some = true
		sim.set(c.Name, after(step, verb, c, sim.state[c.Name]), step)
	}
	if !some {
		before := "run"
		if sim.v.Played(step.Pod) {
			before = "kube play: " + step.Pod
		}
		sim.d.fault(at(step.Pos), fmt.Sprintf("put - %s before it", before), "%s: no container of pod %q is there", step.Verb, step.Pod)
	}
}

// after gives the state a step leaves a container in.
func after(step Step, verb Verb, c Container, now state) state {
	next := verb.to
	switch {
	case next == 0:
		return now
	case step.Verb == "kill" && step.Signal == "USR1":
		return now // the probe does not mind it
	case step.Verb == "kill" && step.Signal != "" && step.Signal != "KILL" && restarts(c.Restart, 3):
		return running | stopped // Podman 4.3 restarts it, 5.4 does not
	case step.Verb == "crash" && step.Point == "every":
		return running
	case step.Verb == "crash" && len(step.Amid) == 0 && restarts(c.Restart, step.Code):
		next = running
	case step.Verb == "restart" && c.Remove:
		return running | absent // Podman 4.3 removes it, 5.4 restarts it
	}
	if next == stopped && c.Remove {
		return absent
	}
	return next
}

// restarts says whether a restart policy answers an exit with this code.
func restarts(policy string, code int) bool {
	if strings.HasPrefix(policy, "on-failure") {
		return code != 0
	}
	return policy == "always" || policy == "unless-stopped"
}

// imageContent is what an image has, wherever in the file it says so.
func imageContent(i *Image) Image {
	if i == nil {
		return Image{}
	}
	c := *i
	c.Pos = Position{}
	return c
}

func (sim *simulation) set(name string, to state, step Step) {
	if sim.state[name] != to {
		sim.state[name], sim.why[name] = to, step
	}
}

func mountsVolume(c Container, volume string) bool {
	return slices.ContainsFunc(c.Mounts, func(m Mount) bool { return m.Kind == VolumeMount && m.Source == volume })
}

// require reports a step that its container's state does not allow.
func (sim *simulation) require(step Step, verb Verb, name string) {
	now := sim.state[name]
	if now&verb.from != 0 {
		return
	}
	before := "run"
	c, _ := sim.v.Container(name)
	played := sim.v.Played(c.Pod)
	if played {
		before = "kube play: " + c.Pod
	}
	switch {
	case verb.from == absent:
		before = "rm"
	case now&absent != 0:
	case verb.from&paused != 0:
		before = "pause"
	case now&paused != 0:
		before = "unpause"
	case verb.from&running != 0:
		before = "start"
	case verb.from&stopped != 0:
		before = "stop"
		if verb.Name == "restore" {
			before = "checkpoint"
		}
	}
	if len(sim.v.Containers) > 1 && (!played || now&absent == 0) {
		before += ": " + name
	}
	if sim.s.Machine != "" {
		if word, ok := map[string]string{"run": "boot", "rm": "terminate"}[before]; ok {
			before = word
		}
		sim.d.fault(at(step.Pos), fmt.Sprintf("put \"- %s\" before it", before), "%s: the machine %s", step.Verb, sim.describe(name))
		return
	}
	sim.d.fault(at(step.Pos), fmt.Sprintf("put \"- %s\" before it", before), "%s: container %q %s", step.Verb, name, sim.describe(name))
}

// describe says a container's state and which step brought it about.
func (sim *simulation) describe(name string) string {
	why, ok := sim.why[name]
	since := ""
	if ok {
		since = fmt.Sprintf(" (%s, line %d)", why.Verb, why.Pos.Line)
	}
	switch now := sim.state[name]; {
	case now&absent != 0 && !ok:
		return "does not run yet"
	case now&absent != 0:
		return "is gone" + since
	case now&running != 0:
		return "runs already" + since
	case now&paused != 0:
		return "is paused" + since
	case now&stopped != 0:
		return "is stopped" + since
	default:
		return "is created, not started" + since
	}
}
