package picture

import (
	"fmt"

	"persistencelab/lab/internal/experiment"
	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// Where items lie, and what was seen of them.

// all are the lists of items in all places.
func (d *drawing) all() []*[]Item {
	var out []*[]Item
	for i := range d.containers {
		out = append(out, &d.containers[i].Memory, &d.containers[i].Layer)
	}
	for i := range d.stores {
		out = append(out, &d.stores[i].Items)
	}
	return out
}

// place is the list an item belongs to, seen from a container, and what that
// place is called; nil where the report does not say.
func (d *drawing) place(container, item string) (*[]Item, string) {
	for _, b := range d.built {
		if b.Name != container {
			continue
		}
		for _, pl := range b.Places {
			if pl.Item != item {
				continue
			}
			c := d.container(container)
			switch pl.Where {
			case "memory":
				if c.Machine {
					return &c.Memory, "its memory"
				}
				return &c.Memory, "the memory of its process"
			case "layer":
				return &c.Layer, "the writable layer"
			case "service":
				return d.kept(pl.Target)
			case "elsewhere":
				return nil, pl.Target
			}
			for _, m := range b.Mounts {
				for i := range d.stores {
					if m.Target == pl.Target && d.stores[i].key == storeKey(container, m) {
						return &d.stores[i].Items, d.stores[i].Name
					}
				}
			}
		}
	}
	return nil, ""
}

// kept is where a service keeps what it is given.
func (d *drawing) kept(service string) (*[]Item, string) {
	c := d.container(service)
	if c == nil {
		return nil, ""
	}
	for _, m := range c.Mounts {
		if m.Target == scenarios.ServiceData {
			s := &d.stores[m.Store]
			return &s.Items, s.Name
		}
	}
	return &c.Layer, "the writable layer of " + service
}

// look is a step about data items: a write, a checkpoint.
func (d *drawing) look(sr *experiment.StepRecord) []string {
	type group struct{ place, what string }
	var order []group
	names := map[group][]string{}
	for i := range sr.Items {
		o := &sr.Items[i]
		status, what := d.status(sr, o)
		items, place := d.place(sr.On, o.Item)
		if items != nil {
			put(items, Item{Name: o.Item, Status: status, New: true})
		}
		g := group{place, what}
		if names[g] == nil {
			order = append(order, g)
		}
		names[g] = append(names[g], o.Item)
	}
	var says []string
	for _, g := range order {
		s := fmt.Sprintf("%s: %s", list(names[g]), g.what)
		if g.place != "" {
			s = fmt.Sprintf("%s, in %s: %s", list(names[g]), g.place, g.what)
		}
		says = append(says, s+".")
	}
	if len(says) == 0 {
		says = []string{"Nothing was observed."}
	}
	return says
}

func put(items *[]Item, it Item) {
	for i := range *items {
		if (*items)[i].Name == it.Name {
			(*items)[i] = it
			return
		}
	}
	*items = append(*items, it)
}

// status is an item's after a look, and the same in words.
func (d *drawing) status(sr *experiment.StepRecord, o *experiment.Observation) (Status, string) {
	if sr.Verb != "read" {
		switch {
		case o.Error != nil && (o.Error.Code == wire.CodeReadOnly || o.Error.Code == wire.CodePermission || o.Error.Code == wire.CodeNoSpace):
			return Failed, "not accepted (" + o.Error.Text + ")"
		case o.Error != nil || o.Found == nil:
			return Unknown, "unknown"
		case o.Found.Present:
			return Written, map[bool]string{true: "written, and read back at once", false: "changed by hand, and read back at once"}[sr.Verb == "write"]
		}
		return Missing, "taken away"
	}
	for _, v := range d.results {
		if v.Scenario != d.rec.Scenario || v.Variant != d.rec.Variant || v.Checkpoint != sr.Label || v.Item != o.Item {
			continue
		}
		what := v.Outcome.String()
		if v.Detail != "" {
			what += " (" + v.Detail + ")"
		}
		if v.Judgement == experiment.Surprised || v.Judgement == experiment.Violated {
			what += ", expected " + v.Expected.String()
		}
		switch v.Outcome {
		case scenarios.Survived, scenarios.Lost, scenarios.Changed, scenarios.Refused:
			return Status(v.Outcome), what
		}
		return Unknown, what
	}
	switch {
	case o.Found == nil:
		return Unknown, "unknown"
	case o.Found.Present:
		return Present, "there"
	}
	return Missing, "not there"
}
