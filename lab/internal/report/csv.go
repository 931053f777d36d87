package report

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"persistencelab/lab/internal/experiment"
)

// CSV writes one line per verdict under the columns scenario, variant, item,
// checkpoint, written, outcome, expected, verdict, detail. written is true or
// false; detail is the reason where there is nothing more exact.
//
// A cell that a spreadsheet would take for a formula starts with ' instead.
func CSV(w io.Writer, r *experiment.Report, _ Options) error {
	var b bytes.Buffer
	c := csv.NewWriter(&b)
	line := func(cells ...string) {
		for i := range cells {
			cells[i] = notFormula(fold(cells[i]))
		}
		c.Write(cells) // into memory; Error below would have it
	}
	line("scenario", "variant", "item", "checkpoint", "written", "outcome", "expected", "verdict", "detail")
	for _, v := range r.Results {
		line(v.Scenario, v.Variant, v.Item, v.Checkpoint, strconv.FormatBool(v.Written),
			v.Outcome.String(), v.Expected.String(), judgement(v), cmp.Or(v.Detail, v.Why))
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// notFormula marks as text what a spreadsheet would run. The wide forms count
// too: some spreadsheets read them as the plain ones.
func notFormula(s string) string {
	if first, _ := utf8.DecodeRuneInString(s); strings.ContainsRune("=+-@\uff1d\uff0b\uff0d\uff20", first) {
		return "'" + s
	}
	return s
}
