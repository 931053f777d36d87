package cli

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine/enginetest"
)

var update = flag.Bool("update", false, "rewrite what is generated")

const readme = "../../../README.md"

// TestReadmeIsGenerated keeps the parts of the README that can be generated
// equal to what the program says of itself.
func TestReadmeIsGenerated(t *testing.T) {
	b, err := os.ReadFile(readme)
	require.NoError(t, err)
	want := string(b)
	want = between(t, want, "commands", commandTable())
	want = between(t, want, "exit codes", "```text\n"+exitTable+"\n```\n")
	if *update {
		require.NoError(t, os.WriteFile(readme, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(b), "run: go test ./lab/internal/cli -run Readme -update")
}

// TestReadmeShowsARealRun: the table the README opens with is what a run
// prints, up to the facts of the engine, which are the reader's own.
func TestReadmeShowsARealRun(t *testing.T) {
	b, err := os.ReadFile(readme)
	require.NoError(t, err)
	_, shown, ok := strings.Cut(string(b), "$ ./scripts/lab run\n")
	require.True(t, ok)
	shown, _, ok = strings.Cut(shown, "\nPodman ")
	require.True(t, ok, "the README's run ends with the engine facts")
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		cmd := newDesk(t, target).command("run")
		cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8")
		res := finished(t, cmd)
		require.Zero(t, res.code, res.stderr)
		got, _, _ := strings.Cut(res.stdout, "\nPodman ")
		require.Equal(t, shown, got)
	})
}

// TestReadmeShowsARealLesson: so is what it shows of a lesson.
func TestReadmeShowsARealLesson(t *testing.T) {
	b, err := os.ReadFile(readme)
	require.NoError(t, err)
	_, shown, ok := strings.Cut(string(b), "## In class\n")
	require.True(t, ok)
	_, shown, ok = strings.Cut(shown, "```text\n")
	require.True(t, ok)
	shown, _, ok = strings.Cut(shown, "```")
	require.True(t, ok)
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		cmd := newDesk(t, target).command("learn", "three-mounts", "--answers", answersFile(t, "three-mounts", "survived"))
		cmd.Env = append(cmd.Env, "LC_ALL=C.UTF-8")
		res := finished(t, cmd)
		require.Zero(t, res.code, res.stderr)
		require.Contains(t, res.stdout, shown)
	})
}

// TestReadmeChecksARealFile: so is what `lab check` says of a slip.
func TestReadmeChecksARealFile(t *testing.T) {
	b, err := os.ReadFile(readme)
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(b), "```yaml\n")
	require.True(t, ok)
	file, rest, ok := strings.Cut(rest, "```\n")
	require.True(t, ok)
	_, rest, ok = strings.Cut(rest, "$ lab check my-scenario.yaml\n")
	require.True(t, ok)
	shown, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)

	t.Chdir(t.TempDir())
	check := func(text string) result {
		require.NoError(t, os.WriteFile("my-scenario.yaml", []byte(text), 0o644))
		return finished(t, exec.Command("lab", "check", "my-scenario.yaml"))
	}
	require.Zero(t, check(file).code)
	slip := strings.Replace(file, "survived", "survives", 1)
	require.NotEqual(t, file, slip)
	res := check(slip)
	require.Equal(t, exitUsage, res.code)
	require.Equal(t, shown, res.stderr)
}

// commandTable is every command with its own short description.
func commandTable() string {
	var b strings.Builder
	b.WriteString("| command | what it does |\n|---|---|\n")
	for _, c := range newRoot(&Env{Getenv: func(string) string { return "" }}).Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			fmt.Fprintf(&b, "| `lab %s` | %s |\n", strings.ReplaceAll(c.Use, "|", `\|`), c.Short)
		}
	}
	return b.String()
}

// between replaces what stands between the marker of that name and its end.
func between(t *testing.T, text, name, content string) string {
	t.Helper()
	re := regexp.MustCompile(`(?s)(<!-- ` + name + `: generated[^\n]*-->\n).*?(<!-- end -->)`)
	require.Regexp(t, re, text)
	return re.ReplaceAllString(text, "${1}"+strings.ReplaceAll(content, "$", "$$")+"${2}")
}
