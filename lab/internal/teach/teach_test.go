package teach

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/browsertest"
	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/picture"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// many is testdata/many.yaml with something in it replaced.
func many(t *testing.T, oldnew ...string) *scenarios.Scenario {
	t.Helper()
	src, err := os.ReadFile("testdata/many.yaml")
	require.NoError(t, err)
	s, err := scenarios.Parse("many.yaml", []byte(strings.NewReplacer(oldnew...).Replace(string(src))), scenarios.Options{})
	require.NoError(t, err)
	return s
}

func listed(qs []classroom.Question) string {
	var parts []string
	for _, q := range qs {
		parts = append(parts, q.Variant+"/"+q.Item+"/"+q.Checkpoint)
	}
	return strings.Join(parts, "\n")
}

func TestWhatIsAsked(t *testing.T) {
	// 16 could be asked, 2 of them vary: more than a learner bears, so the
	// last checkpoint.
	require.Equal(t, `no mount/note/after rm and run
no mount/rows/after rm and run
no mount/seen/after rm and run
no mount/odd/after rm and run
named volume/note/after rm and run
named volume/rows/after rm and run
named volume/seen/after rm and run
named volume/odd/after rm and run`, listed(Questions(many(t))))

	// The author knows better.
	require.Equal(t, `no mount/note/after restart
no mount/seen/after restart
no mount/rows/after rm and run
named volume/note/after restart
named volume/seen/after restart
named volume/rows/after rm and run`,
		listed(Questions(many(t, "expect:\n  after restart:\n", "ask:\n  after restart: [note, seen]\n  after rm and run: rows\nexpect:\n  after restart:\n"))))
}

func TestTheCatalogueIsBearable(t *testing.T) {
	for _, s := range scenarios.Catalogue() {
		n := len(Questions(s))
		require.LessOrEqual(t, n, max(2*bearable, len(s.Variants)), s.Name)
		for _, q := range Questions(s) {
			for _, r := range expectedRules(s, q) {
				require.Contains(t, Choices(s), r.Outcome, "%s: %v can be answered right", s.Name, q)
			}
		}
	}
}

func expectedRules(s *scenarios.Scenario, q classroom.Question) []scenarios.Rule {
	for _, v := range s.Variants {
		if v.Name == q.Variant {
			return v.Expect[q.Checkpoint][q.Item].Rules
		}
	}
	return nil
}

func TestEveryLessonHasItsText(t *testing.T) {
	for _, l := range scenarios.Lessons() {
		require.NotEmpty(t, LessonText(l.Key), l.Key)
	}
}

func TestTheBeliefBehindAPrediction(t *testing.T) {
	s := many(t)
	is := func(id, variant, item string, o scenarios.Outcome) {
		t.Helper()
		m := MisconceptionOf(s, classroom.Question{Variant: variant, Item: item, Checkpoint: "after rm and run"}, o)
		if id == "" {
			require.Nil(t, m)
			return
		}
		require.Equal(t, id, m.ID)
	}
	is("rows-stay", "no mount", "rows", scenarios.Survived)
	is("anything-stays", "no mount", "note", scenarios.Survived)
	is("", "no mount", "note", scenarios.Lost)
}

func plansFor(t *testing.T, s *scenarios.Scenario) []*experiment.Plan {
	t.Helper()
	var plans []*experiment.Plan
	n := 0
	image := func(*scenarios.Image) (engine.Image, error) { return engine.Image{Ref: "localhost/probe:x"}, nil }
	for i := range s.Variants {
		p, err := experiment.New(s, &s.Variants[i], experiment.PlanOptions{
			RunID: "hand", Number: i + 1, Folder: "/tmp/lab-hand",
			Images: image, Stores: experiment.Stores{Probe: image, Store: func() (engine.Image, error) { return image(nil) }},
			Nonce: func() string { n++; return fmt.Sprint("word", n) },
		})
		require.NoError(t, err)
		plans = append(plans, p)
	}
	return plans
}

