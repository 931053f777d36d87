package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"persistencelab/probeimage/bootprobe"
	"persistencelab/scenarios"
)

// Version is the version of the JSON document a Comparison marshals to.
const Version = 1

// Comparison is two reports, explained.
type Comparison struct {
	Version  int       `json:"version"`
	First    Source    `json:"first"`
	Second   Source    `json:"second"`
	Swapped  bool      `json:"swapped"`  // they were given the other way round
	Happened Event     `json:"happened"` // between the two, as far as they tell
	Machine  Sameness  `json:"same_machine"`
	Summary  string    `json:"summary"`
	Findings []Finding `json:"findings"`
	Places   []Place   `json:"places"`
}

// Source is one of the two reports.
type Source struct {
	Name string    `json:"name"`
	Made string    `json:"made_by"` // "lab probe", or the script
	At   time.Time `json:"at,omitzero"`
	Run  string    `json:"run,omitempty"`
}

// Event is what happened between two reports.
type Event string

// Events.
const (
	EventUnknown Event = "unknown"
	Nothing      Event = "nothing"             // the same process 1 all along
	Restarted    Event = "restarted"           // the same container, a new process 1
	Recreated    Event = "container recreated" // another container, on the same boot
	Rebooted     Event = "rebooted"
	OtherMachine Event = "another machine"
)

// Sameness is whether both reports are of one machine.
type Sameness string

// Samenesses.
const (
	Same       Sameness = "yes"
	Different  Sameness = "no"
	CannotTell Sameness = "unknown"
)

// Finding is one thing the reports tell, with what each of them says.
type Finding struct {
	About  string `json:"about"` // order, boot, machine, hostname, container, deploy, …
	First  string `json:"first,omitempty"`
	Second string `json:"second,omitempty"`
	Text   string `json:"text"`
	// Warning: it limits what the rest can be taken for.
	Warning bool `json:"warning,omitempty"`
}

// Place is what became of one folder.
type Place struct {
	Path    string            `json:"path"`
	Names   []string          `json:"names"`
	Storage Pair              `json:"storage"`
	File    Fate              `json:"file"`
	Rows    Fate              `json:"rows"`
	Outcome scenarios.Outcome `json:"-"`
	Word    string            `json:"outcome"` // Outcome's word
	Text    string            `json:"text"`
}

// Pair is the same thing in both reports.
type Pair struct {
	First  string `json:"first,omitempty"`
	Second string `json:"second,omitempty"`
}

// Fate is what became of the file or the rows of a place.
type Fate struct {
	Outcome scenarios.Outcome `json:"-"`
	Word    string            `json:"outcome"`
	First   int               `json:"first"`  // lines or rows the first run left
	Second  int               `json:"second"` // lines or rows after the second
	Detail  string            `json:"detail,omitempty"`
}

// Count is how many places had that outcome.
func (c *Comparison) Count(o scenarios.Outcome) int {
	n := 0
	for _, p := range c.Places {
		if p.Outcome == o {
			n++
		}
	}
	return n
}

// Explain compares two reports.
func Explain(a, b *Side) *Comparison {
	c := &Comparison{Version: Version}
	c.order(&a, &b)
	c.First, c.Second = a.source(), b.source()
	c.Machine = c.machine(a, b)
	c.boot(a, b)
	c.container(a, b)
	c.deploy(a, b)
	c.places(a, b)
	c.hostname(a, b) // knows by now what the rest says
	c.summary()
	return c
}

func (s *Side) source() Source {
	made := "lab probe"
	if s.Script {
		made = "probe.py"
	}
	return Source{Name: s.Name, Made: made, At: s.At, Run: s.Run}
}

func (c *Comparison) say(about, first, second, format string, args ...any) *Finding {
	c.Findings = append(c.Findings, Finding{About: about, First: first, Second: second, Text: fmt.Sprintf(format, args...)})
	return &c.Findings[len(c.Findings)-1]
}

// order turns the two reports when the second was made first. What each run
// found of the other proves it; clocks only suggest it.
func (c *Comparison) order(a, b **Side) {
	first, second := *a, *b
	switch {
	case first.Run != "" && first.Run == second.Run:
		c.say("order", "", "", "Both files hold the same run of the probe, so nothing can have changed. Run it a second time.").Warning = true
	case first.saw(second) && !second.saw(first):
		c.Swapped = true
		c.say("order", first.when(), second.when(), "The order was wrong: %s found what %s had left, so it is the later one. They are compared in the order in which they were made.", first.Name, second.Name).Warning = true
	case !first.At.IsZero() && !second.At.IsZero() && second.At.Before(first.At) && !second.saw(first):
		c.Swapped = true
		c.say("order", first.when(), second.when(), "The order was wrong: by their clocks %s was made before %s. They are compared in the order in which they were made.", second.Name, first.Name).Warning = true
	case second.saw(first) && second.At.Before(first.At):
		c.say("order", first.when(), second.when(), "The clock went back by %s between the two runs; the order is right all the same, for the second found what the first had left.", first.At.Sub(second.At).Round(time.Second)).Warning = true
	case first.At.IsZero() || second.At.IsZero():
		c.say("order", "", "", "A report without a time can't show that the order is right: %s is taken for the first.", first.Name)
	}
	if c.Swapped {
		*a, *b = second, first
	}
}

