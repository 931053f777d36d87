package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

//go:embed report.html.tmpl
var htmlPage string

// class is an outcome's style in the page.
var class = map[scenarios.Outcome]string{scenarios.Survived: "survived", scenarios.Lost: "lost",
	scenarios.Changed: "changed", scenarios.Refused: "refused"}

// HTML writes one page that needs nothing else: no script, no font, no
// picture, no network (its content security policy says so). Tables carry
// captions and header scopes for screen readers, and it prints in black and
// white without losing anything.
func HTML(w io.Writer, r *experiment.Report, _ Options) error {
	page, err := template.New("report").Funcs(template.FuncMap{
		"clean":   fold,
		"visible": visible,
		"title":   func(t table) string { return fold(title(t)) },
		"written": writtenWord,
		"class":   func(v experiment.Verdict) string { return cmp.Or(class[v.Outcome], "unknown") },
		"sign":    func(v experiment.Verdict) string { return sign(v.Outcome, true) },
		"remark":  func(v experiment.Verdict) string { return fold(remark(v)) },
		"alarm":   alarm,
		"skipped": func(v experiment.Verdict) bool { return v.Judgement == experiment.Skipped },
		"heads":   func() []string { return decisionHeads },
		"cells":   decisionCells,
		"loud":    decisionLoud,
		"plus":    func(a, b int) int { return a + b },
	}).Parse(htmlPage)
	if err != nil {
		return fmt.Errorf("write the report as html: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, struct {
		Tables  []table
		Facts   []fact
		Tool    string
		Started string
		Summary string
	}{tables(r), facts(r.Engine), fold(r.Tool), r.Started.UTC().Format("2006-01-02 15:04 MST"), Count(r).String() + " in " + took(r.Took)}); err != nil {
		return fmt.Errorf("write the report as html: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
