package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/experiment"
)

var update = flag.Bool("update", false, "rewrite the golden files and the schema")

// inputs are the reports in testdata, by name. A new one is a new file.
func inputs(t *testing.T) map[string]*experiment.Report {
	t.Helper()
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	m := map[string]*experiment.Report{}
	for _, file := range files {
		f, err := os.Open(file)
		require.NoError(t, err)
		r, err := Read(f)
		require.NoError(t, err, file)
		require.NoError(t, f.Close())
		m[strings.TrimSuffix(filepath.Base(file), ".json")] = r
	}
	return m
}

func write(t *testing.T, f Format, r *experiment.Report, opts Options) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, f.Write(&b, r, opts))
	return b.String()
}

// TestGolden writes every input in every format. The json golden is the input
// itself: what is read comes out the same.
func TestGolden(t *testing.T) {
	type as struct {
		Format
		ext  string
		opts Options
	}
	var all []as
	for _, f := range Formats() {
		all = append(all, as{f, f.Name, Options{Unicode: true}})
	}
	text, err := Formats().Pick("text", "")
	require.NoError(t, err)
	all = append(all, as{text, "text-ascii-60", Options{Width: 60}},
		as{text, "text-color-verbose", Options{Color: true, Unicode: true, Verbose: true}})

	for name, r := range inputs(t) {
		for _, f := range all {
			t.Run(name+"."+f.ext, func(t *testing.T) {
				golden := filepath.Join("testdata", name+"."+f.ext)
				got := write(t, f.Format, r, f.opts)
				if *update {
					require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
				}
				want, err := os.ReadFile(golden)
				require.NoError(t, err)
				require.Equal(t, string(want), got)
			})
		}
	}
}

// TestNothingSteers looks for what no format may let through.
func TestNothingSteers(t *testing.T) {
	for name, r := range inputs(t) {
		for _, f := range Formats() {
			got := write(t, f, r, Options{Unicode: true, Verbose: true})
			require.True(t, utf8.ValidString(got), "%s.%s", name, f.Name)
			for i, c := range got {
				if c != '\n' && (unicode.Is(unicode.Cc, c) || '\u202a' <= c && c <= '\u202e' || c == '\u2028') {
					t.Errorf("%s.%s: %U at byte %d: %q", name, f.Name, c, i, got[max(0, i-20):i+1])
				}
			}
		}
	}
}

func TestTextKeepsItsWidth(t *testing.T) {
	text, err := Formats().Pick("text", "")
	require.NoError(t, err)
	for name, r := range inputs(t) {
		for _, w := range []int{0, 48, 60, 100, 200} {
			for _, unicode := range []bool{true, false} {
				limit := w
				if w == 0 {
					limit = 80
				}
				for line := range strings.Lines(write(t, text, r, Options{Width: w, Unicode: unicode})) {
					line = strings.TrimSuffix(line, "\n")
					if columns(line) <= limit {
						continue
					}
					longest := 0
					for _, word := range strings.Fields(line) {
						longest = max(longest, columns(word))
					}
					// the label or indent before a long word counts with it
					if longest < limit-24 {
						t.Errorf("%s at width %d: %d columns: %s", name, w, columns(line), line)
					}
				}
			}
		}
	}
}

func TestColourIsOnlyOnSignsAndWords(t *testing.T) {
	text, err := Formats().Pick("text", "")
	require.NoError(t, err)
	for name, r := range inputs(t) {
		plain := write(t, text, r, Options{Unicode: true})
		colour := write(t, text, r, Options{Unicode: true, Color: true})
		require.Contains(t, colour, "\x1b[", name)
		for _, code := range []string{"0", "1", "33", "34", "35", "36"} {
			colour = strings.ReplaceAll(colour, "\x1b["+code+"m", "")
		}
		require.Equal(t, plain, colour, name)
	}
}

func TestCount(t *testing.T) {
	r := &experiment.Report{}
	for _, j := range []experiment.Judgement{experiment.AsExpected, experiment.AsExpected, experiment.Surprised,
		experiment.NotJudged, experiment.Skipped, experiment.Violated, "", "from the future"} {
		r.Results = append(r.Results, experiment.Verdict{Judgement: j})
	}
	c := Count(r)
	require.Equal(t, Counts{AsExpected: 2, Surprised: 1, Unknown: 3, Skipped: 1, Violated: 1}, c)
	require.Equal(t, "2 as expected, 1 surprised, 3 unknown, 1 violated, 1 skipped", c.String())
	require.Equal(t, "0 as expected, 0 surprised, 0 unknown", Counts{}.String())
}

// TestEmpty: a report with nothing in it is still a document of its format.
func TestEmpty(t *testing.T) {
	for _, f := range Formats() {
		require.NotEmpty(t, write(t, f, &experiment.Report{Version: experiment.ReportVersion}, Options{}), f.Name)
	}
}

// TestEveryVerdictIsShown: whatever the summaries say, no verdict is dropped.
func TestEveryVerdictIsShown(t *testing.T) {
	v := func(o, item string) experiment.Verdict {
		return experiment.Verdict{Scenario: "s", Variant: "v", Item: item, Checkpoint: "c", Outcome: "lost", Detail: o,
			Expected: "survived", Judgement: experiment.Surprised}
	}
	r := &experiment.Report{Version: 1, Results: []experiment.Verdict{v("first", "a"), v("second", "a"), v("third", "b")}}
	for _, f := range Formats() {
		got := write(t, f, r, Options{})
		for _, want := range []string{"first", "second", "third"} {
			require.Contains(t, got, want, f.Name)
		}
	}
}
