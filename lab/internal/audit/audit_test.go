package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine"
	"persistencelab/scenarios"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// facts are of a running container whose layer holds these files.
func facts(files ...string) *Facts {
	f := &Facts{
		Holding: engine.Holding{Container: engine.Container{ID: strings.Repeat("ab", 32), Name: "web", State: "running"}, ImageName: "app:1"},
		At:      now, Mounts: map[string]Tree{}, Empty: map[string]bool{},
	}
	for _, p := range files {
		f.Layer.Files = append(f.Layer.Files, File{Path: p, Bytes: 100, Modified: now.Add(-time.Hour)})
	}
	return f
}

func TestCategories(t *testing.T) {
	s := newSorter()
	for file, want := range map[string]Category{
		"/var/lib/app/app.db":                       Databases,
		"/var/lib/app/app.db-wal":                   Databases,
		"/data/dump.rdb":                            Databases,
		"/data/appendonlydir/appendonly.aof.1.incr": Databases,
		"/root/.ssh/known_hosts":                    Keys,
		"/etc/ssl/private/server.key":               Keys,
		"/app/.env":                                 Keys,
		"/app/.env.production":                      Keys,
		"/var/log/nginx/access.log":                 Logs,
		"/srv/app.log.2.gz":                         Logs,
		"/srv/app/uploads/raw":                      Uploads,
		"/srv/x/Cat.JPG":                            Uploads,
		"/workspace/plan.md":                        Notes,
		"/tmp/history.json":                         Notes,
		"/root/.bash_history":                       Notes,
		"/etc/nginx/nginx.conf":                     Configuration,
		"/usr/lib/python3/dist-packages/requests/a": Software,
		"/var/lib/dpkg/status":                      Software,
		"/usr/local/app/state":                      Other,
		"/var/cache/apt/archives/x.deb":             PackageCaches,
		"/root/.cache/pip/http/a":                   PackageCaches,
		"/app/__pycache__/x.cpython-312.pyc":        PackageCaches,
		"/run/nginx.pid":                            ProcessFiles,
		"/var/cache/app/page":                       Caches,
		"/home/me/.cache/models/m":                  Caches,
		"/state":                                    Other,
		"/logbook":                                  Other,
		"/var/lib/app/objects/00/000001.bin":        Other,
	} {
		require.Equal(t, want, s.category(file), file)
	}
}

// find gives the finding that counts this file.
func find(t *testing.T, a *Audit, file string) Finding {
	t.Helper()
	for _, f := range slices.Concat(a.Findings, a.Folded) {
		if slices.Contains(f.paths, file) || f.Where == file {
			return f
		}
	}
	t.Fatalf("no finding for %s in %+v", file, a.Findings)
	return Finding{}
}

func TestADatabaseInManyFilesIsOne(t *testing.T) {
	a := Judge(facts(
		"/var/lib/postgresql/data/PG_VERSION", "/var/lib/postgresql/data/base/1/PG_VERSION", "/var/lib/postgresql/data/base/1/112",
		"/var/lib/postgresql/data/pg_wal/0001", "/var/lib/postgresql/data/postgresql.conf", "/var/lib/postgresql/data/log/a.log",
		"/var/lib/app/app.db", "/var/lib/app/app.db-wal",
	), nil)
	require.Contains(t, a.Answer, "2 databases")
	require.Equal(t, "/var/lib/postgresql/data", find(t, a, "/var/lib/postgresql/data/log/a.log").Where)
	require.Equal(t, 6, find(t, a, "/var/lib/postgresql/data/base/1/112").Files)
	require.Equal(t, "/var/lib/app/app.db", find(t, a, "/var/lib/app/app.db-wal").Where)
}

func TestWrittenBesideTheMount(t *testing.T) {
	for _, test := range []struct {
		file, target string
		empty        bool
		says         string
	}{
		{"/var/lib/apps/app.db", "/var/lib/app", false, "looks like a slip"},
		{"/dta/app.db", "/data", false, "looks like a slip"},
		{"/data2/app.db", "/data", false, "looks like a slip"},
		{"/app/data/app.db", "/data", false, "has the name of /data"},
		{"/srv/app/app.db", "/srv/app/data", false, "is the folder above /srv/app/data"},
		{"/var/lib/postgresql/17/docker/base.db", "/var/lib/postgresql/data", false, ""},
		{"/opt/thing/app.db", "/data", true, "and /data is empty"},
		{"/opt/thing/app.db", "/data", false, ""},
		{"/var/log/app.log", "/data", true, ""},
		{"/etc/app.db", "/etc/app", false, ""},
	} {
		f := facts(test.file)
		f.Holding.Held = []engine.HeldMount{{Type: "volume", Name: "v", Target: test.target}}
		f.Empty[test.target] = test.empty
		fi := find(t, Judge(f, nil), test.file)
		require.Equal(t, test.says != "", fi.Beside != "", "%s beside %s: %s", test.file, test.target, fi.Text)
		require.Contains(t, fi.Text, test.says)
	}
}

