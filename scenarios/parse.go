package scenarios

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// Load reads the scenario file at path. It reads no more than MaxBytes and
// one byte of it. A file that can't be opened is an *os.PathError, a faulty
// one is Errors.
func Load(path string, opts Options) (*Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, src, opts)
}

// Parse reads a scenario. name is what errors call the file. The error is
// Errors: every fault of the file, in its order.
func Parse(name string, src []byte, opts Options) (*Scenario, error) {
	d := &decoder{file: name, opts: opts, verbs: verbTable(), nodes: map[Position]*yaml.Node{}}
	if len(src) <= MaxBytes {
		d.source = strings.Split(lineEnds.Replace(string(src)), "\n")
	}
	root := d.document(src)
	if root == nil {
		return nil, d.errs.tidy()
	}
	hash := sha256.Sum256(src)
	s := &Scenario{File: name, Hash: hex.EncodeToString(hash[:])}
	d.scenario(root, s)
	if len(d.errs) > 0 {
		return nil, d.errs.tidy()
	}
	return s, nil
}

// The big tables are made once: reading a catalogue reads them again and
// again.
var (
	scenarioTable = sync.OnceValue(scenarioFields)
	variantTable  = sync.OnceValue(variantFields)
	verbTable     = sync.OnceValue(func() map[string]Verb {
		table := map[string]Verb{}
		for _, v := range Verbs() {
			table[v.Name] = v
		}
		return table
	})
)

// lineEnds makes lines of what YAML takes for lines.
var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// part is what a scenario and a variant both can say: a scenario says it for
// all its variants.
type part struct {
	inline     Container  // container keys written directly, for the one container there is
	containers *yaml.Node // containers: {NAME: …}
	volumes    []Volume
	steps      []Step
	stepsAt    *yaml.Node
	expect     Expectations
	expectAt   []placed
}

// draft is a scenario while it is read: parts that depend on other parts wait
// as nodes until those are known.
type draft struct {
	*Scenario
	part
	variants *yaml.Node
}

// variantDraft is a variant while it is read.
type variantDraft struct {
	part
	explain string
}

func partFields[T any](at func(*T) *part) []field[T] {
	fields := lift(containerFields(), func(t *T) *Container { return &at(t).inline })
	return append(fields,
		field[T]{name: "containers", doc: "several containers: name → what each is run with", schema: schema{"$ref": "#/$defs/containers"},
			read: func(_ *decoder, n *yaml.Node, t *T) { at(t).containers = n }},
		volumesField(func(t *T) *[]Volume { return &at(t).volumes }),
		field[T]{name: "steps", doc: "what is done, in order", schema: schema{"$ref": "#/$defs/steps"},
			read: func(d *decoder, n *yaml.Node, t *T) { at(t).steps, at(t).stepsAt = d.steps(n), n }},
		field[T]{name: "expect", doc: "checkpoint → item → what is expected", schema: schema{"$ref": "#/$defs/expect"},
			read: func(d *decoder, n *yaml.Node, t *T) { at(t).expect, at(t).expectAt = d.expectations(n) }},
	)
}

// scenarioFields is the table of a scenario's own keys.
func scenarioFields() []field[draft] {
	fields := []field[draft]{
		must(field[draft]{name: "version", doc: "1", schema: schema{"const": 1}, read: func(d *decoder, n *yaml.Node, s *draft) {
			if s.Version = 1; n.Kind != yaml.ScalarNode || n.Tag != "!!int" || n.Value != "1" {
				d.fault(n, "write version: 1", "version must be 1, not %s", kindOf(n))
			}
		}}),
		must(textField("name", "a short name, unique among scenarios", slugText, func(s *draft) *string { return &s.Name })),
		must(textField("title", "one line: what it shows", lineText, func(s *draft) *string { return &s.Title })),
		wordField("machine", "vm: all of it happens in a virtual machine; without: in containers", []string{VirtualMachine}, func(s *draft, w string) { s.Machine = w }),
		{name: "lesson", doc: "the lesson it belongs to", schema: schema{"enum": lessonKeys()}, read: func(d *decoder, n *yaml.Node, s *draft) {
			s.Lesson, _ = d.word(n, "lesson", lessonKeys())
		}},
		textField("about", "what a student reads first; Markdown", anyText, func(s *draft) *string { return &s.About }),
		textField("question", "what a student answers before the run", anyText, func(s *draft) *string { return &s.Question }),
		listField("hints", "help with the question, from gentle to plain", anyText, func(s *draft) *[]string { return &s.Hints }),
		must(field[draft]{name: "data", doc: "what is written and looked for again: name → kind and place", schema: schema{"$ref": "#/$defs/data"},
			read: func(d *decoder, n *yaml.Node, s *draft) { s.Data = d.data(n) }}),
		servicesField(),
		{name: "variants", doc: "arrangements of mounts to compare: name → what is different", schema: schema{"$ref": "#/$defs/variants"},
			read: func(_ *decoder, n *yaml.Node, s *draft) { s.variants = n }},
		askField(),
		{name: "misconceptions", doc: "wrong predictions and the beliefs behind them", schema: schema{"$ref": "#/$defs/misconceptions"},
			read: func(d *decoder, n *yaml.Node, s *draft) { s.Misconceptions = d.misconceptions(n) }},
	}
	return append(fields, partFields(func(s *draft) *part { return &s.part })...)
}

