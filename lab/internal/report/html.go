package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"

	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/picture"
	"persistencelab/scenarios"
)

//go:embed report.html.tmpl
var htmlPage string

//go:embed report.css
var htmlStyle string

// Style is the look that the lab's pages share.
func Style() string { return htmlStyle }

// class is an outcome's style in the page.
var class = map[scenarios.Outcome]string{scenarios.Survived: "survived", scenarios.Lost: "lost",
	scenarios.Changed: "changed", scenarios.Refused: "refused"}

// HTML writes one page that needs nothing else: no font, no file, no network;
// its content security policy allows its own style and script, by their
// hashes. Tables carry captions and header scopes for screen readers. What
// happened stands below as pictures, step by step: without the script, or where
// less motion is wanted, as a strip of stills. It prints in black and white
// without losing anything.
func HTML(w io.Writer, r *experiment.Report, _ Options) error {
	ts := tables(r)
	style, script := "\n"+htmlStyle, ""
	drawn := map[string]*picture.Picture{}
	for i, t := range ts {
		for j, v := range t.Grid {
			if p := picture.Of(r, t.Name, v.Name); p != nil {
				drawn[fmt.Sprintf("picture-%d-%d", i+1, j+1)] = p
			}
		}
	}
	if len(drawn) > 0 {
		style, script = style+picture.CSS(), "\n"+picture.Script()
	}
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
		"legend":  picture.Legend,
		"picture": func(table, variant int) (template.HTML, error) {
			id := fmt.Sprintf("picture-%d-%d", table+1, variant+1)
			if p := drawn[id]; p != nil {
				return p.HTML(id)
			}
			return "", nil
		},
		"style":  func() template.CSS { return template.CSS(style) },
		"script": func() template.JS { return template.JS(script) },
		"policy": func() string { return Policy(style, script) },
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
	}{ts, facts(r.Engine), fold(r.Tool), r.Started.UTC().Format("2006-01-02 15:04 MST"), Count(r).String() + " in " + took(r.Took)}); err != nil {
		return fmt.Errorf("write the report as html: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}

// Policy is the content security policy of a page that needs nothing but its
// own style and script; script may be "".
func Policy(style, script string) string {
	p := "default-src 'none'; style-src " + hash(style)
	if script != "" {
		p += "; script-src " + hash(script)
	}
	return p
}

// hash is how a security policy names the content of an element.
func hash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