func TestTheVolumeAtTheWrongPlaceIsMoved(t *testing.T) {
	f := facts("/var/lib/apps/app.db")
	f.Holding.Held = []engine.HeldMount{{Type: "volume", Name: "keep", Target: "/var/lib/app"}}
	f.Empty["/var/lib/app"] = true
	f.Holding.Command = strings.Fields("/usr/bin/podman run -d --name web -v keep:/var/lib/app:Z -e A=secret --env=B=hidden -p 80:80 app:1 serve --x=y")
	a := Judge(f, nil)
	require.Equal(t, "podman run -v keep:/var/lib/apps -d --name web -e A -e B -p 80:80 app:1 serve --x=y", a.Rerun)
}

func TestOneVolumeForAFolderAndAllBelow(t *testing.T) {
	a := Judge(facts("/srv/app/app.db", "/srv/app/uploads/a.jpg", "/srv/app/notes/a.md", "/home/me/app/x.txt", "/home/you/app/y.txt"), nil)
	var made []string
	for _, c := range a.script() {
		if v, ok := strings.CutPrefix(c, "podman volume create "); ok {
			made = append(made, v)
		}
	}
	slices.Sort(made)
	require.Len(t, slices.Compact(slices.Clone(made)), len(made), "each volume has a name of its own: %v", made)
	require.Len(t, made, 3, "%v", made)
}

// What is folded away claims no volume: data beside it keeps its commands.
func TestFoldedFilesGetNoVolume(t *testing.T) {
	a := Judge(facts("/app/__pycache__/a.pyc", "/app/x/__pycache__/b.pyc", "/app/data/state"), nil)
	require.Equal(t, []string{"podman volume create web-data", "podman cp web:/app/data/. - | podman volume import web-data -"}, a.script())
}

func TestPolicy(t *testing.T) {
	policy := func(data string) []scenarios.Item {
		items, err := scenarios.ParsePolicy("p.yaml", []byte("data:\n"+data))
		require.NoError(t, err)
		return items
	}
	for _, test := range []struct {
		data             string
		accepted, broken bool
	}{
		{"  c: {file: /srv/x, acceptable_loss: all}\n", true, false},
		{"  c: {file: /srv, acceptable_loss: all, rebuild: auto}\n", true, false},
		{"  c: {file: /srv/x, rebuild: auto}\n", true, false},
		{"  c: {file: /srv/x, rebuild: by hand}\n", false, true},
		{"  c: {file: /srv/x, acceptable_loss: none}\n", false, true},
		{"  c: {file: /srv/x, acceptable_loss: 2h}\n", true, false},
		{"  c: {file: /srv/x, acceptable_loss: 1m}\n", false, true},
		{"  c: {file: /srv/xx, acceptable_loss: all}\n", false, false},
		{"  c: {file: /srv/x/a, acceptable_loss: all}\n", false, false}, // of two files one
		{"  c: {file: /srv, acceptable_loss: all}\n  d: {file: /srv/x/b, acceptable_loss: none}\n", false, true},
		{"  c: {file: /srv/x}\n", false, false},
	} {
		a := Judge(facts("/srv/x/a", "/srv/x/b"), policy(test.data))
		fi := find(t, a, "/srv/x/a")
		require.Equal(t, test.accepted, fi.Accepted != "", test.data)
		require.Equal(t, test.broken, fi.Broken != "", test.data)
		require.Equal(t, !test.accepted, a.NotAccepted == 1, test.data)
	}
	// The answer is about what is not accepted.
	require.Equal(t, "If web dies now and is replaced, 1 database (100 bytes) would be gone, and nothing else holds it.",
		Judge(facts("/srv/a.db", "/srv/uploads/b"), policy("  u: {file: /srv/uploads, acceptable_loss: all}\n")).Answer)
	// What is folded away counts when its owner says so.
	a := Judge(facts("/run/app.pid"), policy("  p: {file: /run/app.pid, acceptable_loss: none}\n"))
	require.Equal(t, 1, a.NotAccepted)
	require.Zero(t, Judge(facts("/run/app.pid"), nil).NotAccepted)
}

func TestUnknownIsNeverLost(t *testing.T) {
	f := facts()
	f.Layer = Tree{Bytes: -1, Problem: "permission denied"}
	a := Judge(f, nil)
	require.Zero(t, a.NotAccepted)
	require.Equal(t, 1, a.Unknown)
	require.Contains(t, a.Answer, "is not known")
}

