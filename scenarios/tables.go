package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// The key tables of containers, images and data items. A new key is a new
// row here.

// containerFields: what a container can say, under containers: or directly
// in a scenario or variant with one container.
func containerFields() []field[Container] {
	return []field[Container]{
		{name: "mounts", doc: "what is mounted where; none: only the writable layer", schema: schema{"$ref": "#/$defs/mounts"},
			read: func(d *decoder, n *yaml.Node, c *Container) { d.mounts(n, &c.Mounts) }},
		{name: "disks", doc: "the disks of a virtual machine", schema: schema{"$ref": "#/$defs/disks"},
			read: func(d *decoder, n *yaml.Node, c *Container) { c.Disks = d.disks(n) }},
		{name: "image", doc: "what is added to the probe image: VOLUME lines, files, USER", schema: objectSchema(imageFields()),
			read: func(d *decoder, n *yaml.Node, c *Container) {
				c.Image = &Image{Pos: pos(n)}
				readMap(d, n, "image", imageFields(), c.Image)
			}},
		boolField("read_only", "podman run --read-only", func(c *Container, b bool) { c.ReadOnly = b }),
		boolField("read_only_tmpfs", "podman run --read-only-tmpfs", func(c *Container, b bool) { c.ReadOnlyTmpfs = &b }),
		textField("user", "podman run --user, as uid or uid:gid", userText, func(c *Container) *string { return &c.User }),
		textField("hostname", "podman run --hostname", hostText, func(c *Container) *string { return &c.Hostname }),
		mapField("env", "environment variables", envName, func(c *Container) *map[string]string { return &c.Env }),
		boolField("rm", "podman run --rm: removed as soon as it stops", func(c *Container, b bool) { c.Remove = b }),
		textField("restart", "podman run --restart: no, on-failure, on-failure:N, always or unless-stopped", restartText, func(c *Container) *string { return &c.Restart }),
		wordField("image_volume", "podman run --image-volume: what becomes of the image's VOLUME lines", []string{"anonymous", "tmpfs", "ignore"}, func(c *Container, s string) { c.ImageVolume = s }),
		listField("volumes_from", "podman run --volumes-from: containers whose volumes it mounts too", objName, func(c *Container) *[]string { return &c.VolumesFrom }),
		listField("secrets", "secrets at /run/secrets/NAME", objName, func(c *Container) *[]string { return &c.Secrets }),
		textField("pod", "the pod it runs in", objName, func(c *Container) *string { return &c.Pod }),
		{name: "health", doc: "podman run --health-cmd: live asks whether the process answers, {ready: PATH} whether the state at that path is there", schema: schema{"anyOf": []any{schema{"enum": []any{"live"}}, objectSchema(healthFields())}},
			read: func(d *decoder, n *yaml.Node, c *Container) {
				c.Health = &HealthCheck{}
				if n.Kind == yaml.MappingNode {
					readMap(d, n, "health", healthFields(), c.Health)
				} else if s, ok := d.scalar(n, "health", "live or {ready: PATH}"); ok && s != "live" {
					d.fault(n, "write live, or {ready: /var/lib/app/app.db}", "health can't be %q", shorten(s))
				}
			}},
		intField("replicas", "how many of this container: NAME-1, NAME-2 …; a step on NAME is about all of them", 1, 10, func(c *Container) *int { return &c.Replicas }),
		boolField("deferred", "not run by a bare run: only where a step says so, with on", func(c *Container, b bool) { c.Deferred = b }),
	}
}

func healthFields() []field[HealthCheck] {
	return []field[HealthCheck]{must(pathField("ready", "the state it must find there", func(h *HealthCheck) *string { return &h.Ready }))}
}

var restartText = rule{re: regexp.MustCompile(`^(no|always|unless-stopped|on-failure(:[0-9]{1,2})?)$`), want: "no, on-failure, on-failure:3, always or unless-stopped", example: "on-failure:3",
	fix: func(s string) string {
		return nearest(s, []string{"no", "always", "unless-stopped", "on-failure"})
	}}

