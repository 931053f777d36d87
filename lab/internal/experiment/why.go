package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"persistencelab/scenarios"
)

// place is where an item's bytes really are.
type place string

const (
	inMemory    place = "the memory of process 1"
	inLayer     place = "the container's writable layer"
	inVolume    place = "the named volume"
	inAnonymous place = "the anonymous volume"
	onHost      place = "the host's folder"
	inTmpfs     place = "memory behind a path (tmpfs)"
	inImage     place = "the mounted image"
	inPodman    place = "the answer of podman healthcheck run"
	inService   place = "the store outside the container"
	inEmptyDir  place = "the pod's emptyDir"
	inOverlay   place = "an overlay thrown away with the process"
)

// placeOf is the place of an item in a container.
func placeOf(c scenarios.Container, it scenarios.Item) place {
	switch it.Kind {
	case scenarios.Memory:
		return inMemory
	case scenarios.Health:
		return inPodman
	}
	if it.InService() {
		return inService
	}
	m := mountOver(c, it.Path)
	if m == nil {
		if within(it.Path, "/dev/shm") || c.ReadOnly && (within(it.Path, "/tmp") || within(it.Path, "/run")) {
			return inTmpfs
		}
		return inLayer
	}
	for _, o := range m.Options {
		if o == "O" {
			return inOverlay
		}
	}
	switch m.Kind {
	case scenarios.VolumeMount:
		return inVolume
	case scenarios.Anonymous:
		return inAnonymous
	case scenarios.Bind:
		return onHost
	case scenarios.Tmpfs:
		return inTmpfs
	case scenarios.ImageMount:
		return inImage
	case scenarios.EmptyDir:
		return inEmptyDir
	}
	return inLayer
}

// why is one sentence for an outcome whose expectation gives no reason of its
// own: where the bytes were, and what happened to that place.
func why(p *Plan, at PlannedStep, s sight, o scenarios.Outcome) string {
	it, c := s.item, p.container(at.On)
	if text := whyHealth(c, s, o); text != "" {
		return text
	}
	if text := whyCrash(s, o); text != "" {
		return text
	}
	if it.Seed {
		return whySeed(p, at, c, it, o)
	}
	event := eventSince(p, at)
	if p.onMachine() {
		return machineWhy(machinePlace(c, it), event, o)
	}
	where := placeOf(c, it)
	switch o {
	case scenarios.Survived:
		if event == "" {
			return fmt.Sprintf("it is in %s, and nothing happened to that", where)
		}
		return fmt.Sprintf("it is in %s, which %s does not touch", where, event)
	case scenarios.Lost:
		switch {
		case event == "":
			return fmt.Sprintf("it was in %s", where)
		case where == inMemory:
			return fmt.Sprintf("it was in %s, which ends with the process: %s starts another", where, event)
		case where == inLayer:
			return fmt.Sprintf("it was in %s, which goes with the container: %s takes both", where, event)
		}
		return fmt.Sprintf("it was in %s, which does not outlast %s", where, event)
	case scenarios.Refused:
		return "the write was not accepted, so there is nothing that could come back"
	case scenarios.Changed:
		return "something is there, but not what was last written"
	}
	return "it could not be looked at, so nothing is said of it"
}

// whySeed is why for content of the image, which no event can change: only
// what covers it, and what the container's own layer has instead of it.
func whySeed(p *Plan, at PlannedStep, c scenarios.Container, it scenarios.Item, o scenarios.Outcome) string {
	m := mountOver(c, it.Path)
	switch {
	case m != nil && o == scenarios.Survived:
		return fmt.Sprintf("podman copied it from the image into the empty %s at its first use", m.Kind)
	case m != nil && o == scenarios.Lost:
		return fmt.Sprintf("the image has it, but the %s mounted at %s covers it", m.Kind, m.Target)
	case o == scenarios.Survived:
		return "it is in the image, which no container can change"
	case o == scenarios.Lost:
		return "the image still has it; the container's writable layer holds a mark that it was deleted"
	case o == scenarios.Changed && updatedBefore(p, at):
		return "the container is of another image than the first one was"
	case o == scenarios.Changed:
		return "the container's writable layer holds a changed copy; the image's file is as it was"
	}
	return "it could not be looked at, so nothing is said of it"
}

// updatedBefore tells whether the image was built anew before a checkpoint.
func updatedBefore(p *Plan, at PlannedStep) bool {
	return slices.ContainsFunc(p.Steps[:at.seq], func(st PlannedStep) bool { return st.Verb == "rebuild" })
}

// eventSince names what happened to the checkpoint's container between the
// last write before it and the checkpoint, as people say it: "rm and run".
func eventSince(p *Plan, at PlannedStep) string {
	var names []string
	for _, st := range p.Steps[:at.seq] {
		switch {
		case st.Verb == "write":
			names = nil
		case st.Verb == "load":
			names = []string{"the load"}
		case !st.OnItems() && (st.On == at.On || st.On == ""):
			names = append(names, st.Verb)
		}
	}
	if n := len(names); n > 2 {
		names = names[n-2:]
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return names[0] + " and " + names[1]
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}
