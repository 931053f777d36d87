package drill

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/bindings"
	"persistencelab/lab/engine"
	"persistencelab/lab/engine/enginetest"
	"persistencelab/lab/internal/experiment"
	"persistencelab/probeimage/image"
	"persistencelab/scenarios"
)

// Every built-in scenario with one container can be drilled, and the others
// are refused with a reason.
func TestOfScenario(t *testing.T) {
	drilled := 0
	for _, s := range scenarios.Catalogue() {
		for i := range s.Variants {
			v := &s.Variants[i]
			d, err := OfScenario(s, v, 50)
			if err != nil {
				require.True(t, s.Machine != "" || len(v.Containers) > 1 || v.Containers[0].Remove || v.Containers[0].Deferred || onlySeeds(s), "%s, %s: %v", s.Name, v.Name, err)
				continue
			}
			drilled++
			require.Len(t, d.Scenario.Variants, 1)
			require.Equal(t, v.Name, d.Scenario.Variants[0].Name)
			// The scenario itself is as it was.
			for _, it := range s.Data {
				require.NotEqual(t, checkItem, it.Name)
			}
		}
	}
	require.Greater(t, drilled, 10)
}

func onlySeeds(s *scenarios.Scenario) bool {
	for _, it := range s.Data {
		if !it.Seed && it.Kind != scenarios.Fact && it.Kind != scenarios.Health {
			return false
		}
	}
	return true
}

func TestImageOptions(t *testing.T) {
	require.NoError(t, ImageOptions{Volumes: []string{"data:/var/lib/app"}, Env: []string{"A=b=c"}, Paths: []string{"/srv"}}.Check())
	for _, bad := range []ImageOptions{
		{Volumes: []string{"/home/me:/data"}}, {Volumes: []string{"data"}}, {Volumes: []string{"data:relative"}},
		{Volumes: []string{"data:/a:ro"}}, {Volumes: []string{"a:/d", "b:/d"}}, {Env: []string{"A"}}, {Paths: []string{"srv"}},
	} {
		require.Error(t, bad.Check(), "%v", bad)
	}
}

// A drill that lost nothing says so, and what it did not try.
func TestAnEmptyListIsNoProof(t *testing.T) {
	r := &Report{Drills: []Drill{{Subject: "x", NotCovered: always()}}}
	for _, f := range Formats() {
		var b bytes.Buffer
		require.NoError(t, f.Write(&b, r, Options{Unicode: true}))
		require.Contains(t, b.String(), "a power cut", f.Name)
		if f.Name != "json" {
			require.Contains(t, b.String(), "Nothing was lost. That says as much as the drill tried, and no more", f.Name)
		}
	}
}

// Text of a drill comes from scenario files, images and commands: none of it
// steers a terminal.
func TestNothingSteers(t *testing.T) {
	evil := "a\x1b[31mb\u202ec\r\n| <b>"
	d := newDrill(evil)
	d.saw(1, Failed, "%s", evil)
	d.step(2).Command = evil
	d.Losses, d.NotCovered, d.Fault = []Loss{{What: evil, Where: evil, When: evil, Detail: evil}}, []string{evil}, evil
	for _, f := range Formats() {
		var b bytes.Buffer
		require.NoError(t, f.Write(&b, &Report{Drills: []Drill{*d}}, Options{}))
		require.NotContains(t, b.String(), "\x1b", f.Name)
		require.NotContains(t, b.String(), "\u202e", f.Name)
		require.NotContains(t, b.String(), "\r", f.Name)
	}
}

// target is an engine with a folder it can see.
type target struct {
	*bindings.Podman
	t   *testing.T
	dir string
	id  string
}

func dial(t *testing.T, at enginetest.Target) *target {
	t.Helper()
	tg := &target{t: t, dir: enginetest.StateDir(t), id: strings.ToLower(rand.Text()[:8])}
	ref, archive, err := image.Build(image.Spec{Arch: runtime.GOARCH})
	require.NoError(t, err)
	tg.Podman, err = bindings.Dial(context.Background(), bindings.Options{
		URL: at.URL, Getenv: os.Getenv, UID: os.Getuid(), RunDir: tg.dir, CacheDir: t.TempDir(), Image: engine.Image{Ref: ref, Archive: archive},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, tg.Close()) })
	return tg
}

