package scenarios

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Paths, mounts and volumes: everything that says where bytes lie. What a
// file may name on the host is decided here and nowhere else.

var pathRule = regexp.MustCompile(`^(/[^/:,\t\n]+)+$`)

func pathSchema() schema { return schema{"type": "string", "pattern": pathRule.String()} }

// path gives an absolute path inside a container. Colons and commas are
// refused because podman's -v and --mount can't carry them.
func (d *decoder) path(n *yaml.Node, what string) (string, bool) {
	p, ok := d.scalar(n, what, "an absolute path")
	if !ok {
		return "", false
	}
	clean := path.Clean("/" + p)
	suggestion := "write it like /var/lib/app/note.txt, without : and ,"
	if pathRule.MatchString(clean) {
		suggestion = fmt.Sprintf("did you mean %q?", clean)
	}
	switch {
	case slices.Contains(strings.Split(p, "/"), ".."):
		d.fault(n, suggestion, "%s can't contain ..: %q", what, shorten(p))
	case !strings.HasPrefix(p, "/"):
		d.fault(n, suggestion, "%s must be an absolute path in the container, not %q", what, shorten(p))
	case p == "/":
		d.fault(n, "name a folder below it, like /var/lib/app", "%s can't be the container's whole file system", what)
	case p != clean || !pathRule.MatchString(p) || len(p) > 1000:
		d.fault(n, suggestion, "%s is no plain path: %q", what, shorten(p))
	default:
		return p, true
	}
	return "", false
}

// mountKind is one row of the table of mount kinds.
type mountKind struct {
	kind    MountKind
	doc     string
	source  func(d *decoder, n *yaml.Node) (string, bool) // reads what stands after the kind; nil: that is the target
	schema  schema                                        // of what stands after the kind
	options []string                                      // Podman's words; one that ends in = takes a value
	subpath bool
}

// mountKinds: the key that names the kind carries the source, or the target
// where there is no source.
func mountKinds() []mountKind {
	access := []string{"ro", "rw", "exec", "noexec", "nodev", "nosuid"}
	owner := append([]string{"U", "z", "Z", "O"}, access...)
	volume := append([]string{"nocopy", "copy"}, owner...)
	return []mountKind{
		{VolumeMount, "a named volume: podman run -v NAME:TARGET", func(d *decoder, n *yaml.Node) (string, bool) {
			return d.text(n, "a volume", objName)
		}, objName.schema(), volume, true},
		{Anonymous, "a volume without a name: podman run -v TARGET", nil, pathSchema(), volume, false},
		{Bind, "a folder of the host: podman run -v FOLDER:TARGET; a plain name is a folder the lab makes in its own run folder",
			func(d *decoder, n *yaml.Node) (string, bool) { return d.hostFolder(n, "bind") }, schema{"type": "string"}, append([]string{"private", "rprivate", "slave", "rslave"}, owner...), false},
		{Tmpfs, "memory behind a path: podman run --tmpfs TARGET", nil, pathSchema(),
			append([]string{"size=", "mode=", "tmpcopyup", "notmpcopyup"}, access...), false},
		{ImageMount, "another image's files: podman run --mount type=image; an image that a commit or import step makes, or probe",
			func(d *decoder, n *yaml.Node) (string, bool) { return d.text(n, "an image", objName) },
			objName.schema(), []string{"rw", "ro"}, false},
		{EmptyDir, "an emptyDir volume of a pod that kube play makes: containers of the pod that name the same one share it",
			func(d *decoder, n *yaml.Node) (string, bool) { return d.text(n, "an emptydir", objName) },
			objName.schema(), []string{OptionMemory, "rw", "ro"}, false},
	}
}

func mountKindNames() []string {
	var out []string
	for _, k := range mountKinds() {
		out = append(out, string(k.kind))
	}
	return out
}

// opposites can't stand together in a mount's options.
var opposites = [][2]string{{"ro", "rw"}, {"copy", "nocopy"}, {"z", "Z"}, {"exec", "noexec"}, {"tmpcopyup", "notmpcopyup"}}