func TestAnonymousVolumes(t *testing.T) {
	mount := engine.HeldMount{Type: "volume", Name: strings.Repeat("0f", 32), Target: "/data", Anonymous: true}
	judge := func(change func(f *Facts)) Finding {
		f := facts()
		f.Holding.Held = []engine.HeldMount{mount}
		f.Mounts["/data"] = Tree{Files: []File{{Path: "/data/app.db", Bytes: 1}}}
		change(f)
		return find(t, Judge(f, nil), "/data/app.db")
	}
	require.Contains(t, judge(func(*Facts) {}).Text, "nobody finds again; rm -v deletes it")
	require.Contains(t, judge(func(f *Facts) { f.Holding.AutoRemove = true }).Text, "--rm deletes it")
	require.Equal(t, []string{"stop (--rm)", "rm"}, judge(func(f *Facts) { f.Holding.AutoRemove = true }).LostBy)
	require.Contains(t, judge(func(f *Facts) { f.Holding.Held[0].Others = []string{"backup"} }).Text, "as long as backup has it")
	require.Contains(t, judge(func(f *Facts) { f.Holding.ImageVolumes = []string{"/data"} }).Text, "The image's VOLUME /data")

	empty := facts()
	empty.Holding.Held = []engine.HeldMount{mount}
	require.Zero(t, Judge(empty, nil).NotAccepted, "what holds nothing loses nothing")
}

// An upper folder as the kernel and as fuse-overlayfs leave it.
func TestUpperFolder(t *testing.T) {
	upper, lower := t.TempDir(), t.TempDir()
	for _, f := range []string{"app/state", "app/.wh.gone", "app/.wh..wh..opq", "new/x", "etc/hosts", "proc/x"} {
		require.NoError(t, os.MkdirAll(filepath.Join(upper, filepath.Dir(f)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(upper, f), []byte("12345"), 0o644))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(lower, "app"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(lower, "app/code"), nil, 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(lower, "new"), 0o755))
	tree, err := readUpper(upper, []string{lower}, map[string]bool{"/etc/hosts": true})
	require.NoError(t, err)
	var files []string
	for _, f := range tree.Files {
		files = append(files, f.Path)
		require.EqualValues(t, 5, f.Bytes)
	}
	require.Equal(t, []string{"/app/state", "/new/x"}, files)
	require.Equal(t, []string{"/app/gone"}, tree.Deleted)
	require.Equal(t, map[string]bool{"/app": true}, tree.Shared, "an empty folder of the image is nobody's")

	f := facts()
	f.Layer = tree
	a := Judge(f, nil)
	require.Contains(t, find(t, a, "/app/state").Text, "hides those of a newer image")
	require.Contains(t, find(t, a, "/app/gone").Text, "a fresh container has it again")
}

// No name and no path steers the reader's terminal, page or shell.
func TestHostileNames(t *testing.T) {
	evil := "/srv/a'$(touch x)\x1b[2J|<script>`/b.db"
	f := facts(evil)
	f.Holding.Name = "web"
	a := Judge(f, nil)
	for _, form := range Formats() {
		var b bytes.Buffer
		require.NoError(t, form.Write(&b, []*Audit{a}, Options{}))
		require.NotContains(t, b.String(), "\x1b", form.Name)
		if form.Name == "html" {
			require.NotContains(t, b.String(), "<script>")
		}
	}
	for _, c := range find(t, a, evil).Fix[2:] {
		require.Contains(t, c, `'web:/srv/a'\''$(touch x)`)
	}
}

// The json document is what another program reads.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, JSON(&b, []*Audit{Judge(facts("/srv/app.db"), nil)}, Options{}))
	var doc struct {
		Version int
		Audits  []struct {
			Container string
			Findings  []map[string]any
			Notes     []string
		}
	}
	require.NoError(t, json.Unmarshal(b.Bytes(), &doc))
	require.Equal(t, 1, doc.Version)
	require.Equal(t, "lost", doc.Audits[0].Findings[0]["outcome"])
	require.Equal(t, "writable layer", doc.Audits[0].Findings[0]["storage"])
	require.NotNil(t, doc.Audits[0].Notes)
}

func BenchmarkJudge(b *testing.B) {
	f := facts()
	for i := range 100_000 {
		f.Layer.Files = append(f.Layer.Files, File{Path: fmt.Sprintf("/var/lib/app/objects/%02x/%06d.bin", i%256, i), Bytes: 10, Modified: now})
	}
	for b.Loop() {
		Judge(f, nil)
	}
}
