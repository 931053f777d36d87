package experiment

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"persistencelab/scenarios"
)

// shellWriter writes a plan's steps as the podman lines a person would type.
// Pasted into a shell, in order, they do what the run does.
type shellWriter struct {
	plan    *Plan
	shell   Shell
	user    string             // podman on the user's store, where shell.Podman is on one of the plan's own
	made    bool               // the lines that come before the first run are written
	pods    map[string]bool    // pods that are there now
	extras  []*scenarios.Image // what each container's image has on top of the probe
	kube    map[string]bool    // documents that are written
	known   map[string]bool    // containers whose volumes without a name are remembered
	orphans bool               // some of these outlive their containers
}

func newShellWriter(p *Plan, s Shell, extras []*scenarios.Image) *shellWriter {
	if s.Podman == "" {
		s.Podman = "podman"
	}
	w := &shellWriter{plan: p, shell: s, pods: map[string]bool{}, known: map[string]bool{}, extras: slices.Clone(extras)}
	if s.Pasted && p.NeedsOwnStore() {
		w.user, w.shell.Podman = w.shell.Podman, ownPodman
	}
	return w
}

// lines are the commands of one step.
func (w *shellWriter) lines(st PlannedStep) []string {
	if line, ok := commands[st.Verb]; ok {
		return line(w, st)
	}
	switch st.Verb {
	case "load":
		return w.load(st)
	case "run", "create":
		return append(w.before(), w.run(st)...)
	case "write", "edit":
		return w.probe(st, "write", st.Nonces)
	case "erase":
		return w.probe(st, "erase", nil)
	case "read":
		return w.probe(st, "read", st.Last)
	}
	return []string{fmt.Sprintf("%s %s %s", w.shell.Podman, st.Verb, quote(st.name))}
}

// before are the lines that must come before the first run: the folders of
// bind mounts and the volumes made beforehand.
func (w *shellWriter) before() []string {
	if w.made {
		return nil
	}
	w.made = true
	lines := w.storeLines()
	if w.plan.ownImages {
		built := map[string]bool{}
		for i, c := range w.plan.Variant.Containers {
			if ref := w.plan.images[c.Name].Ref; !built[ref] {
				built[ref] = true
				lines = append(lines, w.build(ref, w.extras[i])...)
			}
		}
	}
	for _, c := range w.plan.Variant.Containers {
		for _, m := range c.Mounts {
			for _, folder := range w.plan.hostFolders(m) {
				lines = append(lines, "mkdir -p -m 777 "+quote(folder))
			}
		}
		for _, secret := range c.Secrets {
			lines = append(lines, fmt.Sprintf("printf %s | %s secret create %s -", quote(strings.ReplaceAll(secretContent, "\n", `\n`)), w.shell.Podman, quote(w.plan.name(secret))))
		}
	}
	for _, v := range w.plan.volumes() {
		if v.Create {
			lines = append(lines, w.volumeCreate(v)...)
		}
	}
	return append(lines, w.services()...)
}

func (w *shellWriter) volumeCreate(v scenarios.Volume) []string {
	options, folders := w.plan.volumeOptions(v)
	var lines []string
	for _, folder := range folders {
		lines = append(lines, "mkdir -p "+quote(folder))
	}
	line := w.shell.Podman + " volume create --label " + RunLabel + "=" + w.plan.RunID
	for _, k := range sortedKeys(options) {
		line += " --opt " + quote(k+"="+options[k])
	}
	return append(lines, line+" "+quote(w.plan.name(v.Name)))
}

