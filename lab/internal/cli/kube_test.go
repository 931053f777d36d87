package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/lab/engine/enginetest"
	"persistencelab/lab/internal/experiment"
)

// TestKubeYAMLPlays has Podman play what --kube-yaml writes, and finds in it
// what the scenario says.
func TestKubeYAMLPlays(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		t.Parallel()
		d := newDesk(t, target)
		ctx := t.Context()
		name := fmt.Sprintf("kube%d", os.Getpid())
		file := filepath.Join(t.TempDir(), "my.yaml")
		require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(`
version: 1
name: NAME
title: For Kubernetes
data: {note: {file: /data/note.txt, on: app}}
containers:
  app:
    pod: web
    user: "0:0"
    env: {GREETING: "it's me"}
    mounts:
      - {volume: my_data, target: /data}
      - {emptydir: scratch, target: /scratch}
      - {bind: folder, target: /host}
  next:
    pod: web
    mounts: [{emptydir: scratch, target: /in, options: ro}]
  alone: {read_only: true, mounts: [{tmpfs: /fast}]}
  worker: {replicas: 2, restart: always}
steps: [kube play: web, run: alone, run: worker, write, read: now]
expect: {now: {note: survived}}
`, "NAME", name)), 0o644))
		res := d.lab("run", "--kube-yaml", file)
		require.Zero(t, res.code, res.stderr)
		require.Empty(t, res.stderr)
		host := filepath.Join(d.state, "host") // instead of one that the test would leave
		text := strings.ReplaceAll(res.stdout, "/var/tmp/persistencelab/", host+"/")
		require.NotEqual(t, res.stdout, text)
		// 4.3 plays a claim only once: it goes into a file of its own.
		docs := strings.Split(text, "---\n")
		claim, pods := docs[1], []byte(strings.Join(docs[2:], "---\n"))
		require.Contains(t, claim, "PersistentVolumeClaim")

		before, err := d.eng.PauseImages(ctx)
		require.NoError(t, err)
		volume := name + "-my-data"
		t.Cleanup(func() {
			ctx := context.Background()
			for _, pod := range docs[2:] {
				var gone *engine.NotFoundError
				if err := d.eng.DownKube(ctx, []byte(pod), false); !errors.As(err, &gone) {
					require.NoError(t, err)
				}
			}
			require.NoError(t, d.eng.RemoveVolume(ctx, volume, false))
			if len(before) == 0 {
				pause := []experiment.Made{{Kind: experiment.PauseImage}}
				_, left := experiment.Remove(ctx, d.eng, pause, nil, 0)
				require.Empty(t, left)
			}
			found, err := d.eng.Containers(ctx)
			require.NoError(t, err)
			for _, c := range found {
				require.NotContains(t, c.Name, name)
			}
			require.NoError(t, os.RemoveAll(host))
		})
		require.NoError(t, d.eng.PlayKube(ctx, []byte(claim)))
		require.NoError(t, d.eng.PlayKube(ctx, pods))

		probe := func(container, verb, path string) string {
			t.Helper()
			out, err := d.eng.Exec(ctx, name+"-"+container, "/probe", verb, "item", "file", path, "hello")
			require.NoError(t, err)
			return strings.TrimSpace(out.Stdout + out.Stderr)
		}
		for _, path := range []string{"/data/note", "/scratch/note", "/host/note"} {
			require.Equal(t, "item: written", probe("web-app", "write", path))
		}
		require.Equal(t, "item: survived", probe("web-next", "read", "/in/note"), "the pod's containers share its emptyDir")
		require.Contains(t, probe("web-next", "write", "/in/other"), "read-only")
		require.Equal(t, "item: written", probe("alone-alone", "write", "/fast/note"))
		require.Contains(t, probe("alone-alone", "write", "/note"), "read-only")
		on, err := os.ReadFile(filepath.Join(host, name, "folder", "note"))
		require.NoError(t, err)
		require.True(t, bytes.Contains(on, []byte("hello")))
		workers := 0
		found, err := d.eng.Containers(ctx)
		require.NoError(t, err)
		for _, c := range found {
			if strings.HasPrefix(c.Name, name+"-worker-pod") && c.State == "running" {
				workers++
			}
		}
		require.Positive(t, workers)
		t.Log("pods of the Deployment of two replicas: ", workers)

		require.NoError(t, d.eng.DownKube(ctx, pods, false))
		_, err = d.eng.Inspect(ctx, name+"-web-app")
		var gone *engine.NotFoundError
		require.ErrorAs(t, err, &gone)
		require.NoError(t, d.eng.PlayKube(ctx, []byte(docs[2])), "the first of the pods is web")
		require.Equal(t, "item: survived", probe("web-app", "read", "/data/note"))
		require.Contains(t, probe("web-app", "read", "/scratch/note"), "lost")
		require.Equal(t, "item: survived", probe("web-app", "read", "/host/note"))
	})
}

// TestSignalInKubePlay ends the lab while Podman makes a pod of YAML, or takes
// it down: pod, containers, claim and emptyDir go, and the image Podman built
// for pods goes with them where no pod had brought it before.
func TestSignalInKubePlay(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		d := newDesk(t, target)
		b := d.standBy()
		before, err := d.eng.PauseImages(t.Context())
		require.NoError(t, err)
		file := scenarioFile(t, `
version: 1
name: pod
title: A pod
pod: web
restart: always
data: {note: {file: /data/note.txt}}
mounts: [{volume: mydata, target: /data}, {emptydir: scratch, target: /scratch}]
steps: [kube play: web, write, kube down: web, kube play: web, read: now]
expect: {now: {note: survived}}
`)
		ends := []struct {
			step   int
			later  time.Duration
			signal syscall.Signal
		}{{1, 400 * time.Millisecond, syscall.SIGKILL}, {3, 200 * time.Millisecond, syscall.SIGTERM}}
		if enginetest.Long() {
			ends = ends[:0]
			for n := 1; n <= 5; n++ {
				for i, s := range signals {
					for later := 50 * time.Millisecond; later < 2*time.Second; later *= 3 {
						ends = append(ends, struct {
							step   int
							later  time.Duration
							signal syscall.Signal
						}{n, later + time.Duration(i*10)*time.Millisecond, s})
					}
				}
			}
		}
		for _, e := range ends {
			res, _ := d.endAt(b, e.step, e.later, e.signal, file)
			after, err := d.eng.PauseImages(t.Context())
			require.NoError(t, err)
			require.Equal(t, before, after, "step %d, %s, %s: %s", e.step, e.later, e.signal, res.stderr)
		}
	})
}
