package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"persistencelab/lab/engine"
)

// Engine is what Gather asks.
type Engine interface {
	engine.Auditor
	Local() bool
}

// Bounds of a look. A layer is always listed in full; mounts that go with the
// container can be of any size and are looked at so far.
const (
	maxMountFiles = 200_000
	maxRemoteRead = 64 << 20 // bytes Podman is made to send for one mount
	maxRemoteStat = 60       // files Podman is asked about one by one
)

// Gather learns the facts of one container. The error is the engine's; what
// only a part could not be learned of stands in that part.
func Gather(ctx context.Context, eng Engine, nameOrID string, now time.Time) (*Facts, error) {
	h, err := eng.Holding(ctx, nameOrID)
	if err != nil {
		return nil, err
	}
	f := &Facts{Holding: h, At: now, Mounts: map[string]Tree{}, Empty: map[string]bool{}}
	g := &gatherer{eng: eng, h: &h, local: eng.Local()}
	if g.local && h.PID > 0 && processIs(h.PID, h.ID) {
		g.pid = h.PID
		f.Resident = resident(h.PID)
	}
	// The layer is most of the work; the mounts are looked at beside it.
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		f.Layer = g.layer(ctx)
	}()
	for target, tree := range g.mounts(ctx) {
		f.Mounts[target] = tree
	}
	for _, m := range h.Held {
		if g.local && m.Source != "" && !isOverlay(m) && !m.Anonymous && emptyFolder(m.Source) {
			f.Empty[path.Clean(m.Target)] = true
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return f, nil
}

type gatherer struct {
	eng   Engine
	h     *engine.Holding
	local bool
	pid   int // process 1 as this machine knows it; 0 when it can't be looked into
}

// layer lists the writable layer: from its folder where that can be read,
// which takes a tenth of the time, else as Podman tells it.
func (g *gatherer) layer(ctx context.Context) Tree {
	if g.h.Rootfs {
		return Tree{} // a folder of the host: nothing of it goes with the container
	}
	if g.local && g.h.Upper != "" {
		if t, err := readUpper(g.h.Upper, g.h.Lower, g.ignored()); err == nil {
			return t
		}
	}
	changes, err := g.eng.Changes(ctx, g.h.ID)
	if err != nil {
		return Tree{Bytes: -1, Problem: err.Error()}
	}
	t := Tree{Bytes: -1, Unsized: true}
	folders := map[string]bool{}
	for _, c := range changes {
		for dir := path.Dir(c.Path); dir != "/" && !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	ignored := g.ignored()
	for _, c := range changes {
		switch {
		case c.Kind == engine.Deleted:
			t.Deleted = append(t.Deleted, c.Path)
		case !folders[c.Path] && !ignored[c.Path]:
			t.Files = append(t.Files, File{Path: c.Path, Bytes: -1})
		}
	}
	if size, err := g.eng.LayerSize(ctx, g.h.ID); err == nil {
		t.Bytes = size
	}
	g.statSome(ctx, &t)
	return t
}

// ignored are paths in the layer that Podman itself makes: places for mounts.
func (g *gatherer) ignored() map[string]bool {
	skip := map[string]bool{}
	for _, p := range []string{"/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/mtab", "/run/.containerenv", "/run/secrets", "/dev", "/proc", "/sys", "/etc", "/run"} {
		skip[p] = true
	}
	for _, m := range g.h.Held {
		skip[path.Clean(m.Target)] = true
	}
	for target := range g.h.Tmpfs {
		skip[path.Clean(target)] = true
	}
	return skip
}

// statSome asks Podman about the files that matter most, one by one, and
// finds out which of the paths are empty folders.
func (g *gatherer) statSome(ctx context.Context, t *Tree) {
	order := make([]int, len(t.Files))
	rank := make([]int, len(t.Files))
	sort := newSorter()
	for i, f := range t.Files {
		order[i], rank[i] = i, slices.Index(categoryOrder, sort.category(f.Path))
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank[a] - rank[b] })
	t.Unsized = len(order) > maxRemoteStat
	folders := map[int]bool{}
	for _, i := range order[:min(maxRemoteStat, len(order))] {
		info, err := g.eng.StatIn(ctx, g.h.ID, t.Files[i].Path)
		var gone *engine.NotFoundError
		switch {
		case err == nil && info.Dir:
			folders[i] = true
		case err == nil:
			t.Files[i].Bytes, t.Files[i].Modified = info.Bytes, info.Modified
		case !errors.As(err, &gone): // a link to nowhere is "not found" too
			t.Unsized = true
			return
		}
	}
	kept := t.Files[:0]
	for i, f := range t.Files {
		if !folders[i] {
			kept = append(kept, f)
		}
	}
	t.Files = kept
}

// readUpper lists an overlay's upper folder: what the container changed. A
// deleted path is a character device 0/0 (the kernel's overlayfs) or a file
// with the prefix .wh. (fuse-overlayfs). lower are the image's layers.
func readUpper(upper string, lower []string, ignored map[string]bool) (Tree, error) {
	t := Tree{Shared: map[string]bool{}}
	err := filepath.WalkDir(upper, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(p, upper)
		if name == "" || d.IsDir() {
			if name != "" && (name == "/dev" || name == "/proc" || name == "/sys") {
				return fs.SkipDir
			}
			if name != "" && (path.Dir(name) == "/" || t.Shared[path.Dir(name)]) && inImage(lower, name) {
				t.Shared[name] = true
			}
			return nil
		}
		if ignored[name] {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone since: the container runs
		}
		if err != nil {
			return err
		}
		base := path.Base(name)
		switch {
		case strings.HasPrefix(base, ".wh..wh."):
		case strings.HasPrefix(base, ".wh."):
			t.Deleted = append(t.Deleted, path.Join(path.Dir(name), strings.TrimPrefix(base, ".wh.")))
		case isWhiteout(info):
			t.Deleted = append(t.Deleted, name)
		case info.Mode()&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice) != 0:
		default:
			t.Files = append(t.Files, File{Path: name, Bytes: info.Size(), Modified: info.ModTime()})
		}
		return nil
	})
	return t, err
}