// saw tells whether s found what other's run had left.
func (s *Side) saw(other *Side) bool {
	for _, p := range s.Places {
		if p.File != nil && found(p.File.Before, other.Run) || p.SQLite != nil && found(p.SQLite.Before, other.Run) {
			return true
		}
	}
	return false
}

func found(b *bootprobe.Before, run string) bool {
	return b != nil && run != "" && slices.Contains(b.Seen, run)
}

func known(id string) bool { return id != "" && id != bootprobe.Unknown }

// machine decides whether both reports are of one machine.
func (c *Comparison) machine(a, b *Side) Sameness {
	switch {
	case known(a.BootID) && a.BootID == b.BootID:
		return Same // two machines never share a boot
	case a.Machine != "" && b.Machine != "" && a.Machine != b.Machine:
		c.say("machine", a.Machine, b.Machine, "These are two different machines: their machine ids differ. What one of them lost or kept can't be read from the other.").Warning = true
		return Different
	case a.Machine != "" && a.Machine == b.Machine:
		return Same
	case b.saw(a):
		c.say("machine", "", "", "The second report found the first one's data, so at least a disk is the same. The reports hold no machine id to say more.")
		return Same
	}
	evidence := "none of the first one's data in the second"
	if a.Script || b.Script {
		evidence = "rows that do not say whose they are"
	}
	c.say("machine", a.Machine, b.Machine, "Nothing in the reports shows that both are of one machine: no machine id, another boot, and %s.", evidence).Warning = true
	return CannotTell
}

// boot says whether the kernel was started anew.
func (c *Comparison) boot(a, b *Side) {
	switch {
	case !known(a.BootID) || !known(b.BootID):
		c.Happened = EventUnknown
		c.say("boot", a.BootID, b.BootID, "Whether it was rebooted is unknown: a boot id could not be read.")
	case c.Machine == Different:
		c.Happened = OtherMachine
	case a.BootID == b.BootID:
		c.Happened = sameBoot(a, b)
		switch {
		case c.Happened == Nothing:
			c.say("boot", a.BootID, b.BootID, "Nothing was restarted: the boot id is the same, and so is process 1. These two runs test nothing; restart the thing between them.").Warning = true
		case c.Happened == EventUnknown:
			c.say("boot", a.BootID, b.BootID, "The machine was not rebooted: the boot id is the same. A restart of the process alone does not show in it.")
		default:
			c.say("boot", a.BootID, b.BootID, "The machine was not rebooted: the boot id is the same.")
		}
	case c.Machine == Same:
		c.Happened = Rebooted
		c.say("boot", a.BootID, b.BootID, "The machine was rebooted: the boot id changed.")
	default:
		c.Happened = Rebooted
		c.say("boot", a.BootID, b.BootID, "The boot id changed: the machine was rebooted, or this is another one.")
	}
}

// sameBoot is what happened without a reboot.
func sameBoot(a, b *Side) Event {
	if a.Run != "" && a.Run == b.Run {
		return Nothing
	}
	switch {
	case (a.Container == nil) != (b.Container == nil):
		return EventUnknown
	case a.Container != nil && !sameID(a.Container.ID, b.Container.ID):
		if a.Container.ID == "" || b.Container.ID == "" {
			return EventUnknown
		}
		return Recreated
	case a.Process1 == nil || b.Process1 == nil:
		return EventUnknown
	case a.Process1.Ticks != b.Process1.Ticks:
		return Restarted
	}
	return Nothing
}

// sameID compares ids of which one may be cut short.
func sameID(a, b string) bool {
	return a != "" && b != "" && (strings.HasPrefix(a, b) || strings.HasPrefix(b, a))
}

func short(id string) string { return id[:min(12, len(id))] }