// build makes an image of the shop, as podman build would from a
// Containerfile with COPY, ENTRYPOINT and HEALTHCHECK.
func (tg *target) build(shop []byte, args []string, health string) string {
	t := tg.t
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, dir := range []string{"tmp", "var", "var/lib"} {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o1777}))
	}
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "shop", Mode: 0o755, Size: int64(len(shop))}))
	_, err := w.Write(shop)
	require.NoError(t, err)
	require.NoError(t, w.Close())

	config := map[string]any{"Entrypoint": append([]string{"/shop"}, args...)}
	if health != "" {
		config["Healthcheck"] = map[string]any{"Test": []string{"CMD", "/shop", health}, "Interval": 0, "Retries": 1}
	}
	conf, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
	})
	require.NoError(t, err)
	ref := "localhost/lab-drill-test:" + strings.ToLower(rand.Text()[:8])
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{ref}, "Layers": []string{"layer.tar"}}})
	require.NoError(t, err)
	var archive bytes.Buffer
	a := tar.NewWriter(&archive)
	for _, f := range []struct {
		name string
		text []byte
	}{{"config.json", conf}, {"layer.tar", layer.Bytes()}, {"manifest.json", manifest}} {
		require.NoError(t, a.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: 0o644, Size: int64(len(f.text))}))
		_, err := a.Write(f.text)
		require.NoError(t, err)
	}
	require.NoError(t, a.Close())
	require.NoError(t, tg.EnsureImage(t.Context(), engine.Image{Ref: ref, Archive: func() (io.ReadCloser, error) { return io.NopCloser(&archive), nil }}))
	t.Cleanup(func() { require.NoError(t, tg.RemoveImage(context.Background(), ref, true)) })
	return ref
}

func (tg *target) drill(ref string, o ImageOptions) *Drill {
	t := tg.t
	t.Helper()
	o.Settle, o.HealthTime = 300*time.Millisecond, 3*time.Second
	require.NoError(t, o.Check())
	run := tg.id + strings.ToLower(rand.Text()[:4])
	folder := filepath.Join(tg.dir, run)
	require.NoError(t, os.Mkdir(folder, 0o755))
	ledger, err := experiment.OpenLedger(folder)
	require.NoError(t, err)
	defer ledger.Close()
	d, err := Image(t.Context(), tg, ref, o, Env{RunID: run, Folder: folder, Ledger: ledger, Now: time.Now, Nonce: func() string { return strings.ToLower(rand.Text()[:16]) }})
	require.NoError(t, err)
	require.Empty(t, ledger.Left())
	left, err := tg.Labelled(context.Background(), experiment.RunLabel)
	require.NoError(t, err)
	for _, o := range left {
		require.NotEqual(t, run, o.Label, "left behind: %v", o)
	}
	return d
}

func verdicts(d *Drill) string {
	var v []string
	for _, s := range d.Steps {
		v = append(v, s.Verdict.word())
	}
	return strings.Join(v, ", ")
}

// TestDrillOfAnImage drills a service that was built here, with and without
// the volume its data belongs on, and with a health check that looks and one
// that does not.
func TestDrillOfAnImage(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, at enginetest.Target) {
		binary := filepath.Join(t.TempDir(), "shop")
		out, err := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "./testdata/shop").CombinedOutput()
		require.NoError(t, err, string(out))
		shop, err := os.ReadFile(binary)
		require.NoError(t, err)
		tg := dial(t, at)

		t.Run("no volume", func(t *testing.T) {
			d := tg.drill(tg.build(shop, nil, "ready"), ImageOptions{WriteCommand: "/shop order"})
			require.Empty(t, d.Fault)
			// The last step fails: the new container is not ready.
			require.Equal(t, "passed, passed, passed, passed, passed, failed", verdicts(d), "%+v", d)
			lost := map[string]bool{}
			for _, l := range d.Losses {
				require.Empty(t, l.Accepted)
				lost[l.Where] = true
			}
			require.Contains(t, fmt.Sprint(lost), "/var/lib/shop")
			require.Contains(t, fmt.Sprint(lost), "/var/log/shop")
			require.NotContains(t, fmt.Sprint(lost), "drill", "the drill's own files are no loss of the service's")
			require.Contains(t, fmt.Sprint(d.step(kill).Seen), "torn: ends after 8192 of 16384 bytes")
		})
		t.Run("on a volume", func(t *testing.T) {
			d := tg.drill(tg.build(shop, nil, "ready"), ImageOptions{WriteCommand: "/shop order", Volumes: []string{"data:/var/lib/shop"}})
			require.Empty(t, d.Fault)
			require.Equal(t, "passed, passed, passed, passed, passed, passed", verdicts(d), "%+v", d)
			for _, l := range d.Losses {
				require.NotContains(t, l.Where, "/var/lib/shop")
			}
			require.Contains(t, fmt.Sprint(d.step(ready).Seen), "a fresh container with empty volumes is unhealthy")
		})
		t.Run("a check that does not look", func(t *testing.T) {
			d := tg.drill(tg.build(shop, nil, ""), ImageOptions{HealthCommand: "/shop live"})
			require.Equal(t, Failed, d.step(ready).Verdict, "%+v", d.step(ready))
		})
		t.Run("no check", func(t *testing.T) {
			d := tg.drill(tg.build(shop, nil, ""), ImageOptions{})
			require.Equal(t, Skipped, d.step(ready).Verdict)
			require.Contains(t, fmt.Sprint(d.NotCovered), "there is no health check")
		})
		t.Run("a service that ends", func(t *testing.T) {
			d := tg.drill(tg.build(shop, []string{"broken"}, ""), ImageOptions{})
			require.Contains(t, d.Fault, "ended with code 7")
			require.NotZero(t, Count(&Report{Drills: []Drill{*d}}).Unknown)
		})
	})
}
