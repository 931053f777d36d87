package report

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"persistencelab/scenarios"
)

// fold makes any text one safe line: white space of every kind becomes single
// spaces, the rest is visible.
func fold(s string) string { return visible(strings.Join(strings.Fields(s), " ")) }

// visible turns what could steer a terminal or reorder a line (control and
// format characters, bytes that are not UTF-8) into visible escapes. The
// joiners that emoji and several scripts are spelled with stay.
func visible(s string) string {
	if !strings.ContainsFunc(s, steers) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !steers(r), r == utf8.RuneError:
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}

// steers tells characters that act instead of showing. RuneError is among
// them so that visible looks closer at text that is not UTF-8.
func steers(r rune) bool {
	if r == '\u200c' || r == '\u200d' { // zero width (non-)joiner
		return false
	}
	return unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) ||
		r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// columns is how many terminal columns s takes: two for wide East Asian
// characters and emoji, none for combining marks.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < 0x300: // the common case; nothing below combines
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf), 0x1160 <= r && r <= 0x11ff: // Hangul vowels and finals join the syllable
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// pad fills s with spaces to n columns.
func pad(s string, n int) string {
	if c := columns(s); c < n {
		return s + strings.Repeat(" ", n-c)
	}
	return s
}

// wrap breaks folded text between words into lines of at most n columns. A
// word longer than that stays whole, so that a path can be copied.
func wrap(s string, n int) []string {
	var lines []string
	line, used := "", 0
	for _, word := range strings.Fields(s) {
		c := columns(word)
		if line != "" && used+1+c > n {
			lines = append(lines, line)
			line, used = "", 0
		}
		if line != "" {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+c
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// wrapCell is wrap for table cells: words are cut where they must be, because
// one long word would push every other column out of place.
func wrapCell(s string, n int) []string {
	var lines []string
	for _, line := range wrap(s, n) {
		for columns(line) > n {
			cut, used := 0, 0
			for i, r := range line {
				if used+runeColumns(r) > n && i > 0 {
					break
				}
				used += runeColumns(r)
				cut = i + utf8.RuneLen(r)
			}
			lines, line = append(lines, line[:cut]), line[cut:]
		}
		lines = append(lines, line)
	}
	return lines
}

// sign is the outcome's mark, which tells outcomes apart without colour.
func sign(o scenarios.Outcome, unicode bool) string {
	if !unicode {
		switch o {
		case scenarios.Survived:
			return "+"
		case scenarios.Lost:
			return "x"
		case scenarios.Changed:
			return "~"
		case scenarios.Refused:
			return "!"
		}
		return "?"
	}
	switch o {
	case scenarios.Survived:
		return "✓"
	case scenarios.Lost:
		return "✗"
	case scenarios.Changed:
		return "≠"
	case scenarios.Refused:
		return "⊘"
	}
	return "?"
}

// took is a duration for people.
func took(d time.Duration) string {
	switch {
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute-50*time.Millisecond: // what rounds to 60.0 s is a minute
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// list is "a", "a and b", "a, b and c".
func list(s []string) string {
	if len(s) < 2 {
		return strings.Join(s, "")
	}
	return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
}
