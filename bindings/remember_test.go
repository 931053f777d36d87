package bindings

import (
	"os"
	"path/filepath"
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
