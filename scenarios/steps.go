package scenarios

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// Verb is one row of the table of steps: what a step is called, what may
// stand after it, what it needs and what it leaves. A new step is a new row
// here, and a case in the runner.
type Verb struct {
	Name  string
	Doc   string
	Event bool   // happens to a container, volume or pod; write, read and wait do not
	Bare  string // the option a plain value after the verb stands for; "" for none

	also    []string // what people write for it
	options []field[Step]
	scope   scope
	from    state // what the containers it is about must be
	to      state // what they are then; 0 for unchanged
	place   verbPlace
}

// scope says which containers a step changes.
type scope int

const (
	nothing  scope = iota // no container
	targets               // the ones Variant.Targets gives
	members               // the ones in the step's pod
	everyone              // all of the run
	users                 // the ones that mount the step's volume
	sharers               // the ones made from the same image as the step's
)

// state is a set of states a container may be in at a step; more than one
// where engines differ.
type state uint8

const (
	absent state = 1 << iota
	created
	running
	paused
	stopped

	existing = created | running | paused | stopped
	whatever = absent | existing
)

// Verbs gives the table of steps, in the order help lists them.
func Verbs() []Verb {
	on := textField("on", "the container; without: every container that is not deferred", objName, func(s *Step) *string { return &s.On })
	refused := boolField("refused", "podman is expected to refuse this", func(s *Step, b bool) { s.Refused = b })
	items := listField("items", "the data items; without: all", itemName, func(s *Step) *[]string { return &s.Items })
	volume := must(textField("volume", "the volume", objName, func(s *Step) *string { return &s.Volume }))
	volumes := boolField("volumes", "its anonymous volumes too (podman rm --volumes)", func(s *Step, b bool) { s.Volumes = b })
	to := func(doc string) field[Step] {
		return textField("to", doc, objName, func(s *Step) *string { return &s.To })
	}
	from := func(doc string) field[Step] {
		return textField("from", doc, objName, func(s *Step) *string { return &s.From })
	}
	pod := must(textField("pod", "the pod", objName, func(s *Step) *string { return &s.Pod }))
	event := func(more ...field[Step]) []field[Step] { return append([]field[Step]{on, refused}, more...) }

	return append([]Verb{
		{Name: "run", Doc: "podman run: a new container from the image", Event: true, Bare: "on", also: []string{"up"}, scope: targets, from: absent, to: running,
			options: event(
				textField("image", "an image that a commit or import step made, instead of the container's own", objName, func(s *Step) *string { return &s.Image }),
				boolField("replace", "podman run --replace: take the place of the one that is there", func(s *Step, b bool) { s.Replace = b }))},
		{Name: "create", Doc: "podman create: the container is there, no process runs in it yet", Event: true, Bare: "on", scope: targets, from: absent, to: created,
			options: event(textField("image", "an image that a commit or import step made, instead of the container's own", objName, func(s *Step) *string { return &s.Image }))},
		{Name: "write", Doc: "write data items, each with fresh content, and read them back at once", place: anywhere, Bare: "items", also: []string{"save", "put"}, scope: targets, from: running,
			options: []field[Step]{items, on, intField("times", "how many times over, each write acknowledged by itself; without: once", 1, 1000, func(s *Step) *int { return &s.Times })}},
		{Name: "read", Doc: "look for data items: a checkpoint, a column of the table", place: anywhere, Bare: "label", also: []string{"look", "check", "get"}, scope: targets, from: running,
			options: []field[Step]{must(textField("label", "the checkpoint's name", lineText, func(s *Step) *string { return &s.Label })), items, on}},
		{Name: "edit", Doc: "change image content (an item with seed: true) by hand, in the container", Bare: "items", also: []string{"modify", "change"}, scope: targets, from: running,
			options: []field[Step]{must(items), on}},
		{Name: "erase", Doc: "take items away by hand, in the container", Bare: "items", also: []string{"unlink"}, scope: targets, from: running,
			options: []field[Step]{must(items), on}},
		loadVerb(items),
		{Name: "stop", Doc: "podman stop", place: anywhere, Event: true, Bare: "on", scope: targets, from: running, to: stopped, options: event()},
		{Name: "start", Doc: "podman start: the same container again", place: anywhere, Event: true, Bare: "on", scope: targets, from: created | stopped, to: running, options: event()},
		{Name: "restart", Doc: "podman restart: the same container, a new process", Event: true, Bare: "on", also: []string{"reboot"}, scope: targets, from: created | running | stopped, to: running, options: event()},
		{Name: "kill", Doc: "podman kill: a signal to process 1, KILL unless signal says another", Event: true, Bare: "on", scope: targets, from: running, to: stopped,
			options: event(wordField("signal", "the signal", []string{"KILL", "TERM", "INT", "HUP", "QUIT", "USR1", "USR2"}, func(s *Step, w string) { s.Signal = w }))},
		{Name: "crash", Doc: "process 1 ends by itself with code (3), unasked: what a restart policy answers; with during, podman kill in the middle of a write", Event: true, Bare: "on", also: []string{"exit"}, scope: targets, from: running, to: stopped,
			options: event(intField("code", "its exit code", 0, 125, func(s *Step) *int { return &s.Code }),
				listField("during", "items in the middle of whose next write the container is killed", itemName, func(s *Step) *[]string { return &s.Amid }),
				wordField("at", "where in the write: before, mid (the default), after, or every: a sweep that kills at many points, and starts again and looks after each", []string{"before", "mid", "after", "every"}, func(s *Step, w string) { s.Point = w }),
				intField("points", "at every: how many (50)", 3, 1000, func(s *Step) *int { return &s.Points }))},
		{Name: "rm", Doc: "podman rm -f: the container and its writable layer are gone", Event: true, Bare: "on", also: []string{"remove", "delete", "down"}, scope: targets, from: existing, to: absent, options: event(volumes)},
		{Name: "pause", Doc: "podman pause", Event: true, Bare: "on", scope: targets, from: running, to: paused, options: event()},
		{Name: "unpause", Doc: "podman unpause", Event: true, Bare: "on", also: []string{"resume"}, scope: targets, from: paused, to: running, options: event()},
		{Name: "rename", Doc: "podman rename: the same container under another name", Event: true, Bare: "to", scope: targets, from: existing, options: event(must(to("the new name")))},
		{Name: "commit", Doc: "podman commit: an image of the writable layer, for run: {image: …}", Event: true, Bare: "to", scope: targets, from: existing, options: event(must(to("the image's name")))},
		{Name: "clone", Doc: "podman container clone: a second, created container; declare it under containers as deferred", Event: true, Bare: "to", scope: targets, from: existing, options: event(must(to("the declared container it becomes")))},
		{Name: "export", Doc: "podman export: the container's files as an archive", Event: true, Bare: "to", scope: targets, from: existing, options: event(must(to("the archive's name")))},
		{Name: "import", Doc: "podman import: an image from an archive, for run: {image: …}", Event: true, options: []field[Step]{must(from("the archive an export made")), must(to("the image's name")), refused}},
		{Name: "rebuild", Doc: "the image is built anew under the same tag; containers see it when they are run again", Event: true, Bare: "on", also: []string{"update", "build"}, scope: targets, from: whatever,
			options: event(mapField("files", "files the new image has: path → content", rule{}, func(s *Step) *map[string]string { return &s.Files }))},
		{Name: "rmi", Doc: "podman rmi -f: the container's image, and every container made from it; rebuild makes a new one", Event: true, Bare: "on", also: []string{"image rm"}, scope: sharers, from: whatever, to: absent, options: event()},
		{Name: "cp", Doc: "podman cp: out of the container with to, into it with from", Event: true, also: []string{"copy"}, scope: targets, from: existing,
			options: event(must(pathField("path", "the path in the container", func(s *Step) *string { return &s.Path })), to("the name of the copy"), from("the name of a copy made before"))},
		{Name: "checkpoint", Doc: "podman container checkpoint: the process, memory and all, goes to disk", Event: true, Bare: "on", scope: targets, from: running, to: stopped, options: event(to("an archive's name (--export)"))},
		{Name: "restore", Doc: "podman container restore: the process goes on where it was", Event: true, Bare: "on", scope: targets, from: stopped, to: running, options: event(from("an archive a checkpoint made (--import)"))},
		{Name: "container prune", Doc: "podman container prune: every container that is not running", Event: true, scope: everyone, from: whatever, options: []field[Step]{refused}},
		{Name: "volume create", Doc: "podman volume create: the volume anew, as volumes: declares it", Event: true, Bare: "volume", options: []field[Step]{volume, refused}},
		{Name: "volume rm", Doc: "podman volume rm", Event: true, Bare: "volume", also: []string{"volume remove", "volume delete"}, scope: users, from: absent,
			options: []field[Step]{volume, boolField("force", "also the containers that use it (--force)", func(s *Step, b bool) { s.Force = b }), refused}},
		{Name: "volume prune", Doc: "podman volume prune: every volume no container uses (before Podman 6 named ones too)", Event: true, options: []field[Step]{refused}},
		{Name: "volume export", Doc: "podman volume export: the volume's files as an archive", Event: true, Bare: "volume", options: []field[Step]{volume, must(to("the archive's name")), refused}},
		{Name: "volume import", Doc: "podman volume import: an archive's files into the volume", Event: true, Bare: "volume", options: []field[Step]{volume, must(from("the archive a volume export made")), refused}},
		{Name: "system prune", Doc: "podman system prune: containers that are not running, unused images", Event: true, scope: everyone, from: whatever,
			options: []field[Step]{boolField("volumes", "unused volumes too (--volumes)", func(s *Step, b bool) { s.Volumes = b }), refused}},
		{Name: "pod stop", Doc: "podman pod stop", Event: true, Bare: "pod", scope: members, from: created | running | stopped, to: stopped, options: []field[Step]{pod, refused}},
		{Name: "pod start", Doc: "podman pod start", Event: true, Bare: "pod", scope: members, from: created | running | stopped, to: running, options: []field[Step]{pod, refused}},
		{Name: "pod restart", Doc: "podman pod restart", Event: true, Bare: "pod", scope: members, from: created | running | stopped, to: running, options: []field[Step]{pod, refused}},
		{Name: "pod rm", Doc: "podman pod rm -f: the pod and its containers", Event: true, Bare: "pod", scope: members, from: whatever, to: absent, options: []field[Step]{pod, refused}},
		{Name: "kube play", Doc: "podman kube play: the pod and its containers, from Kubernetes YAML the lab writes of them; a volume is a persistentVolumeClaim there, a bind a hostPath", Event: true, Bare: "pod", also: []string{"play", "play kube", "kube apply"}, scope: members, from: absent, to: running, options: []field[Step]{pod, refused}},
		{Name: "kube down", Doc: "podman kube down: the pod and its containers", Event: true, Bare: "pod", also: []string{"kube delete"}, scope: members, from: existing, to: absent,
			options: []field[Step]{pod, boolField("force", "the volumes of its claims too (--force, from Podman 4.4 on)", func(s *Step, b bool) { s.Force = b }), refused}},
		{Name: "service restart", Doc: "the Podman service ends and starts again", Event: true, options: []field[Step]{refused}},
		{Name: "wait", Doc: "let time pass", place: anywhere, Bare: "for", also: []string{"sleep"},
			options: []field[Step]{must(durationField("for", "how long", maxDelay, func(s *Step) *time.Duration { return &s.Delay }))}},
	}, machineVerbs()...)
}