// inImage: one of the image's layers has something in that folder.
func inImage(lower []string, folder string) bool {
	return slices.ContainsFunc(lower, func(layer string) bool { return isFolder(layer+folder) && !emptyFolder(layer+folder) })
}

func isWhiteout(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode()&fs.ModeCharDevice != 0 && st.Rdev == 0
}

// mounts lists what lies in the mounts that go with the container.
func (g *gatherer) mounts(ctx context.Context) map[string]Tree {
	trees := map[string]Tree{}
	for _, m := range g.h.Held {
		target := path.Clean(m.Target)
		switch {
		case isOverlay(m):
			trees[target] = g.overlay(target)
		case m.Anonymous, isMemory(m):
			trees[target] = g.content(ctx, target, m.Source)
		}
	}
	for target := range g.h.Tmpfs {
		trees[path.Clean(target)] = g.content(ctx, path.Clean(target), "")
	}
	for _, target := range g.otherMemory() {
		if _, known := trees[target]; !known {
			trees[target] = g.content(ctx, target, "")
		}
	}
	if g.h.ReadOnly && g.pid == 0 && g.running() {
		// What --read-only puts over the places programs write to anyway
		// (--read-only-tmpfs, podman-run(1)); files of the image are copied
		// in and keep their times. An archive tells whole seconds.
		for _, target := range []string{"/run", "/tmp", "/var/tmp"} {
			if _, known := trees[target]; known || g.mounted(target) {
				continue
			}
			t := g.content(ctx, target, "")
			t.Files = slices.DeleteFunc(t.Files, func(f File) bool { return f.Modified.Before(g.h.Created.Truncate(time.Second)) })
			if len(t.Files) > 0 {
				trees[target] = t
			}
		}
	}
	if g.pid > 0 && g.ownShm() {
		if t := g.content(ctx, "/dev/shm", ""); len(t.Files) > 0 {
			trees["/dev/shm"] = t
		}
	}
	return trees
}

// ownShm: /dev/shm is the container's own, not its pod's and not the host's.
func (g *gatherer) ownShm() bool {
	host, err1 := os.Stat("/dev/shm")
	inside, err2 := os.Stat(filepath.Join("/proc", strconv.Itoa(g.pid), "root/dev/shm"))
	return g.h.Pod == "" && err2 == nil && (err1 != nil || !os.SameFile(host, inside))
}

// content lists a mount, without what Podman itself puts there.
func (g *gatherer) content(ctx context.Context, target, source string) Tree {
	t := g.read(ctx, target, source)
	ignored := g.ignored()
	t.Files = slices.DeleteFunc(t.Files, func(f File) bool { return ignored[f.Path] || strings.HasPrefix(f.Path, "/run/secrets/") })
	return t
}

// read lists a mount: from its folder on this machine, from inside the
// running process, or as Podman sends it.
func (g *gatherer) read(ctx context.Context, target, source string) Tree {
	memory := source == ""
	switch {
	case g.local && !memory && isFolder(source):
		return readFolder(source, target)
	case memory && g.pid > 0:
		return readFolder(filepath.Join("/proc", strconv.Itoa(g.pid), "root", target), target)
	case memory && !g.running():
		return Tree{} // without a process there is no such memory
	}
	infos, whole, err := g.eng.ReadTree(ctx, g.h.ID, target, maxRemoteRead)
	if err != nil {
		return Tree{Bytes: -1, Problem: err.Error()}
	}
	t := Tree{}
	for _, i := range infos {
		if !i.Dir {
			t.Files = append(t.Files, File{Path: i.Path, Bytes: i.Bytes, Modified: i.Modified})
		}
	}
	if !whole {
		t.Bytes, t.Problem = -1, fmt.Sprintf("only the first %d MiB were looked at", maxRemoteRead>>20)
	}
	return t
}

