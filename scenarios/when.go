package scenarios

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// condition is a parsed `when`: terms that must all hold.
//
//	podman < 5.1
//	rootless
//	podman >= 5 and rootful
type condition []term

// term is either a comparison with Podman's version or a word about it.
type term struct {
	op       string // <, <=, >, >=, ==, != ; "" for a word
	version  []int
	rootless bool
}

// parseWhen reads a `when`. The error says what is wrong with it, without
// repeating it.
func parseWhen(s string) (condition, error) {
	var c condition
	for _, part := range strings.Split(" "+strings.Join(strings.Fields(s), " ")+" ", " and ") {
		t, err := parseTerm(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		c = append(c, t)
	}
	return c, nil
}

func parseTerm(s string) (term, error) {
	switch s {
	case "":
		return term{}, errors.New("a condition is missing")
	case "rootless":
		return term{rootless: true}, nil
	case "rootful":
		return term{}, nil
	}
	rest, ok := strings.CutPrefix(s, "podman")
	if !ok {
		return term{}, fmt.Errorf("%q is no condition", s)
	}
	rest = strings.TrimSpace(rest)
	for _, op := range []string{"<=", ">=", "==", "!=", "<", ">", "="} {
		number, ok := strings.CutPrefix(rest, op)
		if !ok {
			continue
		}
		if op == "=" {
			op = "=="
		}
		number = strings.TrimSpace(number)
		v := parseVersion(number)
		if v == nil {
			return term{}, fmt.Errorf("%q is no version", number)
		}
		return term{op: op, version: v}, nil
	}
	return term{}, fmt.Errorf("%q does not compare podman with a version", s)
}

// parseVersion reads 5, 5.1 or 5.1.2; what follows a - or + (a pre-release)
// is not looked at. Nil when it is no version.
func parseVersion(s string) []int {
	if i := strings.IndexAny(s, "-+"); i > 0 {
		s = s[:i]
	}
	parts := strings.Split(s, ".")
	if len(parts) > 3 {
		return nil
	}
	v := make([]int, len(parts))
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return nil
		}
		v[i] = int(n)
	}
	return v
}

// compareVersion compares as many parts as want names: 5.1.3 equals 5.1.
func compareVersion(v, want []int) int {
	for i, w := range want {
		part := 0
		if i < len(v) {
			part = v[i]
		}
		if part != w {
			return part - w
		}
	}
	return 0
}

func (c condition) holds(version []int, rootless bool) bool {
	for _, t := range c {
		if !t.holds(version, rootless) {
			return false
		}
	}
	return true
}

func (t term) holds(version []int, rootless bool) bool {
	if t.op == "" {
		return t.rootless == rootless
	}
	if version == nil { // an engine that does not say: nothing is known of it
		return false
	}
	diff := compareVersion(version, t.version)
	switch t.op {
	case "<":
		return diff < 0
	case "<=":
		return diff <= 0
	case ">":
		return diff > 0
	case ">=":
		return diff >= 0
	case "==":
		return diff == 0
	default: // !=
		return diff != 0
	}
}

// Holds says whether the rule applies on an engine of this version ("5.4.2").
// A version compares by as many parts as the rule names: 5.1.3 is not above
// 5.1, it is 5.1. On a version that can't be read, no comparison holds.
func (r Rule) Holds(version string, rootless bool) bool {
	if r.When == "" {
		return true
	}
	c, err := parseWhen(r.When)
	return err == nil && c.holds(parseVersion(version), rootless)
}

// For gives the first rule that holds on this engine. Parse makes sure that
// there is one for every version that says which it is.
func (e Expectation) For(version string, rootless bool) (Rule, bool) {
	for _, r := range e.Rules {
		if r.Holds(version, rootless) {
			return r, true
		}
	}
	return Rule{}, false
}

// gap names an engine no rule holds for, "" when the rules cover all. It
// tries every version at which a rule could change its mind.
func (e Expectation) gap() string {
	versions := [][]int{{0, 0, 0}}
	var conditions []condition
	for _, r := range e.Rules {
		if r.When == "" {
			return ""
		}
		c, err := parseWhen(r.When)
		if err != nil {
			return "" // reported where it stands
		}
		conditions = append(conditions, c)
		for _, t := range c {
			if t.op != "" {
				versions = append(versions, around(t.version)...)
			}
		}
	}
	for _, v := range versions {
		for _, rootless := range []bool{false, true} {
			covered := false
			for _, c := range conditions {
				covered = covered || c.holds(v, rootless)
			}
			if !covered {
				return describeEngine(v, rootless)
			}
		}
	}
	return ""
}

// around gives v itself, the version just before it and the one just after.
func around(v []int) [][]int {
	full := append(append([]int{}, v...), 0, 0, 0)[:3]
	after := append([]int{}, v...)
	after[len(after)-1]++
	after = append(after, 0, 0, 0)[:3]
	before := append([]int{}, full...)
	for i := 2; i >= 0; i-- {
		if before[i] > 0 {
			before[i]--
			break
		}
		before[i] = 99
	}
	if before[0] == 99 { // v was 0.0.0
		before = full
	}
	return [][]int{full, after, before}
}

func describeEngine(v []int, rootless bool) string {
	mode := "rootful"
	if rootless {
		mode = "rootless"
	}
	if v[0] == 0 {
		return mode + " podman of any other version"
	}
	return fmt.Sprintf("%s podman %d.%d.%d", mode, v[0], v[1], v[2])
}
