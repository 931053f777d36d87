package matrix

import (
	"fmt"
	"regexp"
	"strings"
)

// SelectError: a name or pattern that nothing answers to.
type SelectError struct {
	What, Name string // "mount", "event"
	Nearest    string // "" where nothing is near
}

func (e *SelectError) Error() string { return fmt.Sprintf("there is no %s %q", e.What, e.Name) }

// SelectMounts picks kinds from a comma list of names and patterns (* and ?);
// "" picks all. They stay in the table's order.
func SelectMounts(list string) ([]Kind, error) {
	return pick("mount", list, Kinds(), func(k Kind) string { return k.Name })
}

// SelectEvents picks events.
func SelectEvents(list string) ([]Event, error) {
	return pick("event", list, Events(), func(e Event) string { return e.Name })
}

func pick[T any](what, list string, all []T, name func(T) string) ([]T, error) {
	if strings.TrimSpace(list) == "" {
		return all, nil
	}
	var names []string
	for _, one := range all {
		names = append(names, name(one))
	}
	wanted := map[string]bool{}
	parts := strings.Split(list, ",")
	for i := 0; i < len(parts); i++ {
		word := strings.TrimSpace(parts[i])
		if word == "" {
			continue
		}
		found := match(word, names)
		// One event has a comma in its name.
		if len(found) == 0 && i+1 < len(parts) {
			if found = match(word+","+parts[i+1], names); len(found) > 0 {
				i++
			}
		}
		if len(found) == 0 {
			return nil, &SelectError{What: what, Name: word, Nearest: nearest(word, names)}
		}
		for _, n := range found {
			wanted[n] = true
		}
	}
	var picked []T
	for _, one := range all {
		if wanted[name(one)] {
			picked = append(picked, one)
		}
	}
	return picked, nil
}

// match gives the names a word stands for: itself, or what its pattern fits.
func match(word string, names []string) []string {
	pattern := regexp.QuoteMeta(word)
	pattern = strings.ReplaceAll(strings.ReplaceAll(pattern, `\*`, ".*"), `\?`, ".")
	fits := regexp.MustCompile("^(?i:" + pattern + ")$")
	var found []string
	for _, n := range names {
		if fits.MatchString(n) {
			found = append(found, n)
		}
	}
	return found
}

// nearest is the name that takes the fewest changes, if few enough: a third
// of its length.
func nearest(word string, names []string) string {
	best, least := "", 1<<30
	for _, n := range names {
		d := distance(strings.ToLower(word), strings.ToLower(n))
		if strings.Contains(strings.ToLower(n), strings.ToLower(word)) {
			d = min(d, 1)
		}
		if d < least {
			best, least = n, d
		}
	}
	if least > max(1, len(word)/3) {
		return ""
	}
	return best
}

// distance is Levenshtein's.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
