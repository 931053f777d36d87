package audit

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"persistencelab/lab/engine"
	"persistencelab/scenarios"
)

// Findings in the writable layer.

// groups adds up files by category and folder.
func groups(t Tree) []Finding {
	databases := map[string]bool{}
	for _, f := range t.Files {
		if databaseMarks[path.Base(f.Path)] {
			databases[path.Dir(f.Path)] = true
		}
	}
	type key struct {
		c Category
		g string
	}
	type group struct {
		Finding
		common  string
		largest []File
	}
	found := map[key]*group{}
	sort := newSorter()
	for _, f := range t.Files {
		c := sort.category(f.Path)
		for dir := path.Dir(f.Path); dir != "/" && len(databases) > 0 && !c.folded(); dir = path.Dir(dir) {
			if databases[dir] {
				c = Databases
				break
			}
		}
		k := key{c, groupOf(f.Path, c, databases)}
		if c.folded() {
			k.g = ""
		}
		g := found[k]
		if g == nil {
			g = &group{Finding: Finding{What: c}, common: path.Dir(f.Path)}
			found[k] = g
		}
		g.Files++
		if f.Bytes < 0 {
			g.Bytes = -1
		} else if g.Bytes >= 0 {
			g.Bytes += f.Bytes
		}
		if f.Modified.After(g.Newest) {
			g.Newest = f.Modified
		}
		g.paths = append(g.paths, f.Path)
		g.mtimes = append(g.mtimes, f.Modified)
		for g.common != "/" && f.Path != g.common && !strings.HasPrefix(f.Path, g.common+"/") {
			g.common = path.Dir(g.common)
		}
		g.largest = append(g.largest, f)
		if len(g.largest) > 64 {
			g.largest = largest(g.largest)
		}
	}
	var list []Finding
	for k, g := range found {
		// The deepest folder that holds all of it.
		g.Where = g.common
		if k.c == Databases && k.g != g.common && path.Dir(k.g) == g.common {
			g.Where = k.g // one file
		}
		for _, f := range largest(g.largest) {
			g.Examples = append(g.Examples, f.Path)
		}
		list = append(list, g.Finding)
	}
	slices.SortFunc(list, func(a, b Finding) int { return strings.Compare(a.Where, b.Where) })
	return list
}

func largest(files []File) []File {
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Path, b.Path))
	})
	return files[:min(3, len(files))]
}

// layer judges the writable layer.
func (j *judge) layer() {
	t, h := j.f.Layer, &j.f.Holding
	if h.Rootfs {
		j.add(Finding{Where: "/", Storage: HostRoot, Bytes: -1, Outcome: scenarios.Survived,
			Text: "The root is a folder of the host (--rootfs): it stays, with all that was written there."})
		return
	}
	if t.Problem != "" {
		j.add(Finding{Where: "/", Storage: Layer, Bytes: -1, Outcome: scenarios.Unknown,
			Text: "What was written to the writable layer could not be learned: " + t.Problem + "."})
	}
	for _, fi := range groups(t) {
		fi.Storage, fi.Outcome, fi.LostBy = Layer, scenarios.Lost, j.goesBy()
		fi.Text = layerText
		j.beside(&fi)
		if !fi.What.folded() {
			j.rescue(&fi)
		}
		j.add(fi)
	}
	if n := len(t.Deleted); n > 0 {
		slices.Sort(t.Deleted)
		j.add(Finding{Where: t.Deleted[0], Storage: Layer, Files: n, Examples: t.Deleted[:min(3, n)], Outcome: scenarios.Changed, LostBy: j.goesBy(),
			Text: fmt.Sprintf("%s of the image deleted here: a fresh container has %s again.", count(n, "path"), them(n))})
	}
}

// folder is what a volume would be mounted over: a database's log and lock lie
// beside its file.
func (fi *Finding) folder() string {
	below := func(p string) bool { return strings.HasPrefix(p, strings.TrimSuffix(fi.Where, "/")+"/") }
	if fi.What == Databases && !slices.ContainsFunc(fi.paths, below) {
		return path.Dir(fi.Where)
	}
	return fi.Where
}

