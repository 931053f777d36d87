package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"persistencelab/lab/engine/enginetest"
)

// TestScripts runs the stories in testdata/scripts, which need no Podman: what
// they reach instead is made by the script.
func TestScripts(t *testing.T) {
	if os.Getenv("LAB_TEST_ENGINES") != "" {
		t.Skip("no engine is involved: this runs once, not for each")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/scripts",
		RequireExplicitExec: true,
		Cmds:                scriptCommands(),
		// exists:PATH: so that a story can tell machines apart.
		Condition: func(cond string) (bool, error) {
			path, ok := strings.CutPrefix(cond, "exists:")
			if !ok {
				return false, fmt.Errorf("no condition %q", cond)
			}
			_, err := os.Stat(path)
			return err == nil, nil
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("LAB_STATE_DIR", env.WorkDir+"/state")
			env.Setenv("LAB_CACHE_DIR", env.WorkDir+"/cache")
			env.Setenv("LANG", "C.UTF-8")
			lab, err := exec.LookPath("lab")
			env.Setenv("LABDIR", filepath.Dir(lab)) // a PATH without podman
			return err
		},
	})
}

// TestScriptsOnPodman runs the stories in testdata/podman on each engine.
func TestScriptsOnPodman(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		d := newDesk(t, target)
		testscript.Run(t, testscript.Params{
			Dir:                 "testdata/podman",
			RequireExplicitExec: true,
			Cmds:                scriptCommands(),
			// local: the podman command reaches the engine without an address.
			Condition: func(cond string) (bool, error) {
				if cond != "local" {
					return false, fmt.Errorf("no condition %q", cond)
				}
				return target.URL == "", nil
			},
			Setup: func(env *testscript.Env) error {
				env.Setenv("NAME", filepath.Base(env.WorkDir)+fmt.Sprint(os.Getpid()))
				// Podman's own settings are the engine's.
				for _, name := range []string{"HOME", "XDG_RUNTIME_DIR", "USER", "TMPDIR", "CONTAINERS_CONF"} {
					if v, ok := os.LookupEnv(name); ok {
						env.Setenv(name, v)
					}
				}
				if target.URL != "" {
					env.Setenv("CONTAINER_HOST", target.URL)
				}
				state, err := os.MkdirTemp(d.state, "")
				if err != nil {
					return err
				}
				env.Setenv("LAB_STATE_DIR", state)
				env.Setenv("LAB_CACHE_DIR", d.cache)
				env.Setenv("LANG", "C.UTF-8")
				env.Setenv("PODMAN_IGNORE_CGROUPSV1_WARNING", "1")
				return os.Chmod(state, 0o755)
			},
		})
	})
}

// outcomeLine is a checkpoint's name, or what the probe's command line says of
// an item.
var outcomeLine = regexp.MustCompile(`^(# |[a-z]+: (survived|lost|changed|healthy))`)

// scriptCommands are what the stories say beside testscript's own words.
func scriptCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		// exits CODE lab ARGS… runs the lab and wants this exit code.
		"exits": func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < 2 {
				ts.Fatalf("usage: exits CODE PROGRAM [ARGS…]")
			}
			want, err := strconv.Atoi(args[0])
			ts.Check(err)
			got := 0
			if err := ts.Exec(args[1], args[2:]...); err != nil {
				exit, ok := err.(*exec.ExitError)
				if !ok {
					ts.Fatalf("%v", err)
				}
				got = exit.ExitCode()
			}
			if got != want {
				ts.Fatalf("exit code %d, want %d", got, want)
			}
		},
		// outcomes FILE WANT: the lines of a pasted plan that tell an outcome.
		"outcomes": func(ts *testscript.TestScript, neg bool, args []string) {
			var got []string
			for line := range strings.Lines(ts.ReadFile(args[0])) {
				line, _, _ = strings.Cut(strings.TrimSpace(line), " (")
				if outcomeLine.MatchString(line) {
					got = append(got, line)
				}
			}
			if want := strings.TrimSpace(ts.ReadFile(args[1])); strings.Join(got, "\n") != want {
				ts.Fatalf("the plan's outcomes are\n%s\nwant\n%s", strings.Join(got, "\n"), want)
			}
		},
	}
}