// needs lists the verb's required options.
func (v Verb) needs() []string {
	var out []string
	for _, o := range v.options {
		if o.required {
			out = append(out, o.name)
		}
	}
	return out
}

// usage is the shortest step that says all the verb needs.
func (v Verb) usage() string {
	needs := v.needs()
	switch {
	case len(needs) == 0:
		return "- " + v.Name
	case len(needs) == 1 && needs[0] == v.Bare:
		return fmt.Sprintf("- %s: %s", v.Name, strings.ToUpper(v.Bare))
	}
	for i, n := range needs {
		needs[i] = n + ": …"
	}
	return fmt.Sprintf("- %s: {%s}", v.Name, strings.Join(needs, ", "))
}

func (d *decoder) steps(n *yaml.Node) []Step {
	if n.Kind != yaml.SequenceNode {
		d.brokenSteps = true
		d.fault(n, `write each step on a line that starts with "- "`, "steps must be a list, not %s", kindOf(n))
		return nil
	}
	if len(n.Content) > maxSteps {
		d.brokenSteps = true
		d.fault(n, "split it into several scenarios", "too many steps: more than %d", maxSteps)
		return nil
	}
	var out []Step
	for _, item := range n.Content {
		s, ok := d.step(item)
		if !ok {
			d.brokenSteps = true
			continue
		}
		out = append(out, s)
	}
	return out
}

