package audit

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/scenarios"
)

// Version is the version of the JSON document an Audit marshals to.
const Version = 1

// Audit is what one container would lose.
type Audit struct {
	Version   int    `json:"version"`
	Container string `json:"container"`
	ID        string `json:"id"`
	Image     string `json:"image"`
	State     string `json:"state"`

	// Answer is the answer to "what breaks if it dies right now?" in one line.
	Answer   string    `json:"answer"`
	Findings []Finding `json:"findings"`
	Folded   []Finding `json:"folded"` // lost too, and made again by itself
	Notes    []string  `json:"notes"`
	// Rerun is the command that made the container, with the mounts the
	// findings call for and values of the environment left out; "" when the
	// engine does not know it or nothing is to be changed.
	Rerun string `json:"rerun,omitempty"`

	LostFiles int   `json:"lost_files"`
	LostBytes int64 `json:"lost_bytes"` // at least
	// NotAccepted is the number of findings that would be lost and that no
	// policy accepts, Unknown of those that could not be looked at.
	NotAccepted int `json:"not_accepted"`
	Unknown     int `json:"unknown"`
}

// Storage is where a finding's data lies, in the lab's words.
type Storage string

// Storages.
const (
	Layer       Storage = "writable layer"
	NamedVolume Storage = "named volume"
	Anonymous   Storage = "anonymous volume"
	Bind        Storage = "bind mount"
	Memory      Storage = "memory"
	Overlay     Storage = "overlay over a mount"
	HostRoot    Storage = "host folder as root"
	ImageMount  Storage = "image mount"
)

// Finding is one thing the container holds, and what would become of it.
type Finding struct {
	Where    string    `json:"where"`            // a folder, or a database's file
	Storage  Storage   `json:"storage"`          //
	Source   string    `json:"source,omitempty"` // the volume, or the host's folder
	What     Category  `json:"what,omitempty"`
	Files    int       `json:"files"`
	Bytes    int64     `json:"bytes"` // -1: unknown
	Newest   time.Time `json:"newest,omitzero"`
	Examples []string  `json:"examples,omitempty"` // the largest files, at most three

	Outcome scenarios.Outcome `json:"-"`
	Word    string            `json:"outcome"`           // of rm and run again: lost, survived, changed, unknown
	LostBy  []string          `json:"lost_by,omitempty"` // the first events that take it
	Text    string            `json:"text"`
	// Beside is the mount this was written beside; "" for none.
	Beside string `json:"beside,omitempty"`
	// Accepted is what makes the loss acceptable: an item of the policy.
	Accepted string `json:"accepted,omitempty"`
	// Broken says that a policy item forbids the loss.
	Broken string   `json:"broken,omitempty"`
	Fix    []string `json:"fix,omitempty"` // commands that bring the data where it stays
	age    string   // of Newest, in words
	mount  string   // the -v that Rerun then needs
	drop   string   // the target whose mount the rerun must leave out
	paths  []string // for the policy
	mtimes []time.Time
}

// Judge says what would become of everything the container holds.
func Judge(f *Facts, policy []scenarios.Item) *Audit {
	h := &f.Holding
	a := &Audit{Version: Version, Container: h.Name, ID: h.ID, Image: cmp.Or(h.ImageName, h.ImageID), State: h.State}
	j := &judge{f, a, &namer{container: h.Name, names: map[string]bool{}}}
	j.layer()
	j.mounts()
	j.memory()
	j.notes()
	j.accept(policy)
	j.order()
	j.answer()
	a.Rerun = rerun(h.Command, a.Findings)
	return a
}

type judge struct {
	f     *Facts
	a     *Audit
	names *namer
}

func (j *judge) add(fi Finding) {
	fi.Word = fi.Outcome.String()
	if !fi.Newest.IsZero() {
		fi.age = ago(max(0, j.f.At.Sub(fi.Newest)))
	}
	if fi.What.folded() {
		j.a.Folded = append(j.a.Folded, fi)
		return
	}
	j.a.Findings = append(j.a.Findings, fi)
}

