package drill

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// Checkpoints of a scenario's drill.
const (
	afterRestart = "after a restart"
	afterCrashes = "after the kills"
	afterReplace = "after the container was replaced"
	withoutState = "with the state taken away"
)

// checkItem is the health check as a data item of the drill.
const checkItem = "health-check-of-the-drill"

// Scenario is a drill of a scenario's data on one of its variants: the same
// items in the same mounts, with the drill's own steps.
type Scenario struct {
	Scenario *scenarios.Scenario // with the one variant; for experiment.New
	items    []scenarios.Item    // what is written and looked for
	killed   []string            // names of the items whose writes are killed
	state    []string            // names of the items the health check is to miss
	live     bool                // the health check asks for liveness only
	own      bool                // the scenario brought it
}

// OfScenario makes the drill of one variant. points is how many times each
// write is killed. The error says what kind of scenario can't be drilled.
func OfScenario(s *scenarios.Scenario, v *scenarios.Variant, points int) (*Scenario, error) {
	if s.Machine != "" {
		return nil, fmt.Errorf("scenario %s, %s: a drill needs containers, and this is about a virtual machine", s.Name, v.Name)
	}
	targets := v.Targets(scenarios.Step{})
	if len(targets) != 1 || len(v.Containers) != 1 {
		return nil, fmt.Errorf("scenario %s, %s: a drill is of one container, and here are %d", s.Name, v.Name, len(v.Containers))
	}
	c := v.Containers[0]
	if c.Remove {
		return nil, fmt.Errorf("scenario %s, %s: a container with rm: true is gone at its first stop: there is nothing to restart", s.Name, v.Name)
	}
	d := &Scenario{}
	var all, onDisk []string
	for _, it := range s.Data {
		if it.Seed || it.Kind == scenarios.Health || it.Kind == scenarios.Fact {
			continue
		}
		d.items = append(d.items, it)
		all = append(all, it.Name)
		if it.OnDisk() {
			onDisk = append(onDisk, it.Name)
			if it.Journal == "" && it.Synchronous == "" {
				d.killed = append(d.killed, it.Name)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("scenario %s writes nothing that could be lost", s.Name)
	}
	d.health(&c, onDisk)

	step := func(verb string, change func(*scenarios.Step)) scenarios.Step {
		st := scenarios.Step{Verb: verb, On: c.Name}
		if change != nil {
			change(&st)
		}
		return st
	}
	items := func(names ...string) func(*scenarios.Step) {
		return func(st *scenarios.Step) { st.Items = names }
	}
	read := func(label string, names []string) scenarios.Step {
		return step("read", func(st *scenarios.Step) { st.Label, st.Items = label, names })
	}
	steps := []scenarios.Step{step("run", nil), step("write", items(all...))}
	seen := all
	if c.Health != nil {
		steps = append(steps, step("write", items(checkItem)))
		seen = append(slices.Clone(all), checkItem)
		d.items = append(d.items, scenarios.Item{Name: checkItem, Kind: scenarios.Health, Path: c.Name, On: c.Name})
	}
	steps = append(steps, step("restart", nil), read(afterRestart, seen))
	if len(d.killed) > 0 {
		steps = append(steps, step("crash", func(st *scenarios.Step) { st.Amid, st.Point, st.Points = d.killed, "every", points }), read(afterCrashes, d.killed))
	}
	steps = append(steps, step("rm", nil), step("run", nil), read(afterReplace, seen))
	if c.Health != nil {
		steps = append(steps, step("erase", items(d.state...)), read(withoutState, []string{checkItem}))
	}

	drilled := *v
	drilled.Containers, drilled.Steps, drilled.Expect = []scenarios.Container{c}, steps, scenarios.Expectations{}
	copied := *s
	copied.Data, copied.Steps, copied.Expect, copied.Variants = d.items, steps, scenarios.Expectations{}, []scenarios.Variant{drilled}
	d.Scenario = &copied
	return d, nil
}

// health settles which check step 5 asks: the container's own, or else one
// for the first item that can't be made again by itself.
func (d *Scenario) health(c *scenarios.Container, onDisk []string) {
	d.own = c.Health != nil
	switch {
	case c.Health != nil && c.Health.Ready == "":
		d.live, d.state = true, onDisk
	case c.Health != nil:
		for _, it := range d.items {
			if it.Path == c.Health.Ready {
				d.state = append(d.state, it.Name)
			}
		}
	default:
		for _, it := range d.items {
			if it.OnDisk() && it.Kind != scenarios.Cache {
				c.Health, d.state = &scenarios.HealthCheck{Ready: it.Path}, []string{it.Name}
				break
			}
		}
	}
	if len(d.state) == 0 {
		c.Health = nil // nothing of the drill's that it could miss
	}
}

// Result makes the drill of what the runner recorded.
func (d *Scenario) Result(p *experiment.Plan, rec *experiment.Record, verdicts []experiment.Verdict) *Drill {
	out := newDrill("scenario " + p.Scenario.Name + ", " + p.Variant.Name)
	out.Fault = rec.Fault
	if out.Fault == "" && rec.Skipped != "" {
		out.Fault = rec.Skipped
	}
	at := map[string]map[string]experiment.Verdict{}
	for _, v := range verdicts {
		if at[v.Checkpoint] == nil {
			at[v.Checkpoint] = map[string]experiment.Verdict{}
		}
		at[v.Checkpoint][v.Item] = v
	}
	d.commands(out, p)
	d.deployed(out, rec)
	d.restarted(out, rec)
	for _, it := range d.items {
		if it.Kind == scenarios.Health {
			continue
		}
		d.compared(out, it, at[afterRestart][it.Name])
		d.replaced(out, it, at[afterReplace][it.Name])
	}
	d.killedAt(out, at[afterCrashes])
	d.readiness(out, at)
	d.losses(out, p, at)
	out.NotCovered = append(d.notCovered(), always()...)
	return out
}

// commands are what a person would type for each step.
func (d *Scenario) commands(out *Drill, p *experiment.Plan) {
	for _, st := range p.Steps {
		if len(st.Commands) == 0 {
			continue
		}
		last := st.Commands[len(st.Commands)-1]
		switch {
		case st.Verb == "run" && out.step(deploy).Command == "":
			out.step(deploy).Command = last
		case st.Verb == "restart":
			out.step(restart).Command = last
		case st.Verb == "rm":
			out.step(replace).Command = last + " && podman run … again"
		case st.Label == withoutState:
			out.step(ready).Command = last
		case st.Verb == "crash":
			out.step(kill).Command = "podman kill, and SIGKILL to the writing process"
		}
	}
}

func (d *Scenario) deployed(out *Drill, rec *experiment.Record) {
	for _, st := range rec.Steps {
		if st.Verb == "restart" {
			return
		}
		if st.Verb == "run" && st.Proof != nil && st.Proof.After != nil {
			out.saw(deploy, Passed, "container %s runs", shortID(st.Proof.After.ID))
		}
		for _, o := range st.Items {
			switch {
			case o.Health != nil && o.Health.Status == "healthy":
				out.saw(deploy, Passed, "its health check is healthy%s", behind(o.Health.Output))
			case o.Health != nil:
				out.saw(deploy, Failed, "its health check is %s with all the state there%s", o.Health.Status, behind(o.Health.Output))
			case o.Found != nil && o.Found.Present:
				out.saw(deploy, Passed, "%s was written, and read back", o.Item)
			case o.Error != nil:
				out.saw(deploy, Unknown, "%s could not be written: %s", o.Item, o.Error.Text)
			}
		}
	}
}

func (d *Scenario) restarted(out *Drill, rec *experiment.Record) {
	for _, st := range rec.Steps {
		if st.Verb != "restart" || st.Proof == nil || st.Proof.Before == nil || st.Proof.After == nil {
			continue
		}
		out.saw(restart, Passed, "the same container %s, another process: it started at %s, before at %s", shortID(st.Proof.After.ID),
			st.Proof.After.Started.Format("15:04:05.000"), st.Proof.Before.Started.Format("15:04:05.000"))
		return
	}
}

// verdictOf is how an outcome counts in a step.
func verdictOf(v experiment.Verdict) Verdict {
	switch {
	case v.Outcome == scenarios.Unknown:
		return Unknown
	case v.Outcome == scenarios.Survived, v.Outcome == scenarios.Refused:
		return Passed
	case v.Violation != "":
		return Failed
	}
	return Passed // lost, and that is in the list
}

func sentence(v experiment.Verdict) string {
	s := v.Item + ": " + v.Outcome.String()
	if v.Detail != "" {
		s += " (" + v.Detail + ")"
	}
	if v.Violation != "" {
		s += ": " + v.Violation
	}
	return s
}

func (d *Scenario) compared(out *Drill, it scenarios.Item, v experiment.Verdict) {
	if v.Item != "" {
		out.saw(compare, verdictOf(v), "%s", sentence(v))
	}
}

func (d *Scenario) replaced(out *Drill, it scenarios.Item, v experiment.Verdict) {
	if v.Item != "" {
		out.saw(replace, verdictOf(v), "%s", sentence(v))
	}
}

func (d *Scenario) killedAt(out *Drill, at map[string]experiment.Verdict) {
	if len(d.killed) == 0 {
		out.saw(kill, Skipped, "nothing is written to a disk in a way that could be interrupted")
		return
	}
	for _, name := range d.killed {
		v, ok := at[name]
		if !ok {
			continue
		}
		verdict := verdictOf(v)
		// Half of something is damage, unless all of it may go.
		it, _ := d.Scenario.Item(name)
		mayGo := it.AcceptableLoss != nil && it.AcceptableLoss.All || it.Rebuild == "auto"
		if verdict == Passed && !mayGo && v.Kills != nil && v.Kills.Torn+v.Kills.Forgotten+v.Kills.Other > 0 {
			verdict = Failed
		}
		out.saw(kill, verdict, "%s", sentence(v))
	}
}

func (d *Scenario) readiness(out *Drill, at map[string]map[string]experiment.Verdict) {
	if len(d.state) == 0 {
		out.saw(ready, Skipped, "there is no health check, and nothing on a disk that one could look at")
		return
	}
	v, ok := at[withoutState][checkItem]
	switch what := strings.Join(d.state, ", "); {
	case !ok:
	case v.Outcome == scenarios.Unknown:
		out.saw(ready, Unknown, "the health check was not answered: %s", v.Detail)
	case v.Outcome == scenarios.Changed:
		out.saw(ready, Passed, "without %s the health check says so: %s", what, v.Detail)
	case d.live:
		out.saw(ready, Failed, "without %s the health check is as green as before: it asks whether the process answers, and nothing else", what)
	default:
		out.saw(ready, Failed, "without %s the health check is as green as before", what)
	}
	if ok && !d.own {
		out.saw(ready, NotTried, "the scenario has no health check; this one was made for the drill")
	}
}

// losses lists what did not come back, each with the first event that took it.
func (d *Scenario) losses(out *Drill, p *experiment.Plan, at map[string]map[string]experiment.Verdict) {
	for _, it := range d.items {
		if it.Kind == scenarios.Health {
			continue
		}
		for _, when := range []struct{ label, event string }{{afterRestart, "restart"}, {afterCrashes, "kill in the middle of a write"}, {afterReplace, "rm and run"}} {
			v, ok := at[when.label][it.Name]
			if !ok || v.Outcome != scenarios.Lost && v.Outcome != scenarios.Changed {
				continue
			}
			l := Loss{What: it.Name, Where: experiment.WhereOf(p, it), When: when.event, Detail: v.Outcome.String() + ": " + v.Detail,
				Decided: it.AcceptableLoss != nil || it.Rebuild != ""}
			switch {
			case !l.Decided:
			case v.Violation != "":
				l.Detail += "; " + v.Violation
			case it.Rebuild == "auto":
				l.Accepted = "it is made again by itself"
			default:
				l.Accepted = "that much may be lost: " + experiment.LossWords(it.AcceptableLoss)
			}
			out.Losses = append(out.Losses, l)
			break
		}
	}
	sortLosses(out.Losses)
}

func sortLosses(ls []Loss) {
	slices.SortStableFunc(ls, func(a, b Loss) int { return cmp.Compare(weight(a), weight(b)) })
}

func weight(l Loss) int {
	switch {
	case l.Accepted == "" && l.Decided:
		return 0
	case l.Accepted == "":
		return 1
	}
	return 2
}

func (d *Scenario) notCovered() []string {
	var out []string
	for _, it := range d.items {
		if it.OnDisk() && !slices.Contains(d.killed, it.Name) {
			out = append(out, it.Name+" in the middle of a write: its database is kept open by process 1")
		}
	}
	return append(out, "your own program: the lab's probe wrote these items (lab drill --image drills an image of yours)")
}

// behind is what a command said, to stand behind a sentence; 4.3.1 does not
// keep it.
func behind(said string) string {
	if line, _, _ := strings.Cut(strings.TrimSpace(said), "\n"); line != "" {
		return ": " + line
	}
	return ""
}

func shortID(id string) string { return id[:min(len(id), 12)] }
