package matrix

import "persistencelab/scenarios"

// Event is something that happens to a container, its image or its volumes,
// between the write and the look.
type Event struct {
	Name  string
	Group string // heading of the columns it stands among
	Doc   string

	applies func(Kind) bool // nil: to every kind
	steps   func(*builder)  // from the written data to just before the look
	arrange func(*scenarios.Container)
}

// Groups of events, in order.
const (
	groupLives    = "the same container lives on"
	groupReplaced = "it is replaced or copied"
	groupRemoved  = "volumes are removed, things are pruned"
	groupOthers   = "neighbours and pods"
	groupEngine   = "beyond the container"
)

// Events lists the events in the order of the truth table; the last group is
// the lab's own.
func Events() []Event {
	named := func(k Kind) bool { return k.volume != nil }
	anyVolume := func(k Kind) bool { return k.volume != nil || k.noName }
	does := func(verbs ...string) func(*builder) {
		return func(b *builder) {
			for _, verb := range verbs {
				b.app(verb)
			}
		}
	}
	inPod := func(c *scenarios.Container) { c.Pod = "pod" }
	pod := func(verbs ...string) func(*builder) {
		return func(b *builder) {
			for _, verb := range verbs {
				b.step(scenarios.Step{Verb: verb, Pod: "pod"})
			}
		}
	}
	commit := func(b *builder) {
		b.step(scenarios.Step{Verb: "commit", On: app, To: "committed"})
		b.app("rm")
	}
	changed := map[string]string{seedFile: "the image's second version\n"}
	rebuild := scenarios.Step{Verb: "rebuild", On: app, Files: changed}

	return []Event{
		{Name: "stop+start", Group: groupLives, Doc: "podman stop, podman start", steps: does("stop", "start")},
		{Name: "restart", Group: groupLives, Doc: "podman restart", steps: does("restart")},
		{Name: "kill -9+start", Group: groupLives, Doc: "podman kill, podman start", steps: does("kill", "start")},
		{Name: "crash+restart-policy", Group: groupLives, Doc: "process 1 ends with code 3 under --restart on-failure:3",
			arrange: func(c *scenarios.Container) { c.Restart = "on-failure:3" },
			steps:   func(b *builder) { b.step(scenarios.Step{Verb: "crash", On: app, Code: 3}) }},
		{Name: "pause+unpause", Group: groupLives, Doc: "podman pause, podman unpause", steps: does("pause", "unpause")},
		{Name: "rename+restart", Group: groupLives, Doc: "podman rename, podman stop, podman start", steps: func(b *builder) {
			b.step(scenarios.Step{Verb: "rename", On: app, To: "renamed"})
			b.app("stop")
			b.app("start")
		}},
		{Name: "rebuild+restart", Group: groupLives, Doc: "the image is built anew under its tag, podman restart", steps: func(b *builder) {
			b.step(rebuild)
			b.app("restart")
		}},

		{Name: "rm+run", Group: groupReplaced, Doc: "podman rm -f, podman run", steps: does("rm", "run")},
		{Name: "rm -v+run", Group: groupReplaced, Doc: "podman rm -f -v, podman run", steps: func(b *builder) {
			b.step(scenarios.Step{Verb: "rm", On: app, Volumes: true})
			b.app("run")
		}},
		{Name: "run --rm+run", Group: groupReplaced, Doc: "the container was run with --rm; podman stop, podman run",
			arrange: func(c *scenarios.Container) { c.Remove = true }, steps: does("stop", "run")},
		{Name: "run --replace", Group: groupReplaced, Doc: "podman run --replace", steps: func(b *builder) {
			b.step(scenarios.Step{Verb: "run", On: app, Replace: true})
		}},
		{Name: "clone", Group: groupReplaced, Doc: "podman container clone, the clone started", steps: func(b *builder) {
			b.another(copied)
			b.step(scenarios.Step{Verb: "clone", On: app, To: copied})
			b.step(scenarios.Step{Verb: "start", On: copied})
			b.look = copied
		}},
		{Name: "commit+run (no mounts)", Group: groupReplaced, Doc: "podman commit, podman rm -f, podman run of that image without mounts", steps: func(b *builder) {
			commit(b)
			b.bare("committed")
		}},
		{Name: "commit+run (same mounts)", Group: groupReplaced, Doc: "podman commit, podman rm -f, podman run of that image", steps: func(b *builder) {
			commit(b)
			b.step(scenarios.Step{Verb: "run", On: app, Image: "committed"})
		}},
		{Name: "commit+run (fresh volume)", Group: groupReplaced, Doc: "podman commit, podman rm -f, podman volume rm, podman run of that image", applies: named, steps: func(b *builder) {
			commit(b)
			b.step(scenarios.Step{Verb: "volume rm", Volume: volName})
			b.step(scenarios.Step{Verb: "run", On: app, Image: "committed"})
		}},
		{Name: "export/import+run", Group: groupReplaced, Doc: "podman export, podman import, podman rm -f, podman run of that image without mounts", steps: func(b *builder) {
			b.step(scenarios.Step{Verb: "export", On: app, To: "files"})
			b.step(scenarios.Step{Verb: "import", From: "files", To: "imported"})
			b.app("rm")
			b.bare("imported")
		}},
		{Name: "rebuild+rm+run", Group: groupReplaced, Doc: "the image is built anew under its tag, podman rm -f, podman run", steps: func(b *builder) {
			b.step(rebuild)
			b.app("rm")
			b.app("run")
		}},
		{Name: "rmi -f+build+run", Group: groupReplaced, Doc: "podman rmi -f, the image built anew, podman run", steps: func(b *builder) {
			b.app("rmi")
			b.step(rebuild)
			b.app("run")
		}},

		{Name: "volume rm (in use)", Group: groupRemoved, Doc: "podman volume rm, refused", applies: anyVolume, steps: func(b *builder) {
			s := b.volumeStep("volume rm")
			s.Refused = true
			b.step(s)
		}},
		{Name: "rm+volume rm+run", Group: groupRemoved, Doc: "podman rm -f, podman volume rm, podman run", applies: anyVolume, steps: func(b *builder) {
			b.app("rm")
			b.step(b.volumeStep("volume rm"))
			b.remake()
			b.app("run")
		}},
		{Name: "volume rm -f+run", Group: groupRemoved, Doc: "podman volume rm -f, podman run", applies: anyVolume, steps: func(b *builder) {
			s := b.volumeStep("volume rm")
			s.Force = true
			b.step(s)
			b.remake()
			b.app("run")
		}},
		{Name: "volume prune (running)", Group: groupRemoved, Doc: "podman volume prune", steps: func(b *builder) {
			b.step(scenarios.Step{Verb: "volume prune"})
		}},
		{Name: "stop+volume prune+start", Group: groupRemoved, Doc: "podman stop, podman volume prune, podman start", steps: func(b *builder) {
			b.app("stop")
			b.step(scenarios.Step{Verb: "volume prune"})
			b.app("start")
		}},
		{Name: "rm+volume prune+run", Group: groupRemoved, Doc: "podman rm -f, podman volume prune, podman run", steps: func(b *builder) {
			b.app("rm")
			b.step(scenarios.Step{Verb: "volume prune"})
			b.remake()
			b.app("run")
		}},
		{Name: "system prune (running) --volumes", Group: groupRemoved, Doc: "podman system prune --volumes", steps: func(b *builder) {
			b.step(scenarios.Step{Verb: "system prune", Volumes: true})
		}},
		{Name: "stop+system prune+run", Group: groupRemoved, Doc: "podman stop, podman system prune, podman run", steps: func(b *builder) {
			b.app("stop")
			b.step(scenarios.Step{Verb: "system prune"})
			b.app("run")
		}},
		{Name: "stop+system prune --volumes+run", Group: groupRemoved, Doc: "podman stop, podman system prune --volumes, podman run", steps: func(b *builder) {
			b.app("stop")
			b.step(scenarios.Step{Verb: "system prune", Volumes: true})
			b.remake()
			b.app("run")
		}},
		{Name: "stop+container prune+run", Group: groupRemoved, Doc: "podman stop, podman container prune, podman run", steps: func(b *builder) {
			b.app("stop")
			b.step(scenarios.Step{Verb: "container prune"})
			b.app("run")
		}},
		{Name: "volume export/import", Group: groupRemoved, Doc: "podman stop, podman volume export, everything removed, the volume made anew, podman volume import, podman run", applies: named, steps: func(b *builder) {
			b.app("stop")
			b.step(scenarios.Step{Verb: "volume export", Volume: volName, To: "saved"})
			b.app("rm")
			if b.kind.source != nil {
				b.step(scenarios.Step{Verb: "rm", On: source})
			}
			b.step(scenarios.Step{Verb: "volume rm", Volume: volName})
			b.step(scenarios.Step{Verb: "volume create", Volume: volName})
			b.step(scenarios.Step{Verb: "volume import", Volume: volName, From: "saved"})
			if b.kind.source != nil {
				b.step(scenarios.Step{Verb: "create", On: source})
			}
			b.app("run")
		}},

		{Name: "second container sees it", Group: groupOthers, Doc: "another podman run with the same arguments", steps: func(b *builder) {
			b.another(second)
			b.step(scenarios.Step{Verb: "run", On: second})
			b.look = second
		}},
		{Name: "rm -v by first, second reads", Group: groupOthers, Doc: "another podman run with the same arguments, podman rm -f -v of the first", steps: func(b *builder) {
			b.another(second)
			b.step(scenarios.Step{Verb: "run", On: second})
			b.step(scenarios.Step{Verb: "rm", On: app, Volumes: true})
			b.look = second
		}},
		{Name: "pod stop+start", Group: groupOthers, Doc: "podman pod stop, podman pod start", arrange: inPod, steps: pod("pod stop", "pod start")},
		{Name: "pod restart", Group: groupOthers, Doc: "podman pod restart", arrange: inPod, steps: pod("pod restart")},
		{Name: "rm+run inside same pod", Group: groupOthers, Doc: "podman rm -f, podman run --pod", arrange: inPod, steps: does("rm", "run")},
		{Name: "pod rm+create", Group: groupOthers, Doc: "podman pod rm -f, podman pod create, podman run --pod", arrange: inPod, steps: func(b *builder) {
			b.step(scenarios.Step{Verb: "pod rm", Pod: "pod"})
			b.app("run")
		}},

		{Name: "checkpoint+restore", Group: groupEngine, Doc: "podman container checkpoint, podman container restore", steps: does("checkpoint", "restore")},
		{Name: "service restart", Group: groupEngine, Doc: "the podman service ends and starts again", steps: func(b *builder) {
			b.step(scenarios.Step{Verb: "service restart"})
		}},
	}
}
