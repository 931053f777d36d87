package picture

import (
	"fmt"
	"strings"

	"persistencelab/lab/internal/experiment"
)

// What an event did to containers and volumes, by its proof.

// event is a step that happened to containers, volumes, pods.
func (d *drawing) event(sr *experiment.StepRecord) []string {
	var says []string
	if sr.Proof != nil {
		on := sr.On
		if sr.Proof.On != "" {
			on = sr.Proof.On
		}
		says = append(says, d.proof(on, sr.Proof)...)
	}
	for i := range sr.Others {
		says = append(says, d.proof(sr.Others[i].On, &sr.Others[i])...)
	}
	if sr.Proof != nil && sr.Proof.Refused != "" {
		return says // nothing happened
	}
	// Whatever happened: nobody has looked since.
	if sr.Verb != "wait" {
		for _, items := range d.all() {
			for i := range *items {
				if it := &(*items)[i]; it.Status != Failed && it.Status != Missing {
					*it = Item{Name: it.Name, Status: Unseen}
				}
			}
		}
	}
	if len(says) == 0 {
		says = []string{"No container was seen to change."}
		switch {
		case d.machine() && sr.Verb == "snapshot":
			says = []string{"What is on the durable disks now is kept, under a name."}
		case d.machine() && sr.Verb == "rollback":
			says = []string{"The durable disks were put back to what they held at the snapshot."}
		case d.machine():
			says = []string{"The machine was not seen to change."}
		}
	}
	return says
}

// proof draws what one proof shows, and says it.
func (d *drawing) proof(on string, p *experiment.Proof) (says []string) {
	if p.Refused != "" {
		return []string{"Podman refused: " + p.Refused + ". Nothing happened."}
	}
	if p.Made != "" {
		says = append(says, "Podman made: "+p.Made+".")
	}
	c := d.container(on)
	if c == nil {
		for i := range d.stores {
			s := &d.stores[i]
			if _, source, ok := strings.Cut(s.key, " "); ok && p.OldIsGone != "" && strings.HasSuffix(p.OldIsGone, "-"+source) {
				s.State = Gone
			}
		}
		if p.OldIsGone != "" {
			says = append(says, "Asked for it, Podman says: "+p.OldIsGone+".")
		}
		return says
	}
	if c.Machine {
		return append(says, d.machineProof(c, p)...)
	}
	who := "Container " + c.Name
	if d.alone() {
		who = "The container"
	}
	switch {
	case p.OldIsGone != "":
		gone := "Its writable layer and the memory of its process went with it"
		if c.ReadOnly {
			gone = "The memory of its process went with it"
		}
		says = append(says, fmt.Sprintf("%s %s is gone (%s). %s.", who, c.ID, strings.SplitN(p.OldIsGone, ":", 2)[0], gone))
		c.State, c.Word, c.Process = Gone, "", false
	case p.After == nil:
	case p.Before == nil || p.Before.ID != p.After.ID:
		before := c.ID
		*c = Container{
			Name: c.Name, ReadOnly: c.ReadOnly, ID: short(p.After.ID), State: There, Word: p.After.State, New: true,
			Memory: c.Memory, Layer: c.Layer, Mounts: c.Mounts,
		}
		layer := "with a writable layer of its own"
		if c.ReadOnly {
			layer = "without a writable layer"
		}
		image := "from the image"
		if p.SameImage != nil {
			image = map[bool]string{true: "from the same image", false: "from another image"}[*p.SameImage]
		}
		s := fmt.Sprintf("%s %s is new: %s, %s.", who, c.ID, image, layer)
		if before != "" {
			s = fmt.Sprintf("%s %s is new, not %s again: %s, %s.", who, c.ID, before, image, layer)
		}
		says = append(says, s)
		c.Process = p.After.State == "running"
		c.Started = c.Process
		d.mount(c)
	default:
		c.Word, c.ID, c.State = p.After.State, short(p.After.ID), There
		same := fmt.Sprintf("%s is still %s, with its writable layer", strings.ToLower(who[:1])+who[1:], c.ID)
		if c.ReadOnly {
			same = fmt.Sprintf("%s is still %s", strings.ToLower(who[:1])+who[1:], c.ID)
		}
		was := c.Process
		c.Process = p.After.State == "running" || p.After.State == "paused"
		switch {
		case !c.Process:
			code := ""
			if p.ExitCode != nil {
				code = fmt.Sprintf(" (exit code %d)", *p.ExitCode)
			}
			says = append(says, fmt.Sprintf("Its process has ended%s; %s.", code, same))
		case !was, p.Before.Instance != "" && p.After.Instance != "" && p.Before.Instance != p.After.Instance:
			c.Started = true
			says = append(says, fmt.Sprintf("Another process runs; %s.", same))
		default:
			says = append(says, fmt.Sprintf("The same process, %s; %s.", c.Word, same))
		}
	}
	return says
}

// machineProof draws what one proof shows of a virtual machine, and says it.
func (d *drawing) machineProof(c *Container, p *experiment.Proof) []string {
	id := func(i *experiment.Identity) string { return i.ID[strings.LastIndex(i.ID, "-")+1:] } // …-machine-2
	switch {
	case p.After == nil:
		return nil
	case p.OldIsGone != "":
		c.Word, c.Process = p.After.State, false
		went := "Its memory"
		for i := range d.stores {
			if s := &d.stores[i]; !s.lasting() && s.State == There {
				s.State = Gone
				went += ", and what was on " + s.Name + ","
			}
		}
		return []string{fmt.Sprintf("The machine is %s (%s). %s went with it.", c.Word, p.OldIsGone, went)}
	}
	before := c.ID
	c.State, c.ID, c.Word = There, id(p.After), p.After.State
	d.mount(c)
	same := p.Before != nil && p.Before.ID == p.After.ID
	switch booted := p.Before == nil || p.Before.BootID != p.After.BootID; {
	case !booted:
		c.Process = true
		return []string{"The same boot, as its boot id says."}
	case same:
		c.Process, c.Started = true, true
		return []string{"Another boot, of the same machine: the boot id is a new one."}
	}
	c.Process, c.Started, c.New = true, true, true
	if before == "" {
		return []string{"A machine has booted."}
	}
	return []string{fmt.Sprintf("Machine %s has booted; it is not machine %s again.", c.ID, before)}
}
