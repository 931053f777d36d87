package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"persistencelab/lab/internal/experiment"
)

// Markdown writes what Text does as GitHub tables. Text of the report is
// escaped: it brings no markup, HTML or links with it.
func Markdown(w io.Writer, r *experiment.Report, _ Options) error {
	var b bytes.Buffer
	for _, t := range tables(r) {
		fmt.Fprintf(&b, "## %s\n\n", md(title(t)))
		if t.Question != "" {
			fmt.Fprintf(&b, "**Question:** %s\n\n", md(t.Question))
		}
		for _, it := range t.Items {
			fmt.Fprintf(&b, "- **%s**: %s, %s\n", md(it.Name), md(it.Kind), md(it.Place))
		}
		if len(t.Items) > 0 {
			b.WriteByte('\n')
		}

		b.WriteString("| variant | item | written |")
		for _, c := range t.Checkpoints {
			fmt.Fprintf(&b, " came back %s |", md(c))
		}
		b.WriteString("\n" + strings.Repeat("|---", 3+len(t.Checkpoints)) + "|\n")
		for _, v := range t.Grid {
			if v.Skipped != "" || len(v.Rows) == 0 {
				item := "–"
				if v.Skipped != "" {
					item = "**SKIPPED**"
				}
				fmt.Fprintf(&b, "| %s | %s | – |%s\n", md(v.Name), item, strings.Repeat(" – |", len(t.Checkpoints)))
				continue
			}
			for _, row := range v.Rows {
				fmt.Fprintf(&b, "| %s | %s | %s |", md(v.Name), md(row.Item), writtenWord(row.Written))
				for _, c := range row.Cells {
					fmt.Fprintf(&b, " %s |", mdCell(c, row.Written == "partly"))
				}
				b.WriteByte('\n')
			}
		}
		b.WriteByte('\n')

		for _, v := range t.Grid {
			if v.Skipped != "" {
				fmt.Fprintf(&b, "- **%s**: **SKIPPED**: %s\n", md(v.Name), md(v.Skipped))
			}
			for _, n := range v.Notes {
				fmt.Fprintf(&b, "- **%s**: ", md(v.Name))
				if n.Mark != "" {
					fmt.Fprintf(&b, "**%s** ", n.Mark)
				}
				if n.About != "" {
					fmt.Fprintf(&b, "%s: ", md(n.About))
				}
				fmt.Fprintln(&b, md(n.Text))
			}
		}
		b.WriteByte('\n')
		mdDecisions(&b, t)
	}

	b.WriteString("| engine | |\n|---|---|\n")
	for _, f := range facts(r.Engine) {
		name := f.Name
		if name == "engine" {
			name = "version"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", name, md(f.Value))
	}
	fmt.Fprintf(&b, "| run | %s, %s |\n\n%s in %s\n", r.Started.UTC().Format("2006-01-02 15:04 MST"), md(r.Tool), Count(r), took(r.Took))
	_, err := w.Write(b.Bytes())
	return err
}

// mdDecisions is the durability decision table.
func mdDecisions(b *bytes.Buffer, t table) {
	if len(t.Decisions) == 0 {
		return
	}
	fmt.Fprintf(b, "### What may be lost, and what was\n\n| variant | %s |\n%s|\n", strings.Join(decisionHeads, " | "), strings.Repeat("|---", 1+len(decisionHeads)))
	for _, d := range t.Decisions {
		fmt.Fprintf(b, "| %s |", md(d.Variant))
		cells := decisionCells(d)
		for i, c := range cells {
			c = md(c)
			if i == len(cells)-1 && decisionLoud(d) {
				c = "**" + strings.ToUpper(d.Verdict) + "**" + strings.TrimPrefix(c, d.Verdict)
			}
			fmt.Fprintf(b, " %s |", c)
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
}

// mdCell is a verdict's cell.
func mdCell(vs []experiment.Verdict, partly bool) string {
	var parts []string
	for _, v := range vs {
		if v.Judgement == experiment.Skipped {
			parts = append(parts, "– **skipped**")
			continue
		}
		s := sign(v.Outcome, true) + " " + md(v.Outcome.String())
		if partly && !v.Written {
			s += ", not written"
		}
		if m := alarm(v); m != "" {
			s += " **" + m + "**"
		}
		if m := remark(v); m != "" {
			s += ", " + md(m)
		}
		parts = append(parts, s)
	}
	if parts == nil {
		return "–"
	}
	return strings.Join(parts, "; ")
}

// md makes text safe inside a line of Markdown or a table cell. It never
// starts a line, so the markers of blocks need no care; web addresses are
// broken up so that they do not become links.
func md(s string) string { return mdEscape.Replace(fold(s)) }

var mdEscape = strings.NewReplacer(`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `|`, `\|`,
	`~`, `\~`, `#`, `\#`, `!`, `\!`, `$`, `\$`, `<`, `&lt;`, `>`, `&gt;`, `&`, `&amp;`,
	`http:`, `http&#58;`, `https:`, `https&#58;`, `ftp:`, `ftp&#58;`, `www.`, `www&#46;`, `@`, `&#64;`)