func imageFields() []field[Image] {
	return []field[Image]{
		{name: "volumes", doc: "VOLUME lines of the image", schema: schema{"anyOf": []any{pathSchema(), schema{"type": "array", "items": pathSchema()}}},
			read: func(d *decoder, n *yaml.Node, i *Image) {
				for _, e := range d.elements(n, "volumes") {
					if p, ok := d.path(e, "a volume of the image"); ok {
						i.Volumes = append(i.Volumes, p)
					}
				}
			}},
		mapField("files", "files in the image: path → content", rule{}, func(i *Image) *map[string]string { return &i.Files }),
		textField("user", "USER of the image, as uid or uid:gid", userText, func(i *Image) *string { return &i.User }),
	}
}

// containersField reads containers: {NAME: …} over the ones that are there.
// In a scenario they are declared; in a variant (declared: true) they must
// exist and what is said replaces what the scenario said, key by key.
func (d *decoder) containers(n *yaml.Node, list []Container, declared bool) []Container {
	for _, e := range d.entries(n, "containers", "container") {
		name, ok := d.text(e.key, "a container's name", objName)
		if !ok {
			continue
		}
		i := slices.IndexFunc(list, func(c Container) bool { return c.Name == name })
		if i < 0 && declared {
			var known []string
			for _, c := range list {
				known = append(known, c.Name)
			}
			d.fault(e.key, suggest(name, known), "the scenario has no container %q", name)
			continue
		}
		if i < 0 {
			list = append(list, Container{Pos: pos(e.key), Name: name})
			i = len(list) - 1
			d.nodes[pos(e.key)] = e.value
		}
		readMap(d, e.value, "container "+strconv.Quote(name), containerFields(), &list[i])
	}
	return list
}

// itemKind is one row of the table of data items.
type itemKind struct {
	kind  ItemKind
	doc   string
	place func(d *decoder, n *yaml.Node) (string, bool) // reads what stands after the kind
	shape schema
	own   []string // keys only this kind has
}

func itemKinds() []itemKind {
	path := func(what string) func(d *decoder, n *yaml.Node) (string, bool) {
		return func(d *decoder, n *yaml.Node) (string, bool) { return d.path(n, what) }
	}
	return append([]itemKind{
		{File, "a file at this path", path("file"), pathSchema(), []string{"mode", "size", "seed"}},
		{SQLite, "rows in the SQLite database at this path", path("sqlite"), pathSchema(), []string{"rows", "journal", "synchronous"}},
		{Memory, "a value of this name in the memory of process 1", func(d *decoder, n *yaml.Node) (string, bool) {
			return d.text(n, "memory", itemName)
		}, itemName.schema(), nil},
		{Fact, "what the kernel says of itself, or env:NAME, a variable of the environment of process 1; a write only notes it", func(d *decoder, n *yaml.Node) (string, bool) {
			if name, ok := strings.CutPrefix(n.Value, FactEnv); ok && n.Kind == yaml.ScalarNode && envName.re.MatchString(name) {
				return n.Value, true
			}
			return d.word(n, "fact", append(facts(), FactEnv+"NAME"))
		}, schema{"anyOf": []any{schema{"enum": facts()}, schema{"type": "string", "pattern": "^" + FactEnv + strings.TrimPrefix(envName.re.String(), "^")}}}, nil},
		{Transcript, "a conversation as JSON lines at this path; one write is one turn", path("transcript"), pathSchema(), []string{"mode", "size", "persist"}},
		{Cache, "a file at this path that can be worked out again", path("cache"), pathSchema(), []string{"mode", "size", "work"}},
		{Health, "what podman healthcheck run says of the container of this name, compared with what it said at the write", func(d *decoder, n *yaml.Node) (string, bool) {
			return d.text(n, "health", objName)
		}, objName.schema(), nil},
	}, append(serviceItemKinds(), agentKind())...)
}

// agentKind is the row of an agent, which can be at a path and in a service.
func agentKind() itemKind {
	place := func(d *decoder, n *yaml.Node) (string, bool) {
		if strings.HasPrefix(n.Value, "/") {
			return d.path(n, "agent")
		}
		return d.text(n, "agent", tableText)
	}
	return itemKind{Agent, "an agent with its transcript at this path and its notes beside it, or with service all of it in this collection of a database; one write is a day of work",
		place, schema{"anyOf": []any{pathSchema(), tableText.schema()}}, []string{"mode", "rows", "persist", "tasks", "service"}}
}