// run is the `podman run` or `podman create` line of a container, after the
// line that makes its pod.
func (w *shellWriter) run(st PlannedStep) []string {
	c := w.plan.container(st.On)
	s := w.plan.specOf(st)
	var lines []string
	args := []string{w.shell.Podman, "run", "-d", "-i"}
	if st.Verb == "create" {
		args = []string{w.shell.Podman, "create", "-i"}
	}
	if st.Replace {
		lines = w.remember(st)
		args = append(args, "--replace")
	}
	args = append(args, "--name", quote(s.Name), "--label", RunLabel+"="+w.plan.RunID)
	if s.Network != "" {
		args = append(args, "--network", quote(s.Network))
	} else if s.Pod == "" {
		args = append(args, "--network", "none")
	} else if !w.pods[c.Pod] {
		w.pods[c.Pod] = true
		lines = append(lines, fmt.Sprintf("%s pod create --network none --label %s=%s %s", w.shell.Podman, RunLabel, w.plan.RunID, quote(s.Pod)))
	}
	args = append(args, w.shell.RunFlags...)
	if s.Remove {
		args = append(args, "--rm")
	}
	if s.Restart != "" {
		args = append(args, "--restart", quote(s.Restart))
	}
	if s.Hostname != "" {
		args = append(args, "--hostname", quote(s.Hostname))
	}
	if s.User != "" {
		args = append(args, "--user", quote(s.User))
	}
	args = append(args, w.env(s.Env)...)
	if s.ReadOnly {
		args = append(args, "--read-only")
	}
	if s.ReadOnlyTmpfs != nil {
		args = append(args, fmt.Sprintf("--read-only-tmpfs=%t", *s.ReadOnlyTmpfs))
	}
	if s.ImageVolume != "" {
		args = append(args, "--image-volume", quote(s.ImageVolume))
	}
	for i, m := range s.Mounts {
		args = append(args, mountFlag(m.Kind, m.Source, m.Target, m.Subpath, m.Options, c.Mounts[i].Long)...)
	}
	if len(s.Health) > 0 {
		args = append(args, "--health-cmd", quote(strings.Join(s.Health, " ")), "--health-interval", "disable", "--health-retries", "1")
	}
	for _, from := range s.VolumesFrom {
		args = append(args, "--volumes-from", quote(from))
	}
	for _, secret := range s.Secrets {
		args = append(args, "--secret", quote(secret.Name+",target="+secret.Target))
	}
	if s.Pod != "" {
		args = append(args, "--pod", quote(s.Pod))
	}
	for _, e := range s.Entrypoint {
		args = append(args, "--entrypoint", quote(e))
	}
	args = append(args, quote(s.Image))
	for _, word := range s.Command {
		args = append(args, quote(word))
	}
	w.known[st.On] = false
	return append(lines, strings.Join(args, " "))
}

func mountFlag(kind, source, target, subpath string, options []string, long bool) []string {
	suffix := ""
	if len(options) > 0 {
		suffix = ":" + strings.Join(options, ",")
	}
	switch {
	case long && kind == string(scenarios.Anonymous):
		return []string{"--mount", quote("type=volume,destination=" + target)}
	case long && kind == string(scenarios.Tmpfs):
		return []string{"--mount", quote(strings.Join(append([]string{"type=tmpfs,destination=" + target}, options...), ","))}
	case kind == string(scenarios.Anonymous):
		return []string{"-v", quote(target)}
	case kind == string(scenarios.Tmpfs):
		return []string{"--tmpfs", quote(target + suffix)}
	case kind == string(scenarios.ImageMount):
		flag := "type=image,source=" + source + ",destination=" + target
		if len(options) > 0 && options[0] == "rw" {
			flag += ",rw=true"
		}
		return []string{"--mount", quote(flag)}
	case subpath != "":
		return []string{"--mount", quote("type=volume,source=" + source + ",destination=" + target + ",subpath=" + subpath)}
	}
	return []string{"-v", quote(source + ":" + target + suffix)}
}

