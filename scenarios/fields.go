package scenarios

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// decoder reads one file and collects its faults.
type decoder struct {
	file   string
	source []string // lines, for excerpts
	opts   Options
	errs   Errors

	// Where the file has a fault that would make every later check of the
	// same part complain too.
	brokenSteps, brokenStorage, brokenExpect bool

	verbs map[string]Verb // the table of steps, by name

	// What stands in the file for a part that has a Position, so that a
	// later check can point at the very word.
	nodes map[Position]*yaml.Node

	// The keys of the expect: mappings, of the scenario and per variant.
	expectAt        []placed
	askAt           []placed
	variantExpectAt map[string][]placed
}

// schema is a piece of JSON Schema.
type schema = map[string]any

// field is one row of a key table: what a key is called, what it means, what
// may stand after it and where that goes. Validation, did-you-mean and the
// JSON Schema all come from these rows.
type field[T any] struct {
	name     string
	doc      string
	required bool
	schema   schema
	read     func(d *decoder, n *yaml.Node, into *T)
}

// must marks a field required.
func must[T any](f field[T]) field[T] {
	f.required = true
	return f
}

// lift turns fields of a part into fields of the whole.
func lift[T, U any](fields []field[U], part func(*T) *U) []field[T] {
	lifted := make([]field[T], len(fields))
	for i, f := range fields {
		lifted[i] = field[T]{f.name, f.doc, f.required, f.schema, func(d *decoder, n *yaml.Node, into *T) {
			f.read(d, n, part(into))
		}}
	}
	return lifted
}

func names[T any](fields []field[T]) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.name
	}
	return out
}

// entry is one key of a mapping.
type entry struct{ key, value *yaml.Node }

// entries gives a mapping's keys in file order and reports what is no mapping
// or has a key twice; the first one counts. An empty value is an empty
// mapping. what names the mapping, one names a key of it.
func (d *decoder) entries(n *yaml.Node, what, one string) []entry {
	if n.Tag == "!!null" {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		d.fault(n, "write it as key: value lines", "%s must be a mapping, not %s", what, kindOf(n))
		return nil
	}
	if !d.untagged(n) {
		return nil
	}
	out := make([]entry, 0, len(n.Content)/2)
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch line, twice := first[key.Value]; {
		case key.Kind != yaml.ScalarNode || key.Tag == "!!null":
			d.fault(key, "write it as key: value", "a key must be a word, not %s", kindOf(key))
		case key.Tag == "!!merge":
			d.fault(key, "write the keys out", "<< (merge) is not understood here")
		case !d.untagged(key):
		case twice:
			d.fault(key, fmt.Sprintf("the first one is on line %d: remove or rename one", line), "%s %q stands here twice", one, key.Value)
		default:
			first[key.Value] = key.Line
			out = append(out, entry{key, value})
		}
	}
	return out
}

// readMap reads a mapping by its table. It gives the node of each key it
// found.
func readMap[T any](d *decoder, n *yaml.Node, what string, table []field[T], into *T) map[string]*yaml.Node {
	seen := map[string]*yaml.Node{}
	meant := map[string]bool{} // what unknown keys were probably meant to be
	bad := false
	for _, e := range d.entries(n, what, "key") {
		i := slices.IndexFunc(table, func(f field[T]) bool { return f.name == e.key.Value })
		if i < 0 {
			bad = true
			near := d.unknownKey(e.key, what, names(table))
			meant[near] = true
			d.brokenSteps = d.brokenSteps || near == "steps"
			d.brokenExpect = d.brokenExpect || near == "expect"
			continue
		}
		seen[e.key.Value] = e.key
		table[i].read(d, e.value, into)
	}
	if n.Kind != yaml.MappingNode && n.Tag != "!!null" || bad && len(seen) == 0 {
		return seen // reported; what is missing would only repeat it
	}
	for _, f := range table {
		if f.required && seen[f.name] == nil && !meant[f.name] {
			d.fault(n, fmt.Sprintf("add %s: %s", f.name, f.doc), "%s has no %q", what, f.name)
		}
	}
	return seen
}

// unknownKey reports a key no table has, and gives the one it was probably
// meant to be.
func (d *decoder) unknownKey(key *yaml.Node, what string, known []string) string {
	if len(d.errs) >= maxFaults {
		return "" // a suggestion is not free
	}
	if why, ok := forbidden[key.Value]; ok {
		d.fault(key, "remove it", "there is no key %q: %s", key.Value, why)
		return ""
	}
	suggestion := suggest(key.Value, known)
	if suggestion == "" {
		suggestion = "lab schema lists the keys there are"
	}
	d.fault(key, suggestion, "unknown key %q in %s", key.Value, what)
	return nearest(key.Value, known)
}

