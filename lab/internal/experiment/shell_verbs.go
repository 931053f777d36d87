package experiment

import (
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"persistencelab/scenarios"
)

// commands are the podman lines of the steps that are more than a verb and
// the container's name.
var commands = map[string]func(*shellWriter, PlannedStep) []string{
	"rm": func(w *shellWriter, st PlannedStep) []string {
		if st.Volumes {
			return w.podman("rm -f -v", st.name)
		}
		return append(w.remember(st), w.podman("rm -f", st.name)...)
	},
	"kill": func(w *shellWriter, st PlannedStep) []string {
		if st.Signal != "" {
			return w.podman("kill --signal "+quote(st.Signal), st.name)
		}
		return w.podman("kill", st.name)
	},
	"crash": func(w *shellWriter, st PlannedStep) []string {
		if len(st.Amid) > 0 {
			return w.crashAmid(st)
		}
		// A signal from the host: after `podman kill` no policy restarts it.
		// To USR2 the probe leaves with code 3.
		pid := fmt.Sprintf("$(%s container inspect --format '{{.State.Pid}}' %s)", w.shell.Podman, quote(st.name))
		lines := []string{"kill -USR2 " + pid}
		if answered(w.plan.container(st.On).Restart, st.Code) {
			lines = append(lines, "sleep 1")
		}
		return lines
	},
	"wait": func(w *shellWriter, st PlannedStep) []string {
		return []string{fmt.Sprintf("sleep %g", st.Delay.Seconds())}
	},
	"rename": func(w *shellWriter, st PlannedStep) []string {
		return w.podman("rename", st.name, w.plan.name(st.To))
	},
	"clone": func(w *shellWriter, st PlannedStep) []string {
		return w.podman("container clone --name", w.plan.name(st.To), st.name)
	},
	"commit": func(w *shellWriter, st PlannedStep) []string {
		return w.podman("commit", st.name, w.plan.imageRef(st.To))
	},
	"export": func(w *shellWriter, st PlannedStep) []string {
		return append(w.archives(st.To), w.podman("export -o", w.plan.archive(st.To), st.name)...)
	},
	"import": func(w *shellWriter, st PlannedStep) []string {
		return w.podman("import", w.plan.archive(st.From), w.plan.imageRef(st.To))
	},
	"rebuild": (*shellWriter).rebuild,
	"rmi": func(w *shellWriter, st PlannedStep) []string {
		return w.podman("rmi -f", w.plan.images[st.On].Ref)
	},
	"cp": func(w *shellWriter, st PlannedStep) []string {
		if st.To != "" {
			return append(w.archives(st.To), w.podman("cp", st.name+":"+st.Path, w.plan.copied(st.To))...)
		}
		return w.podman("cp", w.plan.copied(st.From), st.name+":"+st.Path)
	},
	"checkpoint": func(w *shellWriter, st PlannedStep) []string {
		if st.To != "" {
			return append(w.archives(st.To), w.podman("container checkpoint --export", w.plan.archive(st.To), st.name)...)
		}
		return w.podman("container checkpoint", st.name)
	},
	"restore": func(w *shellWriter, st PlannedStep) []string {
		if st.From != "" {
			return w.podman("container restore --import", w.plan.archive(st.From), "--name", st.name)
		}
		return w.podman("container restore", st.name)
	},
	"container prune": func(w *shellWriter, st PlannedStep) []string { return w.wide("container prune -f") },
	"volume create": func(w *shellWriter, st PlannedStep) []string {
		lines := w.volumeCreate(w.plan.volume(st.Volume))
		last := len(lines) - 1
		lines[last] = fmt.Sprintf("%s volume exists %s || %s", w.shell.Podman, quote(w.plan.name(st.Volume)), lines[last])
		return lines
	},
	"volume rm": func(w *shellWriter, st PlannedStep) []string {
		verb := "volume rm"
		if st.Force {
			verb += " -f"
		}
		if st.Volume == "" {
			return append(w.remember(st), w.shell.Podman+" "+verb+" $"+w.variable(st.On))
		}
		return w.podman(verb, w.plan.name(st.Volume))
	},
	"volume prune": func(w *shellWriter, st PlannedStep) []string { return w.wide("volume prune -f") },
	"volume export": func(w *shellWriter, st PlannedStep) []string {
		return append(w.archives(st.To), w.podman("volume export -o", w.plan.archive(st.To), w.plan.name(st.Volume))...)
	},
	"volume import": func(w *shellWriter, st PlannedStep) []string {
		return w.podman("volume import", w.plan.name(st.Volume), w.plan.archive(st.From))
	},
	"system prune": func(w *shellWriter, st PlannedStep) []string {
		if st.Volumes {
			return w.wide("system prune -f --volumes")
		}
		return w.wide("system prune -f")
	},
	"service restart": func(w *shellWriter, st PlannedStep) []string {
		if w.user != "" {
			return []string{"# systemctl restart podman.service: the commands here go without a service"}
		}
		return []string{"systemctl restart podman.service   # or end and start: podman system service"}
	},
	"pod stop":    func(w *shellWriter, st PlannedStep) []string { return w.podman("pod stop", w.plan.name(st.Pod)) },
	"pod start":   func(w *shellWriter, st PlannedStep) []string { return w.podman("pod start", w.plan.name(st.Pod)) },
	"pod restart": func(w *shellWriter, st PlannedStep) []string { return w.podman("pod restart", w.plan.name(st.Pod)) },
	"kube play":   (*shellWriter).kubePlay,
	"kube down": func(w *shellWriter, st PlannedStep) []string {
		line := "down "
		if st.Force {
			line += "--force "
		}
		return []string{w.kubeLine(line + quote(w.plan.kubeFile(w.plan.name(st.Pod))))}
	},
	"pod rm": func(w *shellWriter, st PlannedStep) []string {
		w.pods[st.Pod] = false
		return w.podman("pod rm -f", w.plan.name(st.Pod))
	},
}