func (d *decoder) mounts(n *yaml.Node, into *[]Mount) {
	*into = nil
	if n.Tag == "!!null" {
		return
	}
	if n.Kind != yaml.SequenceNode {
		d.fault(n, "write it as a list: [{volume: mydata, target: /var/lib/app}]", "mounts must be a list, not %s", kindOf(n))
		return
	}
	targets := map[string]int{}
	for _, item := range n.Content {
		m, ok := d.mount(item)
		if !ok {
			d.brokenStorage = true
			continue
		}
		if line, twice := targets[m.Target]; twice {
			d.fault(item, fmt.Sprintf("the first is on line %d", line), "two mounts at %s", m.Target)
		}
		targets[m.Target] = item.Line
		*into = append(*into, m)
	}
}

func (d *decoder) mount(n *yaml.Node) (Mount, bool) {
	m := Mount{Pos: pos(n)}
	faults := len(d.errs)
	if n.Kind != yaml.MappingNode {
		suggestion := "write it as {volume: mydata, target: /var/lib/app}"
		if src, target, ok := strings.Cut(n.Value, ":"); ok && objName.re.MatchString(src) {
			target, _, _ = strings.Cut(target, ":")
			suggestion = fmt.Sprintf("did you mean {volume: %s, target: %s}?", src, target)
		}
		d.fault(n, suggestion, "a mount must be a mapping, not %s", kindOf(n))
		return m, false
	}
	var kind *mountKind
	var kindKey, optionsNode, subpath *yaml.Node
	kinds := mountKinds()
	for _, e := range d.entries(n, "a mount", "key") {
		switch e.key.Value {
		case "target":
			m.Target, _ = d.path(e.value, "target")
		case "options":
			optionsNode = e.value
		case "subpath":
			subpath = e.key
			m.Subpath, _ = d.text(e.value, "subpath", objName)
		default:
			i := slices.IndexFunc(kinds, func(k mountKind) bool { return string(k.kind) == e.key.Value })
			switch {
			case i < 0:
				d.unknownMountKey(e.key)
			case kind != nil:
				d.fault(e.key, "make it two mounts", "a mount is of one kind: %s or %s", kind.kind, e.key.Value)
			default:
				kind, kindKey = &kinds[i], e.key
				m.Kind = kind.kind
				if kind.source == nil {
					if m.Target != "" {
						d.fault(e.key, "remove target:", "%s already says the target", kind.kind)
					}
					m.Target, _ = d.path(e.value, string(kind.kind))
				} else {
					m.Source, _ = kind.source(d, e.value)
				}
			}
		}
	}
	if len(d.errs) > faults {
		return m, false
	}
	if kind == nil {
		d.fault(n, oneOf(mountKindNames()), "a mount must say its kind")
		return m, false
	}
	if m.Target == "" {
		d.fault(n, "add target: /var/lib/app", "a mount must say its target: where in the container")
	}
	if subpath != nil && !kind.subpath {
		d.fault(subpath, "remove it", "subpath is for volumes, not for %s", kindKey.Value)
	}
	if optionsNode != nil {
		m.Options = d.mountOptions(optionsNode, *kind)
	}
	return m, len(d.errs) == faults
}

func (d *decoder) unknownMountKey(key *yaml.Node) {
	known := append(mountKindNames(), "target", "options", "subpath")
	suggestion := suggest(key.Value, known)
	switch key.Value {
	case "persistentVolumeClaim":
		suggestion = "write volume: and the claim's name: podman keeps a claim's data in a volume of that name"
	case "hostPath":
		suggestion = "write bind: and a folder's name"
	}
	if key.Value == "type" || key.Value == "source" || key.Value == "src" {
		suggestion = "the kind is the key: {volume: mydata, target: /var/lib/app}"
	}
	what := "mount kind"
	if _, forbid := forbidden[key.Value]; forbid {
		d.unknownKey(key, "a mount", known)
		return
	}
	if near := nearest(key.Value, known); near == "target" || near == "options" || near == "subpath" {
		what = "key"
	}
	d.fault(key, suggestion, "unknown %s %q", what, key.Value)
}