// forbidden are keys people know from podman or compose files that a scenario
// can't have, and why: files are shared and downloaded.
var forbidden = func() map[string]string {
	m := map[string]string{}
	add := func(why string, keys ...string) {
		for _, k := range keys {
			m[k] = why
		}
	}
	add("a scenario can ask for no privileges", "privileged", "cap_add", "cap-add", "capabilities", "security_opt", "security-opt", "userns", "sysctls", "sysctl")
	add("a scenario can ask for no devices", "devices", "device", "gpus")
	add("a scenario can't share the host's network or processes", "network", "net", "network_mode", "host_network", "pid", "ipc", "uts", "cgroupns", "cgroup_parent", "ports", "publish")
	add("process 1 is always the lab's probe", "command", "cmd", "entrypoint", "build")
	return m
}()

// untagged refuses !!binary and the like: plain YAML says all a scenario can.
func (d *decoder) untagged(n *yaml.Node) bool {
	if n.Style&yaml.TaggedStyle == 0 {
		return true
	}
	d.fault(n, "remove the tag", "tags (%s) are not understood here", n.ShortTag())
	return false
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!int", "!!float":
		return "the number " + n.Value
	case "!!bool":
		return n.Value
	}
	return strconv.Quote(shorten(n.Value))
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// rule is what a text must look like.
type rule struct {
	re      *regexp.Regexp
	want    string              // "a name of …"
	example string              // a text that fits
	fix     func(string) string // a text that fits, near the author's; "" or nil for none
}

// schema leaves numbers to the pattern's reader: user: 1000 is a number to
// YAML and a text to us.
func (r rule) schema() schema {
	return schema{"type": []any{"string", "integer"}, "pattern": r.re.String()}
}

var (
	anyText  = rule{re: regexp.MustCompile(`\S`), want: "text", example: "some text"}
	lineText = rule{re: regexp.MustCompile(`^\S(?:[^\t\n]{0,98}\S)?$`), want: "one line of at most 100 characters", example: "a few words"}
	slugText = rule{re: regexp.MustCompile(`^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$`), want: "a name of small letters, digits and -", example: "my-name", fix: slug}
	itemName = rule{re: regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`), want: "a name of small letters, digits, - and _", example: "note", fix: slug}
	objName  = rule{re: regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`), want: "a name of small letters, digits, and _ . -", example: "mydata", fix: slug}
	envName  = rule{re: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`), want: "a variable name", example: "MY_NAME"}
	userText = rule{re: regexp.MustCompile(`^[0-9]{1,10}(:[0-9]{1,10})?$`), want: "a user id as uid or uid:gid", example: "1000:1000"}
	hostText = rule{re: regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,61}[A-Za-z0-9])?$`), want: "a host name", example: "web"}
)

var notSlug = regexp.MustCompile(`[^a-z0-9]+`)

func slug(s string) string {
	s = strings.Trim(notSlug.ReplaceAllString(strings.ToLower(s), "-"), "-")
	return s[:min(len(s), 60)]
}

// scalar gives the text of a plain value. Numbers and true/false are text
// where text is wanted, as the author wrote them.
func (d *decoder) scalar(n *yaml.Node, what, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		d.fault(n, "write "+want+" here", "%s must be %s, not %s", what, want, kindOf(n))
		return "", false
	}
	if !d.untagged(n) {
		return "", false
	}
	return n.Value, true
}

// text gives a text that follows the rule.
func (d *decoder) text(n *yaml.Node, what string, r rule) (string, bool) {
	s, ok := d.scalar(n, what, r.want)
	if !ok {
		return "", false
	}
	if !r.re.MatchString(s) {
		suggestion := fmt.Sprintf("write it like %q", r.example)
		if r.fix != nil {
			if fixed := r.fix(s); r.re.MatchString(fixed) {
				suggestion = fmt.Sprintf("did you mean %q?", fixed)
			}
		}
		d.fault(n, suggestion, "%s must be %s, not %q", what, r.want, shorten(s))
		return "", false
	}
	return s, true
}

func textField[T any](name, doc string, r rule, at func(*T) *string) field[T] {
	s := r.schema()
	return field[T]{name: name, doc: doc, schema: s, read: func(d *decoder, n *yaml.Node, into *T) {
		if s, ok := d.text(n, name, r); ok {
			*at(into) = s
		}
	}}
}

// pathField is an absolute path in a container.
func pathField[T any](name, doc string, at func(*T) *string) field[T] {
	return field[T]{name: name, doc: doc, schema: pathSchema(), read: func(d *decoder, n *yaml.Node, into *T) {
		if p, ok := d.path(n, name); ok {
			*at(into) = p
		}
	}}
}

// wordField is one of a few words.
func wordField[T any](name, doc string, words []string, set func(*T, string)) field[T] {
	return field[T]{name: name, doc: doc, schema: schema{"enum": words}, read: func(d *decoder, n *yaml.Node, into *T) {
		if w, ok := d.word(n, name, words); ok {
			set(into, w)
		}
	}}
}

