package scenarios

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed *.yaml
var files embed.FS

// Lesson is one lesson of the study guide.
type Lesson struct {
	Key   string // as in a scenario's lesson:
	Title string
}

// Lessons gives the lessons in the study guide's order.
func Lessons() []Lesson {
	return []Lesson{
		{"gone-when-it-restarts", "Gone when it restarts"},
		{"the-writable-layer-is-temporary", "The writable layer is temporary"},
		{"disposable-on-purpose", "Disposable on purpose"},
		{"mounting-something-that-lasts", "Mounting something that lasts"},
		{"keep-state-out-of-the-compute", "Keep state out of the compute"},
		{"virtual-machines-lose-it-too", "Virtual machines lose it too"},
		{"designing-so-restarts-are-safe", "Designing so restarts are safe"},
		{"why-your-agent-forgot-everything", "Why your agent forgot everything"},
	}
}

func lessonKeys() []string {
	var out []string
	for _, l := range Lessons() {
		out = append(out, l.Key)
	}
	return out
}

// Catalogue gives the built-in scenarios in the study guide's order, by name
// within a lesson. They are parsed at the first call; callers must not change
// them. It panics on a built-in file with a fault, which a test rules out.
func Catalogue() []*Scenario { return catalogue() }

var catalogue = sync.OnceValue(func() []*Scenario {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err)
	}
	var all []*Scenario
	for _, e := range entries {
		src, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		s, err := Parse(e.Name(), src, Options{})
		if err != nil {
			panic(err)
		}
		all = append(all, s)
	}
	order := func(s *Scenario) int {
		i := slices.Index(lessonKeys(), s.Lesson)
		if i < 0 {
			return len(lessonKeys())
		}
		return i
	}
	slices.SortFunc(all, func(a, b *Scenario) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), strings.Compare(a.Name, b.Name))
	})
	return all
})

// Source gives a built-in scenario's file as it stands, comments and all.
func Source(name string) ([]byte, error) {
	s, err := Find(name)
	if err != nil {
		return nil, err
	}
	return files.ReadFile(s.File)
}

// UnknownError: no built-in scenario has this name.
type UnknownError struct {
	Name       string
	Suggestion string // "did you mean …", or where to look
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no built-in scenario is called %q", e.Name)
}

// Find gives a built-in scenario by name, or an *UnknownError.
func Find(name string) (*Scenario, error) {
	var known []string
	for _, s := range Catalogue() {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	e := &UnknownError{Name: name, Suggestion: "lab list"}
	if near := nearest(strings.TrimSuffix(name, ".yaml"), known); near != "" {
		e.Suggestion = fmt.Sprintf("did you mean %q?", near)
	}
	return nil, e
}
