package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRanges(t *testing.T) {
	for text, numbers := range map[string][]int{
		"":          nil,
		"7":         {7},
		"1-3":       {3, 1, 2, 2},
		"1-2,4,6-7": {1, 2, 4, 6, 7},
	} {
		require.Equal(t, text, Ranges(numbers))
		back, err := InRanges(text)
		require.NoError(t, err)
		require.Equal(t, text, Ranges(back))
	}
	for _, bad := range []string{",", "1-", "x", "3-1", "1-99999999999"} {
		_, err := InRanges(bad)
		require.Error(t, err, bad)
	}
}