var optionValue = regexp.MustCompile(`^[A-Za-z0-9%.]{1,20}$`)

func (d *decoder) mountOptions(n *yaml.Node, kind mountKind) []string {
	var out []string
	at := map[string]*yaml.Node{}
	for _, o := range d.elements(n, "options") {
		s, ok := d.scalar(o, "an option", "one of "+strings.Join(kind.options, ", "))
		if !ok {
			continue
		}
		word, value, hasValue := strings.Cut(s, "=")
		if hasValue {
			word += "="
		}
		switch {
		case strings.Contains(s, ","):
			d.fault(o, fmt.Sprintf("did you mean [%s]?", strings.ReplaceAll(s, ",", ", ")), "options are a list")
		case !slices.Contains(kind.options, word):
			d.fault(o, suggest(s, kind.options), "a mount of kind %s has no option %q", kind.kind, s)
		case hasValue && !optionValue.MatchString(value):
			d.fault(o, "write it like size=16m", "%s has no plain value", word)
		case at[word] != nil:
			d.fault(o, "remove one", "option %q stands here twice", s)
		default:
			at[word] = o
			out = append(out, s)
		}
	}
	for _, pair := range opposites {
		if at[pair[0]] != nil && at[pair[1]] != nil {
			d.fault(at[pair[1]], "keep one", "%s and %s contradict each other", pair[0], pair[1])
		}
	}
	return out
}

// hostFolder gives a plain folder name, or an absolute host path the person at
// the command line allowed.
func (d *decoder) hostFolder(n *yaml.Node, what string) (string, bool) {
	p, ok := d.scalar(n, what, "a folder name")
	if !ok {
		return "", false
	}
	switch {
	case slices.Contains(strings.Split(p, "/"), ".."):
		d.fault(n, "use a plain name like appdata: a folder the lab makes for the run", "%s can't leave the run's folder: %q", what, shorten(p))
	case strings.HasPrefix(p, "/"):
		if !pathRule.MatchString(p) || path.Clean(p) != p {
			d.fault(n, "use a plain name like appdata", "%s is no plain path: %q", what, shorten(p))
			return "", false
		}
		for _, allowed := range d.opts.AllowHostPaths {
			allowed = path.Clean(allowed)
			if p == allowed || strings.HasPrefix(p, strings.TrimSuffix(allowed, "/")+"/") {
				return p, true
			}
		}
		d.fault(n, "use a plain name like appdata, or allow it: --allow-host-path "+shorten(p), "%s names a path of the host, which is not allowed: %q", what, shorten(p))
	case !objName.re.MatchString(p):
		suggestion := "use a plain name like appdata"
		if fixed := slug(p); objName.re.MatchString(fixed) {
			suggestion = fmt.Sprintf("did you mean %q?", fixed)
		}
		d.fault(n, suggestion, "%s must be a plain folder name, not %q", what, shorten(p))
	default:
		return p, true
	}
	return "", false
}

// mountSchema lists one form per kind.
func mountSchema() schema {
	var kinds []any
	for _, k := range mountKinds() {
		var plain []string
		forms := []any{}
		for _, o := range k.options {
			if name, ok := strings.CutSuffix(o, "="); ok {
				forms = append(forms, schema{"type": "string", "pattern": "^" + name + `=[A-Za-z0-9%.]{1,20}$`})
			} else {
				plain = append(plain, o)
			}
		}
		word := schema{"anyOf": append(forms, schema{"enum": plain})}
		first := schema{"description": k.doc}
		for key, v := range k.schema {
			first[key] = v
		}
		properties := schema{
			string(k.kind): first,
			"options":      schema{"anyOf": []any{word, schema{"type": "array", "items": word, "uniqueItems": true}}},
		}
		required := []string{string(k.kind)}
		if k.source != nil {
			properties["target"] = pathSchema()
			required = append(required, "target")
		}
		if k.subpath {
			properties["subpath"] = objName.schema()
		}
		kinds = append(kinds, schema{"type": "object", "properties": properties, "required": required, "additionalProperties": false})
	}
	return schema{"type": "array", "items": schema{"anyOf": kinds}}
}

