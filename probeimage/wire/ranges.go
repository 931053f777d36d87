package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Ranges writes numbers as ranges, "1-12,14", in order and each once: ten
// thousand records fit into a line.
func Ranges(numbers []int) string {
	numbers = slices.Clone(numbers)
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	var b strings.Builder
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(numbers[i]))
		if j > i {
			fmt.Fprintf(&b, "-%d", numbers[j])
		}
		i = j + 1
	}
	return b.String()
}

// InRanges gives the numbers Ranges wrote. Reversed and overlong ranges are
// errors.
func InRanges(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var numbers []int
	for _, part := range strings.Split(text, ",") {
		from, to, ok := strings.Cut(part, "-")
		if !ok {
			to = from
		}
		lo, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("ranges %.40q: %w", text, err)
		}
		hi, err := strconv.Atoi(to)
		if err != nil {
			return nil, fmt.Errorf("ranges %.40q: %w", text, err)
		}
		if hi < lo || hi-lo > 1<<24 {
			return nil, fmt.Errorf("ranges %.40q: from %d to %d", text, lo, hi)
		}
		for n := lo; n <= hi; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers, nil
}
