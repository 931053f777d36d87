//go:build linux

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func note(nonce string, size int) []byte {
	var b bytes.Buffer
	if err := writeNote(&b, nonce, size); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func TestNoteIsAsLongAsAsked(t *testing.T) {
	least := len(note("n", 0))
	for _, size := range []int{least, least + 1, 999, 1000, 1001, 9_999, 10_000, 10_001, 99_999, 100_000, 1 << 20} {
		b := note("n", size)
		require.Len(t, b, size)
		nonces, torn, err := parseNotes(bytes.NewReader(b))
		require.NoError(t, err)
		require.Empty(t, torn)
		require.Equal(t, []string{"n"}, nonces)
	}
	for _, size := range []int{0, 1, least - 1} {
		require.Len(t, note("n", size), least, "too small for the text: the short note")
	}
	long := strings.Repeat("n", maxNonce)
	require.Len(t, note(long, 1000), 1000)
	require.Equal(t, note("n", 1000), note("n", 1000))
	require.NotEqual(t, note("n", 1000), note("m", 1000))
}

func TestEveryCutIsTorn(t *testing.T) {
	whole := note("5b3f", 600)
	for cut := range whole {
		_, torn, err := parseNotes(bytes.NewReader(whole[:cut]))
		require.NoError(t, err)
		require.NotEmpty(t, torn, "cut to %d bytes", cut)
	}
}

func TestEveryDamagedByteShows(t *testing.T) {
	whole := note("5b3f", 600)
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1
		nonces, torn, err := parseNotes(bytes.NewReader(damaged))
		require.NoError(t, err)
		if i < len(noteHead) {
			require.Empty(t, nonces, "does not begin like a note: byte %d", i)
		} else {
			require.NotEmpty(t, torn, "byte %d", i)
		}
	}
}

func TestOldAndNewMixedIsTorn(t *testing.T) {
	old, fresh := note("old", 2000), note("new", 2000)
	mixed := append(bytes.Clone(fresh[:1000]), old[1000:]...)
	nonces, torn, err := parseNotes(bytes.NewReader(mixed))
	require.NoError(t, err)
	require.Equal(t, []string{"new"}, nonces)
	require.Contains(t, torn, "checksum")
}

func TestSeveralNotes(t *testing.T) {
	var all []byte
	for i := range 100 {
		all = append(all, note(string(rune('!'+i%90))+"x", 0)...)
	}
	nonces, torn, err := parseNotes(bytes.NewReader(all))
	require.NoError(t, err)
	require.Empty(t, torn)
	require.Len(t, nonces, keptNonces)
	require.Equal(t, "*x", nonces[keptNonces-1], "the last ones are kept")

	_, torn, _ = parseNotes(bytes.NewReader(all[:len(all)-1]))
	require.Contains(t, torn, "note 100: ends after")
	_, torn, _ = parseNotes(strings.NewReader(string(all) + "junk that is longer than a note's head"))
	require.Contains(t, torn, "something else follows note 100")
}

func TestForeignContentIsNotTorn(t *testing.T) {
	nonces, torn, err := parseNotes(strings.NewReader("a config file\n"))
	require.NoError(t, err)
	require.Empty(t, torn)
	require.Empty(t, nonces)
}

func FuzzParseNotes(f *testing.F) {
	f.Add(note("5b3f", 0))
	f.Add(append(note("a", 0), note("b", 700)...))
	f.Add([]byte(noteHead + "99999999999999999999 bytes, nonce x\n"))
	f.Add([]byte(noteHead + "-5 bytes, nonce x\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		nonces, torn, err := parseNotes(bytes.NewReader(content))
		require.NoError(t, err)
		require.LessOrEqual(t, len(nonces), keptNonces)
		if torn == "" && len(nonces) > 0 {
			require.True(t, bytes.HasSuffix(content, []byte("\n")))
			require.True(t, bytes.Contains(content, []byte(noteTail)))
		}
	})
}