// volumeFields: what `volumes: {NAME: …}` can say.
func volumeFields() []field[Volume] {
	return []field[Volume]{
		boolField("create", "made beforehand with podman volume create; otherwise the first run makes it", func(v *Volume, b bool) { v.Create = b }),
		{name: "options", doc: "driver options: {type: tmpfs, device: tmpfs, o: size=16m} or {type: none, o: bind, device: FOLDER}",
			schema: objectSchema(volumeOptionFields()),
			read: func(d *decoder, n *yaml.Node, v *Volume) {
				v.Options = map[string]string{}
				faults := len(d.errs)
				readMap(d, n, "options", volumeOptionFields(), &v.Options)
				v.Create = true // podman run can't give options: only volume create can
				if len(d.errs) == faults {
					d.volumeOptions(n, v.Options)
				}
			}},
	}
}

func volumeOptionFields() []field[map[string]string] {
	set := func(key string) func(*map[string]string, string) {
		return func(m *map[string]string, s string) { (*m)[key] = s }
	}
	return []field[map[string]string]{
		wordField("type", "what is mounted", []string{"tmpfs", "none"}, set("type")),
		{name: "device", doc: "tmpfs, or for type none the folder, named like a bind", schema: schema{"type": "string"},
			read: func(d *decoder, n *yaml.Node, m *map[string]string) {
				if p, ok := d.hostFolder(n, "device"); ok {
					(*m)["device"] = p
				}
			}},
		{name: "o", doc: "mount options", schema: schema{"type": "string", "pattern": `^[a-z0-9=%,]{1,60}$`},
			read: func(d *decoder, n *yaml.Node, m *map[string]string) {
				if s, ok := d.text(n, "o", rule{re: regexp.MustCompile(`^[a-z0-9=%,]{1,60}$`), want: "mount options", example: "size=16m"}); ok {
					(*m)["o"] = s
				}
			}},
	}
}

// volumeOptions refuses what would mount anything else than memory or a
// folder: a block device, an image file, a network share.
func (d *decoder) volumeOptions(n *yaml.Node, o map[string]string) {
	words := strings.Split(o["o"], ",")
	switch {
	case o["type"] == "tmpfs" && o["device"] != "tmpfs":
		d.fault(n, "add device: tmpfs", "a tmpfs volume's device is tmpfs")
	case o["type"] == "none" && (!slices.Contains(words, "bind") || o["device"] == ""):
		d.fault(n, "write {type: none, o: bind, device: appdata}", "a volume of type none needs o: bind and a device")
	case o["type"] == "" && len(o) > 0:
		d.fault(n, "add type: tmpfs or type: none", "volume options need a type")
	}
	for _, w := range words {
		key, _, _ := strings.Cut(w, "=")
		if !slices.Contains([]string{"", "bind", "size", "mode", "uid", "gid", "ro", "rw", "noexec", "nodev", "nosuid"}, key) {
			d.fault(n, "use size=, mode=, uid=, gid=, ro, or bind for a folder", "volume options can't have o: %s", key)
		}
	}
}

func volumesField[T any](at func(*T) *[]Volume) field[T] {
	s := schema{"type": "object", "propertyNames": schema{"pattern": objName.re.String()},
		"additionalProperties": schema{"anyOf": []any{schema{"type": "null"}, objectSchema(volumeFields())}}}
	return field[T]{name: "volumes", doc: "named volumes that need more than being named by a mount", schema: s,
		read: func(d *decoder, n *yaml.Node, into *T) {
			list := at(into)
			for _, e := range d.entries(n, "volumes", "volume") {
				if _, ok := d.text(e.key, "a volume's name", objName); !ok {
					continue
				}
				v := Volume{Pos: pos(e.key), Name: e.key.Value}
				readMap(d, e.value, "volume "+strconv.Quote(v.Name), volumeFields(), &v)
				*list = slices.DeleteFunc(*list, func(old Volume) bool { return old.Name == v.Name })
				*list = append(*list, v)
			}
		}}
}

func pos(n *yaml.Node) Position { return Position{n.Line, n.Column} }