func (d *decoder) step(n *yaml.Node) (Step, bool) {
	key, value := n, (*yaml.Node)(nil)
	if n.Kind == yaml.MappingNode {
		entries := d.entries(n, "a step", "key")
		if len(entries) == 0 {
			if len(n.Content) == 0 {
				d.fault(n, "write a verb: - run", "this step says nothing")
			}
			return Step{}, false
		}
		if len(entries) > 1 {
			d.fault(entries[1].key, fmt.Sprintf("indent it below %[1]s:, or write - %[1]s: {%[2]s: …}", entries[0].key.Value, entries[1].key.Value),
				"a step is one verb, but %q stands beside %q", entries[1].key.Value, entries[0].key.Value)
			return Step{}, false
		}
		key, value = entries[0].key, entries[0].value
		if value.Tag == "!!null" {
			value = nil
		}
	}
	if key.Kind != yaml.ScalarNode || key.Tag == "!!null" {
		d.fault(key, "write a verb: - run", "a step must be a verb, not %s", kindOf(key))
		return Step{}, false
	}
	verb, ok := d.verbs[key.Value]
	if !ok {
		d.unknownVerb(key)
		return Step{}, false
	}
	s, faults := Step{Pos: pos(key), Verb: key.Value}, len(d.errs)
	if verb.Name == "crash" {
		s.Code = 3
	}
	d.nodes[s.Pos] = value
	switch {
	case value == nil:
		if needs := verb.needs(); len(needs) > 0 {
			d.fault(key, "write "+verb.usage(), "%s needs %s", verb.Name, strings.Join(needs, " and "))
		}
	case value.Kind == yaml.MappingNode:
		readMap(d, value, verb.Name, verb.options, &s)
	case verb.Bare == "":
		d.fault(value, "write "+verb.usage(), "%s takes no %s", verb.Name, kindOf(value))
	case !slices.Equal(verb.needs(), []string{verb.Bare}) && len(verb.needs()) > 0:
		d.fault(value, "write "+verb.usage(), "%s needs %s", verb.Name, strings.Join(verb.needs(), " and "))
	default:
		for _, o := range verb.options {
			if o.name == verb.Bare {
				o.read(d, value, &s)
			}
		}
	}
	if verb.Name == "crash" && len(d.errs) == faults {
		d.crash(key, &s)
	}
	if verb.Name == "cp" && (s.To == "") == (s.From == "") && len(d.errs) == faults {
		d.fault(key, "write to: to copy out, from: to copy in", "cp needs to or from, one of them")
	}
	return s, len(d.errs) == faults
}

