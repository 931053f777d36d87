package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"":                        "",
		" a\r\n\tb\u0085c\u00a0 ": "a b c",
		"\x1b[2J\a\x7f":           `\x1b[2J\x07\x7f`,
		"\u009b31m":               `\x9b31m`,
		"a\u202eb\u2066":          `a\u202eb\u2066`,
		"\U000e0041":              `\U000e0041`,
		"bad \xff\xc3":            `bad \xff\xc3`,
		"kept \ufffd":             "kept \ufffd",
		"👩\u200d💻 é 日本":           "👩\u200d💻 é 日本",
	} {
		require.Equal(t, want, fold(in))
	}
}

func TestColumns(t *testing.T) {
	for in, want := range map[string]int{"": 0, "abc": 3, "日本語": 6, "e\u0301": 1, "한글": 4, "\u1112\u1161\u11ab": 2,
		"ハ": 2, "ﾊ": 1, "✓ ✗ ≠ ⊘ – →": 11, "🙂": 2} {
		require.Equal(t, want, columns(in), in)
	}
}

func TestWrap(t *testing.T) {
	require.Equal(t, []string{""}, wrap("", 5))
	require.Equal(t, []string{"aa bb", "cc"}, wrap("aa bb cc", 5))
	require.Equal(t, []string{"a", "unbreakable", "b"}, wrap("a unbreakable b", 5))
	require.Equal(t, []string{"日本", "語"}, wrap("日本 語", 5))
	require.Equal(t, []string{"a", "unbre", "akabl", "e", "b c"}, wrapCell("a unbreakable b c", 5))
}

// FuzzWords: whatever the text, it comes out visible, and cells keep their
// width and lose nothing.
func FuzzWords(f *testing.F) {
	f.Add("日本語 e\u0301 \x1b[2J \xff averylongword", 7)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = 2 + n&63 // a wide character needs two columns
		s = fold(s)
		require.Equal(t, -1, strings.IndexFunc(s, func(r rune) bool { return r != '\ufffd' && steers(r) }))
		require.Equal(t, s, fold(s))
		lines := wrapCell(s, n)
		for _, l := range lines {
			require.LessOrEqual(t, columns(l), n)
		}
		require.Equal(t, strings.ReplaceAll(s, " ", ""), strings.ReplaceAll(strings.Join(lines, ""), " ", ""))
	})
}

func TestTook(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0 ms", 48 * time.Millisecond: "48 ms", 1240 * time.Millisecond: "1.2 s",
		59960 * time.Millisecond: "1 min 0 s", 3*time.Minute + 400*time.Millisecond: "3 min 0 s", 2 * time.Hour: "120 min 0 s"} {
		require.Equal(t, want, took(d))
	}
}
