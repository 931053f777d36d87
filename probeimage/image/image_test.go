package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

func build(t *testing.T, spec Spec) (ref string, archive []byte) {
	t.Helper()
	ref, open, err := Build(spec)
	require.NoError(t, err)
	r, err := open()
	require.NoError(t, err)
	archive, err = io.ReadAll(r)
	require.NoError(t, err)
	return ref, archive
}

// entries unpacks a tar into name → content, folders with an empty one, and
// the headers beside it.
func entries(t *testing.T, archive []byte) (map[string][]byte, map[string]*tar.Header) {
	t.Helper()
	content, headers := map[string][]byte{}, map[string]*tar.Header{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			return content, headers
		}
		require.NoError(t, err)
		require.NotContains(t, headers, h.Name)
		headers[h.Name] = h
		content[h.Name], err = io.ReadAll(r)
		require.NoError(t, err)
	}
}

func TestTheSameSpecGivesTheSameBytes(t *testing.T) {
	for _, arch := range Archs() {
		spec := Spec{
			Arch:    arch,
			Files:   map[string]string{"/srv/b": "b", "/srv/a/c": "c", "/etc/x": "x"},
			Volumes: []string{"/data", "/more"},
			Labels:  map[string]string{"one": "1", "two": "2"},
			Env:     map[string]string{"B": "b", "A": "a"},
		}
		ref, archive := build(t, spec)
		again, bytesAgain := build(t, spec)
		require.Equal(t, ref, again)
		require.True(t, bytes.Equal(archive, bytesAgain))
		require.Less(t, len(archive), 12<<20)
	}
}

func TestTheReferenceNamesTheContent(t *testing.T) {
	seen := map[string]string{}
	for name, spec := range map[string]Spec{
		"plain":       {Arch: "amd64"},
		"other arch":  {Arch: "arm64"},
		"file":        {Arch: "amd64", Files: map[string]string{"/a": "1"}},
		"other file":  {Arch: "amd64", Files: map[string]string{"/a": "2"}},
		"other name":  {Arch: "amd64", Files: map[string]string{"/b": "1"}},
		"volume":      {Arch: "amd64", Volumes: []string{"/a"}},
		"user":        {Arch: "amd64", User: "1000"},
		"label":       {Arch: "amd64", Labels: map[string]string{"a": "1"}},
		"environment": {Arch: "amd64", Env: map[string]string{"a": "1"}},
	} {
		ref, _, err := Build(spec)
		require.NoError(t, err)
		require.Regexp(t, `^localhost/persistencelab/probe:[0-9a-f]{12}$`, ref)
		require.Empty(t, seen[ref], "%s and %s", seen[ref], name)
		seen[ref] = name
	}
	ref, archive := build(t, Spec{Arch: "amd64", Tag: "localhost/mine:1", Files: map[string]string{"/a": "1"}})
	require.Equal(t, "localhost/mine:1", ref)
	content, _ := entries(t, archive)
	require.Contains(t, string(content["manifest.json"]), `"RepoTags":["localhost/mine:1"]`)
}

func TestTheReferenceIsCheap(t *testing.T) {
	spec := Spec{Arch: "amd64", Files: map[string]string{"/a": "1"}}
	_, _, err := Build(spec)
	require.NoError(t, err)
	best := time.Hour
	for range 5 {
		start := time.Now()
		_, _, err := Build(spec)
		require.NoError(t, err)
		best = min(best, time.Since(start))
	}
	require.Less(t, best, 5*time.Millisecond)
}

func TestWhatTheImageHolds(t *testing.T) {
	_, archive := build(t, Spec{Arch: "amd64", Files: map[string]string{"/etc/app/config": "c", "/tmp/x": "x", "/top": "t"}})
	content, _ := entries(t, archive)
	var list []manifest
	require.NoError(t, json.Unmarshal(content["manifest.json"], &list))
	require.Len(t, list, 1)
	require.Len(t, list[0].Layers, 2)

	_, base := entries(t, content[list[0].Layers[0]])
	modes := map[string]int64{}
	for name, h := range base {
		modes[name] = h.Mode
		require.Zero(t, h.Uid)
		require.Zero(t, h.Gid)
	}
	require.Equal(t, map[string]int64{"etc/": 0o755, "etc/passwd": 0o644, "probe": 0o755, "tmp/": 0o1777}, modes)

	files, headers := entries(t, content[list[0].Layers[1]])
	require.Equal(t, "c", string(files["etc/app/config"]))
	require.NotContains(t, headers, "etc/", "the base's folders keep their modes")
	require.NotContains(t, headers, "tmp/")
	require.Contains(t, headers, "etc/app/")
	require.Equal(t, "t", string(files["top"]))
}

func TestBuildRefuses(t *testing.T) {
	for name, spec := range map[string]Spec{
		"unknown architecture":  {Arch: "riscv64"},
		"with a tag":            {Arch: "riscv64", Tag: "localhost/x:1"},
		"relative file":         {Arch: "amd64", Files: map[string]string{"a": ""}},
		"file that climbs":      {Arch: "amd64", Files: map[string]string{"/../a": ""}},
		"root as a file":        {Arch: "amd64", Files: map[string]string{"/": ""}},
		"the probe as a file":   {Arch: "amd64", Files: map[string]string{"/probe": ""}},
		"file below the probe":  {Arch: "amd64", Files: map[string]string{"/probe/x": ""}},
		"file as a folder":      {Arch: "amd64", Files: map[string]string{"/a": "", "/a/b": ""}},
		"relative volume":       {Arch: "amd64", Volumes: []string{"data"}},
		"user with a line":      {Arch: "amd64", User: "a\nb"},
		"variable with a space": {Arch: "amd64", Env: map[string]string{"A B": ""}},
	} {
		_, _, err := Build(spec)
		require.Error(t, err, name)
	}
}

func TestALabWithoutItsProbeSaysSo(t *testing.T) {
	_, err := packedIn(fstest.MapFS{"bin/README": {}}, "amd64")
	require.EqualError(t, err, "this lab was built without its probe for linux/amd64: build it with ./scripts/lab")
}

func TestProbeIsAStaticBinaryForItsArchitecture(t *testing.T) {
	for arch, machine := range map[string]byte{"amd64": 62, "arm64": 183} {
		probe, err := Probe(arch)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(probe), "\x7fELF"))
		require.Equal(t, machine, probe[18])
		require.NotContains(t, string(probe[:64<<10]), "/ld-linux", "no interpreter")
	}
}
