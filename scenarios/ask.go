package scenarios

import (
	"maps"
	"slices"

	"gopkg.in/yaml.v3"
)

// askField is ask: what a learner predicts, where the author knows better
// than the lab's own choice.
func askField() field[draft] {
	return field[draft]{
		name: "ask", doc: "what learners predict: checkpoint → items; without: the lab chooses",
		schema: schema{"type": "object", "additionalProperties": schema{"anyOf": []any{itemName.schema(),
			schema{"type": "array", "minItems": 1, "items": itemName.schema(), "uniqueItems": true}}}},
		read: func(d *decoder, n *yaml.Node, s *draft) {
			s.Ask = map[string][]string{}
			for _, e := range d.entries(n, "ask", "checkpoint") {
				p := placed{checkpoint: e.key.Value, at: e.key, items: d.elements(e.value, "what is asked at "+e.key.Value)}
				s.Ask[e.key.Value] = d.list(e.value, "what is asked at "+e.key.Value, itemName)
				d.askAt = append(d.askAt, p)
			}
		},
	}
}

// askMatches refuses a question about what no variant reads.
func (d *decoder) askMatches(s *Scenario) {
	if d.brokenSteps || d.brokenExpect {
		return
	}
	read := map[string]map[string]bool{}
	for i := range s.Variants {
		for label, items := range s.reads(&s.Variants[i]) {
			if read[label] == nil {
				read[label] = map[string]bool{}
			}
			maps.Copy(read[label], items)
		}
	}
	for _, p := range d.askAt {
		items, ok := read[p.checkpoint]
		if !ok {
			d.fault(p.at, suggest(p.checkpoint, slices.Sorted(maps.Keys(read))), "ask: no step reads %q", p.checkpoint)
			continue
		}
		for _, n := range p.items {
			if !items[n.Value] {
				d.fault(n, suggest(n.Value, slices.Sorted(maps.Keys(items))), "ask: %q is not read at %q", n.Value, p.checkpoint)
			}
		}
	}
}