func (d *decoder) word(n *yaml.Node, what string, words []string) (string, bool) {
	w, ok := d.scalar(n, what, "one of "+strings.Join(words, ", "))
	if !ok {
		return "", false
	}
	if !slices.Contains(words, w) {
		d.fault(n, suggest(w, words), "%s can't be %q", what, shorten(w))
		return "", false
	}
	return w, true
}

func boolField[T any](name, doc string, set func(*T, bool)) field[T] {
	return field[T]{name: name, doc: doc, schema: schema{"type": "boolean"}, read: func(d *decoder, n *yaml.Node, into *T) {
		if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" && d.untagged(n) {
			set(into, strings.EqualFold(n.Value, "true"))
			return
		}
		suggestion := "write true or false"
		switch strings.ToLower(n.Value) {
		case "yes", "on", "y":
			suggestion = `did you mean "true"?`
		case "no", "off", "n":
			suggestion = `did you mean "false"?`
		}
		d.fault(n, suggestion, "%s must be true or false, not %s", name, kindOf(n))
	}}
}

// intField is a whole number from lo to hi.
func intField[T any](name, doc string, lo, hi int, at func(*T) *int) field[T] {
	return field[T]{name: name, doc: doc, schema: schema{"type": "integer", "minimum": lo, "maximum": hi}, read: func(d *decoder, n *yaml.Node, into *T) {
		i, err := strconv.Atoi(n.Value)
		if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil || i < lo || i > hi {
			d.fault(n, fmt.Sprintf("write a whole number from %d to %d", lo, hi), "%s can't be %s", name, kindOf(n))
			return
		}
		*at(into) = i
	}}
}

// durationField is a time like 200ms, 5s or 1m.
func durationField[T any](name, doc string, hi time.Duration, at func(*T) *time.Duration) field[T] {
	return field[T]{name: name, doc: doc, schema: schema{"type": "string", "pattern": durationPattern}, read: func(d *decoder, n *yaml.Node, into *T) {
		s, ok := d.scalar(n, name, "a time like 5s")
		if !ok {
			return
		}
		v, err := parseDuration(s)
		if err != nil || v <= 0 || v > hi {
			d.fault(n, "write it like 200ms, 5s or 1m", "%s must be a time up to %v minutes, not %q", name, hi.Minutes(), shorten(s))
			return
		}
		*at(into) = v
	}}
}

const durationPattern = `^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$`

// parseDuration knows days besides Go's units.
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 12)
		return time.Duration(n) * 24 * time.Hour, err
	}
	return time.ParseDuration(s)
}

// listField is a list of texts; a single text is a list of one.
func listField[T any](name, doc string, r rule, at func(*T) *[]string) field[T] {
	s := schema{"anyOf": []any{r.schema(), schema{"type": "array", "items": r.schema(), "uniqueItems": true}}}
	return field[T]{name: name, doc: doc, schema: s, read: func(d *decoder, n *yaml.Node, into *T) {
		*at(into) = d.list(n, name, r)
	}}
}

func (d *decoder) list(n *yaml.Node, what string, r rule) []string {
	var out []string
	for _, item := range d.elements(n, what) {
		s, ok := d.text(item, what, r)
		if !ok {
			continue
		}
		if slices.Contains(out, s) {
			d.fault(item, "remove one", "%s names %q twice", what, s)
			continue
		}
		out = append(out, s)
	}
	return out
}

// elements gives a list's entries; a scalar is a list of one.
func (d *decoder) elements(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		return []*yaml.Node{n}
	}
	if n.Kind != yaml.SequenceNode {
		d.fault(n, "write it as a list: [a, b], or lines that start with \"- \"", "%s must be a list, not %s", what, kindOf(n))
		return nil
	}
	if !d.untagged(n) {
		return nil
	}
	return n.Content
}

// mapField is a mapping of texts.
func mapField[T any](name, doc string, key rule, at func(*T) *map[string]string) field[T] {
	s := schema{"type": "object", "additionalProperties": schema{"type": []any{"string", "number", "boolean"}}}
	if key.re != nil {
		s["propertyNames"] = schema{"pattern": key.re.String()}
	}
	return field[T]{name: name, doc: doc, schema: s, read: func(d *decoder, n *yaml.Node, into *T) {
		m := map[string]string{}
		for _, e := range d.entries(n, name, "key") {
			ok := true
			if key.re != nil {
				_, ok = d.text(e.key, "a key of "+name, key)
			} else {
				_, ok = d.path(e.key, "a key of "+name)
			}
			if s, good := d.scalar(e.value, e.key.Value, "text"); ok && good {
				m[e.key.Value] = s
			}
		}
		*at(into) = m
	}}
}

// objectSchema is the schema of a mapping read by a table.
func objectSchema[T any](table []field[T]) schema {
	properties := schema{}
	var required []string
	for _, f := range table {
		property := maps.Clone(f.schema)
		property["description"] = f.doc
		properties[f.name] = property
		if f.required {
			required = append(required, f.name)
		}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if required != nil {
		s["required"] = required
	}
	return s
}
