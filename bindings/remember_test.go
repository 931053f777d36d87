package bindings

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was learned under one configuration of Podman is not taken for another:
// neither a file that changed nor one named by Podman's own variables.
func TestWhatWasLearnedBelongsToItsConfiguration(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "containers.conf")
	require.NoError(t, os.WriteFile(conf, []byte("[engine]\n"), 0o600))
	opts := Options{CacheDir: t.TempDir()}
	seen := map[string]bool{}
	remember := func() {
		t.Helper()
		file := hostFile("/bin/true", opts)
		require.Equal(t, file, hostFile("/bin/true", opts))
		require.False(t, seen[file], "the same file for another configuration")
		seen[file] = true
	}
	for _, name := range []string{"CONTAINERS_CONF", "CONTAINERS_CONF_OVERRIDE", "CONTAINERS_STORAGE_CONF"} {
		t.Setenv(name, "")
	}
	remember()
	for _, name := range []string{"CONTAINERS_CONF", "CONTAINERS_CONF_OVERRIDE", "CONTAINERS_STORAGE_CONF"} {
		t.Setenv(name, conf)
		remember()
	}
	require.NoError(t, os.WriteFile(conf, []byte("[engine]\nruntime = \"crun\"\n"), 0o600))
	remember()
}

// A shell with other limits or capabilities starts services with others: what
// a container may be given is learned for each.
func TestWhatWasLearnedBelongsToItsLimits(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("containers have a machine's limits there, not this process's")
	}
	if dir := os.Getenv("LAB_TEST_PRINT_HOST_FILE"); dir != "" {
		t.Log("file " + hostFile("/bin/true", Options{CacheDir: dir}))
		return
	}
	dir := t.TempDir()
	under := func(command string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", command+" \"$0\" -test.run ^TestWhatWasLearnedBelongsToItsLimits$ -test.v", os.Args[0])
		cmd.Env = append(os.Environ(), "LAB_TEST_PRINT_HOST_FILE="+dir)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		_, file, found := strings.Cut(string(out), "file "+dir)
		require.True(t, found, string(out))
		return strings.Fields(file)[0]
	}
	few := under("ulimit -n 300; exec")
	require.Equal(t, few, under("ulimit -n 300; exec"))
	require.NotEqual(t, few, under("ulimit -n 301; exec"))
	if _, err := exec.LookPath("setpriv"); err == nil && os.Getuid() == 0 {
		require.NotEqual(t, few, under("ulimit -n 300; exec setpriv --bounding-set=-net_raw --inh-caps=-net_raw"))
	}
}

// A host that turned out otherwise than it was learned is learned anew.
func TestAHostThatChangedIsForgotten(t *testing.T) {
	h := &host{file: filepath.Join(t.TempDir(), "host.json"), Runtime: "runc"}
	h.save()
	require.True(t, (&host{file: h.file}).load())
	h.forget()
	require.False(t, (&host{file: h.file}).load())
}
