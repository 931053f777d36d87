package picture_test

import (
	"bytes"
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/picture"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// read reads a report of a real run.
func read(t *testing.T, name string) *experiment.Report {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	defer f.Close()
	r, err := report.Read(f)
	require.NoError(t, err)
	return r
}

var reports = []string{"three-mounts", "various", "outside"}

// pictures are all pictures of all reports, with the record of each.
func pictures(t *testing.T, check func(t *testing.T, p *picture.Picture, r *experiment.Report, rec *experiment.Record)) {
	t.Helper()
	for _, name := range reports {
		r := read(t, name)
		for i := range r.Records {
			rec := &r.Records[i]
			t.Run(rec.Scenario+"/"+rec.Variant, func(t *testing.T) {
				p := picture.Of(r, rec.Scenario, rec.Variant)
				require.NotNil(t, p)
				check(t, p, r, rec)
			})
		}
	}
}

// TestInWords compares the pictures as they are told to who can't see them.
func TestInWords(t *testing.T) {
	for _, name := range reports {
		var b bytes.Buffer
		r := read(t, name)
		for _, rec := range r.Records {
			p := picture.Of(r, rec.Scenario, rec.Variant)
			fmt.Fprintf(&b, "# %s: %s\n", rec.Scenario, rec.Variant)
			for _, f := range p.Frames {
				fmt.Fprintf(&b, "\n%d %s\n", f.Step, f.Title)
				for _, s := range f.Says {
					fmt.Fprintf(&b, "  %s\n", s)
				}
				fmt.Fprintf(&b, "  | %s\n", f.Alt())
			}
			fmt.Fprintln(&b)
		}
		golden := filepath.Join("testdata", name+".txt")
		if *update {
			require.NoError(t, os.WriteFile(golden, b.Bytes(), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), b.String())
	}
}

// TestNothingIsInvented: a thing is drawn as there only after a proof has
// shown it, an item's outcome only at the step that looked, and it is the
// verdict's.
func TestNothingIsInvented(t *testing.T) {
	pictures(t, func(t *testing.T, p *picture.Picture, r *experiment.Report, rec *experiment.Record) {
		ids := map[string]bool{"": true}
		for i, f := range p.Frames {
			sr := rec.Steps[i]
			if sr.Proof != nil && sr.Proof.After != nil {
				id := sr.Proof.After.ID
				ids[id[:12]], ids[id[strings.LastIndex(id, "-")+1:]] = true, true // a machine's is its name and number
			}
			for _, o := range sr.Others {
				if o.After != nil {
					ids[o.After.ID[:12]] = true
				}
			}
			for _, c := range f.Containers {
				require.True(t, ids[c.ID], "step %d draws container %s", f.Step, c.ID)
				service := c.Name == "db" // up before the first step
				require.True(t, c.State != picture.There || c.ID != "" || service, "step %d", f.Step)
			}
			for _, it := range items(&f) {
				looked := slices.ContainsFunc(sr.Items, func(o experiment.Observation) bool { return o.Item == it.Name })
				if it.New {
					require.True(t, looked, "step %d: %s has a new status", f.Step, it.Name)
				}
				switch it.Status {
				case picture.Survived, picture.Lost, picture.Changed:
					if !it.New {
						continue // since the last look nothing happened: below
					}
					found := false
					for _, v := range r.Results {
						if v.Scenario == rec.Scenario && v.Variant == rec.Variant && v.Item == it.Name && v.Checkpoint == sr.Label {
							found = true
							require.Equal(t, v.Outcome, scenarios.Outcome(it.Status))
						}
					}
					require.True(t, found, "step %d: %s is %s without a verdict", f.Step, it.Name, it.Status)
				}
			}
			if sr.Label == "" && len(sr.Items) == 0 && (sr.Proof == nil || sr.Proof.Refused == "") {
				for _, it := range items(&f) {
					require.Contains(t, []picture.Status{picture.Unseen, picture.Failed, picture.Missing}, it.Status,
						"step %d (%s): nobody has looked at %s since", f.Step, sr.Verb, it.Name)
				}
			}
		}
		last := p.Frames[len(p.Frames)-1]
		require.NotEmpty(t, items(&last))
	})
}

func items(f *picture.Frame) []picture.Item {
	var all []picture.Item
	for _, c := range f.Containers {
		all = append(append(all, c.Memory...), c.Layer...)
	}
	for _, s := range f.Stores {
		all = append(all, s.Items...)
	}
	return all
}

// TestWhereThingsLie: not everything that outlives a container is a mount of
// it, and not everything that is asked for lies anywhere.
func TestWhereThingsLie(t *testing.T) {
	r := read(t, "outside")
	lies := func(scenario, variant, item string) string {
		p := picture.Of(r, scenario, variant)
		require.NotNil(t, p)
		f := p.Frames[1] // the write
		require.Equal(t, "write", f.Title)
		in := func(items []picture.Item) bool {
			return slices.ContainsFunc(items, func(it picture.Item) bool { return it.Name == item })
		}
		for _, c := range f.Containers {
			switch {
			case in(c.Layer):
				return "layer of " + c.Name
			case in(c.Memory):
				return "memory of " + c.Name
			}
		}
		for _, s := range f.Stores {
			if in(s.Items) {
				return s.Name
			}
		}
		return "nowhere"
	}
	require.Equal(t, "layer of app", lies("external-database", "database on a volume", "note"))
	require.Equal(t, "named volume db", lies("external-database", "database on a volume", "orders"))
	require.Equal(t, "memory of machine", lies("vm-instance-store", "terminate", "seen"))
	require.Equal(t, "durable disk data", lies("vm-instance-store", "terminate", "kept"))
	require.Equal(t, "instance store scratch", lies("vm-instance-store", "terminate", "local"))
}

// TestARunThatEndedEarlySaysSo: and no step is drawn that did not happen.
func TestARunThatEndedEarlySaysSo(t *testing.T) {
	r := read(t, "three-mounts")
	r.Records[0].Steps = r.Records[0].Steps[:3]
	r.Records[0].Fault = "the engine went away"
	p := picture.Of(r, r.Records[0].Scenario, r.Records[0].Variant)
	require.Len(t, p.Frames, 4)
	require.Equal(t, "the run ended early", p.Frames[3].Title)
	require.Contains(t, p.Frames[3].Says[0], "the engine went away")

	r.Records[0].Steps = nil
	require.Nil(t, picture.Of(r, r.Records[0].Scenario, r.Records[0].Variant), "a variant that never ran")
	require.Nil(t, picture.Of(r, "none", "none"))
}

// TestHostileNamesStayText: and stay inside the drawing.
func TestHostileNamesStayText(t *testing.T) {
	r := read(t, "three-mounts")
	evil := "</text><script>alert(1)</script>\x1b[31m\u202e" + strings.Repeat("long", 40)
	b := r.Scenarios[0].Variants[1].Containers
	b[0].Mounts[0].Source = evil
	for i := range b[0].Places {
		b[0].Places[i].Item = evil
	}
	for i := range r.Records[1].Steps {
		for j := range r.Records[1].Steps[i].Items {
			r.Records[1].Steps[i].Items[j].Item = evil
		}
	}
	h, err := picture.Of(r, r.Records[1].Scenario, r.Records[1].Variant).HTML("p")
	require.NoError(t, err)
	require.NotContains(t, string(h), "<script")
	require.NotContains(t, string(h), "\x1b")
	require.NotContains(t, string(h), "\u202e")
	require.NotRegexp(t, ` (width|x)="(3[6-9]\d|[4-9]\d\d|\d{4,})"`, string(h), "nothing is wider than the drawing")
}

func TestPagesAreWellFormed(t *testing.T) {
	for _, name := range reports {
		var b bytes.Buffer
		require.NoError(t, report.HTML(&b, read(t, name), report.Options{}))
		page := b.Bytes()
		d := xml.NewDecoder(bytes.NewReader(page))
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			if e, ok := tok.(xml.StartElement); ok {
				for _, a := range e.Attr {
					require.NotContains(t, []string{"src", "href", "style"}, a.Name.Local)
					require.False(t, strings.HasPrefix(a.Name.Local, "on"), a.Name.Local)
				}
			}
		}
		require.Less(t, len(page), 200_000*len(read(t, name).Records)/3, "a page stays small")
	}
}
