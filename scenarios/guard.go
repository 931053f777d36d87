package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Bounds of a scenario file. No lesson comes near them; a hostile file does.
const (
	MaxBytes  = 1 << 20 // size of the file
	maxMarks  = 20_000  // lines, commas and brackets: what makes the YAML parser slow
	maxNodes  = 20_000  // YAML nodes, aliases expanded
	maxDepth  = 24      // nesting, aliases expanded
	maxFaults = 100     // faults reported of one file
	maxSteps  = 500     // of one variant
	maxVars   = 500     // variants
)

// document reads src as exactly one YAML document and gives its root, with
// every alias replaced by what it stands for. Where that is impossible it
// reports why and gives nil.
//
// gopkg.in/yaml.v3 alone would not do: it accepts a second document silently,
// names no column, and for some indentation faults the wrong line.
func (d *decoder) document(src []byte) *yaml.Node {
	if !d.readable(src) {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0 {
		d.empty()
		return nil
	}
	if err != nil {
		d.syntax(err)
		return nil
	}
	root := doc.Content[0]
	switch err := dec.Decode(&second); {
	case err == nil:
		d.at(second.Line, 1, "one file is one scenario: keep the second document in a file of its own",
			"a second YAML document starts here")
	case !errors.Is(err, io.EOF):
		d.syntax(err)
		return nil
	}
	if root.Tag == "!!null" {
		d.empty()
		return nil
	}
	if !d.bounded(root) {
		return nil
	}
	return root
}

func (d *decoder) empty() {
	d.at(1, 1, "lab new NAME writes a scenario to start from", "the file is empty")
}

// readable refuses what is no text, before the YAML parser sees it.
func (d *decoder) readable(src []byte) bool {
	if len(src) > MaxBytes {
		d.at(1, 1, "keep large content out of the file: an item's size: makes bytes at run time",
			"the file is too large: more than %d KiB", MaxBytes>>10)
		return false
	}
	if i := unreadable(src); i >= 0 {
		line, col := place(src, i)
		if r, size := utf8.DecodeRune(src[i:]); size > 1 {
			d.at(line, col, "remove it", "a character that can't be shown: %U", r)
			return false
		}
		d.source = nil // what is no text is not shown
		d.at(line, col, "save it as plain UTF-8 text", "this is no text file: byte 0x%02x here", src[i])
		return false
	}
	marks := 0
	for _, c := range src {
		switch c {
		case '\n', ',', '[', '{':
			marks++
		}
	}
	if marks > maxMarks {
		d.at(1, 1, "split it into several scenarios", "the file has too many parts: more than %d", maxMarks)
		return false
	}
	return true
}

// unreadable is the offset of the first byte no text file holds, or -1.
func unreadable(src []byte) int {
	for i := 0; i < len(src); {
		c := src[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
				return i
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 || !harmless(r) && (r != '\ufeff' || i > 0) {
			return i
		}
		i += size
	}
	return -1
}

// harmless says whether a character can be shown as it is. Control characters
// move a terminal's cursor, some format characters reorder text so that it
// reads as what it is not, and U+0085, U+2028 and U+2029 are line ends to
// YAML and to no editor.
func harmless(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d', '\u200e', '\u200f': // scripts and emoji need the last four
		return true
	}
	return unicode.IsGraphic(r)
}

// place gives line and column, from 1, of an offset.
func place(src []byte, offset int) (line, col int) {
	before := lineEnds.Replace(string(src[:offset]))
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

// bounded checks depth and number of nodes as they are once aliases are
// expanded, and expands them. It stops at the first excess, so that it looks
// at no more than maxNodes nodes whatever the file says.
func (d *decoder) bounded(root *yaml.Node) bool {
	nodes := 0
	var walk func(n *yaml.Node, depth int, where *yaml.Node) bool
	walk = func(n *yaml.Node, depth int, where *yaml.Node) bool {
		if nodes++; nodes > maxNodes {
			d.fault(where, "write fewer, or split it into several scenarios",
				"the file has too many parts: more than %d once aliases are expanded", maxNodes)
			return false
		}
		if depth > maxDepth {
			d.fault(where, "a scenario needs no more than a handful of levels",
				"nested too deep: more than %d levels", maxDepth)
			return false
		}
		// An escape in double quotes ("\e") gets past the check of the bytes.
		if i := strings.IndexFunc(n.Value, func(r rune) bool { return !harmless(r) }); i >= 0 {
			r, _ := utf8.DecodeRuneInString(n.Value[i:])
			d.fault(where, "remove it", "a character that can't be shown: %U", r)
			return false
		}
		for _, child := range n.Content {
			at := child
			if child.Kind == yaml.AliasNode {
				child = child.Alias
			}
			if where.Kind == yaml.AliasNode {
				at = where // inside an alias: the fault is where it is used
			}
			if !walk(child, depth+1, at) {
				return false
			}
		}
		return true
	}
	if !walk(root, 0, root) {
		return false
	}
	expand(root)
	return true
}

// expand puts in place of each alias what it stands for. bounded has made
// sure that this ends.
func expand(n *yaml.Node) {
	for i, child := range n.Content {
		if child.Kind == yaml.AliasNode {
			n.Content[i] = child.Alias
		}
		expand(n.Content[i])
	}
}

// at reports a fault at a place.
func (d *decoder) at(line, col int, suggestion, format string, args ...any) {
	if len(d.errs) >= maxFaults {
		return
	}
	e := &Error{File: d.file, Line: max(line, 1), Col: max(col, 1), Msg: fmt.Sprintf(format, args...), Suggestion: suggestion}
	e.Msg = printable(e.Msg)
	e.Suggestion = printable(e.Suggestion)
	if e.Line <= len(d.source) {
		e.SourceLine = strings.TrimRight(d.source[e.Line-1], "\r")
	}
	d.errs = append(d.errs, e)
}

// fault reports a fault at a node.
func (d *decoder) fault(n *yaml.Node, suggestion, format string, args ...any) {
	d.at(n.Line, n.Column, suggestion, format, args...)
}
