package audit

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/bindings"
	"persistencelab/lab/engine"
	"persistencelab/lab/engine/enginetest"
	"persistencelab/lab/internal/compare"
	"persistencelab/probeimage/image"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// bench is an engine to audit on.
type bench struct {
	*bindings.Podman
	t     *testing.T
	image engine.Image
	opts  bindings.Options
	dir   string // seen by the engine too
	id    string // in every name
}

func newBench(t *testing.T, target enginetest.Target) *bench {
	t.Helper()
	b := &bench{t: t, dir: enginetest.StateDir(t), id: "audit-" + strings.ToLower(rand.Text()[:6])}
	ref, archive, err := image.Build(image.Spec{Arch: runtime.GOARCH})
	require.NoError(t, err)
	b.image = engine.Image{Ref: ref, Archive: archive}
	b.opts = bindings.Options{URL: target.URL, Getenv: os.Getenv, UID: os.Getuid(), RunDir: b.dir, CacheDir: t.TempDir(), Image: b.image}
	b.Podman, err = bindings.Dial(context.Background(), b.opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		b.noLeaks()
		require.NoError(t, b.Close())
	})
	require.NoError(t, b.EnsureImage(t.Context(), b.image))
	return b
}

// noLeaks: nothing with the test's name is there when it ends.
func (b *bench) noLeaks() {
	refs, err := b.Containers(context.Background())
	require.NoError(b.t, err)
	for _, r := range refs {
		if strings.Contains(r.Name, b.id) {
			b.t.Errorf("container %s is left", r.Name)
		}
	}
}

func (b *bench) removeLater(name string) {
	b.t.Cleanup(func() {
		_ = b.Remove(context.Background(), name, engine.RemoveOptions{Force: true, Volumes: true})
	})
}

// run starts a container and gives a client of its probe.
func (b *bench) run(spec engine.ContainerSpec) *wire.Client {
	b.t.Helper()
	spec.Labels = map[string]string{"lab.run": "test"}
	if spec.Image == "" {
		spec.Image = b.image.Ref
	}
	id, err := b.Create(b.t.Context(), spec)
	require.NoError(b.t, err)
	stream, err := b.Attach(b.t.Context(), id)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { stream.Close() })
	require.NoError(b.t, b.Start(b.t.Context(), id))
	return wire.NewClient(stream)
}

func (b *bench) ask(c *wire.Client, op wire.Op, item wire.Item) *wire.Found {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	reply, err := c.Call(ctx, wire.Request{Op: op, Item: &item})
	require.NoError(b.t, err)
	require.Nil(b.t, reply.Error, "%s %s: %v", op, item.Path, reply.Error)
	return reply.Found
}

// rest makes a plain REST call: what the lab's port has no use for.
func (b *bench) rest(method, path string, body io.Reader) []byte {
	b.t.Helper()
	return b.restWith(b.t.Context(), method, path, body)
}

// restLater is rest in a cleanup, where the test's context has ended.
func (b *bench) restLater(method, path string) {
	b.restWith(context.Background(), method, path, nil)
}

func (b *bench) restWith(ctx context.Context, method, path string, body io.Reader) []byte {
	b.t.Helper()
	service, _ := b.Service()
	socket := strings.TrimPrefix(service, "unix://")
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	req, err := http.NewRequestWithContext(ctx, method, "http://d/v4.0.0/libpod"+path, body)
	require.NoError(b.t, err)
	switch {
	case strings.HasSuffix(path, "/create"):
		req.Header.Set("Content-Type", "application/json")
	case body != nil:
		req.Header.Set("Content-Type", "application/x-tar")
	}
	res, err := client.Do(req)
	require.NoError(b.t, err)
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	require.Less(b.t, res.StatusCode, 300, "%s %s: %s", method, path, all)
	return all
}

