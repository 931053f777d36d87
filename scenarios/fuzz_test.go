package scenarios_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"persistencelab/scenarios"
)

// FuzzParse holds what Parse promises against any bytes: it returns, each
// fault lies in the file, what is shown can't harm a terminal, and what parses
// leaves nothing open.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			f.Fatal(pattern, err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	f.Add(scenarios.Starter("x"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := scenarios.Parse("fuzz.yaml", src, scenarios.Options{})
		if err != nil {
			checkFaults(t, src, err)
			return
		}
		for _, v := range s.Variants {
			checkRunnable(t, s, v)
		}
	})
}

func checkFaults(t *testing.T, src []byte, err error) {
	var faults scenarios.Errors
	if !errors.As(err, &faults) || len(faults) == 0 {
		t.Fatalf("no faults in %v", err)
	}
	lines := strings.Count(strings.ReplaceAll(string(src), "\r", "\n"), "\n") + 1
	for _, e := range faults {
		if e.Line < 1 || e.Col < 1 || e.Line > lines || e.SourceLine != "" && e.Col > utf8.RuneCountInString(e.SourceLine)+1 {
			t.Errorf("outside the file (%d lines): %v, %q", lines, e, e.SourceLine)
		}
		if e.Msg == "" || e.Suggestion == "" {
			t.Errorf("helps nobody: %#v", e)
		}
	}
	for _, r := range faults.Excerpt() {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Fatalf("%q in %q", r, faults.Excerpt())
		}
	}
}

func checkRunnable(t *testing.T, s *scenarios.Scenario, v scenarios.Variant) {
	if len(v.Containers) == 0 || len(v.Steps) == 0 {
		t.Fatalf("variant %q has nothing to run", v.Name)
	}
	for _, step := range v.Steps {
		for _, name := range v.Targets(step) {
			if _, ok := v.Container(name); !ok {
				t.Errorf("%s on a container that does not exist: %q", step.Verb, name)
			}
		}
		if step.Verb != "read" && step.Verb != "write" {
			continue
		}
		for _, item := range s.ItemsOf(step) {
			if _, ok := v.Container(v.Where(step, item)); !ok {
				t.Errorf("%s of %s: in no container", step.Verb, item.Name)
			}
			if step.Verb != "read" {
				continue
			}
			for _, version := range []string{"4.0.0", "4.3.1", "5.4.2", "6.0.0-dev", "99.0.0"} {
				for _, rootless := range []bool{false, true} {
					rule, ok := v.Expect[step.Label][item.Name].For(version, rootless)
					if !ok || rule.Outcome == scenarios.Unknown {
						t.Errorf("%s at %s: nothing expected on podman %s", item.Name, step.Label, version)
					}
				}
			}
		}
	}
}
