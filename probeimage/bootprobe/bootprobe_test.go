//go:build linux

package bootprobe

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// box is a place to run the probe in: temp, home and a further folder.
type box struct {
	dir  string
	opts Options
}

func newBox(t *testing.T) *box {
	dir := t.TempDir()
	env := map[string]string{"TMPDIR": filepath.Join(dir, "tmp"), "HOME": filepath.Join(dir, "home")}
	for _, d := range []string{"tmp", "home", "data", "work"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	t.Chdir(filepath.Join(dir, "work"))
	return &box{dir, Options{
		Paths: []string{filepath.Join(dir, "data")}, Now: time.Now,
		Getenv: func(key string) string { return env[key] },
	}}
}

func TestSecondRunFindsTheFirst(t *testing.T) {
	b := newBox(t)
	first, second := Run(b.opts), Run(b.opts)
	require.Len(t, first.Places, 4)
	for i, p := range second.Places {
		was := first.Places[i]
		require.Empty(t, p.Error)
		require.Empty(t, p.File.Error)
		require.Empty(t, p.SQLite.Error)
		require.False(t, was.File.Before.Present, "a fresh folder holds nothing")
		require.False(t, was.SQLite.Before.Present)
		require.True(t, p.File.Before.Present)
		require.Equal(t, []string{first.Run}, p.File.Before.Seen)
		require.Equal(t, []string{first.Run}, p.SQLite.Before.Seen)
		require.Equal(t, was.File.SHA256, p.File.Before.SHA256)
		require.Equal(t, was.File.Bytes, p.File.Before.Bytes)
		require.Equal(t, was.SQLite.SHA256, p.SQLite.Before.SHA256)
		require.Equal(t, 2, p.File.Runs)
		require.Equal(t, 2, p.SQLite.Rows)
		require.Empty(t, p.File.Before.Damage)
		require.NotNil(t, p.Mount)
	}
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(raw)), second.BootID)
	require.Equal(t, first.Process1.Ticks, second.Process1.Ticks)
	require.WithinDuration(t, time.Now(), second.Process1.Started, 10*365*24*time.Hour)
}

func TestRunsAtOnceAllCount(t *testing.T) {
	b := newBox(t)
	const n = 12
	var wg sync.WaitGroup
	runs := make([]*Report, n)
	for i := range n {
		wg.Add(1)
		go func() { defer wg.Done(); runs[i] = Run(b.opts) }()
	}
	wg.Wait()
	last := Run(b.opts)
	for _, p := range last.Places {
		require.Equal(t, n, p.File.Before.Runs)
		require.Empty(t, p.File.Before.Damage, "no line in another")
		require.Equal(t, n, p.SQLite.Before.Runs)
		for _, r := range runs {
			require.Contains(t, p.File.Before.Seen, r.Run)
			require.Contains(t, p.SQLite.Before.Seen, r.Run)
		}
	}
}

func TestDamageIsSaidAndKept(t *testing.T) {
	for name, test := range map[string]struct {
		harm   func(t *testing.T, content string) string
		damage string
		runs   int
	}{
		"cut off": {func(_ *testing.T, s string) string { return s[:len(s)-20] }, "line 2 was cut off", 1},
		"another": {func(_ *testing.T, s string) string { return "hello\n" + s }, "line 1 is not the probe's", 2},
		"changed": {func(t *testing.T, s string) string {
			changed := strings.Replace(s, `"n":1,`, `"n":7,`, 1)
			require.NotEqual(t, s, changed)
			return changed
		}, "what stands before line 2", 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			Run(b.opts)
			Run(b.opts)
			path := filepath.Join(b.dir, "data", FileName)
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			harmed := test.harm(t, string(raw))
			require.NoError(t, os.WriteFile(path, []byte(harmed), 0o644))
			before := placeOf(t, Run(b.opts), "path").File.Before
			require.Contains(t, before.Damage, test.damage)
			require.Equal(t, test.runs, before.Runs)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.True(t, strings.HasPrefix(string(after), harmed), "nothing that was there is gone")
			last := strings.Split(strings.TrimSpace(string(after)), "\n")
			require.True(t, json.Valid([]byte(last[len(last)-1])), "the new line is whole")
		})
	}
}

func placeOf(t *testing.T, r *Report, name string) *Place {
	t.Helper()
	for i, p := range r.Places {
		for _, n := range p.Names {
			if n == name {
				return &r.Places[i]
			}
		}
	}
	t.Fatalf("no place %q in %+v", name, r.Places)
	return nil
}

func TestErrorsAreValues(t *testing.T) {
	b := newBox(t)
	data := filepath.Join(b.dir, "data")
	require.NoError(t, os.Mkdir(filepath.Join(data, FileName), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(data, DatabaseName), []byte("no database at all, but long enough to be taken for one"), 0o644))
	b.opts.Paths = append(b.opts.Paths, filepath.Join(b.dir, "typo"), filepath.Join(data, DatabaseName))
	r := Run(b.opts)
	p := placeOf(t, r, "path")
	require.NotEmpty(t, p.File.Error)
	require.NotEmpty(t, p.SQLite.Error)
	require.NotEmpty(t, p.SQLite.Before.Damage)
	require.FileExists(t, filepath.Join(data, DatabaseName), "what is not the probe's stays")
	require.Equal(t, "no such file or directory", r.Places[4].Error)
	require.NoDirExists(t, filepath.Join(b.dir, "typo"), "a place that is not there is not made")
	require.Contains(t, r.Places[5].Error, "not a folder")
	require.Empty(t, placeOf(t, r, "home").File.Error, "the rest is not touched by it")
}

