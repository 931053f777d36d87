package experiment

import (
	"fmt"
	"sort"
	"strings"

	"persistencelab/scenarios"
)

// shellWriter writes a plan's steps as the podman lines a person would type.
// Pasted into a shell, in order, they do what the run does.
type shellWriter struct {
	plan  *Plan
	shell Shell
	made  bool // the lines that come before the first run are written
}

func newShellWriter(p *Plan, s Shell) *shellWriter {
	if s.Podman == "" {
		s.Podman = "podman"
	}
	return &shellWriter{plan: p, shell: s}
}

// lines are the commands of one step.
func (w *shellWriter) lines(st PlannedStep) []string {
	name := quote(w.plan.name(st.On))
	switch st.Verb {
	case "run":
		return append(w.before(), w.run(w.plan.container(st.On)))
	case "write", "edit":
		return w.probe(st, "write", st.Nonces)
	case "erase":
		return w.probe(st, "erase", nil)
	case "read":
		return w.probe(st, "read", st.Last)
	case "rm":
		flags := "-f"
		if st.Volumes {
			flags += " -v"
		}
		return []string{fmt.Sprintf("%s rm %s %s", w.shell.Podman, flags, name)}
	case "kill":
		if st.Signal != "" {
			return []string{fmt.Sprintf("%s kill --signal %s %s", w.shell.Podman, quote(st.Signal), name)}
		}
	}
	return []string{fmt.Sprintf("%s %s %s", w.shell.Podman, st.Verb, name)}
}

// before are the lines that must come before the first run: the folders of
// bind mounts and the volumes made beforehand.
func (w *shellWriter) before() []string {
	if w.made {
		return nil
	}
	w.made = true
	var lines []string
	for _, c := range w.plan.Variant.Containers {
		for _, m := range c.Mounts {
			if m.Kind == scenarios.Bind {
				lines = append(lines, "mkdir -p "+quote(w.plan.hostFolder(m)))
			}
		}
	}
	for _, v := range w.plan.volumes() {
		if !v.Create {
			continue
		}
		line := w.shell.Podman + " volume create --label " + RunLabel + "=" + w.plan.RunID
		for _, k := range sortedKeys(v.Options) {
			line += " --opt " + quote(k+"="+v.Options[k])
		}
		lines = append(lines, line+" "+quote(w.plan.name(v.Name)))
	}
	return lines
}

// run is the `podman run` line of a container.
func (w *shellWriter) run(c scenarios.Container) string {
	s := w.plan.spec(c)
	args := []string{w.shell.Podman, "run", "-d", "--name", quote(s.Name), "--label", RunLabel + "=" + w.plan.RunID, "--network", "none"}
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
	for _, k := range sortedKeys(s.Env) {
		args = append(args, "-e", quote(k+"="+s.Env[k]))
	}
	if s.ReadOnly {
		args = append(args, "--read-only")
	}
	if s.ReadOnlyTmpfs != nil {
		args = append(args, fmt.Sprintf("--read-only-tmpfs=%t", *s.ReadOnlyTmpfs))
	}
	if s.ImageVolume != "" {
		args = append(args, "--image-volume", quote(s.ImageVolume))
	}
	for _, m := range s.Mounts {
		args = append(args, mountFlag(m.Kind, m.Source, m.Target, m.Subpath, m.Options)...)
	}
	for _, from := range s.VolumesFrom {
		args = append(args, "--volumes-from", quote(from))
	}
	for _, secret := range s.Secrets {
		args = append(args, "--secret", quote(secret))
	}
	if s.Pod != "" {
		args = append(args, "--pod", quote(s.Pod))
	}
	return strings.Join(append(args, quote(s.Image)), " ")
}

func mountFlag(kind, source, target, subpath string, options []string) []string {
	suffix := ""
	if len(options) > 0 {
		suffix = ":" + strings.Join(options, ",")
	}
	switch {
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
		line := fmt.Sprintf("%s exec %s /probe %s %s %s %s", w.shell.Podman, quote(w.plan.name(st.On)), verb, quote(item), it.Kind, quote(it.Path))
		if n := nonces[item]; n != "" {
			line += " " + n
		}
		if it.Rows > 0 {
			line += fmt.Sprintf(" --rows %d", it.Rows)
		}
		if it.Size > 0 {
			line += fmt.Sprintf(" --size %d", it.Size)
		}
		if it.Mode != "" && it.Mode != scenarios.Plain {
			line += " --mode " + string(it.Mode)
		}
		lines = append(lines, line)
	}
	return lines
}

// After are the lines that take away what the plan's other lines made.
func (w *shellWriter) after() []string {
	var lines []string
	for _, c := range w.plan.Variant.Containers {
		lines = append(lines, fmt.Sprintf("%s rm -f -v --ignore %s", w.shell.Podman, quote(w.plan.name(c.Name))))
	}
	for _, v := range w.plan.volumes() {
		lines = append(lines, fmt.Sprintf("%s volume rm -f %s", w.shell.Podman, quote(w.plan.name(v.Name))))
	}
	return append(lines, "rm -rf "+quote(w.plan.Folder))
}

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
