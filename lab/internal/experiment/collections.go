package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/probeimage/wire"
)

// Collection is the ledger's kind for what a run puts into a store that is
// somebody's: a table, a hash, a bucket. The store's address stands in no file;
// the container that holds the run's network has it.
const Collection = "collection"

// collection is one of these: its name, the service that keeps it, and the
// container that knows where the service is.
type collection struct{ container, service, name string }

func (c collection) made() string { return c.container + "/" + c.service + "/" + c.name }

func madeCollection(name string) (c collection) {
	c.container, name, _ = strings.Cut(name, "/")
	c.service, c.name, _ = strings.Cut(name, "/")
	return c
}

func (c collection) String() string { return c.name + " in service " + c.service }

// drop is the command that removes it.
func (c collection) drop() []string { return []string{"/probe", string(wire.Drop), c.service, c.name} }

// collections are those the plan puts into a store that is somebody's.
func (p *Plan) collections(service string) []collection {
	if b := p.backings[service]; b == nil || !b.foreign {
		return nil
	}
	var all []collection
	for _, it := range p.Scenario.Data {
		name, _, _ := strings.Cut(p.items[it.Name].Path, "/")
		c := collection{p.name(networkName), service, name}
		if it.Service == service && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// dropCollections takes what a run put into a store that is somebody's out of
// it again.
func (r *runner) dropCollections(ctx context.Context) {
	for _, svc := range r.plan.Scenario.Services {
		for _, c := range r.plan.collections(svc.Name) {
			if r.mine[Made{Kind: Collection, Name: c.made()}] == 0 {
				continue
			}
			err := errors.New("the container with the network does not answer")
			if l := r.live[networkName]; l != nil && l.session != nil {
				var reply wire.Reply
				reply, err = l.session.client.Call(ctx, wire.Request{Op: wire.Drop, Item: &wire.Item{Service: c.service, Path: c.name}})
				if err == nil && reply.Error != nil {
					err = reply.Error
				}
			}
			if err != nil {
				r.rec.Cleanup.Left = append(r.rec.Cleanup.Left, fmt.Sprintf("%s: %v", c, err))
			} else {
				r.rec.Cleanup.Removed = append(r.rec.Cleanup.Removed, c.String())
			}
			_ = r.gone(Collection, c.made()) // with the container nobody knows its store any more
		}
	}
}

// DropCollections does so for a run whose lab is gone.
func DropCollections(ctx context.Context, eng engine.Engine, made []Made) (dropped, left []string) {
	for _, m := range made {
		if m.Kind != Collection {
			continue
		}
		c := madeCollection(m.Name)
		if err := c.dropBy(ctx, eng); err != nil {
			left = append(left, fmt.Sprintf("%s: %v", c, err))
		} else {
			dropped = append(dropped, c.String())
		}
	}
	return dropped, left
}

func (c collection) dropBy(ctx context.Context, eng engine.Engine) error {
	d, err := eng.Inspect(ctx, c.container)
	if err != nil {
		return err
	}
	tries := 1
	if d.State != "running" { // as after the host's restart
		if err := eng.Start(ctx, c.container); err != nil {
			return err
		}
		tries = 20
	}
	for {
		done, err := eng.Exec(ctx, c.container, c.drop()...)
		if err == nil && done.Exit != 0 {
			err = errors.New(strings.TrimSpace(done.Stdout + done.Stderr))
		}
		if tries--; err == nil || tries == 0 {
			return err
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}