// overlay lists the upper folder of an overlay over a mount (:O), which only
// the running process's mounts name.
func (g *gatherer) overlay(target string) Tree {
	unknown := func(why string) Tree { return Tree{Bytes: -1, Problem: why} }
	if g.pid == 0 {
		if !g.running() {
			return Tree{} // made anew at each start
		}
		return unknown("its process can't be looked into from here")
	}
	upper, err := upperOf(g.pid, target)
	if err != nil {
		return unknown(err.Error())
	}
	t, err := readUpper(upper, nil, nil)
	if err != nil {
		return unknown(err.Error())
	}
	for i := range t.Files {
		t.Files[i].Path = path.Join(target, t.Files[i].Path)
	}
	t.Deleted = nil // of the volume below, which keeps them
	return t
}

// otherMemory are the places where the running process has a tmpfs that
// inspect does not tell of.
func (g *gatherer) otherMemory() []string {
	if g.pid == 0 {
		return nil
	}
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(g.pid), "mountinfo"))
	if err != nil {
		return nil
	}
	var list []string
	for line := range strings.Lines(string(b)) {
		head, tail, _ := strings.Cut(line, " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if len(h) < 5 || len(t) == 0 || t[0] != "tmpfs" || g.mounted(h[4]) {
			continue
		}
		// Podman's own are files and what is below these.
		first, _, _ := strings.Cut(strings.TrimPrefix(h[4], "/"), "/")
		if !slices.Contains([]string{"dev", "proc", "sys", "etc"}, first) && h[4] != "/run/secrets" && h[4] != "/run/.containerenv" && h[3] == "/" {
			list = append(list, h[4])
		}
	}
	return list
}

func (g *gatherer) mounted(target string) bool {
	return slices.ContainsFunc(g.h.Held, func(m engine.HeldMount) bool { return path.Clean(m.Target) == target })
}

func (g *gatherer) running() bool { return g.h.State == "running" || g.h.State == "paused" }

// upperOf finds the upper folder of the overlay mounted at target.
func upperOf(pid int, target string) (string, error) {
	f, err := os.Open(filepath.Join("/proc", strconv.Itoa(pid), "mountinfo"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		head, tail, _ := strings.Cut(s.Text(), " - ")
		h, t := strings.Fields(head), strings.Fields(tail)
		if len(h) < 5 || len(t) < 3 || h[4] != target || t[0] != "overlay" && t[0] != "fuse.fuse-overlayfs" {
			continue
		}
		for _, o := range strings.Split(t[2], ",") {
			if dir, ok := strings.CutPrefix(o, "upperdir="); ok && isFolder(dir) {
				return dir, nil
			}
		}
	}
	return "", errors.New("its upper folder can't be seen from here")
}

// readFolder lists a folder under the name it has in the container.
func readFolder(dir, target string) Tree {
	t := Tree{}
	device := uint64(0)
	if info, err := os.Stat(dir); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			device = uint64(st.Dev)
		}
	}
	err := filepath.WalkDir(dir+"/", func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil // gone since
		}
		if d.IsDir() {
			// Another mount below this one is not part of it.
			if st, ok := info.Sys().(*syscall.Stat_t); ok && uint64(st.Dev) != device {
				return fs.SkipDir
			}
			return nil
		}
		if len(t.Files) == maxMountFiles {
			t.Bytes, t.Problem = -1, fmt.Sprintf("only the first %d files were looked at", maxMountFiles)
			return fs.SkipAll
		}
		if info.Mode()&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice) == 0 {
			t.Files = append(t.Files, File{Path: path.Join(target, strings.TrimPrefix(p, dir)), Bytes: info.Size(), Modified: info.ModTime()})
		}
		return nil
	})
	if err != nil {
		t.Bytes, t.Problem = -1, err.Error()
	}
	return t
}

func isFolder(p string) bool {
	info, err := os.Stat(p)
	return err == nil && info.IsDir()
}

// emptyFolder: it could be read and holds nothing.
func emptyFolder(p string) bool {
	f, err := os.Open(p)
	if err != nil {
		return false
	}
	defer f.Close()
	names, err := f.Readdirnames(1)
	return len(names) == 0 && err != nil && isFolder(p)
}

func isOverlay(m engine.HeldMount) bool { return slices.Contains(m.Options, "O") }

// isMemory: a volume can be made of tmpfs.
func isMemory(m engine.HeldMount) bool { return m.Type == "tmpfs" || m.VolumeOpt["type"] == "tmpfs" }

// processIs tells whether a process of this machine is the container's: the
// engine may count processes in another namespace, and its number then be
// anybody's here.
func processIs(pid int, id string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "mountinfo"))
	return err == nil && strings.Contains(string(b), id)
}

// resident is VmRSS of a process in bytes (proc(5)); 0 when it can't be read.
func resident(pid int) int64 {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return kib << 10
		}
	}
	return 0
}