// look is all that inspect and diff say, in an order of its own.
func (b *bench) look(name string) string {
	b.t.Helper()
	var inspect map[string]any
	require.NoError(b.t, json.Unmarshal(b.rest("GET", "/containers/"+name+"/json", nil), &inspect))
	var diff []map[string]any
	require.NoError(b.t, json.Unmarshal(b.rest("GET", "/containers/"+name+"/changes", nil), &diff))
	slices.SortFunc(diff, func(a, b map[string]any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	if mounts, ok := inspect["Mounts"].([]any); ok { // Podman lists them in any order
		slices.SortFunc(mounts, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	}
	if host, ok := inspect["HostConfig"].(map[string]any); ok {
		if binds, ok := host["Binds"].([]any); ok {
			slices.SortFunc(binds, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		}
	}
	text, err := json.MarshalIndent(map[string]any{"inspect": inspect, "diff": diff}, "", " ")
	require.NoError(b.t, err)
	return string(text)
}

// audit looks at a container and makes sure that it is as it was.
func (b *bench) audit(name string, how Engine) *Audit {
	b.t.Helper()
	before := b.look(name)
	f, err := Gather(b.t.Context(), how, name, time.Now())
	require.NoError(b.t, err)
	f.Podman = b.Version()
	a := Judge(f, nil)
	require.Equal(b.t, before, b.look(name), "the audit changed the container")
	return a
}

// elsewhere is the same engine, as from another machine: none of its folders
// can be read.
type elsewhere struct{ *bindings.Podman }

func (elsewhere) Local() bool { return false }

// predicted is what the audit says of one file.
func predicted(a *Audit, file string) (scenarios.Outcome, *Finding) {
	for _, list := range [][]Finding{a.Findings, a.Folded} {
		for i, f := range list {
			if slices.Contains(f.paths, file) {
				return f.Outcome, &list[i]
			}
		}
	}
	for i, f := range a.Findings {
		if len(f.paths) == 0 && f.Where != "/" && strings.HasPrefix(file, f.Where+"/") {
			return f.Outcome, &a.Findings[i]
		}
	}
	return scenarios.Unknown, nil
}

// box is a container built in one way, what is written in it and what the
// audit must have seen.
type box struct {
	name  string
	spec  engine.ContainerSpec
	image *image.Spec
	items []wire.Item
	says  []string // in the text
	lost  int      // not accepted
	stop  bool     // removed by stopping it: --rm
	down  bool     // audited after a stop
}

func db(path string) wire.Item   { return wire.Item{Kind: "sqlite", Path: path, Rows: 3} }
func file(path string) wire.Item { return wire.Item{Kind: "file", Path: path} }

func boxes(b *bench) []box {
	volume := func(n, target string) engine.Mount {
		return engine.Mount{Kind: "volume", Source: b.id + n, Target: target}
	}
	host := filepath.Join(b.dir, "host")
	return []box{
		{name: "layer", items: []wire.Item{
			db("/var/lib/app/app.db"), file("/var/lib/app/notes/today.md"), file("/srv/uploads/cat.jpg"), file("/root/.ssh/id_ed25519"),
			file("/var/log/app.log"), file("/var/cache/apt/archives/x.deb"), file("/run/app.pid"), file("/state"),
		}, lost: 6, says: []string{"1 database, 1 key, 1 upload, 1 note, 1 other file and 1 log", "Folded away", "package caches", "pid files"}},
		{name: "stopped", down: true, spec: engine.ContainerSpec{Mounts: []engine.Mount{{Kind: "tmpfs", Target: "/mem"}}}, items: []wire.Item{
			db("/var/lib/app/app.db"),
		}, lost: 1, says: []string{"No process runs in it (exited)", "memory and every tmpfs are gone already"}},
		{name: "named", spec: engine.ContainerSpec{Mounts: []engine.Mount{volume("-n", "/var/lib/app")}}, items: []wire.Item{
			db("/var/lib/app/app.db"), file("/var/lib/app/deep/er/note.txt"),
		}, says: []string{"a fresh one picks up all it kept", "A named volume: it stays"}},
		{name: "anonymous", stop: true, spec: engine.ContainerSpec{Remove: true, Mounts: []engine.Mount{{Kind: "anonymous", Target: "/var/lib/app"}}}, items: []wire.Item{
			db("/var/lib/app/app.db"), file("/home/note.txt"),
		}, lost: 2, says: []string{"--rm deletes it with the container", "lost by stop (--rm), rm", "as soon as it stops"}},
		{name: "bind", spec: engine.ContainerSpec{Mounts: []engine.Mount{{Kind: "bind", Source: host, Target: "/var/lib/app"}}}, items: []wire.Item{
			db("/var/lib/app/app.db"),
		}, says: []string{"A folder of the host: it"}},
		{name: "tmpfs", spec: engine.ContainerSpec{Mounts: []engine.Mount{{Kind: "tmpfs", Target: "/var/lib/app"}}}, items: []wire.Item{
			db("/var/lib/app/app.db"), file("/var/lib/app/token.key"),
		}, lost: 2, says: []string{"A tmpfs: in memory", "lost by stop, restart, rm"}},
		{name: "beside", spec: engine.ContainerSpec{Mounts: []engine.Mount{volume("-b", "/var/lib/app")}}, items: []wire.Item{
			db("/var/lib/apps/app.db"), file("/data/app/note.txt"),
		}, lost: 2, says: []string{"looks like a slip of /var/lib/app", "/data/app has the name of /var/lib/app", "It is empty"}},
		{name: "image", image: &image.Spec{Volumes: []string{"/var/lib/db"}, Files: map[string]string{"/seed/a.txt": "a", "/seed/b.txt": "b"}}, items: []wire.Item{
			db("/var/lib/db/app.db"), file("/seed/c.txt"),
		}, lost: 2, says: []string{"The image's VOLUME /var/lib/db, not covered by a mount", "After a plain rm the data is still on the disk"}},
		{name: "readonly", spec: engine.ContainerSpec{ReadOnly: true, Mounts: []engine.Mount{volume("-r", "/data")}}, items: []wire.Item{
			file("/tmp/note.md"), file("/data/note.md"),
		}, lost: 1, says: []string{"Its root is read-only"}},
		{name: "overlay", spec: engine.ContainerSpec{Mounts: []engine.Mount{{Kind: "volume", Source: b.id + "-o", Target: "/data", Options: []string{"O"}}}}, items: []wire.Item{
			file("/data/note.md"),
		}, lost: 1, says: []string{"(:O)"}},
		{name: "restarting", spec: engine.ContainerSpec{Restart: "always"}, items: []wire.Item{
			file("/var/lib/app/queue.json"),
		}, lost: 1, says: []string{"restart policy is always", "no proof that its data is safe"}},
	}
}

// TestWhatAuditSaysIsTrue builds containers in different ways, audits each,
// then really removes it and runs it again: what was said to be lost is lost,
// what was said to stay is there.
func TestWhatAuditSaysIsTrue(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		b := newBench(t, target)
		for _, x := range boxes(b) {
			t.Run(x.name, func(t *testing.T) {
				t.Parallel()
				b := *b
				b.t = t
				b.check(x)
			})
		}
	})
}

func (b *bench) check(x box) {
	t, ctx := b.t, b.t.Context()
	x.spec.Name = b.id + "-" + x.name
	if x.image != nil {
		x.image.Arch = runtime.GOARCH
		ref, archive, err := image.Build(*x.image)
		require.NoError(t, err)
		require.NoError(t, b.EnsureImage(ctx, engine.Image{Ref: ref, Archive: archive}))
		x.spec.Image = ref
		t.Cleanup(func() { _ = b.RemoveImage(context.Background(), ref, false) })
	}
	for _, m := range x.spec.Mounts {
		switch m.Kind {
		case "bind":
			require.NoError(t, os.MkdirAll(m.Source, 0o777))
		case "volume":
			t.Cleanup(func() { _ = b.RemoveVolume(context.Background(), m.Source, false) })
		}
	}
	b.removeLater(x.spec.Name)
	c := b.run(x.spec)
	for i := range x.items {
		x.items[i].Nonce = rand.Text()
		require.True(t, b.ask(c, wire.Write, x.items[i]).Present)
	}
	if x.down {
		require.NoError(t, b.Stop(ctx, x.spec.Name, 5*time.Second))
	}
	a := b.audit(x.spec.Name, b.Podman)
	var text bytes.Buffer
	require.NoError(t, Text(&text, []*Audit{a}, Options{}))
	for _, s := range x.says {
		require.Contains(t, strings.Join(strings.Fields(text.String()), " "), s)
	}
	// An overlay's upper folder is named by the process's mounts alone, and
	// an engine in namespaces of its own has no process we can look into.
	if x.name == "overlay" && a.Unknown > 0 && a.NotAccepted == 0 {
		require.Contains(t, text.String(), "is not known")
	} else {
		require.Equal(t, x.lost, a.NotAccepted, text.String())
	}
	for _, it := range x.items {
		o, _ := predicted(a, it.Path)
		require.True(t, o != scenarios.Unknown || a.Unknown > 0, "%s is not among the findings:\n%s", it.Path, text.String())
	}

	// From another machine the same is said of every file, or it is unknown.
	far := b.audit(x.spec.Name, elsewhere{b.Podman})
	for _, it := range x.items {
		near, _ := predicted(a, it.Path)
		o, f := predicted(far, it.Path)
		if f != nil && o != scenarios.Unknown {
			require.Equal(t, near, o, "%s as from another machine", it.Path)
		} else {
			require.Positive(t, far.Unknown, "%s is neither found nor said to be unknown", it.Path)
		}
	}

	if x.stop {
		require.NoError(t, b.Stop(ctx, x.spec.Name, 5*time.Second))
		if !b.goneSoon(x.spec.Name) {
			// Where Podman's own cleanup process can't run, --rm keeps
			// nothing safe and removes nothing either.
			t.Log("this engine does not carry out --rm; removed by hand")
			require.NoError(t, b.Remove(ctx, x.spec.Name, engine.RemoveOptions{Force: true, Volumes: true}))
		}
	} else {
		require.NoError(t, b.Remove(ctx, x.spec.Name, engine.RemoveOptions{Force: true, Grace: time.Second}))
		// What a plain rm leaves of an anonymous volume.
		for _, f := range a.Findings {
			if f.Storage == Anonymous {
				v, err := b.InspectVolume(ctx, f.Source)
				require.NoError(t, err, "it is on the disk still, as the audit said")
				require.NoError(t, b.RemoveVolume(ctx, v.Name, false))
			}
		}
	}
	c = b.run(x.spec)
	for _, it := range x.items {
		said, f := predicted(a, it.Path)
		if said == scenarios.Unknown {
			continue
		}
		found := b.ask(c, wire.Read, it)
		require.Equal(t, said == scenarios.Survived, found.Present && len(found.Nonces) > 0, "%s: said %s (%+v), found %+v", it.Path, said, f, found)
	}
}

// busyFor is the processor time this process has used.
func busyFor(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// goneSoon waits for a container to be removed by others.
func (b *bench) goneSoon(name string) bool {
	for range 250 {
		if _, err := b.Inspect(b.t.Context(), name); err != nil {
			return true
		}
		time.Sleep(20 * time.Millisecond)
	}
	return false
}

// TestManyFiles audits a container with a hundred thousand changed files.
// Unpacking them takes Podman far longer than the audit.
func TestManyFiles(t *testing.T) {
	files, most := 4_000, time.Second
	if enginetest.Long() {
		files, most = 100_000, 6*time.Second
	}
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		b := newBench(t, target)
		name := b.id + "-many"
		b.removeLater(name)
		c := b.run(engine.ContainerSpec{Name: name})
		item := db("/var/lib/app/app.db")
		item.Nonce = rand.Text()
		b.ask(c, wire.Write, item)
		var archive bytes.Buffer
		w := tar.NewWriter(&archive)
		for i := range files {
			content := fmt.Sprint(i)
			require.NoError(t, w.WriteHeader(&tar.Header{Name: fmt.Sprintf("var/lib/app/objects/%02x/%06d.bin", i%256, i), Mode: 0o644, Size: int64(len(content))}))
			_, err := io.WriteString(w, content)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())
		b.rest("PUT", "/containers/"+name+"/archive?path="+url.QueryEscape("/"), &archive)

		began, busy := time.Now(), busyFor(t)
		f, err := Gather(t.Context(), b.Podman, name, time.Now())
		require.NoError(t, err)
		a := Judge(f, nil)
		busy = busyFor(t) - busy
		t.Logf("%d files audited in %s, %s of processor time", files, time.Since(began), busy)
		// Processor time, for other tests share the machine.
		require.Less(t, busy, most)
		require.Equal(t, files+1, a.LostFiles)
		require.Equal(t, "/var/lib/app/app.db", a.Findings[0].Where, "what hurts comes first")
		require.LessOrEqual(t, len(a.Findings), 3, "the rest is one line")
		if enginetest.Long() {
			return // `podman diff` of them takes Podman ten seconds
		}
		far, err := Gather(t.Context(), elsewhere{b.Podman}, name, time.Now())
		require.NoError(t, err)
		require.Equal(t, files+1, Judge(far, nil).LostFiles, "podman diff knows the same files")
	})
}

// TestProbeAcrossRecreation runs the boot-id probe in a container, removes
// it, runs it again, for each kind of mount, and has the reports explained.
func TestProbeAcrossRecreation(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		b := newBench(t, target)
		host := filepath.Join(b.dir, "host")
		require.NoError(t, os.MkdirAll(host, 0o777))
		named := b.id + "-probe"
		t.Cleanup(func() { _ = b.RemoveVolume(context.Background(), named, false) })
		for name, x := range map[string]struct {
			mounts []engine.Mount
			want   scenarios.Outcome
			says   string
		}{
			"no mount":     {nil, scenarios.Lost, "It was in the writable layer, which went with the container."},
			"named volume": {[]engine.Mount{{Kind: "volume", Source: named, Target: "/data"}}, scenarios.Survived, "It is on a named volume " + named},
			"bind mount":   {[]engine.Mount{{Kind: "bind", Source: host, Target: "/data"}}, scenarios.Survived, "It is on a bind mount of"},
			"anonymous":    {[]engine.Mount{{Kind: "anonymous", Target: "/data"}}, scenarios.Lost, "It was in an anonymous volume"},
			"tmpfs":        {[]engine.Mount{{Kind: "tmpfs", Target: "/data"}}, scenarios.Lost, "It was in memory (tmpfs)"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				b := *b
				b.t = t
				b.id += "-" + strings.ReplaceAll(name, " ", "-")
				place := "/data"
				if x.mounts == nil {
					place = "/tmp"
				}
				first, second := b.report(x.mounts, place), b.report(x.mounts, place)
				c := compare.Explain(first, second)
				var text bytes.Buffer
				require.NoError(t, compare.Text(&text, c, compare.Options{}))
				said := strings.Join(strings.Fields(text.String()), " ")
				require.Equal(t, compare.Recreated, c.Happened, said)
				require.Equal(t, compare.Same, c.Machine)
				require.Contains(t, said, "The container was recreated")
				require.Contains(t, said, "The machine was not rebooted")
				require.Contains(t, said, "The hostname is web-1 both times")
				i := slices.IndexFunc(c.Places, func(p compare.Place) bool { return p.Path == place })
				require.GreaterOrEqual(t, i, 0, said)
				require.Equal(t, x.want, c.Places[i].Outcome, said)
				require.Contains(t, c.Places[i].Text, x.says)
				// Beside it, the layer is lost in every case.
				i = slices.IndexFunc(c.Places, func(p compare.Place) bool { return p.Path == "/tmp" })
				require.Equal(t, scenarios.Lost, c.Places[i].Outcome, said)
			})
		}
	})
}

