package report

import (
	"encoding/csv"
	"encoding/xml"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/experiment"
)

// each runs a check over every input in one format.
func each(t *testing.T, format string, check func(t *testing.T, r *experiment.Report, out string)) {
	t.Helper()
	f, err := Formats().Pick(format, "")
	require.NoError(t, err)
	for name, r := range inputs(t) {
		t.Run(name, func(t *testing.T) { check(t, r, write(t, f, r, Options{})) })
	}
}

func TestCSVReadsBack(t *testing.T) {
	each(t, "csv", func(t *testing.T, r *experiment.Report, out string) {
		rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		require.NoError(t, err)
		require.Equal(t, "scenario,variant,item,checkpoint,written,outcome,expected,verdict,detail", strings.Join(rows[0], ","))
		require.Len(t, rows, 1+len(r.Results))
		for _, row := range rows {
			for _, cell := range row {
				require.NotRegexp(t, `^[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]`, cell)
			}
		}
	})
	require.Equal(t, "'\uff1d1", notFormula("\uff1d1"))
	require.Equal(t, "", notFormula(""))
}

// TestMarkdownTablesHold: every row has the cells of its heading, and no HTML
// gets in.
func TestMarkdownTablesHold(t *testing.T) {
	bar := regexp.MustCompile(`(^|[^\\])(\\\\)*\|`)
	each(t, "markdown", func(t *testing.T, _ *experiment.Report, out string) {
		cells := 0
		for line := range strings.Lines(out) {
			n := len(bar.FindAllString(line, -1))
			switch {
			case !strings.HasPrefix(line, "|"):
				cells = 0
			case cells == 0:
				cells = n
			case strings.HasPrefix(line, "|---"):
				require.Equal(t, cells, strings.Count(line, "|"), line)
			default:
				require.Equal(t, cells, n, line)
			}
			require.NotContains(t, line, "<")
			require.NotContains(t, line, "http:")
		}
	})
}

// TestXMLAndHTMLAreWellFormed: the page too is written so that a strict parser
// can follow it.
func TestXMLAndHTMLAreWellFormed(t *testing.T) {
	each(t, "junit", func(t *testing.T, r *experiment.Report, out string) {
		var doc junitSuites
		require.NoError(t, xml.Unmarshal([]byte(out), &doc))
		var sum junitCounts
		cases := junitCounts{}
		for _, s := range doc.Suites {
			sum.Tests += s.Tests
			sum.Failures += s.Failures
			sum.Errors += s.Errors
			sum.Skipped += s.Skipped
			for _, c := range s.Cases {
				cases.Tests++
				if c.Failure != nil {
					cases.Failures++
				}
				if c.Error != nil {
					cases.Errors++
				}
				if c.Skipped != nil {
					cases.Skipped++
				}
			}
		}
		require.Equal(t, len(r.Results), doc.Tests)
		require.Equal(t, doc.junitCounts, sum)
		require.Equal(t, doc.junitCounts, cases)
	})
	each(t, "html", func(t *testing.T, _ *experiment.Report, out string) {
		require.NotContains(t, out, "<script")
		require.NotContains(t, out, "<img")
		d := xml.NewDecoder(strings.NewReader(out))
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			if e, ok := tok.(xml.StartElement); ok {
				for _, a := range e.Attr {
					require.NotContains(t, []string{"src", "href", "onclick"}, a.Name.Local, "the page needs nothing else")
				}
			}
		}
	})
}

func TestTAPCountsAgree(t *testing.T) {
	point := regexp.MustCompile(`(?m)^(not )?ok \d+ - .*$`)
	each(t, "tap", func(t *testing.T, r *experiment.Report, out string) {
		require.True(t, strings.HasPrefix(out, fmt.Sprintf("TAP version 14\n1..%d\n", len(r.Results))), out)
		c, notOK, skip := Count(r), 0, 0
		points := point.FindAllString(out, -1)
		require.Len(t, points, len(r.Results))
		for _, p := range points {
			if strings.HasPrefix(p, "not ") {
				notOK++
			}
			if regexp.MustCompile(`[^\\]# SKIP `).MatchString(p) {
				skip++
			}
		}
		require.Equal(t, c.Surprised+c.Violated+c.Unknown, notOK)
		require.Equal(t, c.Skipped, skip)
	})
}

// TestUnknownIsSaid: the zero outcome is a word in every format, and nothing
// that could be taken for a loss or a success.
func TestUnknownIsSaid(t *testing.T) {
	r := &experiment.Report{Version: 1, Results: []experiment.Verdict{{Scenario: "s", Variant: "v", Item: "i", Checkpoint: "c",
		Expected: "survived", Judgement: experiment.NotJudged, Why: "the engine went away"}}}
	for _, f := range Formats() {
		out := write(t, f, r, Options{})
		require.Contains(t, out, "unknown", f.Name)
		require.NotRegexp(t, `[^.]\blost\b[^,]`, out, f.Name) // but for the style sheet of html
	}
}