// goesBy are the events that take what lives as long as the container.
func (j *judge) goesBy() []string {
	if j.f.Holding.AutoRemove {
		return []string{"stop (--rm)", "rm"}
	}
	return []string{"rm"}
}

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

const layerText = "In the writable layer, which goes with the container."

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

func mountWords(m engine.HeldMount) string {
	if m.Type == "volume" {
		return "volume " + short(m.Name)
	}
	return m.Type + " " + m.Source
}

func short(name string) string {
	if len(name) == 64 {
		return name[:12]
	}
	return name
}

// mounts judges what is mounted.
func (j *judge) mounts() {
	h := &j.f.Holding
	for _, m := range h.Held {
		target := path.Clean(m.Target)
		base := Finding{Where: target, Source: m.Name, Bytes: -1, Outcome: scenarios.Survived}
		if m.Name == "" {
			base.Source = m.Source
		}
		switch {
		case m.Type == "image":
			base.Storage, base.Text = ImageMount, "Files of another image: they stay; what was written there goes at every stop."
			j.add(base)
		case isOverlay(m):
			base.Storage = Overlay
			j.goingMount(base, []string{"stop", "restart", "rm"}, "Written over "+mountWords(m)+" (:O), which itself stays as it was: the writes go at every stop.")
		case isMemory(m):
			base.Storage = Memory
			j.goingMount(base, []string{"stop", "rm"}, "Volume "+short(m.Name)+" is made of memory (tmpfs): it is empty again once nothing runs that has it mounted.")
		case m.Type == "volume" && m.Anonymous:
			j.anonymous(m, base)
		case m.Type == "volume":
			base.Storage, base.Text = NamedVolume, "A named volume: it stays, whatever removes the container. Only volume commands remove it."
			if m.VolumeOpt["type"] == "none" || strings.Contains(m.VolumeOpt["o"], "bind") {
				base.Text = "A named volume that is a folder of the host (" + m.VolumeOpt["device"] + "): it stays."
			}
			if j.f.Empty[target] {
				base.Text += " It is empty."
			}
			j.add(base)
		default:
			base.Storage, base.Text = Bind, "A folder of the host: it stays."
			if first, _, _ := strings.Cut(strings.TrimPrefix(m.Source, "/"), "/"); first == "tmp" || first == "run" || strings.HasPrefix(m.Source, "/dev/shm") {
				base.Text = "A folder of the host: it outlives the container, but a reboot may empty /" + first + "."
			}
			if j.f.Empty[target] {
				base.Text += " It is empty."
			}
			j.add(base)
		}
	}
	for _, target := range slices.Sorted(maps.Keys(h.Tmpfs)) {
		target = path.Clean(target)
		j.goingMount(Finding{Where: target, Storage: Memory, Bytes: -1}, []string{"stop", "restart", "rm"}, "A tmpfs: in memory, gone at every stop.")
	}
	for _, target := range slices.Sorted(maps.Keys(j.f.Mounts)) {
		if _, told := h.Tmpfs[target]; !told && !j.mounted(target) && target != "/dev/shm" && len(j.f.Mounts[target].Files) > 0 {
			text := "A tmpfs: in memory, gone at every stop."
			if h.ReadOnly {
				text = "A tmpfs that --read-only brings: in memory, gone at every stop."
			}
			j.goingMount(Finding{Where: target, Storage: Memory, Bytes: -1}, []string{"stop", "restart", "rm"}, text)
		}
	}
	if _, told := h.Tmpfs["/dev/shm"]; !told && !j.mounted("/dev/shm") && len(j.f.Mounts["/dev/shm"].Files) > 0 {
		j.goingMount(Finding{Where: "/dev/shm", Storage: Memory, Bytes: -1}, []string{"stop", "rm"}, "Shared memory (/dev/shm): gone with the container, and at a stop.")
	}
}

