package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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

const layerText = "In the writable layer, which goes with the container."

func short(name string) string {
	if len(name) == 64 {
		return name[:12]
	}
	return name
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