// report runs the probe in a fresh container and removes that.
func (b *bench) report(mounts []engine.Mount, place string) *compare.Side {
	t, ctx := b.t, b.t.Context()
	id, err := b.Create(ctx, engine.ContainerSpec{
		Name: b.id + "-report", Image: b.image.Ref, Labels: map[string]string{"lab.run": "test"}, Hostname: "web-1",
		Mounts: mounts, Command: []string{"host-report", place},
	})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, b.Remove(context.Background(), id, engine.RemoveOptions{Force: true, Volumes: true}))
	}()
	stream, err := b.Attach(ctx, id)
	require.NoError(t, err)
	defer stream.Close()
	require.NoError(t, b.Start(ctx, id))
	s, err := compare.Read("report", stream)
	require.NoError(t, err)
	return s
}

// sh types a line at a shell.
func (b *bench) sh(line string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "sh", "-ec", line)
	cmd.Dir = "/"
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(b.t, err, "%s: %s", line, errs.String())
	return string(out)
}

// TestTheCommandsSaveTheData types what the audit says and finds all of the
// data in the new container. It needs the podman command of the engine itself:
// volumes can't be imported from elsewhere on these versions.
func TestTheCommandsSaveTheData(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		if target.URL != "" {
			t.Skip("the podman command here is not this engine's")
		}
		b := newBench(t, target)
		podman, limits := bindings.HostShell(b.opts)
		run := strings.Join(podman, " ") + " run -d -i --network none "
		for _, l := range limits {
			run += "--ulimit " + l + " "
		}
		for _, x := range []struct {
			name, args, volume string
			paths              []string
		}{
			{"layer", "-e TOKEN=hush", "", []string{"/var/lib/app/app.db", "/var/lib/app/notes/a.md", "/srv/uploads/cat.jpg", "/root/.ssh/id_rsa"}},
			{"anonymous", "--rm -v /var/lib/app", "", []string{"/var/lib/app/app.db", "/var/lib/app/b.txt"}},
			{"tmpfs", "--mount type=tmpfs,dst=/var/lib/app", "", []string{"/var/lib/app/app.db"}},
			{"beside", "-v " + b.id + "-v:/var/lib/app", b.id + "-v", []string{"/var/lib/apps/app.db"}},
		} {
			t.Run(x.name, func(t *testing.T) {
				t.Parallel()
				b := *b
				b.t = t
				name := b.id + "-" + x.name
				if x.volume != "" {
					t.Cleanup(func() { _ = b.RemoveVolume(context.Background(), x.volume, false) })
				}
				b.removeLater(name)
				b.sh(run + "--name " + name + " --label lab.run=test " + x.args + " " + b.image.Ref)
				probe := func(verb, path string) string {
					kind := "file"
					if strings.HasSuffix(path, ".db") {
						kind = "sqlite"
					}
					return b.sh("podman exec " + name + " /probe " + verb + " item " + kind + " " + path + " monday --rows 3")
				}
				for _, p := range x.paths {
					require.Contains(t, probe("write", p), "written")
				}
				first := b.sh("podman inspect --format {{.Id}} " + name)
				a := b.audit(name, b.Podman)
				require.Positive(t, a.NotAccepted)
				require.NotContains(t, a.Rerun, "hush", "a report is passed on: no values of the environment")
				t.Cleanup(func() {
					_ = b.Remove(context.Background(), name, engine.RemoveOptions{Force: true, Volumes: true})
					for _, f := range a.Findings {
						if v, _, _ := strings.Cut(f.mount, ":"); v != "" {
							require.NoError(t, b.RemoveVolume(context.Background(), v, false))
						}
					}
				})
				for _, line := range a.script() {
					b.sh(line)
				}
				require.NotEqual(t, first, b.sh("podman inspect --format {{.Id}} "+name))
				for _, p := range x.paths {
					require.Contains(t, probe("read", p), "survived", p)
				}
				again := b.audit(name, b.Podman)
				require.Zero(t, again.NotAccepted, "%+v", again.Findings)
			})
		}
	})
}

