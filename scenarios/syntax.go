package scenarios

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// syntax reports YAML the parser could not read. The parser says a line at
// best, sometimes the one before the fault, and speaks of tokens; this finds
// the place and says what an author can do.
func (d *decoder) syntax(err error) {
	if d.tabs() {
		return
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 1
	if m := atLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	line = min(line, max(len(d.source), 1))

	for _, known := range syntaxFaults {
		if !strings.Contains(text, known.parser) {
			continue
		}
		if known.indent {
			if at, col := d.badIndent(); at > 0 {
				d.at(at, col, "line it up with the entries it belongs to, with spaces",
					"this line is indented like none of the lines it could belong to")
				return
			}
		}
		if known.find != nil {
			if at, col := d.search(line, known.find); at > 0 {
				d.at(at, col, known.suggestion, "%s", known.msg)
				return
			}
		}
		d.at(line, d.firstCol(line), known.suggestion, "%s", known.msg)
		return
	}
	if m := regexp.MustCompile(`unknown anchor '(.*)' referenced`).FindStringSubmatch(text); m != nil {
		at, col := d.search(line, regexp.MustCompile(`\*`+regexp.QuoteMeta(m[1])))
		d.at(max(at, line), max(col, 1), "put text that starts with * in quotes", "*%s refers to an anchor the file does not have", m[1])
		return
	}
	d.at(line, d.firstCol(line), "put text with special characters in quotes", "this is no YAML: %s", text)
}

var atLine = regexp.MustCompile(`^line (\d+): `)

// syntaxFaults are the parser's words and ours.
var syntaxFaults = []struct {
	parser     string         // its words
	indent     bool           // often an indentation fault
	find       *regexp.Regexp // what the faulty place looks like, at the parser's line or after; group 1 if any is the place
	msg        string
	suggestion string
}{
	{"mapping values are not allowed", true, regexp.MustCompile(`: .*(: )`),
		"a second \": \" on one line", "put the text in quotes"},
	{"could not find expected ':'", true, nil,
		"a key without a \":\" here or on the line before", "write it as key: value"},
	{"did not find expected ',' or", false, regexp.MustCompile(`[\[{]`),
		"a [ or { that is not closed, or a comma missing after it", "close it with ] or } on the same line"},
	{"did not find expected node content", false, nil,
		"a [ or { that is not closed", "close it with ] or }"},
	{"unexpected end of stream", false, regexp.MustCompile(`["']`),
		"a quote that is not closed", "close the quote"},
	{"unknown escape character", false, regexp.MustCompile(`\\`),
		"an unknown \\ escape", "use single quotes around text with a \\"},
	{"cannot start any token", false, regexp.MustCompile("[:-] +([@`%])"),
		"text can't start with this character", "put the text in quotes"},
	{"block sequence entries are not allowed", false, regexp.MustCompile(`: +(- )`),
		"a list can't start on the line of its key", "start the list on a line of its own"},
	{"did not find expected '-' indicator", true, nil,
		"this is no entry of the list it stands in", "start the entry with \"- \", or indent it like the key it belongs to"},
	{"did not find expected key", true, nil,
		"this is no key of the mapping it stands in", "check its indentation and its quotes"},
	{"did not find expected <document start>", false, nil,
		"something follows the end of the document", "one file is one scenario: remove what follows ..."},
}

// tabs reports lines indented with a tab, each; false when there is none.
func (d *decoder) tabs() bool {
	found := false
	for i, line := range d.source {
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		if at := strings.IndexByte(indent, '\t'); at >= 0 && strings.TrimSpace(line) != "" {
			d.at(i+1, at+1, "indent with spaces", "a tab: YAML is indented with spaces")
			found = true
		}
	}
	return found
}

// search finds the first line from the parser's line on, then from the top,
// that matches.
func (d *decoder) search(from int, re *regexp.Regexp) (line, col int) {
	for pass, start := range []int{max(from-1, 1), 1} {
		for i := start; i <= len(d.source); i++ {
			if pass == 0 && i > from+1 {
				break
			}
			if m := re.FindStringSubmatchIndex(d.source[i-1]); m != nil {
				return i, utf8.RuneCountInString(d.source[i-1][:m[len(m)-2]]) + 1
			}
		}
	}
	return 0, 0
}

// badIndent finds the first line whose indentation no line above it allows:
// deeper than a line that is already complete, or between two levels.
func (d *decoder) badIndent() (line, col int) {
	levels := []int{0}
	open := true // the line above may have something below it
	block := -1  // indentation of the key a block scalar (| or >) belongs to
	for i, text := range d.source {
		trimmed := strings.TrimSpace(text)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		indent := len(text) - len(strings.TrimLeft(text, " "))
		if block >= 0 {
			if indent > block {
				continue
			}
			block = -1
		}
		top := levels[len(levels)-1]
		switch {
		case indent > top && !open && !keyLike.MatchString(trimmed) && !strings.HasPrefix(trimmed, "- "):
			continue // a text goes on
		case indent > top && !open:
			return i + 1, indent + 1
		case indent > top:
			levels = append(levels, indent)
		case indent < top:
			for len(levels) > 1 && levels[len(levels)-1] > indent {
				levels = levels[:len(levels)-1]
			}
			if levels[len(levels)-1] != indent {
				return i + 1, indent + 1
			}
		}
		// A key after "- " opens a level of its own.
		rest, inner := trimmed, indent
		for strings.HasPrefix(rest, "- ") {
			cut := len(rest) - len(strings.TrimLeft(rest[2:], " "))
			rest, inner = rest[cut:], inner+cut
			if keyLike.MatchString(rest) {
				levels = append(levels, inner)
			}
		}
		if blockStart.MatchString(rest) {
			block = inner
		}
		open = strings.HasSuffix(rest, ":") || rest == "-" || !keyLike.MatchString(rest)
		if strings.HasSuffix(rest, ",") || strings.HasSuffix(rest, "[") || strings.HasSuffix(rest, "{") {
			open = true
		}
	}
	return 0, 0
}

var (
	keyLike    = regexp.MustCompile(`^[^\s'"\[{#][^:]*:(\s|$)`)
	blockStart = regexp.MustCompile(`(:|-|^)\s*[|>][0-9+-]*\s*(#.*)?$`)
)

// firstCol is the column of a line's first character.
func (d *decoder) firstCol(line int) int {
	if line > len(d.source) {
		return 1
	}
	text := d.source[line-1]
	return len(text) - len(strings.TrimLeft(text, " ")) + 1
}
