package scenarios

import (
	"slices"

	"gopkg.in/yaml.v3"
)

// PlainVariant names the one variant of a scenario that declares none.
const PlainVariant = "plain"

// merge resolves a variant: the scenario's parts with the variant's over
// them. One rule everywhere: a key the variant gives replaces the scenario's
// whole value of that key; expectations are replaced item by item.
func (d *decoder) merge(s *Scenario, v Variant, own variantDraft, seen map[string]*yaml.Node) Variant {
	v.Containers = slices.Clone(s.Containers)
	if len(v.Containers) == 1 && seen != nil {
		v.Containers[0] = own.inline
	} else {
		d.noInline(seen, "the scenario has several containers: put it under containers: and the container's name")
	}
	if own.containers != nil {
		v.Containers = d.containers(own.containers, v.Containers, true)
	}

	v.Containers = instances(v.Containers)
	for _, svc := range s.Services {
		v.Containers = append(v.Containers, svc.container())
	}

	v.Volumes = slices.Clone(own.volumes)
	for _, volume := range s.Volumes {
		if !slices.ContainsFunc(own.volumes, func(o Volume) bool { return o.Name == volume.Name }) {
			v.Volumes = append(v.Volumes, volume)
		}
	}

	v.Steps = s.Steps
	if own.stepsAt != nil {
		v.Steps = own.steps
		settle(v.Steps, s.Data)
	}

	v.Expect = Expectations{}
	for _, from := range []Expectations{s.Expect, own.expect} {
		for checkpoint, items := range from {
			if v.Expect[checkpoint] == nil {
				v.Expect[checkpoint] = map[string]Expectation{}
			}
			for item, expectation := range items {
				v.Expect[checkpoint][item] = expectation
			}
		}
	}
	return v
}

// settle puts the items of each step in the scenario's order, and gives a
// bare write all the items that are written at all.
func settle(steps []Step, data []Item) {
	order := map[string]int{}
	for i, item := range data {
		order[item.Name] = i
	}
	for i := range steps {
		s := &steps[i]
		if s.Verb == "write" && len(s.Items) == 0 {
			for _, item := range data {
				if !item.Seed {
					s.Items = append(s.Items, item.Name)
				}
			}
		}
		for _, item := range data {
			if s.On == "" && slices.Contains(s.Amid, item.Name) {
				s.On = item.On
			}
		}
		slices.SortStableFunc(s.Items, func(a, b string) int { return order[a] - order[b] })
	}
}

// Container gives a container by name.
func (v Variant) Container(name string) (Container, bool) {
	for _, c := range v.Containers {
		if c.Name == name {
			return c, true
		}
	}
	return Container{}, false
}

// Targets gives the containers a step acts on, in order: the one its On
// names, else all that are not deferred.
func (v Variant) Targets(s Step) []string {
	if s.On != "" {
		return v.Members(s.On)
	}
	var names []string
	for _, c := range v.Containers {
		if !c.Deferred {
			names = append(names, c.Name)
		}
	}
	return names
}

// Each gives the containers a step happens to one after the other: its
// Targets, or none for a step about volumes, pods or everything.
func (v Variant) Each(s Step) []string {
	if scope := verbTable()[s.Verb].scope; scope == targets || scope == sharers {
		return v.Targets(s)
	}
	return nil
}

// Where gives the container in which a write or read looks at an item: the
// step's On, else the item's, else the only one that is not deferred. Parse
// has made sure that there is one; "" when there is not.
func (v Variant) Where(s Step, item Item) string {
	if s.On == "" && item.On != "" {
		return item.On
	}
	if names := v.Targets(s); len(names) == 1 {
		return names[0]
	}
	return ""
}

// Item gives an item by name.
func (s *Scenario) Item(name string) (Item, bool) {
	for _, item := range s.Data {
		if item.Name == name {
			return item, true
		}
	}
	return Item{}, false
}

// OnItems tells whether a step is about data items: everything else is about
// containers, volumes or pods.
func (s Step) OnItems() bool {
	return s.Verb == "write" || s.Verb == "read" || s.Verb == "edit" || s.Verb == "erase"
}

// ItemsOf gives the items a write, read, edit or erase step is about, in the scenario's
// order.
func (s *Scenario) ItemsOf(step Step) []Item {
	if step.Verb == "read" && len(step.Items) == 0 {
		return s.Data
	}
	var items []Item
	for _, name := range step.Items {
		if item, ok := s.Item(name); ok {
			items = append(items, item)
		}
	}
	return items
}