func TestOneFolderWithTwoNames(t *testing.T) {
	b := newBox(t)
	t.Chdir(filepath.Join(b.dir, "home"))
	link := filepath.Join(b.dir, "link")
	require.NoError(t, os.Symlink(filepath.Join(b.dir, "data"), link))
	b.opts.Paths = append(b.opts.Paths, link)
	r := Run(b.opts)
	require.Len(t, r.Places, 3)
	require.Equal(t, []string{"home", "working"}, placeOf(t, r, "home").Names)
	require.Equal(t, 1, placeOf(t, r, "home").SQLite.Rows)
	require.Equal(t, 1, placeOf(t, r, "path").SQLite.Rows)
}

func TestForgetRemovesOnlyItsOwn(t *testing.T) {
	b := newBox(t)
	mine := filepath.Join(b.dir, "data", "mine.txt")
	require.NoError(t, os.WriteFile(mine, []byte("x"), 0o644))
	Run(b.opts)
	removed, err := Forget(b.opts)
	require.NoError(t, err)
	require.Len(t, removed, 8)
	for _, d := range []string{"tmp", "home", "work"} {
		entries, err := os.ReadDir(filepath.Join(b.dir, d))
		require.NoError(t, err)
		require.Empty(t, entries)
	}
	require.FileExists(t, mine)
}

// Lines as Podman 4.3.1, Docker and a plain host have them.
const mountinfo = `23 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
24 23 0:5 / /dev rw,nosuid - devtmpfs devtmpfs rw
30 23 0:22 / /tmp\040files rw - tmpfs tmpfs rw,size=1k
31 30 254:0 /srv/notes /tmp\040files/notes ro,relatime - ext4 /dev/vda rw
`

const mountinfoPodman = `500 400 0:60 / / rw,relatime - overlay overlay rw,lowerdir=/var/lib/containers/storage/overlay/l/A
501 500 254:0 /var/lib/containers/storage/overlay-containers/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef/userdata/hostname /etc/hostname rw - ext4 /dev/vda rw
502 500 254:0 /var/lib/containers/storage/volumes/mydata/_data /data rw - ext4 /dev/vda rw
503 500 254:0 /var/lib/containers/storage/volumes/fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210/_data /anon rw - ext4 /dev/vda rw
504 500 254:0 /home/me/appdata /bind rw - ext4 /dev/vda rw
505 500 0:61 / /mem rw - tmpfs tmpfs rw
`

func TestMounts(t *testing.T) {
	host, in := parseMounts(mountinfo), parseMounts(mountinfoPodman)
	for _, test := range []struct {
		mounts    []mountLine
		path      string
		contained bool
		want      Mount
	}{
		{host, "/var/lib", false, Mount{At: "/", Type: "ext4", Source: "/dev/vda", Root: "/", Storage: Disk}},
		{host, "/tmp files/x", false, Mount{At: "/tmp files", Type: "tmpfs", Source: "tmpfs", Root: "/", Storage: Memory}},
		{host, "/tmp files/notes/a", false, Mount{At: "/tmp files/notes", Type: "ext4", Source: "/dev/vda", Root: "/srv/notes", ReadOnly: true, Storage: Disk}},
		{host, "/device", false, Mount{At: "/", Type: "ext4", Source: "/dev/vda", Root: "/", Storage: Disk}},
		{in, "/tmp", true, Mount{At: "/", Type: "overlay", Source: "overlay", Root: "/", Storage: WritableLayer}},
		{in, "/data", true, Mount{At: "/data", Type: "ext4", Source: "/dev/vda", Root: in[2].root, Storage: NamedVolume, Volume: "mydata"}},
		{in, "/anon/x", true, Mount{At: "/anon", Type: "ext4", Source: "/dev/vda", Root: in[3].root, Storage: AnonymousVolume, Volume: strings.Repeat("fedcba9876543210", 4)}},
		{in, "/bind", true, Mount{At: "/bind", Type: "ext4", Source: "/dev/vda", Root: "/home/me/appdata", Storage: BindMount}},
		{in, "/mem", true, Mount{At: "/mem", Type: "tmpfs", Source: "tmpfs", Root: "/", Storage: Memory}},
		{in, "/database", true, Mount{At: "/", Type: "overlay", Source: "overlay", Root: "/", Storage: WritableLayer}},
	} {
		require.Equal(t, test.want, *mountOf(test.mounts, test.path).describe(test.contained), test.path)
	}
	c := findContainer(in, "web-1")
	require.Equal(t, &Container{ID: strings.Repeat("0123456789abcdef", 4), Engine: "podman", Evidence: "the mount at /etc/hostname"}, c)
}