func (j *judge) mounted(target string) bool {
	return slices.ContainsFunc(j.f.Holding.Held, func(m engine.HeldMount) bool { return path.Clean(m.Target) == target })
}

// anonymous judges a volume without a name.
func (j *judge) anonymous(m engine.HeldMount, base Finding) {
	h := &j.f.Holding
	base.Storage = Anonymous
	target := path.Clean(m.Target)
	from := "A volume without a name"
	if slices.Contains(h.ImageVolumes, target) {
		from = "The image's VOLUME " + target + ", not covered by a mount, so a volume without a name"
	}
	lostBy := []string{"rm"}
	var how string
	switch {
	case len(m.Others) > 0:
		how = "A new container gets a new empty one. The data stays as long as " + strings.Join(m.Others, ", ") + " has it mounted too."
	case h.AutoRemove:
		how, lostBy = "--rm deletes it with the container; a new one gets a new empty one.", []string{"stop (--rm)", "rm"}
	default:
		how = "A new container gets a new empty one. After a plain rm the data is still on the disk, as volume " + short(m.Name) + ", which nobody finds again; rm -v deletes it."
	}
	j.goingMount(base, lostBy, from+". "+how)
}

// goingMount judges a mount whose content goes: by what it holds.
func (j *judge) goingMount(base Finding, lostBy []string, text string) {
	if j.f.Holding.AutoRemove && !slices.Contains(lostBy, "stop") && !slices.Contains(lostBy, "stop (--rm)") {
		lostBy = append([]string{"stop (--rm)"}, lostBy...)
	}
	base.LostBy = lostBy
	t := j.f.Mounts[base.Where]
	if t.Problem != "" {
		u := base
		u.Outcome, u.Text = scenarios.Unknown, text+" What it holds could not be learned: "+t.Problem+"."
		j.add(u)
	}
	if len(t.Files) == 0 {
		if t.Problem == "" {
			base.Outcome, base.Bytes, base.LostBy, base.Text = scenarios.Survived, 0, nil, text+" It holds nothing now."
			j.add(base)
		}
		return
	}
	for _, g := range groups(t) {
		g.Storage, g.Source, g.Outcome, g.LostBy, g.Text = base.Storage, base.Source, scenarios.Lost, lostBy, text
		switch {
		case g.What.folded():
		case base.Storage == Overlay, base.Where == "/dev/shm":
			g.Fix = []string{"podman cp " + quote(j.f.Holding.Name+":"+base.Where+"/.") + " ."}
		default:
			whole := g
			whole.Where, whole.paths = base.Where, []string{base.Where + "/"} // a mount is moved as a whole
			j.rescue(&whole)
			g.Text, g.Fix, g.mount, g.drop = whole.Text, whole.Fix, whole.mount, whole.drop
		}
		j.add(g)
	}
}

// memory judges what the processes hold.
func (j *judge) memory() {
	h := &j.f.Holding
	if !j.running() {
		return
	}
	fi := Finding{Where: "process memory", Storage: Memory, Bytes: -1, Outcome: scenarios.Lost, LostBy: []string{"stop", "restart", "crash", "rm"},
		Text: "What the processes hold in memory and have not written goes whenever they end. Nobody can see from outside whether that matters."}
	if j.f.Resident > 0 {
		fi.Bytes = j.f.Resident
	}
	fi.Accepted = "a process's memory always goes"
	if h.AutoRemove {
		fi.LostBy[0] = "stop (--rm)"
	}
	j.add(fi)
}

func (j *judge) running() bool {
	return j.f.Holding.State == "running" || j.f.Holding.State == "paused"
}

