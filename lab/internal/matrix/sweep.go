package matrix

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/experiment"
)

// Table is a swept matrix.
type Table struct {
	Tool    string
	Started time.Time
	Took    time.Duration
	Engine  engine.Facts
	Mounts  []Kind
	Events  []Event
	Cells   []Cell // mount by mount, event by event
	// Compared is the engine of the table compared with; "" for none.
	Compared string

	records *spool
}

// Cell gives one cell.
func (t *Table) Cell(mount, event int) *Cell { return &t.Cells[mount*len(t.Events)+event] }

// Close lets go of the evidence.
func (t *Table) Close() error { return t.records.close() }

// Sweep is how a matrix is run.
type Sweep struct {
	Mounts  []Kind
	Events  []Event
	Jobs    int
	Repeat  int           // runs of each cell, 1 at least
	Timeout time.Duration // for one run
	Folder  string        // for the evidence, while the lab lives
	Plan    experiment.PlanOptions
	// CarryOut runs a plan: on the run's engine, or one with a store of its
	// own where the plan needs that.
	CarryOut func(context.Context, *experiment.Plan) *experiment.Record
	Facts    func() engine.Facts
	Now      func() time.Time
	// Begun and Done are told of each run; they may be called at once from
	// several goroutines.
	Begun func(Kind, Event)
	Done  func(c *Cell, left []string)
}

// Run sweeps the matrix. With an error and a table, the sweep was cut short:
// cells not reached are unknown.
func (s Sweep) Run(ctx context.Context) (*Table, error) {
	records, err := newSpool(s.Folder)
	if err != nil {
		return nil, err
	}
	t := &Table{Started: s.Now(), Mounts: s.Mounts, Events: s.Events, records: records}
	for _, k := range s.Mounts {
		for _, e := range s.Events {
			t.Cells = append(t.Cells, Cell{Mount: k.Name, Event: e.Name, Detail: "not run"})
		}
	}
	next := make(chan int)
	var wg sync.WaitGroup
	errs := make([]error, max(s.Jobs, 1))
	for w := range errs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range next {
				if errs[w] == nil {
					errs[w] = s.cell(ctx, t, i)
				}
			}
		}()
	}
	for i := range t.Cells {
		if ctx.Err() != nil {
			break
		}
		// Column by column: cells of one event cost alike, and a cut-off
		// sweep has whole columns.
		next <- i%len(s.Mounts)*len(s.Events) + i/len(s.Mounts)
	}
	close(next)
	wg.Wait()
	t.Engine = s.Facts()
	t.Took = s.Now().Sub(t.Started)
	if ctx.Err() != nil {
		return t, context.Cause(ctx)
	}
	return t, errors.Join(errs...)
}

// cell runs one cell.
func (s Sweep) cell(ctx context.Context, t *Table, i int) error {
	k, e, c := s.Mounts[i/len(s.Events)], s.Events[i%len(s.Events)], &t.Cells[i]
	for n := range max(s.Repeat, 1) {
		if ctx.Err() != nil {
			return nil
		}
		if s.Begun != nil {
			s.Begun(k, e)
		}
		sc := Scenario(k, e)
		o := s.Plan
		o.Number = i*max(s.Repeat, 1) + n + 1
		p, err := experiment.New(sc, &sc.Variants[0], o)
		if err != nil {
			return err
		}
		began := s.Now()
		rec := s.carryOut(ctx, p)
		c.Took += s.Now().Sub(began)
		c.add(Judge(p, rec, s.Facts(), e, k))
		at, err := t.records.add(rec)
		if err != nil {
			return err
		}
		c.evidence = append(c.evidence, at)
		if s.Done != nil {
			s.Done(c, rec.Cleanup.Left)
		}
	}
	return nil
}

func (s Sweep) carryOut(ctx context.Context, p *experiment.Plan) *experiment.Record {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("it took longer than %s", s.Timeout))
	defer cancel()
	return s.CarryOut(ctx, p)
}

// Compare joins another table's cells to the table's.
func (t *Table) Compare(other *Document) {
	t.Compared = other.Engine.Name + " " + other.Engine.Version
	said := map[[2]string]Outcome{}
	for _, c := range other.Cells {
		said[[2]string{c.Mount, c.Event}] = c.Outcome
	}
	for i := range t.Cells {
		c := &t.Cells[i]
		if o, ok := said[[2]string{c.Mount, c.Event}]; ok {
			c.Against = &o
		}
	}
}

// Count says how many cells have each outcome, and how many differ from the
// table compared with.
func (t *Table) Count() (byOutcome map[Outcome]int, differ int) {
	byOutcome = map[Outcome]int{}
	for i := range t.Cells {
		byOutcome[t.Cells[i].Outcome]++
		if t.Cells[i].Differs() {
			differ++
		}
	}
	return byOutcome, differ
}
