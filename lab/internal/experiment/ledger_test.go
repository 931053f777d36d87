package experiment

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLedger(t *testing.T) {
	dir := t.TempDir()
	made, err := ReadLedger(dir)
	require.NoError(t, err)
	require.Empty(t, made, "no ledger: nothing was made")

	l, err := OpenLedger(dir)
	require.NoError(t, err)
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, l.Add("container", name))
	}
	require.NoError(t, l.Gone("container", "b"))
	require.NoError(t, l.Add("volume", "b"))
	want := []Made{{Kind: "volume", Name: "b"}, {Kind: "container", Name: "c"}, {Kind: "container", Name: "a"}}
	require.Equal(t, want, l.Left(), "the newest first")

	// Made again after it was gone.
	require.NoError(t, l.Add("container", "b"))
	want = append([]Made{{Kind: "container", Name: "b"}}, want...)
	require.Equal(t, want, l.Left())
	require.NoError(t, l.Close())
	require.Error(t, l.Add("container", "d"), "what can't be written down must not be made")

	// A kill in the middle of a line: what it announces was not made.
	f, err := os.OpenFile(filepath.Join(dir, LedgerFile), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"kind":"container","name":"to`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	made, err = ReadLedger(dir)
	require.NoError(t, err)
	require.Equal(t, want, made)

	// Whoever goes on with it starts a line of its own.
	l, err = OpenLedger(dir)
	require.NoError(t, err)
	require.Equal(t, want, l.Left())
	require.NoError(t, l.Add("container", "e"))
	require.NoError(t, l.Close())
	made, err = ReadLedger(dir)
	require.NoError(t, err)
	require.Equal(t, append([]Made{{Kind: "container", Name: "e"}}, want...), made)
}

func TestLedgerSideBySide(t *testing.T) {
	dir := t.TempDir()
	l, err := OpenLedger(dir)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 50 {
				_ = l.Add("volume", strings.Repeat("x", i+1))
				_ = l.Gone("volume", strings.Repeat("x", i+1))
			}
			_ = l.Add("volume", "kept")
		}()
	}
	wg.Wait()
	require.Len(t, l.Left(), 8)
	require.NoError(t, l.Close())
	made, err := ReadLedger(dir)
	require.NoError(t, err)
	require.Len(t, made, 8)
}

// TestQuote: a real shell reads back what was quoted.
func TestQuote(t *testing.T) {
	for _, s := range []string{
		"", "plain", "a b", "it's", `"`, "$HOME", "`id`", "$(id)", "a;b", "a\nb", "a\tb", `\`, `\'`, "*", "~", "~root",
		"-rf", "#x", "a#b", "!x", "{a,b}", "[a]", "ä", "a=b", "&", "|", "<", ">", "(", "%s",
	} {
		out, err := exec.Command("sh", "-c", "printf '%s|' x"+quote(s)+" "+quote(s)).Output()
		require.NoError(t, err, s)
		require.Equal(t, "x"+s+"|"+s+"|", string(out))
	}
	require.Equal(t, "/var/lib/app-1:ro", quote("/var/lib/app-1:ro"), "what needs no quotes has none")
}
