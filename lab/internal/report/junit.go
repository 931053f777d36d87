package report

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"time"

	"persistencelab/lab/internal/experiment"
)

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	junitCounts
	Time   string       `xml:"time,attr"`
	Suites []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name string `xml:"name,attr"`
	junitCounts
	Time       string          `xml:"time,attr"`
	Timestamp  string          `xml:"timestamp,attr"`
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitCounts struct {
	Tests    int `xml:"tests,attr"`
	Failures int `xml:"failures,attr"`
	Errors   int `xml:"errors,attr"`
	Skipped  int `xml:"skipped,attr"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure"`
	Error   *junitMessage `xml:"error"`
	Skipped *junitMessage `xml:"skipped"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// JUnit writes a test suite per scenario and a test case per verdict, for CI
// systems: surprised and violated are failures, unknown is an error.
func JUnit(w io.Writer, r *experiment.Report, _ Options) error {
	doc := junitSuites{Name: fold(r.Tool), junitCounts: countJUnit(r), Time: junitTime(r.Took)}
	var props []junitProperty
	for _, f := range facts(r.Engine) {
		props = append(props, junitProperty{f.Name, fold(f.Value)})
	}
	for _, t := range tables(r) {
		part := &experiment.Report{}
		var spent time.Duration
		for _, rec := range r.Records {
			if rec.Scenario == t.Name {
				spent += rec.Ended.Sub(rec.Started)
			}
		}
		s := junitSuite{Name: fold(t.Name), Time: junitTime(spent), Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"), Properties: props}
		for _, v := range r.Results {
			if v.Scenario != t.Name {
				continue
			}
			part.Results = append(part.Results, v)
			c := junitCase{Class: fold(v.Scenario + "." + v.Variant), Name: fold(v.Item + ", " + v.Checkpoint)}
			m := &junitMessage{Message: headline(v), Type: judgement(v), Text: reason(v)}
			switch judgement(v) {
			case string(experiment.AsExpected):
				c.Out = m.Message + ": " + m.Text
			case string(experiment.Surprised), string(experiment.Violated):
				c.Failure = m
			case string(experiment.Skipped):
				c.Skipped = &junitMessage{Message: m.Text}
			default:
				c.Error = m
			}
			s.Cases = append(s.Cases, c)
		}
		s.junitCounts = countJUnit(part)
		doc.Suites = append(doc.Suites, s)
	}
	b := bytes.NewBufferString(xml.Header)
	enc := xml.NewEncoder(b)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("write the report as junit: %w", err)
	}
	b.WriteByte('\n')
	_, err := w.Write(b.Bytes())
	return err
}

func countJUnit(r *experiment.Report) junitCounts {
	n := Count(r)
	return junitCounts{len(r.Results), n.Surprised + n.Violated, n.Unknown, n.Skipped}
}

func junitTime(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
