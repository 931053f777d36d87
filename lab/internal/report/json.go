package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// Schema is the JSON Schema of what JSON writes, made from the Go types and
// their comments (go test ./lab/internal/report -update).
//
//go:embed report.schema.json
var Schema []byte

// maxDocument bounds what Read takes: a class's worth of runs is far below it.
const maxDocument = 256 << 20

// JSON writes the report as it is, as one indented document that Schema
// describes. Durations are nanoseconds in fields named *_ns; lists are never
// null. Characters that could steer a terminal are \u escapes, which a JSON
// reader turns back.
func JSON(w io.Writer, r *experiment.Report, _ Options) error {
	return Document(w, withoutNulls(r))
}

// steersJSON leaves out what encoding/json escapes itself and the document's
// own line breaks.
func steersJSON(r rune) bool { return r >= 0x7f && r != '\ufffd' && steers(r) }

// withoutNulls copies the report with empty lists in place of missing ones.
func withoutNulls(r *experiment.Report) *experiment.Report {
	c := *r
	c.Scenarios = list0(c.Scenarios)
	c.Results = list0(c.Results)
	c.Records = list0(c.Records)
	for i := range c.Scenarios {
		s := &c.Scenarios[i]
		s.Items, s.Variants, s.Checkpoints = list0(s.Items), list0(s.Variants), list0(s.Checkpoints)
		for j := range s.Variants {
			s.Variants[j].Commands = list0(s.Variants[j].Commands)
		}
	}
	for i := range c.Records {
		rec := &c.Records[i]
		rec.Steps, rec.Cleanup.Removed = list0(rec.Steps), list0(rec.Cleanup.Removed)
	}
	return &c
}

// list0 copies a list; the copy is never nil.
func list0[T any](s []T) []T { return append(make([]T, 0, len(s)), s...) }

// Read reads back a report that JSON wrote. It refuses a document of another
// version, one that is cut off, and JSON that is no report of the lab; it
// passes over fields it does not know, which a later lab may have added.
func Read(r io.Reader) (*experiment.Report, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read the result file: %w", err)
	}
	if len(data) > maxDocument {
		return nil, fmt.Errorf("not a result file: larger than %d MB", maxDocument>>20)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the result file is empty")
	}

	// What it is comes first: a version this lab does not know may have
	// other types below.
	var head map[string]json.RawMessage
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, readError(err)
	}
	for _, k := range []string{"version", "tool", "engine", "scenarios", "results", "records"} {
		if _, ok := head[k]; !ok {
			return nil, fmt.Errorf("not a result file of the lab: it has no %q", k)
		}
	}
	var version int
	if err := json.Unmarshal(head["version"], &version); err != nil {
		return nil, fmt.Errorf("not a result file of the lab: version %s is not a number", fold(string(head["version"])))
	}
	if version != experiment.ReportVersion {
		return nil, fmt.Errorf("the result file has version %d; this lab reads version %d", version, experiment.ReportVersion)
	}

	var rep experiment.Report
	if err := json.Unmarshal(data, &rep); err != nil {
		return nil, readError(err)
	}
	for i, v := range rep.Results {
		if !slices.Contains(judgements, v.Judgement) {
			return nil, fmt.Errorf("the result file is damaged: results[%d] has an unknown verdict %q", i, v.Judgement)
		}
		if !slices.Contains(outcomes, v.Outcome.String()) || v.Outcome == scenarios.Varies {
			return nil, fmt.Errorf("the result file is damaged: results[%d] has an unknown outcome %q", i, v.Outcome)
		}
		if !slices.Contains(outcomes, v.Expected.String()) {
			return nil, fmt.Errorf("the result file is damaged: results[%d] expects an unknown outcome %q", i, v.Expected)
		}
	}
	return &rep, nil
}

// The words that stand in a report.
var (
	judgements = []experiment.Judgement{experiment.NotJudged, experiment.AsExpected,
		experiment.Surprised, experiment.Skipped, experiment.Violated}
	outcomes = []string{scenarios.Unknown.String(), scenarios.Survived.String(), scenarios.Lost.String(),
		scenarios.Changed.String(), scenarios.Refused.String(), scenarios.Varies.String()}
)

func readError(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax) && syntax.Error() == "unexpected end of JSON input":
		return fmt.Errorf("the result file is cut off after %d bytes", syntax.Offset)
	case errors.As(err, &syntax):
		return fmt.Errorf("not a result file: byte %d is not JSON: %w", syntax.Offset, err)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("not a result file of the lab: a JSON %s", kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("the result file is damaged: %s is a JSON %s", kind.Field, kind.Value)
	}
	return fmt.Errorf("the result file is damaged: %w", err)
}
