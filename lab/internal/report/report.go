// Package report writes an experiment.Report in the formats people and
// machines ask for: one file per format, each a pure function of the report
// and Options.
//
// What every writer promises:
//
//   - It judges nothing. Outcomes, verdicts and sentences are written as they
//     stand in the report; Counts adds up verdicts that were judged before.
//   - It reads no clock, no environment and no file: the same report and
//     options give the same bytes.
//   - Unknown is written as "unknown", never left blank and never as lost.
//   - Nothing in a report is trusted. Scenario files are downloaded and shared
//     and engine messages come from elsewhere, so no control character reaches
//     the output of any format: a terminal escape comes out as the visible
//     text \x1b. Each format adds what its readers need (csv: no formulas;
//     markdown: no HTML, links or broken tables; junit: valid XML).
//   - The output is made in full and then written with one Write, so a full
//     disk or a broken pipe is the only error.
//
// Read is the way back for the json format.
package report

import (
	"fmt"
	"io"
	"strings"

	"persistencelab/lab/internal/experiment"
)

// Options are what the person asking can choose. The zero value is safe
// anywhere: 80 columns, no colour, ASCII signs.
type Options struct {
	// Width in columns of the text format; 0 means 80. Less than 48 is
	// taken as 48, below which a table can't be read.
	Width int
	// Color puts colour on signs and outcome words in the text format. They
	// read the same without it.
	Color bool
	// Unicode lets the text format use signs such as ✓ and ✗. Without it
	// the lab's own signs are ASCII; a scenario's words stay as they are.
	Unicode bool
	// Verbose adds to the text format where each item lies, what exactly
	// was found, and the podman commands.
	Verbose bool
}

// Format is one way to write a report.
type Format struct {
	Name        string // what --format takes
	Ext         string // usual file extension, with its dot
	Description string // a few words for help
	Write       func(w io.Writer, r *experiment.Report, opts Options) error
}

// Formats lists every format, the default one first.
func Formats() []Format {
	return []Format{
		{"text", ".txt", "a table for people, with the reasons", Text},
		{"json", ".json", "the whole record, versioned (see report.schema.json)", JSON},
		{"markdown", ".md", "GitHub tables, with the reasons", Markdown},
		{"csv", ".csv", "a line per verdict, for a spreadsheet", CSV},
		{"html", ".html", "one page to open, print or hand out", HTML},
		{"junit", ".xml", "JUnit XML for CI: surprised fails, unknown is an error", JUnit},
		{"tap", ".tap", "Test Anything Protocol 14", TAP},
	}
}

// Lookup finds a format by name.
func Lookup(name string) (Format, error) {
	var names []string
	for _, f := range Formats() {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Format{}, fmt.Errorf("no format %q; there are %s", name, strings.Join(names, ", "))
}

// Counts is how many verdicts of a report there are of each kind.
type Counts struct {
	AsExpected, Surprised, Unknown, Skipped, Violated int
}

// Count adds up the verdicts, from their judgements alone. A judgement this
// version does not know counts as unknown: it must not pass for a success.
func Count(r *experiment.Report) Counts {
	var c Counts
	for _, v := range r.Results {
		switch v.Judgement {
		case experiment.AsExpected:
			c.AsExpected++
		case experiment.Surprised:
			c.Surprised++
		case experiment.Skipped:
			c.Skipped++
		case experiment.Violated:
			c.Violated++
		default:
			c.Unknown++
		}
	}
	return c
}

// String is the summary line: "9 as expected, 0 surprised, 0 unknown". Skipped
// and violated are named when there are any.
func (c Counts) String() string {
	s := fmt.Sprintf("%d as expected, %d surprised, %d unknown", c.AsExpected, c.Surprised, c.Unknown)
	if c.Violated > 0 {
		s += fmt.Sprintf(", %d violated", c.Violated)
	}
	if c.Skipped > 0 {
		s += fmt.Sprintf(", %d skipped", c.Skipped)
	}
	return s
}
