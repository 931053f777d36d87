package scenarios

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

//go:embed *.yaml
var files embed.FS

// Lesson is one lesson of the study guide.
type Lesson struct {
	Key   string // as in a scenario's lesson:
	Title string
	// Order names its scenarios as they build on each other; any others
	// come after these, by name.
	Order []string
}

// Lessons gives the lessons in the study guide's order.
func Lessons() []Lesson {
	return []Lesson{
		{"gone-when-it-restarts", "Gone when it restarts", []string{"memory-goes-first", "stop-and-start", "tmpfs"}},
		{"the-writable-layer-is-temporary", "The writable layer is temporary", []string{"writable-layer", "restart-is-not-a-reset", "cannot-be-pulled-out"}},
		{"disposable-on-purpose", "Disposable on purpose", []string{"no-drift"}},
		{"mounting-something-that-lasts", "Mounting something that lasts", []string{
			"three-mounts", "named-volume", "bind-mount", "anonymous-volume", "beside-the-mount",
			"over-image-content", "read-only", "one-volume-two-containers", "what-prune-takes",
			"empty-dir-is-not-a-pvc",
		}},
		{"keep-state-out-of-the-compute", "Keep state out of the compute", nil},
		{"virtual-machines-lose-it-too", "Virtual machines lose it too", nil},
		{"designing-so-restarts-are-safe", "Designing so restarts are safe", nil},
		{"why-your-agent-forgot-everything", "Why your agent forgot everything", []string{"image-update"}},
	}
}

func lessonKeys() []string {
	var out []string
	for _, l := range Lessons() {
		out = append(out, l.Key)
	}
	return out
}

// Catalogue gives the built-in scenarios in the study guide's order. They are
// parsed at the first call; callers must not change them. It panics on a
// built-in file with a fault, which a test rules out.
func Catalogue() []*Scenario { return catalogue() }

var catalogue = sync.OnceValue(func() []*Scenario {
	all := make([]*Scenario, len(builtIn()))
	var wg sync.WaitGroup
	for i, name := range builtIn() {
		wg.Add(1)
		go func() {
			defer wg.Done()
			s, err := Find(name)
			if err != nil {
				panic(err)
			}
			all[i] = s
		}()
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b *Scenario) int { return byStudyGuide(a.heading(), b.heading()) })
	return all
})

// Heading is what a list shows of a scenario.
type Heading struct{ Name, Title, Lesson string }

func (s *Scenario) heading() Heading { return Heading{s.Name, s.Title, s.Lesson} }

// Headings gives what a list of the built-in scenarios shows, in the study
// guide's order. It reads the head of each file only, the part before its
// about:, so that a list costs no more than it must; a test holds it to what
// Parse says.
func Headings() []Heading {
	var all []Heading
	for _, name := range builtIn() {
		src, err := Source(name)
		if err != nil {
			panic(err) // a name of builtIn
		}
		head, _, _ := bytes.Cut(src, []byte("\nabout:"))
		var h Heading
		if err := yaml.Unmarshal(head, &h); err != nil {
			panic(err)
		}
		all = append(all, h)
	}
	slices.SortFunc(all, byStudyGuide)
	return all
}

// byStudyGuide orders by lesson, within it as the lesson says, then by name.
func byStudyGuide(a, b Heading) int {
	place := func(h Heading) (lesson, within int) {
		for i, l := range Lessons() {
			if at := slices.Index(l.Order, h.Name); at >= 0 {
				return i, at
			}
		}
		lesson = slices.Index(lessonKeys(), h.Lesson)
		if lesson < 0 {
			lesson = len(lessonKeys())
		}
		return lesson, math.MaxInt
	}
	aLesson, aWithin := place(a)
	bLesson, bWithin := place(b)
	return cmp.Or(cmp.Compare(aLesson, bLesson), cmp.Compare(aWithin, bWithin), strings.Compare(a.Name, b.Name))
}

// builtIn gives the names of the built-in scenarios: of their files, too.
func builtIn() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // embedded: it is there
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Find parses a built-in scenario, and only that one. The error is an
// *UnknownError where there is none of that name.
func Find(name string) (*Scenario, error) {
	src, err := Source(name)
	if err != nil {
		return nil, err
	}
	return Parse(name+".yaml", src, Options{})
}

// Source gives a built-in scenario's file as it stands, comments and all, or
// an *UnknownError.
func Source(name string) ([]byte, error) {
	known := builtIn()
	if slices.Contains(known, name) {
		return files.ReadFile(name + ".yaml")
	}
	e := &UnknownError{Name: name, Suggestion: "lab list"}
	if near := nearest(strings.TrimSuffix(name, ".yaml"), known); near != "" {
		e.Suggestion = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, e
}

// UnknownError: no built-in scenario has this name.
type UnknownError struct {
	Name       string
	Suggestion string // did you mean "…"?, or the command to look with
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no built-in scenario is called %q", e.Name)
}
