package scenarios

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Error is one fault of a scenario file.
type Error struct {
	File       string
	Line, Col  int    // from 1; Col counts characters, not bytes
	Msg        string // what is wrong, in the author's words
	Suggestion string // what to do about it, a whole phrase; "" for none
	SourceLine string // the line as it stands in the file; "" where showing it makes no sense
}

// Error gives file:line:col: message, on one line.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", printable(e.File), e.Line, e.Col, e.Msg)
}

// Excerpt gives what an author wants to see: the message, the line, a caret
// under the column, and the suggestion. It ends with a newline.
//
//	mine.yaml:4:1: unknown key "titel"
//	  4 | titel: Three mounts
//	    | ^
//	  did you mean "title"?
func (e *Error) Excerpt() string {
	var b strings.Builder
	b.WriteString(e.Error())
	b.WriteByte('\n')
	if e.SourceLine != "" {
		line, col := window([]rune(e.SourceLine), e.Col)
		number := strconv.Itoa(e.Line)
		fmt.Fprintf(&b, "  %s | %s\n", number, printable(line))
		fmt.Fprintf(&b, "  %s | %s^\n", strings.Repeat(" ", len(number)), strings.Repeat(" ", col-1))
	}
	if e.Suggestion != "" {
		fmt.Fprintf(&b, "  %s\n", e.Suggestion)
	}
	return b.String()
}

// window cuts a long line down to what fits a terminal, with the column in
// it, and gives the column's new place.
func window(line []rune, col int) (string, int) {
	const width = 96
	col = min(col, len(line)+1)
	if len(line) <= width {
		return string(line), col
	}
	from := max(0, min(col-width/2, len(line)-width))
	cut := string(line[from:min(len(line), from+width)])
	if from > 0 {
		return "…" + cut, col - from + 1
	}
	return cut + "…", col
}

// printable replaces what could move a terminal's cursor or reorder its text:
// scenario files come from strangers. One character stays one character, so
// that the caret fits.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if !strconv.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Errors are all faults found in one file, in the file's order.
type Errors []*Error

// Error gives one line per fault.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find the first *Error.
func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

// Excerpt gives the excerpts of all faults, an empty line between two.
func (es Errors) Excerpt() string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = e.Excerpt()
	}
	return strings.Join(parts, "\n")
}

// tidy sorts by place and drops repetitions: a fault in steps that several
// variants share is one fault.
func (es Errors) tidy() Errors {
	slices.SortStableFunc(es, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	seen := map[Error]bool{}
	return slices.DeleteFunc(es, func(e *Error) bool {
		key := Error{Line: e.Line, Col: e.Col, Msg: e.Msg}
		if seen[key] {
			return true
		}
		seen[key] = true
		return false
	})
}

// suggest names the candidate the author most likely meant; where none is
// near, it lists them if they are few.
func suggest(word string, candidates []string) string {
	if near := nearest(word, candidates); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return oneOf(candidates)
}

// oneOf lists candidates, "" when there are none or too many to help.
func oneOf(candidates []string) string {
	switch {
	case len(candidates) == 0:
		return "remove it: there is none it could name"
	case len(candidates) > 14:
		return ""
	case len(candidates) == 1:
		return fmt.Sprintf("use %s", candidates[0])
	}
	return "use one of: " + strings.Join(candidates, ", ")
}

// nearest is the candidate within a third of the word's length in edits, ""
// when there is none. Words too long to be a slip cost nothing.
func nearest(word string, candidates []string) string {
	word = strings.ToLower(strings.TrimSpace(word))
	if word == "" || len(word) > 40 {
		return ""
	}
	best, bestDist := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		lower := strings.ToLower(c)
		if lower == word || len(lower) > 2 && strings.HasSuffix(word, lower) && word[:len(word)-len(lower)] == "sig" {
			return c
		}
		if diff := len(lower) - len(word); diff >= bestDist || -diff >= bestDist {
			continue
		}
		if d := distance([]rune(word), []rune(lower)); d < bestDist {
			best, bestDist = c, d
		}
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment).
func distance(a, b []rune) int {
	before, prev, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
