package cli

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
