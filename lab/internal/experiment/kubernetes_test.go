package experiment

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"persistencelab/lab/engine"
	"persistencelab/scenarios"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func oneImage(*scenarios.Image) (engine.Image, error) {
	return engine.Image{Ref: "localhost/persistencelab/probe:one"}, nil
}

// TestKubernetesGoldens: scenario → documents.
func TestKubernetesGoldens(t *testing.T) {
	files, err := filepath.Glob("testdata/kubernetes/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		s, err := scenarios.Load(file, scenarios.Options{})
		require.NoError(t, err)
		got, err := Kubernetes(s, oneImage)
		require.NoError(t, err)
		golden := strings.TrimSuffix(file, ".yaml") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, got, 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
		requireDocuments(t, s, got)
	}
}

// TestTheCatalogueForKubernetes: each built-in scenario is written, or refused
// for a reason.
func TestTheCatalogueForKubernetes(t *testing.T) {
	written := 0
	for _, s := range scenarios.Catalogue() {
		text, err := Kubernetes(s, oneImage)
		var none *NoKubeFormError
		if errors.As(err, &none) {
			require.NotEmpty(t, none.Why, s.Name)
			continue
		}
		require.NoError(t, err, s.Name)
		requireDocuments(t, s, text)
		written++
	}
	require.Greater(t, written, 20)
}

// requireDocuments: they parse, and no two are of one kind and name, which
// would be one object.
func requireDocuments(t *testing.T, s *scenarios.Scenario, text []byte) {
	t.Helper()
	dec := yaml.NewDecoder(bytes.NewReader(text))
	seen := map[string]bool{}
	name := regexp.MustCompile(`^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$`)
	for {
		var o struct {
			Kind     string
			Metadata struct {
				Name   string
				Labels map[string]string
			}
		}
		err := dec.Decode(&o)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, s.Name)
		require.Regexp(t, name, o.Metadata.Name)
		for _, v := range o.Metadata.Labels {
			require.Regexp(t, name, v)
		}
		key := o.Kind + " " + o.Metadata.Name
		require.False(t, seen[key], "%s twice in %s", key, s.Name)
		seen[key] = true
	}
	require.NotEmpty(t, seen, s.Name)
}