func TestHandouts(t *testing.T) {
	s := many(t)
	for _, answers := range []bool{false, true} {
		h := Handout{Answers: answers, Parts: []Worksheet{{Lesson: "A lesson", Text: "Read this.", Scenario: s, Plans: plansFor(t, s)}}}
		name := map[bool]string{false: "sheet", true: "answers"}[answers]
		for ext, write := range map[string]func(io.Writer) error{"md": h.Markdown, "html": h.HTML} {
			var b bytes.Buffer
			require.NoError(t, write(&b))
			require.NotContains(t, b.String(), "<script", "an author's text brings no HTML")
			if !answers {
				for _, word := range []string{"survived", "Only where its file", "The layer went"} {
					_, body, _ := strings.Cut(b.String(), "## Many")
					if ext == "html" {
						_, body, _ = strings.Cut(b.String(), "</style>")
					}
					require.NotEmpty(t, body)
					require.NotContains(t, body, word, "a worksheet gives nothing away")
				}
			}
			file := filepath.Join("testdata", name+"."+ext)
			if *update {
				require.NoError(t, os.WriteFile(file, b.Bytes(), 0o644))
				continue
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), b.String(), "go test ./lab/internal/teach -update writes it anew")
		}
	}
}

// On paper and on a phone, and for a screen reader.
func TestHandoutsInTheBrowser(t *testing.T) {
	b := browsertest.Start(t)
	s := many(t)
	for answers, lesson := range map[bool]string{false: "A lesson", true: ""} {
		var page bytes.Buffer
		h := Handout{Answers: answers, Parts: []Worksheet{{Lesson: lesson, Text: "Read this.", Scenario: s, Plans: plansFor(t, s)}}}
		require.NoError(t, h.HTML(&page))
		file := filepath.Join(t.TempDir(), "sheet.html")
		require.NoError(t, os.WriteFile(file, page.Bytes(), 0o644))
		p := b.Page(t)
		p.Size(390, 844)
		p.Open("file://" + file)
		p.Look(t)
		wide := 0
		p.Eval(`document.documentElement.scrollWidth`, &wide)
		require.LessOrEqual(t, wide, 390)
		require.Empty(t, p.Problems())
		p.PDF(fmt.Sprintf("handout-%v", answers))
	}
}

// built is how the catalogue's variants are built.
func built(t *testing.T, s *scenarios.Scenario) []experiment.VariantSummary {
	t.Helper()
	return experiment.Summarize(s, plansFor(t, s)).Variants
}

func TestThePicture(t *testing.T) {
	of := func(variant int, items bool, l Look) string {
		return strings.Join(Picture(picture.Built(built(t, many(t))[variant].Containers, items), l), "\n")
	}
	require.Equal(t, `  +- container app ----------+
  | memory of process 1      |
  | writable layer, its own  |
  | image layers, read-only  |
  | /data                    |== [ named volume mydata ]
  | /dev/shm                 |== [ tmpfs: memory behind a path ]
  +--------------------------+`, of(1, false, Look{Width: 80}))
	require.Equal(t, `Container app has, from the inside out: the memory of process 1, holding seen.
its own writable layer.
image layers, read-only.
Outside, mounted at /data: named volume mydata, holding note and rows.
Outside, mounted at /dev/shm: tmpfs: memory behind a path, holding odd.`, of(1, true, Look{Width: 80, Plain: true}))
	for _, width := range []int{40, 48, 80} {
		for _, s := range scenarios.Catalogue() {
			for _, v := range built(t, s) {
				for _, l := range Picture(picture.Built(v.Containers, true), Look{Width: width, Unicode: true}) {
					require.LessOrEqual(t, report.Columns(l), width, "%s: %s", s.Name, l)
				}
			}
		}
	}
}

