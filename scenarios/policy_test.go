package scenarios_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/scenarios"
)

// A decision table is the data: part of a scenario, alone or in one.
func TestPolicy(t *testing.T) {
	alone := "data:\n  jobs: {sqlite: /srv/jobs.db, acceptable_loss: none}\n  cache: {file: /var/cache/app, rebuild: auto}\n"
	items, err := scenarios.ParsePolicy("p.yaml", []byte(alone))
	require.NoError(t, err)
	require.Len(t, items, 2)
	require.Equal(t, &scenarios.Loss{}, items[0].AcceptableLoss)
	require.Equal(t, "/var/cache/app", items[1].Path)

	items, err = scenarios.ParsePolicy("x.yaml", scenarios.Starter("x"))
	require.NoError(t, err)
	require.NotEmpty(t, items)
	for src, says := range map[string]string{
		"":                               "",
		"steps: [run]\n":                 `has no "data"`,
		"dta:\n  a: {file: /x}\n":        `unknown key "dta"`,
		"data:\n  a: {fle: /x}\n":        `unknown key "fle"`,
		"data:\n  a: {file: x}\n":        "absolute path",
		"data:\n  a: {file: /x, b: 1}\n": "b",
	} {
		_, err := scenarios.ParsePolicy("p.yaml", []byte(src))
		require.ErrorAs(t, err, new(scenarios.Errors), src)
		require.ErrorContains(t, err, says)
	}
}