// probe are the lines that write or look for items with the probe's own
// command line inside the container.
func (w *shellWriter) probe(st PlannedStep, verb string, nonces map[string]string) []string {
	var lines []string
	for _, item := range st.Items {
		it := w.plan.items[item]
		if it.Kind == scenarios.Health {
			lines = append(lines, fmt.Sprintf("%s healthcheck run %s && echo %s", w.shell.Podman, quote(st.name), quote(item+": healthy")))
			continue
		}
		line := fmt.Sprintf("%s exec %s /probe %s %s %s %s", w.shell.Podman, quote(st.name), verb, quote(item), it.Kind, quote(it.Path))
		if n := nonces[item]; n != "" {
			line += " " + n
			if st.Times > 1 {
				line += "-$i"
			}
		}
		line += itemFlags(it)
		if st.Times > 1 {
			line = fmt.Sprintf("for i in $(seq %d); do %s; done", st.Times, line)
		}
		if it.Service != "" {
			line += " --service " + it.Service
		}
		lines = append(lines, line)
	}
	return lines
}

// itemFlags are the probe's flags for an item.
func itemFlags(it scenarios.Item) string {
	var flags strings.Builder
	number := func(name string, n int) {
		if n > 0 {
			fmt.Fprintf(&flags, " --%s %d", name, n)
		}
	}
	number("rows", it.Rows)
	number("size", it.Size)
	number("work", it.Work)
	if it.Mode != "" && it.Mode != scenarios.Plain {
		flags.WriteString(" --mode " + string(it.Mode))
	}
	if it.Persist == "after" {
		flags.WriteString(" --persist after")
	}
	if it.Tasks != "" {
		flags.WriteString(" --tasks " + quote(it.Tasks))
	}
	return flags.String()
}

// after are the lines that take away what the plan's other lines made.
func (w *shellWriter) after() []string {
	var lines []string
	add := func(format string, args ...any) {
		if line := w.shell.Podman + " " + fmt.Sprintf(format, args...); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	for _, svc := range w.plan.Scenario.Services {
		for _, c := range w.plan.collections(svc.Name) {
			add("exec %s %s", quote(c.container), strings.Join(c.drop(), " "))
		}
	}
	for _, c := range w.plan.Variant.Containers {
		add("rm -f -v --ignore %s", quote(w.plan.containerName(c.Name)))
	}
	if len(w.plan.backings) > 0 {
		add("rm -f -v --ignore %s", quote(w.plan.name(networkName)))
	}
	for _, st := range w.plan.Variant.Steps {
		if st.Verb == "rename" {
			add("rm -f -v --ignore %s", quote(w.plan.name(st.To)))
		}
	}
	for _, c := range w.plan.Variant.Containers {
		if c.Pod != "" {
			add("pod rm -f --ignore %s", quote(w.plan.name(c.Pod)))
		}
	}
	for _, v := range w.plan.volumes() {
		add("volume rm -f %s", quote(w.plan.name(v.Name)))
	}
	if w.orphans {
		lines = append(lines, fmt.Sprintf("for volume in $%s; do %s volume rm -f $volume; done", orphanedVolumes, w.shell.Podman))
	}
	for _, c := range w.plan.Variant.Containers {
		for _, secret := range c.Secrets {
			add("secret rm %s", quote(w.plan.name(secret)))
		}
	}
	for _, st := range w.plan.Variant.Steps {
		if st.Verb == "commit" || st.Verb == "import" {
			add("rmi -f %s", quote(w.plan.imageRef(st.To)))
		}
	}
	if w.plan.ownImages {
		for _, c := range w.plan.Variant.Containers {
			ref := w.plan.images[c.Name].Ref
			add("rmi -f %s", quote(ref))
			// What it was before a rebuild has no name any more.
			add("image prune -f --filter label=%s=%s", ImageLabel, quote(ref))
		}
	}
	lines = append(lines, w.removeStore()...)
	return append(lines, RemoveFolder(w.plan.Folder))
}

// RemoveFolder is the line that removes a folder with all that is in it.
func RemoveFolder(folder string) string { return "rm -rf " + quote(folder) }

// quote makes s one word of a POSIX shell.
func quote(s string) string {
	plain := s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@+%", r))
	}) < 0
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
