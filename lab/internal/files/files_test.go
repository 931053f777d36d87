package files

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "results.json")
	require.NoError(t, Replaceable(file))
	require.NoError(t, Replace(file, []byte("one")))
	require.NoError(t, os.Chmod(file, 0o600))
	link := filepath.Join(dir, "link.json")
	require.NoError(t, os.Symlink("results.json", link))
	require.NoError(t, Replaceable(link))
	require.NoError(t, Replace(link, []byte("two")))

	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "two", string(b))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeSymlink, "the link stays a link")
	info, err = os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), "the file keeps its mode")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "nothing else is left")
}

func TestReplaceWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	require.ErrorContains(t, Replace(dir, nil), "it is a folder")
	require.ErrorContains(t, Replaceable(dir), "it is a folder")
	require.ErrorIs(t, Replaceable(filepath.Join(dir, "no", "file")), fs.ErrNotExist)

	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	link := filepath.Join(dir, "stdout")
	require.NoError(t, os.Symlink(fmt.Sprintf("/proc/self/fd/%d", w.Fd()), link))
	require.NoError(t, Replaceable(link))
	require.NoError(t, Replace(link, []byte("to the reader")))
	require.NoError(t, w.Close())
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Equal(t, "to the reader", string(b))
	_, err = os.Readlink(link)
	require.NoError(t, err, "the link stays a link")
}
