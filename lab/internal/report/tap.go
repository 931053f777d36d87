package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"persistencelab/lab/internal/experiment"
)

// TAP writes Test Anything Protocol version 14, a test point per verdict:
// what is as expected is ok, skipped is ok with SKIP, and everything else,
// unknown too, is not ok and says why in its YAML block.
func TAP(w io.Writer, r *experiment.Report, _ Options) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "TAP version 14\n1..%d", len(r.Results))
	if len(r.Results) == 0 {
		b.WriteString(" # no results")
	}
	b.WriteByte('\n')
	for _, f := range facts(r.Engine) {
		fmt.Fprintf(&b, "# %s: %s\n", f.Name, fold(f.Value))
	}
	for i, v := range r.Results {
		row := tapEscape.Replace(fold(strings.Join([]string{v.Scenario, v.Variant, v.Item, v.Checkpoint}, " / ")))
		what := row + ": " + tapEscape.Replace(headline(v))
		switch judgement(v) {
		case string(experiment.AsExpected):
			fmt.Fprintf(&b, "ok %d - %s\n", i+1, what)
		case string(experiment.Skipped):
			fmt.Fprintf(&b, "ok %d - %s # SKIP %s\n", i+1, row, tapEscape.Replace(reason(v)))
		default:
			fmt.Fprintf(&b, "not ok %d - %s\n  ---\n", i+1, what)
			for _, f := range []fact{{"verdict", judgement(v)}, {"outcome", v.Outcome.String()},
				{"expected", v.Expected.String()}, {"message", reason(v)}} {
				fmt.Fprintf(&b, "  %s: %s\n", f.Name, yamlString(f.Value))
			}
			b.WriteString("  ...\n")
		}
	}
	fmt.Fprintf(&b, "# %s in %s\n", Count(r), took(r.Took))
	_, err := w.Write(b.Bytes())
	return err
}

var tapEscape = strings.NewReplacer(`\`, `\\`, `#`, `\#`)

// yamlString quotes text for YAML, which takes JSON's strings.
func yamlString(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fold(s)); err != nil { // a string always encodes
		return `""`
	}
	return strings.TrimSpace(b.String())
}