// notes are what decides and is no data.
func (j *judge) notes() {
	h := &j.f.Holding
	note := func(format string, args ...any) { j.a.Notes = append(j.a.Notes, fmt.Sprintf(format, args...)) }
	if h.Infra {
		others := "it has no other containers"
		if len(h.PodMembers) > 0 {
			others = "the data is in its other containers: " + strings.Join(h.PodMembers, ", ")
		}
		note("This is the infra container of pod %s: it holds the pod's network and namespaces and runs nothing of yours; %s.", h.Pod, others)
	} else if h.Pod != "" {
		note("It is part of pod %s: podman pod rm removes it with all others, and their anonymous volumes, without being asked to.", h.Pod)
	}
	switch {
	case h.State == "created":
		note("It was created and has not run yet.")
	case !j.running():
		ended := ""
		if !h.Finished.IsZero() && h.Finished.Year() > 1 {
			ended = fmt.Sprintf(" It ended %s ago with code %d.", ago(j.f.At.Sub(h.Finished)), h.ExitCode)
		}
		note("No process runs in it (%s), so memory and every tmpfs are gone already; what is listed lies on the disk.%s", h.State, ended)
	}
	if h.AutoRemove {
		text := "It was run with --rm: as soon as it stops, for whatever reason, it is removed with its writable layer and its anonymous volumes."
		if strings.HasPrefix(j.f.Podman, "4.") {
			text += " On this Podman (" + j.f.Podman + ") a podman restart removes it too."
		}
		note("%s", text)
	}
	switch h.RestartPolicy {
	case "", "no":
	default:
		note("Its restart policy is %s: after a crash the same container starts again and keeps its writable layer. That it survives restarts is no proof that its data is safe.", h.RestartPolicy)
	}
	for _, target := range h.ImageVolumes {
		if _, tmpfs := h.Tmpfs[target]; !tmpfs && !j.mounted(target) {
			note("The image says VOLUME %s, and nothing is mounted there (--image-volume ignore): what is written there is in the writable layer.", target)
		}
	}
	if h.ReadOnly {
		note("Its root is read-only: nothing but its mounts can have been written to.")
	}
	if j.f.Layer.Unsized && len(j.f.Layer.Files) > 0 {
		size := ""
		if j.f.Layer.Bytes >= 0 {
			size = fmt.Sprintf(" The whole layer is %s.", bytesWords(j.f.Layer.Bytes))
		}
		note("The layer's folder can't be read from here, so only the most important files have sizes.%s", size)
	}
}

// accept compares what would be lost with the policy.
func (j *judge) accept(policy []scenarios.Item) {
	for _, list := range [][]Finding{j.a.Findings, j.a.Folded} {
		for i := range list {
			fi := &list[i]
			if fi.Outcome == scenarios.Lost {
				fi.judgeBy(policy, j.f.At)
			}
		}
	}
	// What the owner calls not acceptable is not folded away.
	j.a.Folded = slices.DeleteFunc(j.a.Folded, func(fi Finding) bool {
		if fi.Broken != "" {
			j.a.Findings = append(j.a.Findings, fi)
		}
		return fi.Broken != ""
	})
	for i := range j.a.Findings {
		fi := &j.a.Findings[i]
		switch fi.Outcome {
		case scenarios.Lost:
			j.a.LostFiles += fi.Files
			if fi.Where != "process memory" {
				j.a.LostBytes += max(0, fi.Bytes)
			}
			if fi.Accepted == "" {
				j.a.NotAccepted++
			}
		case scenarios.Unknown:
			j.a.Unknown++
		}
	}
}

// judgeBy finds what the policy says of every file of the finding; the most
// exact path decides. All must be accepted for the finding to be.
func (fi *Finding) judgeBy(policy []scenarios.Item, now time.Time) {
	if len(policy) == 0 || len(fi.paths) == 0 {
		return
	}
	accepted := map[string]bool{}
	for i, p := range fi.paths {
		item := coverOf(p, policy)
		if item == nil || item.AcceptableLoss == nil && item.Rebuild == "" {
			fi.Accepted = ""
			return
		}
		loss := item.AcceptableLoss
		switch {
		case loss != nil && loss.All, loss == nil && item.Rebuild == "auto":
			accepted[item.Name] = true
		case loss != nil && loss.Within > 0 && !fi.mtimes[i].IsZero() && now.Sub(fi.mtimes[i]) <= loss.Within:
			accepted[item.Name] = true
		case loss != nil && loss.Within > 0:
			fi.Broken = fmt.Sprintf("%s: at most the last %s may be lost, and this would lose all of it", item.Name, loss.Within)
			return
		case loss == nil:
			fi.Broken = item.Name + ": it is rebuilt by hand, and nothing was said to be acceptable"
			return
		default:
			fi.Broken = item.Name + ": no loss is acceptable"
			return
		}
	}
	fi.Accepted = "policy: " + strings.Join(slices.Sorted(maps.Keys(accepted)), ", ")
}

