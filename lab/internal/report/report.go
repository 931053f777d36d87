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

	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/format"
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
type Format = format.Format[*experiment.Report, Options]

// Formats lists every format, the default one first.
func Formats() format.List[*experiment.Report, Options] {
	return format.List[*experiment.Report, Options]{
		{Name: "text", Ext: ".txt", Write: Text},
		{Name: "json", Ext: ".json", Write: JSON},
		{Name: "markdown", Ext: ".md", Write: Markdown},
		{Name: "csv", Ext: ".csv", Write: CSV},
		{Name: "html", Ext: ".html", Write: HTML},
		{Name: "junit", Ext: ".xml", Write: JUnit},
		{Name: "tap", Ext: ".tap", Write: TAP},
	}
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
