package scenarios

import (
	"strings"

	"gopkg.in/yaml.v3"
)

// outcomeWords are the outcomes as candidates for did-you-mean.
func outcomeWords() []string {
	var out []string
	for _, o := range Outcomes() {
		out = append(out, string(o))
	}
	return out
}

// everyday maps what people write for an outcome to its word.
var everyday = map[string]string{
	"kept": "survived", "keeps": "survived", "survives": "survived", "present": "survived", "back": "survived", "ok": "survived",
	"gone": "lost", "missing": "lost", "deleted": "lost", "absent": "lost", "removed": "lost",
	"different": "changed", "modified": "changed", "denied": "refused", "rejected": "refused",
}

func (d *decoder) outcome(n *yaml.Node, what string) Outcome {
	w, ok := d.scalar(n, what, "an outcome")
	if !ok {
		return Unknown
	}
	if w == "unknown" {
		d.fault(n, "say what you expect; unknown is what the lab says where it could not look", "unknown can't be expected")
		return Unknown
	}
	for _, o := range Outcomes() {
		if w == string(o) {
			return o
		}
	}
	if word, ok := everyday[strings.ToLower(w)]; ok {
		d.fault(n, `did you mean "`+word+`"?`, "%q is no outcome", w)
		return Unknown
	}
	d.fault(n, suggest(w, outcomeWords()), "%q is no outcome", shorten(w))
	return Unknown
}

// expectations reads checkpoint → item → outcome or rules.
func (d *decoder) expectations(n *yaml.Node) (Expectations, []placed) {
	out := Expectations{}
	var where []placed
	for _, e := range d.entries(n, "expect", "checkpoint") {
		items := map[string]Expectation{}
		keys := placed{checkpoint: e.key.Value, at: e.key}
		if e.value.Kind == yaml.ScalarNode && e.value.Tag != "!!null" {
			d.fault(e.value, "write it per item: {note: "+shorten(e.value.Value)+"}", "%q must say what becomes of each item", e.key.Value)
		} else {
			for _, item := range d.entries(e.value, "what is expected at "+e.key.Value, "item") {
				items[item.key.Value] = d.expectation(item)
				keys.items = append(keys.items, item.key)
			}
		}
		out[e.key.Value] = items
		where = append(where, keys)
	}
	return out, where
}

func ruleFields() []field[Rule] {
	return []field[Rule]{
		{name: "when", doc: "the engines it holds for: podman < 5.1, rootless, rootful, joined by and; without: all", schema: schema{"type": "string"},
			read: func(d *decoder, n *yaml.Node, r *Rule) {
				s, ok := d.text(n, "when", lineText)
				if !ok {
					return
				}
				if _, err := parseWhen(s); err != nil {
					d.fault(n, "write it like podman < 5.1, rootless, or podman >= 5 and rootful", "when is not understood: %v", err)
					return
				}
				r.When = s
			}},
		must(field[Rule]{name: "outcome", doc: "what is expected", schema: outcomeSchema(),
			read: func(d *decoder, n *yaml.Node, r *Rule) { r.Outcome = d.outcome(n, "outcome") }}),
		textField("because", "why; needed for varies", anyText, func(r *Rule) *string { return &r.Because }),
		boolField("violated", "this breaks the item's acceptable_loss or rebuild, and is shown on purpose; without it, that is a violation whatever is expected", func(r *Rule, b bool) { r.Violated = b }),
	}
}

func outcomeSchema() schema { return schema{"enum": outcomeWords()} }

func (d *decoder) expectation(e entry) Expectation {
	out := Expectation{Pos: pos(e.value)}
	rule := func(n *yaml.Node) {
		var r Rule
		faults := len(d.errs)
		if n.Kind == yaml.MappingNode {
			readMap(d, n, "a rule", ruleFields(), &r)
		} else {
			r.Outcome = d.outcome(n, "what is expected of "+e.key.Value)
		}
		if r.Outcome == Varies && r.Because == "" && len(d.errs) == faults {
			d.fault(n, "write {outcome: varies, because: …}", "varies needs a because: why can't it be said?")
		}
		if len(out.Rules) > 0 && out.Rules[len(out.Rules)-1].When == "" && len(d.errs) == faults {
			d.fault(n, "put the rule without when last", "this rule is never reached: the one before it always holds")
		}
		if len(d.errs) == faults {
			out.Rules = append(out.Rules, r)
		}
	}
	if e.value.Kind != yaml.SequenceNode {
		rule(e.value)
	} else {
		faults := len(d.errs)
		for _, n := range e.value.Content {
			rule(n)
		}
		if len(e.value.Content) == 0 {
			d.fault(e.value, "write an outcome", "no rule says what is expected of %q", e.key.Value)
		} else if gap := out.gap(); gap != "" && len(d.errs) == faults {
			d.fault(e.value, "add a last rule without when", "no rule holds on %s", gap)
		}
		return out
	}
	if gap := out.gap(); gap != "" && len(out.Rules) > 0 {
		d.fault(e.value, "make it a list with a last rule without when", "no rule holds on %s", gap)
	}
	return out
}

// expectSchema: an outcome, a rule, or a list of rules.
func expectSchema() schema {
	rule := objectSchema(ruleFields())
	one := schema{"anyOf": []any{outcomeSchema(), rule, schema{"type": "array", "minItems": 1, "items": rule}}}
	return schema{"type": "object", "additionalProperties": schema{"anyOf": []any{schema{"type": "null"}, schema{"type": "object", "additionalProperties": one}}}}
}
