package audit

import (
	"maps"
	"path"
	"slices"
	"strings"

	"persistencelab/lab/engine"
	"persistencelab/scenarios"
)

// Findings about mounts.

func mountWords(m engine.HeldMount) string {
	if m.Type == "volume" {
		return "volume " + short(m.Name)
	}
	return m.Type + " " + m.Source
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
		j.goingMount(Finding{Where: "/dev/shm", Storage: Memory, Bytes: -1}, []string{"stop", "rm"}, "Shared memory (/dev/shm): gone with the container, at a stop, and sometimes at a restart.")
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