// TestPodsAndNames: what has no data of its own says so.
func TestPodsAndNames(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		b := newBench(t, target)
		pod := b.id + "-pod"
		var made struct{ ID string }
		body := fmt.Sprintf(`{"name": %q, "labels": {"lab.run": "test"}, "netns": {"nsmode": "none"}}`, pod)
		require.NoError(t, json.Unmarshal(b.rest("POST", "/pods/create", strings.NewReader(body)), &made))
		t.Cleanup(func() { b.t = t; b.restLater("DELETE", "/pods/"+pod+"?force=true") })
		_, err := b.Create(t.Context(), engine.ContainerSpec{Name: b.id + "-app", Image: b.image.Ref, Pod: pod})
		require.NoError(t, err)

		var inspect struct{ InfraContainerID string }
		require.NoError(t, json.Unmarshal(b.rest("GET", "/pods/"+pod+"/json", nil), &inspect))
		infra := b.audit(inspect.InfraContainerID, b.Podman)
		require.Contains(t, strings.Join(infra.Notes, " "), "infra container of pod "+pod)
		require.Contains(t, strings.Join(infra.Notes, " "), b.id+"-app")
		require.Zero(t, infra.NotAccepted+infra.Unknown)

		app := b.audit(b.id+"-app", b.Podman)
		require.Contains(t, strings.Join(app.Notes, " "), "It is part of pod "+pod)
		require.Contains(t, strings.Join(app.Notes, " "), "has not run yet")

		_, err = Gather(t.Context(), b.Podman, b.id+"-none", time.Now())
		require.ErrorAs(t, err, new(*engine.NotFoundError))
	})
}