// TestTheStrip draws real runs: those of package picture, whose words are
// compared there.
func TestTheStrip(t *testing.T) {
	var b strings.Builder
	for _, name := range []string{"three-mounts", "various", "outside"} {
		f, err := os.Open(filepath.Join("../picture/testdata", name+".json"))
		require.NoError(t, err)
		defer f.Close()
		r, err := report.Read(f)
		require.NoError(t, err)
		for _, rec := range r.Records {
			p := picture.Of(r, rec.Scenario, rec.Variant)
			require.NotNil(t, p)
			fmt.Fprintf(&b, "# %s: %s\n", rec.Scenario, rec.Variant)
			for _, l := range Strip(p, Look{Width: 80, Unicode: true}) {
				fmt.Fprintln(&b, l)
			}
			for _, l := range Picture(p.Frames[len(p.Frames)-1], Look{Width: 80}) {
				fmt.Fprintln(&b, l)
			}
			for _, look := range []Look{{Width: 80, Unicode: true}, {Width: 80}, {Width: 48}, {Width: 40, Plain: true}} {
				for _, l := range Strip(p, look) {
					require.LessOrEqual(t, report.Columns(l), look.Width, l)
				}
				for _, f := range p.Frames {
					for _, l := range Picture(f, look) {
						require.LessOrEqual(t, report.Columns(l), look.Width, l)
					}
				}
			}
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/strips.txt", []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile("testdata/strips.txt")
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "go test ./lab/internal/teach -update writes it anew")
}

// pressed are keys from a test.
type pressed struct {
	keys []string
	asks []Ask
}

func (p *pressed) Keys(_ context.Context, a Ask) (string, error) {
	p.asks = append(p.asks, a)
	if len(p.keys) == 0 {
		return "", io.EOF
	}
	k := p.keys[0]
	p.keys = p.keys[1:]
	return k, nil
}

// broken is a lab whose engine can't be reached.
func broken(err error) func(context.Context) (Lab, error) {
	return func(context.Context) (Lab, error) { return nil, err }
}

func TestALabThatCannotBeReachedEndsTheLesson(t *testing.T) {
	down := errors.New("down")
	p, _, err := LoadProgress(t.TempDir(), "", func(n int) string { return strings.Repeat("0a", n) })
	require.NoError(t, err)
	var out strings.Builder
	tutor := &Tutor{Console: Console{Look: Look{Width: 80}, Out: &out, Keys: &pressed{}, Echo: true}, Open: broken(down), Progress: p, Attempts: t.TempDir()}
	_, err = tutor.Teach(context.Background(), []Unit{{Scenarios: []*scenarios.Scenario{many(t)}}}, false)
	require.ErrorIs(t, err, down)
	entries, err := os.ReadDir(tutor.Attempts)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestProgressThatCannotBeReadIsPutAside(t *testing.T) {
	dir := t.TempDir()
	random := func(n int) string { return strings.Repeat("0b", n) }
	p, _, err := LoadProgress(dir, "", random)
	require.NoError(t, err)
	p.Done["three-mounts"] = 1
	require.NoError(t, p.save())
	again, damaged, err := LoadProgress(dir, "", random)
	require.NoError(t, err)
	require.Empty(t, damaged)
	require.Equal(t, p, again)

	other, _, err := LoadProgress(dir, "Åsa", random)
	require.NoError(t, err)
	require.True(t, other.Identified)
	require.Empty(t, other.Done, "another learner's")

	require.NoError(t, os.WriteFile(filepath.Join(dir, "progress.json"), []byte(`{"vers`), 0o644))
	fresh, damaged, err := LoadProgress(dir, "", random)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "progress.json.damaged"), damaged)
	require.Empty(t, fresh.Done)
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte("version: 1\nanswers:\n  three-mounts: {predict: lost sure, seen: as shown, hints: 1}\n"))
	f.Add([]byte("version: 1\nanswers:\n  three-mounts: {predict: {no mount: {after rm and run: {note: lost}}}}\n"))
	s, err := scenarios.Find("three-mounts")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		a, err := ParseAnswers("a.yaml", src)
		if err == nil {
			err = a.Check([]*scenarios.Scenario{s})
		}
		if bad := new(AnswersError); err != nil && !errors.As(err, &bad) {
			t.Fatalf("%v is no AnswersError", err)
		}
	})
}

func TestCommandsCanBeCopied(t *testing.T) {
	var out strings.Builder
	c := Console{Look: Look{Width: 40}, Out: &out}
	c.command("podman run -d --name lab-1 -e 'A=a b c d e f g h i j k' localhost/persistencelab/probe:x")
	require.Equal(t, `  $ podman run -d --name lab-1 -e \
      'A=a b c d e f g h i j k' \
      localhost/persistencelab/probe:x
`, out.String())
}
