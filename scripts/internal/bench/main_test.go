package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/scenarios"
)

func TestMedian(t *testing.T) {
	require.Equal(t, time.Duration(3), median([]time.Duration{9, 1, 3}))
	require.Equal(t, time.Duration(4), median([]time.Duration{5, 9, 1, 3}))
}

func TestMeasureOfAFailureIsAnErrorWithItsWords(t *testing.T) {
	_, err := measure(t.Context(), nil, "sh", "-c", "echo why >&2; exit 3")
	require.ErrorContains(t, err, "why")
	u, err := measure(t.Context(), nil, "sh", "-c", "sleep 0.05")
	require.NoError(t, err)
	require.Greater(t, u.wall, 50*time.Millisecond)
	require.Greater(t, u.peak, int64(100<<10))
}

func TestScenarioOfManyVariants(t *testing.T) {
	s, err := scenarios.Parse("many.yaml", scenario(160), scenarios.Options{})
	require.NoError(t, err)
	require.Len(t, s.Variants, 160)
}
