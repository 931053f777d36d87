package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The stream comes from go test itself, so that a change of its format shows.
func TestTallyOfRealGoTest(t *testing.T) {
	const head = "package x\nimport \"testing\"\n"
	cases := []struct {
		name, test string
		want       counts
		says       []string
	}{
		{"passes", head + "func TestA(t *testing.T) { t.Run(\"sub\", func(*testing.T) {}) }", counts{passed: 2}, []string{"ok  \tx"}},
		{"fails", head + "func TestA(t *testing.T) { t.Log(\"why\"); t.Fail() }\nfunc TestB(*testing.T) {}", counts{passed: 1, failed: 1}, []string{"why", "FAIL\tx"}},
		{"skips", head + "func TestA(t *testing.T) { t.Skip(\"no podman\") }", counts{skipped: 1}, []string{"skipped: TestA: ", "no podman"}},
		{"does not build", head + "func TestA(t *testing.T) { undefinedThing() }", counts{failed: 1}, []string{"undefinedThing", "FAIL\tx [build failed]"}},
		{"dies", "package x\nimport (\"os\"; \"testing\")\nfunc TestA(t *testing.T) { os.Exit(7) }", counts{failed: 1}, []string{"FAIL\tx"}},
		{"panics", head + "func TestA(t *testing.T) { panic(\"oh\") }", counts{failed: 1}, []string{"panic: oh", "FAIL\tx"}},
		{"has no tests", "package x\n", counts{}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module x\n\ngo 1.24\n"), 0o644))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(c.test), 0o644))
			cmd := exec.Command("go", "test", "-json", ".")
			cmd.Dir = dir
			stream, _ := cmd.Output() // it exits 1 where a test fails

			var out bytes.Buffer
			got, err := tally(bytes.NewReader(stream), &out)
			require.NoError(t, err)
			require.Equal(t, c.want, got, out.String())
			for _, s := range c.says {
				require.Contains(t, out.String(), s)
			}
		})
	}
}

func TestNoOutputIsAnError(t *testing.T) {
	_, err := tally(strings.NewReader("go: cannot find main module\n"), &bytes.Buffer{})
	require.Error(t, err)
}

func TestSlowTestsAreNamed(t *testing.T) {
	var out bytes.Buffer
	c, err := tally(strings.NewReader(`{"Action":"pass","Package":"x","Test":"TestLong","Elapsed":12.3}
{"Action":"pass","Package":"x","Test":"TestLong/part","Elapsed":11}
{"Action":"pass","Package":"x","Test":"TestShort","Elapsed":9.9}
`), &out)
	require.NoError(t, err)
	require.Equal(t, counts{passed: 3}, c)
	require.Equal(t, "slow: TestLong: 12 s\n", out.String())
}

func TestAddTo(t *testing.T) {
	f := filepath.Join(t.TempDir(), "counts")
	require.NoError(t, addTo(f, counts{1, 2, 3}))
	require.NoError(t, addTo(f, counts{10, 20, 30}))
	b, err := os.ReadFile(f)
	require.NoError(t, err)
	require.Equal(t, "11 22 33\n", string(b))
}
