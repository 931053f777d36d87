package report

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestReadRefuses(t *testing.T) {
	data, err := os.ReadFile("testdata/three-mounts.json")
	require.NoError(t, err)
	good := string(data)
	replace := func(old, new string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct{ name, doc, err string }{
		{"empty", " \n", "the result file is empty"},
		{"cut off", good[:len(good)/2], "cut off after"},
		{"cut off at the end", strings.TrimSuffix(good, "}\n"), "cut off after"},
		{"two documents", good + good, "byte "},
		{"not JSON", "version: 1\n", "byte 1 is not JSON"},
		{"a list", "[1]", "not a result file of the lab: a JSON array"},
		{"foreign", `{"version": 1, "name": "x"}`, `not a result file of the lab: it has no "tool"`},
		{"no version", replace(`"version": 1,`, ""), `it has no "version"`},
		{"newer", replace(`"version": 1,`, `"version": 2,`), "has version 2; this lab reads version 1"},
		{"older", replace(`"version": 1,`, `"version": 0,`), "has version 0; this lab reads version 1"},
		{"version is text", replace(`"version": 1,`, `"version": "1",`), `version "1" is not a number`},
		{"wrong type", replace(`"written": true`, `"written": "yes"`), "damaged: results.written is a JSON string"},
		{"no such verdict", replace(`"verdict": "as expected"`, `"verdict": "fine"`), `results[0] has an unknown verdict "fine"`},
		{"no such outcome", replace(`"outcome": "survived"`, `"outcome": "gone"`), "gone"},
		{"an outcome can't vary", replace(`"outcome": "survived"`, `"outcome": "varies"`), `results[0] has an unknown outcome "varies"`},
		{"no such expectation", replace(`"expected": "survived"`, `"expected": "gone"`), "gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(c.doc))
			require.ErrorContains(t, err, c.err)
		})
	}
	_, err = Read(iotest.ErrReader(errors.New("disk on fire")))
	require.ErrorContains(t, err, "disk on fire")
}

// TestReadTakesNewFields: a later lab of the same version may add some.
func TestReadTakesNewFields(t *testing.T) {
	data, err := os.ReadFile("testdata/three-mounts.json")
	require.NoError(t, err)
	r, err := Read(strings.NewReader(strings.Replace(string(data), `"tool"`, `"new": [1], "tool"`, 1)))
	require.NoError(t, err)
	require.Len(t, r.Results, 18)
}