// variantFields is the table of a variant's own keys.
func variantFields() []field[variantDraft] {
	fields := []field[variantDraft]{
		textField("explain", "why it came out as it did; shown after the run", anyText, func(v *variantDraft) *string { return &v.explain }),
	}
	return append(fields, partFields(func(v *variantDraft) *part { return &v.part })...)
}

func misconceptionFields() []field[Misconception] {
	return []field[Misconception]{
		must(textField("id", "a short key, for the class table", slugText, func(m *Misconception) *string { return &m.ID })),
		textField("variant", "where it shows; without: any", lineText, func(m *Misconception) *string { return &m.Variant }),
		textField("item", "where it shows; without: any", itemName, func(m *Misconception) *string { return &m.Item }),
		textField("checkpoint", "where it shows; without: any", lineText, func(m *Misconception) *string { return &m.Checkpoint }),
		must(field[Misconception]{name: "predicted", doc: "the wrong prediction", schema: outcomeSchema(),
			read: func(d *decoder, n *yaml.Node, m *Misconception) { m.Predicted = d.outcome(n, "predicted") }}),
		must(textField("belief", "what a learner who predicts this believes", anyText, func(m *Misconception) *string { return &m.Belief })),
		must(textField("answer", "one sentence that answers it", anyText, func(m *Misconception) *string { return &m.Answer })),
	}
}

func (d *decoder) misconceptions(n *yaml.Node) []Misconception {
	if n.Kind != yaml.SequenceNode {
		d.fault(n, `write each on a line that starts with "- "`, "misconceptions must be a list, not %s", kindOf(n))
		return nil
	}
	var out []Misconception
	ids := map[string]bool{}
	for _, item := range n.Content {
		m := Misconception{Pos: pos(item)}
		d.nodes[m.Pos] = item
		readMap(d, item, "a misconception", misconceptionFields(), &m)
		if m.ID != "" && ids[m.ID] {
			d.fault(item, "give each an id of its own", "two misconceptions with the id %q", m.ID)
		}
		ids[m.ID] = true
		out = append(out, m)
	}
	return out
}

// scenario reads the whole file into s.
func (d *decoder) scenario(root *yaml.Node, s *Scenario) {
	top := draft{Scenario: s, part: part{inline: Container{Pos: pos(root), Name: DefaultContainer}}}
	d.nodes[top.inline.Pos] = root
	seen := readMap(d, root, "the scenario", scenarioTable(), &top)
	if root.Kind != yaml.MappingNode {
		return
	}
	d.machineKeys(s, seen)
	if s.Machine != "" {
		top.inline.Name = MachineName
	}
	if top.containers == nil {
		s.Containers = []Container{top.inline}
	} else {
		s.Containers = d.containers(top.containers, nil, false)
		d.noInline(seen, "the scenario declares containers: put it under the container it is for")
		if len(s.Containers) == 0 {
			s.Containers = []Container{top.inline} // reported, or empty: the plain case
		}
	}
	s.Volumes, s.Steps, s.Expect = top.volumes, top.steps, top.expect
	settle(s.Steps, s.Data)
	d.expectAt, d.variantExpectAt = top.expectAt, map[string][]placed{}
	d.variants(top)
	d.serviceItems(s)
	d.validate(s, seen)
}

// noInline reports container keys that stand where it is not clear which
// container they are for.
func (d *decoder) noInline(seen map[string]*yaml.Node, suggestion string) {
	for _, f := range containerFields() {
		if key := seen[f.name]; key != nil {
			d.fault(key, suggestion, "%s is a container's", f.name)
		}
	}
}

func (d *decoder) variants(top draft) {
	s := top.Scenario
	if top.variants == nil {
		s.Variants = []Variant{d.merge(s, Variant{Pos: s.Containers[0].Pos, Name: PlainVariant}, variantDraft{}, nil)}
		return
	}
	if len(top.variants.Content) > 2*maxVars {
		d.fault(top.variants, "split it into several scenarios", "too many variants: more than %d", maxVars)
		return
	}
	for _, e := range d.entries(top.variants, "variants", "variant") {
		name, ok := d.text(e.key, "a variant's name", lineText)
		if !ok {
			continue
		}
		var v variantDraft
		if only := onlyContainer(s.Containers); only != nil {
			v.inline = *only // what the variant says goes over what the scenario said
		}
		seen := readMap(d, e.value, "variant "+strconv.Quote(name), variantTable(), &v)
		d.machineKeys(s, seen)
		d.variantExpectAt[name] = v.expectAt
		s.Variants = append(s.Variants, d.merge(s, Variant{Pos: pos(e.key), Name: name, Explain: v.explain}, v, seen))
	}
	if len(s.Variants) == 0 && len(d.errs) == 0 {
		d.fault(top.variants, "write one, or leave variants out", "there are no variants")
	}
}

func onlyContainer(list []Container) *Container {
	if len(list) == 1 {
		return &list[0]
	}
	return nil
}

// described quotes names for a message: "a", "b" and "c".
func described(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	if len(quoted) < 2 {
		return strings.Join(quoted, "")
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " and " + quoted[len(quoted)-1]
}
