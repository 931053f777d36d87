package report

import (
	"cmp"
	"slices"
	"strings"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// table is one scenario arranged for people: a row per variant and item, a
// column per checkpoint. Text in it is as it came; writers escape it.
type table struct {
	experiment.ScenarioSummary
	Grid      []variant
	Decisions []experiment.Decision
}

// variant is one variant's part of the table.
type variant struct {
	Name     string
	Skipped  string // why nothing was run; "" when it was
	Rows     []row
	Notes    []note
	Commands []string
}

// row is one item of a variant.
type row struct {
	Item    string
	Written string // yes, no, or partly (written for some checkpoints only)
	// Cells holds the verdicts per checkpoint: one each, none where nothing
	// is expected, several where a report has the row twice.
	Cells [][]experiment.Verdict
}

// note is one sentence under the table.
type note struct {
	Mark  string // the loud word: SURPRISED, UNKNOWN, …; "" for the plain why
	About string // what it is about: "note and rows, after rm and run"
	Text  string
}

// tables arranges a report. What the summaries do not name but a verdict or
// record does gets a place at the end: no verdict is ever left out.
func tables(r *experiment.Report) []table {
	var ts []table
	at := func(name string) *table {
		for i := range ts {
			if ts[i].Name == name {
				return &ts[i]
			}
		}
		ts = append(ts, table{ScenarioSummary: experiment.ScenarioSummary{Name: name}})
		return &ts[len(ts)-1]
	}
	for _, s := range r.Scenarios {
		t := at(s.Name)
		if t.Title == "" && len(t.Variants) == 0 {
			t.ScenarioSummary = s
		}
	}
	type key struct{ scenario, variant string }
	results, records := map[key][]experiment.Verdict{}, map[key][]experiment.Record{}
	for _, v := range r.Results {
		k := key{v.Scenario, v.Variant}
		results[k] = append(results[k], v)
		t := at(v.Scenario)
		t.name(v.Variant)
		if !slices.Contains(t.Checkpoints, v.Checkpoint) {
			t.Checkpoints = append(slices.Clip(t.Checkpoints), v.Checkpoint)
		}
	}
	for _, rec := range r.Records {
		k := key{rec.Scenario, rec.Variant}
		records[k] = append(records[k], rec)
		at(rec.Scenario).name(rec.Variant)
	}
	for _, d := range r.Decisions {
		t := at(d.Scenario)
		t.Decisions = append(t.Decisions, d)
	}
	for i := range ts {
		t := &ts[i]
		for _, vs := range t.Variants {
			k := key{t.Name, vs.Name}
			t.Grid = append(t.Grid, t.arrange(vs, results[k], records[k]))
		}
	}
	return ts
}

// name makes sure that the table has the variant.
func (t *table) name(v string) {
	if !slices.ContainsFunc(t.Variants, func(s experiment.VariantSummary) bool { return s.Name == v }) {
		t.Variants = append(slices.Clip(t.Variants), experiment.VariantSummary{Name: v})
	}
}

func (t *table) arrange(vs experiment.VariantSummary, results []experiment.Verdict, records []experiment.Record) variant {
	out := variant{Name: vs.Name, Commands: vs.Commands}
	if !slices.ContainsFunc(results, func(v experiment.Verdict) bool { return v.Judgement != experiment.Skipped }) {
		for _, rec := range records {
			out.Skipped = cmp.Or(out.Skipped, rec.Skipped)
		}
		for _, v := range results {
			out.Skipped = cmp.Or(out.Skipped, v.Why, v.Detail)
		}
		if out.Skipped == "" && len(results) > 0 {
			out.Skipped = "this engine can't run it"
		}
	}

	var items []string
	for _, it := range t.Items {
		items = append(items, it.Name)
	}
	for _, v := range results {
		if !slices.Contains(items, v.Item) {
			items = append(items, v.Item)
		}
	}
	for _, item := range items {
		rw := row{Item: item, Cells: make([][]experiment.Verdict, len(t.Checkpoints))}
		yes, no := false, false
		for _, v := range results {
			if v.Item == item {
				c := slices.Index(t.Checkpoints, v.Checkpoint)
				rw.Cells[c] = append(rw.Cells[c], v)
				yes, no = yes || v.Written, no || !v.Written
			}
		}
		switch {
		case yes && no:
			rw.Written = "partly"
		case yes:
			rw.Written = "yes"
		case no:
			rw.Written = "no"
		default:
			continue // nothing is expected of this item here
		}
		out.Rows = append(out.Rows, rw)
	}
	if out.Skipped == "" {
		out.Notes = notes(vs, results)
	}
	for _, rec := range records {
		if rec.Fault != "" {
			out.Notes = append(out.Notes, note{Mark: "ENDED EARLY", Text: rec.Fault})
		}
		for _, left := range rec.Cleanup.Left {
			out.Notes = append(out.Notes, note{Mark: "LEFT BEHIND", Text: left})
		}
	}
	return out
}

// notes says why, for one variant. The author's explanation speaks of what
// was expected, so it stands only where that is what happened.
func notes(vs experiment.VariantSummary, results []experiment.Verdict) []note {
	var ns []note
	add := func(mark string, text func(experiment.Verdict) string, which func(experiment.Verdict) bool) {
		var texts []string
		groups := map[string][]experiment.Verdict{}
		for _, v := range results {
			if which(v) {
				s := text(v)
				if _, ok := groups[s]; !ok {
					texts = append(texts, s)
				}
				groups[s] = append(groups[s], v)
			}
		}
		for _, s := range texts {
			if s != "" {
				ns = append(ns, note{mark, about(groups[s], results), s})
			}
		}
	}
	judged := func(j experiment.Judgement) func(experiment.Verdict) bool {
		return func(v experiment.Verdict) bool { return v.Judgement == j }
	}

	if !slices.ContainsFunc(results, func(v experiment.Verdict) bool { return v.Judgement != experiment.AsExpected }) && vs.Explain != "" {
		ns = append(ns, note{Text: vs.Explain})
	} else {
		add("", func(v experiment.Verdict) string { return v.Why }, func(v experiment.Verdict) bool {
			return v.Judgement == experiment.AsExpected && v.Expected != scenarios.Varies
		})
	}
	add("KILLED", func(v experiment.Verdict) string {
		if v.Kills == nil {
			return ""
		}
		return v.Detail
	}, func(experiment.Verdict) bool { return true })
	add("SURPRISED", reason, judged(experiment.Surprised))
	add("VIOLATED", reason, judged(experiment.Violated))
	add("UNKNOWN", reason, func(v experiment.Verdict) bool { return judgement(v) == string(experiment.NotJudged) })
	add("SKIPPED", reason, judged(experiment.Skipped))
	add("VARIES", reason, func(v experiment.Verdict) bool {
		return v.Judgement == experiment.AsExpected && v.Expected == scenarios.Varies
	})
	add("RULE", func(v experiment.Verdict) string {
		if v.Rule == "" {
			return ""
		}
		return v.Expected.String() + " is expected when " + v.Rule
	}, func(experiment.Verdict) bool { return true })
	return ns
}

// judgement is the verdict's word. One this version does not know is unknown,
// as Count has it.
func judgement(v experiment.Verdict) string {
	if slices.Contains(judgements, v.Judgement) {
		return string(v.Judgement)
	}
	return string(experiment.NotJudged)
}

// alarm is the word a cell shouts: SURPRISED, VIOLATED or "". Unknown says so
// by its outcome.
func alarm(v experiment.Verdict) string {
	if v.Judgement == experiment.Surprised || v.Judgement == experiment.Violated {
		return strings.ToUpper(string(v.Judgement))
	}
	return ""
}

// headline is a verdict in a few words: "lost, expected survived".
func headline(v experiment.Verdict) string {
	s := v.Outcome.String()
	if m := remark(v); m != "" {
		s += ", " + m
	}
	return fold(s)
}

// reason is the sentence of a verdict, with what exactly was found.
func reason(v experiment.Verdict) string {
	s := v.Why
	if s == "" && alarm(v) != "" {
		s = v.Outcome.String() + " where " + v.Expected.String() + " was expected"
	}
	if v.Detail != "" && !strings.Contains(s, v.Detail) {
		s = strings.TrimSpace(s + " (" + v.Detail + ")")
	}
	return cmp.Or(fold(s), "no reason was recorded")
}

// title is the scenario's title, or its name.
func title(t table) string { return cmp.Or(t.Title, t.Name) }

// writtenWord is a row's Written with its sign.
func writtenWord(w string) string {
	switch w {
	case "yes":
		return "✓ yes"
	case "no":
		return "– no"
	}
	return w
}

// remark is what a cell says besides its outcome: "expected survived" for a
// surprise. "" for what is as expected and for what unknown says by itself.
func remark(v experiment.Verdict) string {
	switch {
	case v.Judgement == experiment.Violated && v.Expected == v.Outcome:
		return "loss not acceptable"
	case v.Judgement == experiment.Surprised, v.Judgement == experiment.Violated:
		return "expected " + v.Expected.String()
	case v.Judgement == experiment.AsExpected && v.Expected == scenarios.Varies:
		return "varies"
	}
	return ""
}

// about names the rows of a group as "note and rows, after restart". It says
// no more than is needed: nothing for all the rows of a variant, no checkpoint
// for what holds at each.
func about(group, all []experiment.Verdict) string {
	if len(group) == len(all) {
		return ""
	}
	checkpoints, items := byCheckpoint(group)
	everywhere, _ := byCheckpoint(all)
	// Checkpoints with the same items share a mention.
	var parts, same []string
	for i, c := range checkpoints {
		same = append(same, c)
		if i+1 < len(checkpoints) && slices.Equal(items[c], items[checkpoints[i+1]]) {
			continue
		}
		if len(same) == len(everywhere) && len(same) > 1 {
			return list(items[c])
		}
		parts = append(parts, list(items[c])+", "+list(same))
		same = nil
	}
	return strings.Join(parts, "; ")
}

// byCheckpoint gives the checkpoints of rows in the order met, and the items
// at each.
func byCheckpoint(vs []experiment.Verdict) (checkpoints []string, items map[string][]string) {
	items = map[string][]string{}
	for _, v := range vs {
		if _, ok := items[v.Checkpoint]; !ok {
			checkpoints = append(checkpoints, v.Checkpoint)
		}
		items[v.Checkpoint] = append(items[v.Checkpoint], v.Item)
	}
	return checkpoints, items
}

// fact is one thing a reader must know of the engine.
type fact struct{ Name, Value string }

func facts(f engine.Facts) []fact {
	name := f.Name
	if name == "podman" {
		name = "Podman"
	}
	if f.Name == "qemu" {
		return []fact{{"engine", strings.TrimSpace("QEMU " + f.Version)}, {"accelerator", f.Runtime}, {"kernel", f.Kernel}}
	}
	who := "rootful"
	if f.Rootless {
		who = "rootless"
	}
	selinux := "off"
	if f.SELinux {
		selinux = "on"
	}
	reached := f.URL
	if f.Service != "" {
		reached += " (" + f.Service + ")"
	}
	if f.Remote {
		reached += ", another machine: no look from the host"
	}
	fs := []fact{{"engine", strings.TrimSpace(name + " " + f.Version)}, {"API", f.APIVersion}, {"mode", who},
		{"storage", f.StorageDriver}, {"runtime", f.Runtime}, {"cgroups", f.Cgroups}, {"SELinux", selinux},
		{"kernel", f.Kernel}, {"system", f.OS}, {"boot id", f.BootID}, {"reached at", reached}}
	for _, a := range f.Adjusted {
		fs = append(fs, fact{"adjusted", a})
	}
	return slices.DeleteFunc(fs, func(f fact) bool { return f.Value == "" })
}