// noNetwork: without it even a claim makes Podman's default network for kube
// play, which would stay.
const noNetwork = "play --network none "

// kubePlay are the lines that write a pod's YAML, once, and play it. Like the
// run, they claim a volume only where it is not there.
func (w *shellWriter) kubePlay(st PlannedStep) []string {
	lines := w.before()
	if w.kube == nil {
		w.kube = map[string]bool{}
		lines = append(append(lines, "mkdir -p "+quote(path.Dir(w.kubeConfFile()))), w.kubeConf()...)
	}
	for _, claim := range w.plan.claims(st.Pod) {
		lines = append(lines, w.document(claim, w.plan.kubeClaim(claim))...)
		lines = append(lines, fmt.Sprintf("%s volume exists %s || %s", w.shell.Podman, quote(claim), w.kubeLine(noNetwork+quote(w.plan.kubeFile(claim)))))
	}
	pod := w.plan.kubePod(st.Pod)
	lines = append(lines, w.document(pod.Name, pod.YAML())...)
	return append(lines, w.kubeLine(noNetwork+quote(w.plan.kubeFile(pod.Name))))
}

// document is the line that writes a file, the first time.
func (w *shellWriter) document(name string, yaml []byte) []string {
	if w.kube[name] {
		return nil
	}
	w.kube[name] = true
	file := w.plan.kubeFile(name)
	return []string{fmt.Sprintf("printf '%%s\\n' %s >%s", quoteLines(string(yaml)), quote(file))}
}

// quoteLines makes each line of text one word of a shell.
func quoteLines(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		words = append(words, quote(strings.TrimSuffix(line, "\n")))
	}
	return strings.Join(words, " ")
}

func (w *shellWriter) kubeLine(rest string) string {
	line := w.shell.Podman + " kube " + rest
	if len(w.shell.Limits) > 0 {
		return "CONTAINERS_CONF=" + quote(w.kubeConfFile()) + " " + line
	}
	return line
}

