package cli

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMalformedFilesStartNothing gives the lab every malformed file the parser
// is tested with: each is told with its place and a suggestion, exits 2, and
// nothing is asked of Podman, whose address here is this test's.
func TestMalformedFilesStartNothing(t *testing.T) {
	files, err := filepath.Glob("../../../scenarios/testdata/bad/*.yaml")
	require.NoError(t, err)
	require.Greater(t, len(files), 15)
	huge := filepath.Join(t.TempDir(), "huge.yaml")
	require.NoError(t, os.WriteFile(huge, bytes.Repeat([]byte("# nothing but comments\n"), 10<<20/23), 0o600))
	files = append(files, huge)

	l, err := net.Listen("unix", filepath.Join(shortDir(t), "podman.sock"))
	require.NoError(t, err)
	defer l.Close()
	asked := make(chan struct{}, 1)
	go func() {
		if c, err := l.Accept(); err == nil {
			c.Close()
			asked <- struct{}{}
		}
	}()
	state := filepath.Join(t.TempDir(), "state")
	place := regexp.MustCompile(`(?m)^\S+\.yaml:\d+:\d+: .+$`)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			for _, verb := range []string{"run", "check"} {
				cmd := exec.Command("lab", verb, file)
				cmd.Env = append(os.Environ(), "CONTAINER_HOST=unix://"+l.Addr().String(), "LAB_STATE_DIR="+state)
				res := finished(t, cmd)
				require.Equal(t, exitUsage, res.code, res.stderr)
				require.Empty(t, res.stdout)
				found := place.FindAllStringIndex(res.stderr, -1)
				require.NotEmpty(t, found, res.stderr)
				// Below each: what to write instead.
				for i, at := range found {
					end := len(res.stderr)
					if i+1 < len(found) {
						end = found[i+1][0]
					}
					require.Regexp(t, `(?m)^  \S`, res.stderr[at[1]:end], "no suggestion for %s", res.stderr[at[0]:at[1]])
				}
				require.Less(t, strings.Count(res.stderr, "\n"), 500, "a hostile file does not flood the screen")
			}
		})
	}
	require.NoDirExists(t, state)
	select {
	case <-asked:
		t.Error("podman was asked something")
	default:
	}
}