func coverOf(p string, policy []scenarios.Item) *scenarios.Item {
	var best *scenarios.Item
	for i, it := range policy {
		if (p == it.Path || strings.HasPrefix(p, it.Path+"/") || it.Kind == scenarios.SQLite && sideFiles.ReplaceAllString(p, "") == it.Path) &&
			(best == nil || len(it.Path) > len(best.Path)) {
			best = &policy[i]
		}
	}
	return best
}

// order puts what hurts first.
func (j *judge) order() {
	rank := func(fi Finding) int {
		switch {
		case fi.Where == "process memory":
			return 90
		case fi.Outcome == scenarios.Unknown:
			return 0
		case fi.Outcome == scenarios.Lost && fi.Accepted == "":
			return 1
		case fi.Outcome == scenarios.Lost:
			return 2
		case fi.Outcome == scenarios.Changed:
			return 3
		}
		return 4
	}
	slices.SortStableFunc(j.a.Findings, func(a, b Finding) int {
		return cmp.Or(rank(a)-rank(b), slices.Index(categoryOrder, a.What)-slices.Index(categoryOrder, b.What), cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Where, b.Where))
	})
}

// answer is the plain test: what breaks if it dies right now?
func (j *judge) answer() {
	byWhat := map[Category]int{}
	bytes := int64(0)
	for _, fi := range j.a.Findings {
		if fi.Outcome == scenarios.Lost && fi.Accepted == "" {
			if fi.What == Databases {
				byWhat[fi.What]++
			} else {
				byWhat[fi.What] += fi.Files
			}
			bytes += max(0, fi.Bytes)
		}
	}
	unknown := ""
	if j.a.Unknown > 0 {
		unknown = fmt.Sprintf(" %s could not be looked at.", upperFirst(count(j.a.Unknown, "place")))
	}
	var parts []string
	for _, c := range categoryOrder {
		n := byWhat[c]
		if n == 0 {
			continue
		}
		switch c {
		case Databases:
			parts = append(parts, count(n, "database"))
		case Other:
			parts = append(parts, count(n, "other file"))
		case Keys, Uploads, Notes, Logs, Caches:
			parts = append(parts, count(n, strings.TrimSuffix(string(c), "s")))
		default:
			parts = append(parts, count(n, "file")+" of "+string(c))
		}
	}
	switch {
	case len(parts) > 0:
		size := ""
		if bytes > 0 {
			size = " (" + bytesWords(bytes) + ")"
		}
		j.a.Answer = fmt.Sprintf("If %s dies now and is replaced, %s%s would be gone, and nothing else holds them.%s", j.a.Container, and(parts), size, unknown)
		if len(parts) == 1 && strings.HasPrefix(parts[0], "1 ") {
			j.a.Answer = fmt.Sprintf("If %s dies now and is replaced, %s%s would be gone, and nothing else holds it.%s", j.a.Container, parts[0], size, unknown)
		}
	case j.a.Unknown > 0:
		j.a.Answer = fmt.Sprintf("What breaks if %s dies now is not known:%s", j.a.Container, strings.ToLower(unknown))
	case j.a.LostFiles > 0 || j.a.LostBytes > 0:
		j.a.Answer = fmt.Sprintf("If %s dies now, only what its policy lets go is lost.", j.a.Container)
	default:
		j.a.Answer = fmt.Sprintf("If %s dies now, a fresh one picks up all it kept.", j.a.Container)
	}
}