// container says whether it is the same container, and the same life of it.
func (c *Comparison) container(a, b *Side) {
	if a.Container == nil && b.Container == nil || c.Happened == OtherMachine {
		return
	}
	switch {
	case a.Container == nil:
		c.say("container", "none", cmp.Or(short(b.Container.ID), "some"), "The first run was outside of any container, the second inside one: their folders are not the same folders, whatever they are called.").Warning = true
	case b.Container == nil:
		c.say("container", cmp.Or(short(a.Container.ID), "some"), "none", "The first run was in a container, the second outside: their folders are not the same folders, whatever they are called.").Warning = true
	case a.Container.ID == "" || b.Container.ID == "":
		c.say("container", a.Container.ID, b.Container.ID, "Both ran in a container, but not in one that shows its id: restarted or recreated is unknown.")
	case !sameID(a.Container.ID, b.Container.ID):
		c.say("container", short(a.Container.ID), short(b.Container.ID), "The container was recreated: another id, so a new writable layer, made from the image.")
	case a.Process1 == nil || b.Process1 == nil:
		c.say("container", short(a.Container.ID), short(b.Container.ID), "It is the same container.")
	case a.Process1.Ticks != b.Process1.Ticks || a.BootID != b.BootID:
		c.say("container", short(a.Container.ID), short(b.Container.ID), "The container was restarted, not recreated: the same id, a new process 1. Its writable layer goes on; that is no proof of a durable place.")
	default:
		c.say("container", short(a.Container.ID), short(b.Container.ID), "It is the same container, and still the same process 1.")
	}
}

func (c *Comparison) deploy(a, b *Side) {
	unset := func(id string) bool { return id == "" || id == bootprobe.Unset }
	switch {
	case unset(a.DeployID) && unset(b.DeployID):
		c.say("deploy", "", "", "Whether it was redeployed is unknown: DEPLOY_ID was not set.")
	case unset(a.DeployID) || unset(b.DeployID):
		c.say("deploy", a.DeployID, b.DeployID, "Whether it was redeployed is unknown: DEPLOY_ID was set in one of the runs only.")
	case a.DeployID != b.DeployID:
		c.say("deploy", a.DeployID, b.DeployID, "It was redeployed in between: a deploy that puts files back hides what the restart alone would have lost.").Warning = true
	default:
		c.say("deploy", a.DeployID, b.DeployID, "It was not redeployed: the deploy id is the same.")
	}
}

// hostname is never evidence. Where a name stayed and the rest did not, that
// is the lesson.
func (c *Comparison) hostname(a, b *Side) {
	switch {
	case a.Hostname == "" || b.Hostname == "":
		return
	case a.Hostname != b.Hostname && a.BootID == b.BootID && known(a.BootID):
		c.say("hostname", a.Hostname, b.Hostname, "The hostname changed and the machine did not: the name is no identity. Each new container gets one of its own.")
	case a.Hostname != b.Hostname:
		c.say("hostname", a.Hostname, b.Hostname, "The hostname changed, which alone proves nothing.")
	default:
		var rest []string
		if a.BootID != b.BootID {
			rest = append(rest, "the boot is another")
		}
		if c.Happened == Recreated {
			rest = append(rest, "the container is another")
		}
		if n := c.Count(scenarios.Lost); n > 0 {
			rest = append(rest, fmt.Sprintf("of %d places %d came back empty", len(c.Places), n))
		}
		if len(rest) > 0 {
			c.say("hostname", a.Hostname, b.Hostname, "The hostname is %s both times, and yet %s: a hostname is no identity, so key no lock and no cache on it.", a.Hostname, and(rest)).Warning = true
		}
	}
}

func and(s []string) string {
	if len(s) < 2 {
		return strings.Join(s, "")
	}
	return strings.Join(s[:len(s)-1], ", ") + " and " + s[len(s)-1]
}

// summary is the whole in one line.
func (c *Comparison) summary() {
	happened := map[Event]string{
		Nothing: "Nothing was restarted", Restarted: "After the restart", Recreated: "After the container was recreated",
		Rebooted: "After the reboot", OtherMachine: "Two different machines", EventUnknown: "Between the two runs",
	}[c.Happened]
	if c.Happened == Rebooted && c.Machine == CannotTell {
		happened = "After the reboot (or on another machine)"
	}
	var parts []string
	for _, o := range []struct {
		outcome scenarios.Outcome
		words   string
	}{
		{scenarios.Survived, "kept"}, {scenarios.Lost, "lost"}, {scenarios.Changed, "changed"},
		{scenarios.Refused, "never written"}, {scenarios.Unknown, "unknown"},
	} {
		if n := c.Count(o.outcome); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o.words))
		}
	}
	what := "no place to compare"
	if len(c.Places) > 0 {
		what = fmt.Sprintf("of %d places, %s", len(c.Places), strings.Join(parts, ", "))
	}
	c.Summary = happened + ": " + what + "."
}
