package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"persistencelab/scenarios"
)

// What the lab's other writers (compare, audit) share with this package's:
// text from outside is made safe in one way only.

// Line makes any text one line that can't steer a terminal.
func Line(s string) string { return fold(s) }

// Wrap breaks one line of text between words into lines of at most n columns.
func Wrap(s string, n int) []string { return wrap(s, n) }

// Pad fills s with spaces to n columns.
func Pad(s string, n int) string { return pad(s, n) }

// Visible turns what could steer a terminal or reorder a line into visible text.
func Visible(s string) string { return visible(s) }

// WrapCell is Wrap for table cells: a word that is too long is cut.
func WrapCell(s string, n int) []string { return wrapCell(s, n) }

// Columns is how many terminal columns s takes.
func Columns(s string) int { return columns(s) }

// Sign is the outcome's mark, which tells outcomes apart without colour.
func Sign(o scenarios.Outcome, unicode bool) string { return sign(o, unicode) }

// List is "a", "a and b", "a, b and c".
func List(s []string) string { return list(s) }

// ASCII puts the lab's own typography into ASCII; other text stays.
func ASCII(s string) string { return asciiDashes.Replace(s) }

// NotFormula marks as text what a spreadsheet would run.
func NotFormula(s string) string { return notFormula(s) }

// MarkdownText makes text safe inside a line of Markdown or a table cell.
func MarkdownText(s string) string { return md(s) }

// Document writes v as one indented JSON document. Characters that could
// steer a terminal are \u escapes, which a JSON reader turns back.
func Document(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // "podman < 6" should read as it was written
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write the report as json: %w", err)
	}
	if !bytes.ContainsFunc(b.Bytes(), steersJSON) {
		_, err := w.Write(b.Bytes())
		return err
	}
	var out bytes.Buffer
	for _, c := range b.String() { // outside ASCII only inside strings
		switch {
		case !steersJSON(c):
			out.WriteRune(c)
		case c < 0x10000:
			fmt.Fprintf(&out, `\u%04x`, c)
		default: // as a surrogate pair
			c -= 0x10000
			fmt.Fprintf(&out, `\u%04x\u%04x`, 0xd800+c>>10, 0xdc00+c&0x3ff)
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}