// crash holds a crash's options against each other.
func (d *decoder) crash(key *yaml.Node, s *Step) {
	switch {
	case len(s.Amid) == 0 && (s.Point != "" || s.Points != 0):
		d.fault(key, "add during: and the item that is being written", "crash says where in a write, but not in which")
	case len(s.Amid) > 0 && s.Code != 3:
		d.fault(key, "remove code", "a container killed in the middle of a write has no exit code of its own")
	case s.Points != 0 && s.Point != "every":
		d.fault(key, "write at: every", "points are for a sweep")
	case len(s.Amid) == 0:
		return
	}
	s.Code = 0
	if s.Point == "" {
		s.Point = "mid"
	}
	if s.Point == "every" && s.Points == 0 {
		s.Points = 50
	}
}

func (d *decoder) unknownVerb(key *yaml.Node) {
	if len(d.errs) >= maxFaults {
		return
	}
	word := strings.TrimSpace(strings.TrimPrefix(key.Value, "podman "))
	var known []string
	for _, v := range Verbs() {
		known = append(known, v.Name)
		if slices.Contains(v.also, strings.ToLower(word)) {
			word = v.Name
		}
	}
	suggestion := ""
	if near := nearest(word, known); near != "" {
		suggestion = fmt.Sprintf("did you mean %q?", near)
	} else if first, rest, ok := strings.Cut(word, " "); ok && slices.Contains(known, first) {
		suggestion = fmt.Sprintf("options stand in braces: - %s: {%s: …}", first, strings.Trim(strings.Fields(rest + " x")[0], "-:"))
	} else {
		suggestion = "the steps are: " + strings.Join(known[:9], ", ") + " …"
	}
	d.fault(key, suggestion, "there is no step %s", strconv.Quote(shorten(key.Value)))
}

// stepSchema lists the forms of a step.
func stepSchema() schema {
	var bare []any
	forms := []any{}
	for _, v := range Verbs() {
		if len(v.needs()) == 0 {
			bare = append(bare, v.Name)
		}
		var values []any
		if len(v.needs()) == 0 {
			values = append(values, schema{"type": "null"})
		}
		for _, o := range v.options {
			if o.name == v.Bare && (len(v.needs()) == 0 || slices.Equal(v.needs(), []string{v.Bare})) {
				values = append(values, o.schema)
			}
		}
		values = append(values, objectSchema(v.options))
		forms = append(forms, schema{
			"type": "object", "required": []string{v.Name}, "additionalProperties": false,
			"properties": schema{v.Name: schema{"description": v.Doc, "anyOf": values}},
		})
	}
	return schema{"type": "array", "minItems": 1, "items": schema{"anyOf": append([]any{schema{"enum": bare}}, forms...)}}
}