// rescue fills in the commands that bring a finding's data into a named
// volume at the same place.
func (j *judge) rescue(fi *Finding) {
	h := &j.f.Holding
	folder := fi.folder()
	name := quote(h.Name)
	switch {
	case fi.What == Software:
		fi.Fix = []string{"podman commit " + name + " " + quote(imageName(h.Name))}
		fi.Text += " What was installed by hand belongs into the image's Containerfile; a commit keeps it until then."
	case fi.Storage == Layer && tooBroad(folder):
		fi.Fix = nil
		for _, p := range fi.Examples {
			fi.Fix = append(fi.Fix, "podman cp "+quote(h.Name+":"+p)+" .")
		}
		fi.Text += " No volume can go over " + folder + ": have it written to a folder of its own, and mount that."
	case j.names.covered(folder):
		fi.Text += " The commands for the folder above it bring it along."
	default:
		if fi.What == Caches {
			fi.Text += " A cache is safe to lose only if it fills itself again without you: if it does, say so in a policy (rebuild: auto)."
		}
		if fi.What == Databases && j.running() {
			j.quiet(fi)
		}
		volume := j.names.volume(folder)
		if v := j.volumeAt(fi.Beside); v != "" && j.f.Empty[fi.Beside] {
			volume, fi.drop = v, fi.Beside // the volume is there, at the wrong place
		} else {
			fi.Fix = append(fi.Fix, "podman volume create "+quote(volume))
		}
		fi.Fix = append(fi.Fix, "podman cp "+quote(h.Name+":"+folder+"/.")+" - | podman volume import "+quote(volume)+" -")
		fi.mount = volume + ":" + folder
		if fi.Storage != Layer {
			fi.drop = folder
		}
		if j.f.Layer.Shared[folder] && fi.Storage == Layer {
			fi.Text += " The image has files of its own in " + folder + ": a volume over it hides those of a newer image, so a folder of its own is better."
		}
	}
}

// quiet sees to it that a database is not copied in the middle of a write.
func (j *judge) quiet(fi *Finding) {
	h := &j.f.Holding
	inMemory := len(h.Tmpfs) > 0 || slices.ContainsFunc(h.Held, func(m engine.HeldMount) bool { return isMemory(m) || isOverlay(m) })
	if h.AutoRemove || inMemory {
		fi.Text += " Stopping it first would take the data: have the program itself write a copy (a dump, VACUUM INTO), or copy while nothing writes."
		return
	}
	fi.Fix = append(fi.Fix, "podman stop "+quote(h.Name))
}

// volumeAt is the named volume mounted at target.
func (j *judge) volumeAt(target string) string {
	for _, m := range j.f.Holding.Held {
		if path.Clean(m.Target) == target && m.Type == "volume" && !m.Anonymous {
			return m.Name
		}
	}
	return ""
}

// tooBroad are folders a volume would take more away from than it keeps.
func tooBroad(folder string) bool {
	switch folder {
	case "/", "/etc", "/var", "/var/lib", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/dev", "/run", "/proc", "/sys":
		return true
	}
	return strings.HasPrefix(folder, "/usr/") || strings.HasPrefix(folder, "/etc/")
}

// beside tells whether data lies in the writable layer next to a mount it was
// probably meant for.
func (j *judge) beside(fi *Finding) {
	switch fi.What {
	case Software, Logs, PackageCaches, ProcessFiles, Configuration, Caches:
		return
	}
	dir := fi.folder()
	for _, m := range j.f.Holding.Held {
		target := path.Clean(m.Target)
		why := ""
		switch {
		case m.Anonymous && !slices.Contains(j.f.Holding.ImageVolumes, target):
			continue
		case slipOf(dir, target):
			why = "looks like a slip of " + target
		case len(path.Base(target)) > 2 && path.Base(dir) == path.Base(target) && dir != target:
			why = "has the name of " + target
		case path.Dir(target) == dir && !tooBroad(dir) && dir != "/home" && dir != "/srv" && dir != "/mnt":
			why = "is the folder above " + target
		case j.f.Empty[target]:
			why = "is where the data went, and " + target + " is empty"
		default:
			continue
		}
		fi.Beside = target
		fi.Text = fmt.Sprintf("Written beside the mount: %s %s, where %s is mounted, but the writable layer is all that holds it.", dir, why, mountWords(m))
		return
	}
}

// slipOf: some folder on the way to p is target misspelt: same parent, a name
// one or two letters off, or the same name with more behind it.
func slipOf(p, target string) bool {
	for ; p != "/" && p != "."; p = path.Dir(p) {
		a, b := path.Base(p), path.Base(target)
		if p == target || path.Dir(p) != path.Dir(target) || len(b) < 3 {
			continue
		}
		if strings.HasPrefix(a, b) || strings.HasPrefix(b, a) && len(a) > 2 || scenarios.Nearest(a, []string{b}) != "" {
			return true
		}
	}
	return false
}
