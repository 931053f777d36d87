package report

import (
	"strings"

	"persistencelab/lab/internal/experiment"
)

// The durability decision table: what the owner decided about each item, and
// what was seen of it. It is wide where there is room (markdown, html) and a
// block per row in text, where paths need the whole line.

// decisionHeads are the table's columns.
var decisionHeads = []string{"data", "where it goes", "rebuild", "acceptable loss", "observed", "verdict"}

// decisionCells are the cells of one row, in that order. Nothing in them is
// escaped.
func decisionCells(d experiment.Decision) []string {
	verdict := d.Verdict
	if d.Why != "" {
		verdict += ": " + d.Why
	}
	return []string{d.Item + " (" + d.Data + ")", d.Where, decisionRebuild(d), orNotSaid(d.AcceptableLoss), d.Observed, verdict}
}

func decisionRebuild(d experiment.Decision) string {
	if d.RebuildTook > 0 {
		return orNotSaid(d.Rebuild) + ", " + took(d.RebuildTook)
	}
	return orNotSaid(d.Rebuild)
}

func orNotSaid(s string) string {
	if s == "" {
		return "not said"
	}
	return s
}

// decisionLoud tells whether a row needs to be seen at once.
func decisionLoud(d experiment.Decision) bool { return d.Verdict != experiment.DecisionKept }

// decisionsByVariant groups a scenario's rows by variant, in their order.
func decisionsByVariant(ds []experiment.Decision) (variants []string, rows map[string][]experiment.Decision) {
	rows = map[string][]experiment.Decision{}
	for _, d := range ds {
		if _, ok := rows[d.Variant]; !ok {
			variants = append(variants, d.Variant)
		}
		rows[d.Variant] = append(rows[d.Variant], d)
	}
	return variants, rows
}

// decisions writes the table in text.
func (p *printer) decisions(t table) {
	if len(t.Decisions) == 0 {
		return
	}
	p.line("")
	p.line("What may be lost, and what was")
	variants, rows := decisionsByVariant(t.Decisions)
	for _, v := range variants {
		for _, d := range rows[v] {
			verdict := strings.ToUpper(d.Verdict)
			if !decisionLoud(d) {
				verdict = d.Verdict
			}
			p.line("  ", span{pad(verdict, len(experiment.DecisionViolated)), map[bool]string{true: styleLoud}[decisionLoud(d)]}, "  "+p.own(v)+", "+p.own(d.Item))
			cells := decisionCells(d)
			p.para("            ", cells[1]+"; rebuild "+cells[2]+"; may lose: "+cells[3])
			text := d.Observed
			if d.Why != "" {
				text += ": " + d.Why
			}
			p.para("            ", text)
		}
	}
}