// itemFields are the keys beside the kind; which kinds have them stands in
// itemKinds, the rest is for all.
func itemFields() []field[Item] {
	return []field[Item]{
		wordField("mode", "how it is written", []string{string(Plain), string(Truncate), string(Fsync), string(Atomic), string(Append), string(Rename), string(FsyncRename)}, func(i *Item, s string) { i.Mode = WriteMode(s) }),
		sizeField("size", "bytes to write, like 4096, 64KiB or 10MiB; without: a short note", 1, func(i *Item) *int { return &i.Size }),
		pathField("tasks", "the list of an agent's tasks, one a line, in the image: look at PATH", func(i *Item) *string { return &i.Tasks }),
		wordField("persist", "a turn is saved before (the default) or after its answer is shown", []string{"before", "after"}, func(i *Item, s string) { i.Persist = s }),
		sizeField("work", "bytes hashed to work it out, like 64MiB: what a rebuild costs", 1, func(i *Item) *int { return &i.Work }),
		intField("rows", "rows one write adds, tasks an agent does a day; without: 1", 1, 100_000, func(i *Item) *int { return &i.Rows }),
		wordField("journal", "SQLite's journal_mode; the database then stays open, as a service keeps it", []string{"wal", "delete"}, func(i *Item, s string) { i.Journal = s }),
		wordField("synchronous", "SQLite's synchronous; the database then stays open, as a service keeps it", []string{"off", "normal", "full", "extra"}, func(i *Item, s string) { i.Synchronous = s }),
		boolField("seed", "it is content of the image, never written: survived then means as the image has it", func(i *Item, b bool) { i.Seed = b }),
		textField("service", "the service it is in; without: the only one that fits", tableText, func(i *Item) *string { return &i.Service }),
		textField("on", "the container it is written in", objName, func(i *Item) *string { return &i.On }),
		{name: "acceptable_loss", doc: "how much of it its owner can do without: none, all, or a time like 1m", schema: schema{"anyOf": []any{schema{"enum": []any{"none", "all"}}, schema{"type": "string", "pattern": durationPattern}}},
			read: func(d *decoder, n *yaml.Node, i *Item) {
				s, ok := d.scalar(n, "acceptable_loss", "none, all or a time like 1m")
				if !ok {
					return
				}
				within, err := parseDuration(s)
				switch {
				case s == "none":
					i.AcceptableLoss = &Loss{}
				case s == "all":
					i.AcceptableLoss = &Loss{All: true}
				case err == nil && within > 0:
					i.AcceptableLoss = &Loss{Within: within}
				default:
					d.fault(n, suggest(s, []string{"none", "all", "1m"}), "acceptable_loss must be none, all or a time like 1m, not %q", shorten(s))
				}
			}},
		wordField("rebuild", "how it can be made anew", []string{"auto", "by hand"}, func(i *Item, s string) { i.Rebuild = s }),
	}
}

const maxItemSize = 1 << 30

// FactEnv begins the fact that is a variable of the environment.
const FactEnv = "env:"

// facts are what the kernel can be asked.
func facts() []string { return []string{"boot-id", "hostname"} }

// sizeField is a number of bytes, at least least.
func sizeField[T any](name, doc string, least int, at func(*T) *int) field[T] {
	return field[T]{name: name, doc: doc, schema: schema{"type": []any{"integer", "string"}},
		read: func(d *decoder, n *yaml.Node, into *T) {
			s, ok := d.scalar(n, name, "a number of bytes")
			if !ok {
				return
			}
			size, err := parseSize(s)
			if err != nil || size < least || size > maxItemSize {
				d.fault(n, "write it like 4096, 64KiB or 10MiB", "%s must be a number of bytes up to 1GiB, not %q", name, shorten(s))
				return
			}
			*at(into) = size
		}}
}

func parseSize(s string) (int, error) {
	unit := 1
	for suffix, u := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if number, ok := strings.CutSuffix(s, suffix); ok {
			s, unit = strings.TrimSpace(number), u
			break
		}
	}
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n) * unit, err
}

func itemKindNames() []string {
	var out []string
	for _, k := range itemKinds() {
		out = append(out, string(k.kind))
	}
	return out
}

func (d *decoder) data(n *yaml.Node) []Item {
	var out []Item
	for _, e := range d.entries(n, "data", "item") {
		if _, ok := d.text(e.key, "an item's name", itemName); !ok {
			continue
		}
		out = append(out, d.item(e)) // a faulty one too: its name is defined
	}
	return out
}

