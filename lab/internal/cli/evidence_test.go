package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// outcome runs the lab and gives what it wrote and its exit code.
func outcome(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// TestProbeAndCompare runs the probe twice as a process and has the lab
// explain what it left.
func TestProbeAndCompare(t *testing.T) {
	dir := t.TempDir()
	lab := func(args ...string) (string, string, int) {
		cmd := labCommand(t, dir, args...)
		cmd.Dir = filepath.Join(dir, "work")
		cmd.Env = append(cmd.Env, "HOME="+dir, "TMPDIR="+filepath.Join(dir, "tmp"), "DEPLOY_ID=41")
		return outcome(t, cmd)
	}
	for _, d := range []string{"work", "tmp", "data"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	first, second := filepath.Join(dir, "1.json"), filepath.Join(dir, "2.json")
	_, _, code := lab("probe", "--path", "../data", "-o", first)
	require.Zero(t, code)
	out, _, code := lab("probe", "--path", "../data")
	require.Zero(t, code)
	require.True(t, json.Valid([]byte(out)))
	require.NoError(t, os.WriteFile(second, []byte(out), 0o644))

	out, _, code = lab("compare", first, second)
	require.Zero(t, code, "nothing is lost")
	require.Contains(t, strings.Join(strings.Fields(out), " "), "(rows 1 → 2)")
	require.Contains(t, out, "It was not redeployed")

	require.NoError(t, os.RemoveAll(filepath.Join(dir, "data")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "data"), 0o755))
	_, _, code = lab("probe", "--path", "../data", "-o", second)
	require.Zero(t, code)
	out, _, code = lab("compare", first, second)
	require.Equal(t, exitSurprised, code, "a place lost what it held")
	require.Contains(t, strings.Join(strings.Fields(out), " "), "lost its file and its rows (rows 1 → 1)")
	_, _, code = lab("compare", first, first)
	require.Equal(t, exitUnknown, code, "nothing can be told")

	require.NoError(t, os.WriteFile(second, []byte(out)[:40], 0o644))
	_, errs, code := lab("compare", first, second)
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "lab: error: "+second)

	out, _, code = lab("probe", "--path", "../data", "--forget")
	require.Zero(t, code)
	require.Contains(t, out, "removed "+filepath.Join(dir, "data"))
	left, err := filepath.Glob(filepath.Join(dir, "*", "persistencelab-probe*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAuditUsage(t *testing.T) {
	dir := t.TempDir()
	policy := filepath.Join(dir, "p.yaml")
	require.NoError(t, os.WriteFile(policy, []byte("data:\n  a: {file: /srv, acceptable_loss: some}\n"), 0o644))
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"no name":        {[]string{"audit"}, "which container?"},
		"all and a name": {[]string{"audit", "--all", "web"}, "it takes no names"},
		"format":         {[]string{"audit", "web", "--format", "xml"}, `no format "xml"`},
		"no policy":      {[]string{"audit", "web", "--policy", filepath.Join(dir, "none.yaml")}, "none.yaml"},
		"bad policy":     {[]string{"audit", "web", "--policy", policy}, "p.yaml:2:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, errs, code := outcome(t, labCommand(t, dir, test.args...))
			require.Equal(t, exitUsage, code)
			require.Contains(t, errs, test.says)
		})
	}
}

func TestAuditOfNoContainer(t *testing.T) {
	args := append([]string{"audit", "no-such-container-of-anybody"}, testEngine(t)...)
	_, errs, code := outcome(t, labCommand(t, testState(t), args...))
	require.Equal(t, exitUsage, code, errs)
	require.Contains(t, errs, `no container "no-such-container-of-anybody"`)
	require.Contains(t, errs, "lab: hint: ")
}