func (w *shellWriter) kubeConfFile() string {
	return filepath.Join(w.plan.Folder, "kube", "containers.conf")
}

// kubeConf is the line that writes Podman's settings for kube play: neither
// its flags nor YAML have words for the limits that this host needs.
func (w *shellWriter) kubeConf() []string {
	if len(w.shell.Limits) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("printf '[containers]\\ndefault_ulimits = [\"%s\"]\\n' >%s", strings.Join(w.shell.Limits, `", "`), quote(w.kubeConfFile()))}
}

// podman is one line: the verb as it stands, then words to be quoted.
func (w *shellWriter) podman(verb string, words ...string) []string {
	line := w.shell.Podman + " " + verb
	for _, word := range words {
		line += " " + quote(word)
	}
	return []string{line}
}

func (w *shellWriter) archives(name string) []string {
	return []string{"mkdir -p " + quote(path.Dir(w.plan.archive(name)))}
}

// variable is where the shell keeps the names of a container's volumes
// without a name of their own.
func (w *shellWriter) variable(on string) string {
	return "volumes_of_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, on)
}

// remember are the lines that ask a container for its volumes before it goes
// without them (`podman rm` and `run --replace` do not take them along): once
// the container is gone nobody knows whose they are.
func (w *shellWriter) remember(st PlannedStep) []string {
	wanted := slices.ContainsFunc(w.plan.Variant.Steps, func(s scenarios.Step) bool {
		return s.Verb == "volume rm" && s.Volume == "" && s.On == st.On
	})
	mounts := w.plan.mountsOf(w.plan.container(st.On), len(w.plan.Variant.Containers))
	orphans := slices.ContainsFunc(mounts, func(m MountSummary) bool { return m.Kind == string(scenarios.Anonymous) })
	if !wanted && !orphans || w.known[st.On] {
		return nil
	}
	w.known[st.On] = true
	lines := []string{fmt.Sprintf("%s=$(%s container inspect --format '{{range .Mounts}}{{.Name}} {{end}}' %s)", w.variable(st.On), w.shell.Podman, quote(st.name))}
	if orphans {
		w.orphans = true
		lines = append(lines, fmt.Sprintf("%s=\"$%[1]s $%s\"", orphanedVolumes, w.variable(st.On)))
	}
	return lines
}

// orphanedVolumes is the shell's variable with the volumes without a name that
// outlived their containers.
const orphanedVolumes = "orphaned_volumes"

// rebuild is a build from a Containerfile written on the spot.
func (w *shellWriter) rebuild(st PlannedStep) []string { return w.build(st.image.Ref, st.extra) }

// build are the lines that make an image of the probe's.
func (w *shellWriter) build(ref string, extra *scenarios.Image) []string {
	dir := w.plan.archive("build")
	lines := []string{"mkdir -p " + quote(dir)}
	file := []string{"FROM " + w.plan.probe.Ref, "LABEL " + ImageLabel + "=" + ref}
	for _, name := range slices.Sorted(maps.Keys(extra.Files)) {
		file = append(file, fmt.Sprintf("COPY .%s %s", name, name))
		if sub := path.Dir(name); sub != "/" {
			lines = append(lines, "mkdir -p "+quote(dir+sub))
		}
		lines = append(lines, fmt.Sprintf("printf %%s %s >%s", quote(extra.Files[name]), quote(dir+name)))
	}
	for _, v := range extra.Volumes {
		file = append(file, "VOLUME "+v)
	}
	if extra.User != "" {
		file = append(file, "USER "+extra.User)
	}
	lines = append(lines, fmt.Sprintf("printf '%%s\\n' %s >%s", quoteLines(strings.Join(file, "\n")), quote(dir+"/Containerfile")))
	return append(lines, w.podman("build -t", ref, dir)...)
}