func (d *decoder) item(e entry) Item {
	item := Item{Pos: pos(e.key), Name: e.key.Value}
	d.nodes[item.Pos] = e.value
	if e.value.Kind != yaml.MappingNode {
		suggestion := "write it as {file: /var/lib/app/note.txt}"
		if strings.HasPrefix(e.value.Value, "/") {
			suggestion = fmt.Sprintf("did you mean {file: %s}?", shorten(e.value.Value))
		}
		d.fault(e.value, suggestion, "item %q must say its kind and place, not %s", item.Name, kindOf(e.value))
		return item
	}
	kinds, fields := itemKinds(), itemFields()
	var kind *itemKind
	keys := map[string]*yaml.Node{}
	unknown := false
	for _, part := range d.entries(e.value, "item "+strconv.Quote(item.Name), "key") {
		key := part.key.Value
		if i := slices.IndexFunc(kinds, func(k itemKind) bool { return string(k.kind) == key }); i >= 0 {
			if kind != nil {
				d.fault(part.key, "make it two items", "an item is of one kind: %s or %s", kind.kind, key)
				continue
			}
			kind = &kinds[i]
			item.Kind = kind.kind
			item.Path, _ = kind.place(d, part.value)
			continue
		}
		i := slices.IndexFunc(fields, func(f field[Item]) bool { return f.name == key })
		if i < 0 {
			unknown = true
			d.unknownKey(part.key, "item "+strconv.Quote(item.Name), append(itemKindNames(), names(fields)...))
			continue
		}
		keys[key] = part.key
		fields[i].read(d, part.value, &item)
	}
	if kind == nil {
		if !unknown {
			d.fault(e.value, oneOf(itemKindNames()), "item %q must say its kind", item.Name)
		}
		return item
	}
	for _, other := range kinds {
		for _, key := range other.own {
			if at := keys[key]; at != nil && !slices.Contains(kind.own, key) {
				d.fault(at, "remove it", "%s is for %s items, not for %s", key, other.kind, kind.kind)
				delete(keys, key) // other kinds may have it too
			}
		}
	}
	if (item.Kind == SQLite || item.Kind == Row || item.Kind == Agent) && item.Rows == 0 {
		item.Rows = 1
	}
	switch {
	case item.Mode != "" || !slices.Contains(kind.own, "mode"):
	case item.Kind == Transcript:
		item.Mode = Append
	case item.Kind == Agent:
		item.Mode = Atomic
	default:
		item.Mode = Plain
	}
	if item.Kind.InTurns() && item.Persist == "" {
		item.Persist = "before"
	}
	if item.Kind == Health {
		item.On = item.Path
	}
	if item.Kind == Agent && item.Path != "" {
		d.agent(item)
	}
	return item
}

// agent holds what an agent says of itself against each other.
func (d *decoder) agent(item Item) {
	switch inFolder := strings.HasPrefix(item.Path, "/"); {
	case inFolder && item.Service != "":
		d.fault(d.find(item.Pos, "service", item.Service), "name the collection it keeps everything in: {agent: memory, service: "+item.Service+"}", "an agent's memory is at a path or in a service, not in both")
	case !inFolder && item.Service == "":
		d.fault(at(item.Pos), "write {agent: /home/agent/transcript.jsonl}, or add service: and its name", "an agent whose memory is at no path needs a service")
	}
	if item.Tasks == "" {
		d.fault(at(item.Pos), "add tasks: /tasks.txt, and image: {files: {/tasks.txt: look at /etc/passwd}}", "an agent needs tasks")
	}
}

// itemSchema lists one form per kind.
func itemSchema() schema {
	var own []string
	for _, k := range itemKinds() {
		own = append(own, k.own...)
	}
	var forms []any
	for _, k := range itemKinds() {
		var fields []field[Item]
		for _, f := range itemFields() {
			if !slices.Contains(own, f.name) || slices.Contains(k.own, f.name) {
				fields = append(fields, f)
			}
		}
		place := field[Item]{name: string(k.kind), doc: k.doc, required: true, schema: k.shape}
		forms = append(forms, objectSchema(append([]field[Item]{place}, fields...)))
	}
	return schema{"type": "object", "propertyNames": schema{"pattern": itemName.re.String()}, "additionalProperties": schema{"anyOf": forms}}
}

// maxDelay bounds a wait step: a shared file should not hold a class up.
const maxDelay = 10 * time.Minute
