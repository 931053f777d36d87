package experiment

import (
	"fmt"
	"slices"
	"strings"

	"persistencelab/scenarios"
)

// Summarize is what a report's heading needs of a scenario and its plans.
func Summarize(s *scenarios.Scenario, plans []*Plan) ScenarioSummary {
	sum := ScenarioSummary{
		Name: s.Name, Title: s.Title, Lesson: s.Lesson, Question: strings.TrimSpace(s.Question), Hash: s.Hash,
	}
	for _, it := range s.Data {
		sum.Items = append(sum.Items, ItemSummary{Name: it.Name, Kind: string(it.Kind), Place: PlaceOf(it)})
	}
	for _, p := range plans {
		v := VariantSummary{Name: p.Variant.Name, Explain: strings.TrimSpace(p.Variant.Explain), Containers: p.built()}
		for _, st := range p.Steps {
			v.Commands = append(v.Commands, st.Commands...)
			if st.Label != "" && !slices.Contains(sum.Checkpoints, st.Label) {
				sum.Checkpoints = append(sum.Checkpoints, st.Label)
			}
		}
		sum.Variants = append(sum.Variants, v)
	}
	return sum
}

// PlaceOf says for people where an item is written.
func PlaceOf(it scenarios.Item) string {
	switch it.Kind {
	case scenarios.Memory:
		return "the memory of process 1"
	case scenarios.Row:
		return fmt.Sprintf("%s in table %s of %s", rows(max(it.Rows, 1)), it.Path, it.Service)
	case scenarios.Key:
		return fmt.Sprintf("key %s of %s", it.Path, it.Service)
	case scenarios.Object:
		return fmt.Sprintf("object %s of %s", it.Path, it.Service)
	case scenarios.SQLite:
		return rows(max(it.Rows, 1)) + " in " + it.Path
	case scenarios.Health:
		return "podman healthcheck run " + it.Path
	}
	return it.Path
}

// Script is the plan as a shell script: pasted into a shell, it does what a
// run does, and prints what came back at each checkpoint.
func (p *Plan) Script() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n", p.Scenario.Name, p.Variant.Name)
	if p.remote && p.NeedsOwnStore() {
		fmt.Fprintf(&b, "# Not here: %s reaches everything in a store, and by its address a service\n# gets no store of its own. On the machine itself: lab run --dry-run %s\n\n", p.ownStoreVerb(), quote(p.Scenario.Name))
		return b.String()
	}
	for _, st := range p.Steps {
		if st.Label != "" {
			fmt.Fprintf(&b, "echo %s\n", quote("# "+st.Label))
		}
		for _, c := range st.Commands {
			fmt.Fprintln(&b, c)
		}
	}
	for _, line := range p.cleanupLines {
		fmt.Fprintln(&b, line)
	}
	b.WriteByte('\n')
	return b.String()
}
