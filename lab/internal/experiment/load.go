package experiment

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"persistencelab/probeimage/wire"
)

// LoadRecord is what became of a load: requests spread over instances, in the
// middle of which instances and services were killed or replaced.
type LoadRecord struct {
	Instances []string `json:"instances"`
	Requests  int      `json:"requests"`
	Served    int      `json:"served"` // every item's write was acknowledged
	Failed    int      `json:"failed"`
	Killed    []string `json:"killed,omitempty"`
	Replaced  []string `json:"replaced,omitempty"`
	// Errors are the words requests failed with, and how often.
	Errors []LoadError `json:"errors,omitempty"`
	Items  []LoadItem  `json:"items"`
}

// LoadError are words that requests failed with.
type LoadError struct {
	Words string `json:"words"`
	Times int    `json:"times"`
}

// LoadItem are one item's records: numbers as wire.Ranges writes them.
type LoadItem struct {
	Item           string `json:"item"`
	Acknowledged   string `json:"acknowledged"`
	Unacknowledged string `json:"unacknowledged,omitempty"` // sent, and nobody said that it was kept
}

// instance is one container under load. Whoever speaks to it, or puts another
// in its place, holds mu.
type instance struct {
	name    string
	mu      sync.Mutex
	session *session

	replaced chan struct{} // told when another container took its place
}

// happening is what happens in the middle of a load.
type happening struct {
	on   string
	kill bool
}

// backOff is what a client waits after a request failed, as real ones do.
const backOff = 20 * time.Millisecond

// load spreads requests over the instances, one at a time each. A happening
// begins after its share of the requests; while it goes on, as many again may
// be made and no more, so that all of them fall into the load.
func (r *runner) load(ctx context.Context, st PlannedStep, sr *StepRecord) error {
	l := &load{
		r: r, st: st, happenings: r.happenings(st),
		over:  make(chan struct{}),
		acked: map[string][]int{}, lost: map[string][]int{},
		rec: &LoadRecord{Requests: st.Requests},
	}
	l.turn = sync.NewCond(&l.mu)
	l.share = max(1, st.Requests/(len(l.happenings)+1))
	sr.Load = l.rec
	instances := map[string]*instance{}
	for _, name := range r.plan.Variant.Loaded(st.Step) {
		live := r.live[name]
		if live == nil || live.session == nil {
			return &fault{fmt.Errorf("nothing runs in container %s", name)}
		}
		instances[name] = &instance{name: name, session: live.session, replaced: make(chan struct{}, 1)}
		l.rec.Instances = append(l.rec.Instances, name)
	}
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(work, l.turn.Broadcast)()
	var wg sync.WaitGroup
	for _, in := range instances {
		wg.Add(1)
		go func() {
			defer wg.Done()
			l.requests(work, in)
		}()
	}
	err := l.happen(work, instances, sr)
	close(l.over)
	if err != nil {
		cancel()
	}
	wg.Wait()
	for _, name := range st.Items {
		l.rec.Items = append(l.rec.Items, LoadItem{Item: name, Acknowledged: wire.Ranges(l.acked[name]), Unacknowledged: wire.Ranges(l.lost[name])})
	}
	if err == nil {
		err = ctx.Err()
	}
	return err
}

func (r *runner) happenings(st PlannedStep) []happening {
	var all []happening
	var kill []string
	for _, name := range st.Kill {
		kill = append(kill, r.plan.Variant.Members(name)...)
	}
	kills := st.Kills
	if kills == 0 {
		kills = len(kill)
	}
	for i := 0; len(kill) > 0 && i < kills; i++ {
		all = append(all, happening{kill[i%len(kill)], true})
	}
	for _, name := range st.Rolled {
		for _, member := range r.plan.Variant.Members(name) {
			all = append(all, happening{member, false})
		}
	}
	return all
}

type load struct {
	r          *runner
	st         PlannedStep
	happenings []happening
	share      int // requests between two happenings
	over       chan struct{}

	mu          sync.Mutex
	turn        *sync.Cond // told when taken or done grows
	taken       int        // requests begun
	done        int        // happenings over
	acked, lost map[string][]int
	rec         *LoadRecord
}

// next gives the number of a request to make, or 0 when there are no more.
func (l *load) next(ctx context.Context) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		limit := l.st.Requests
		if l.done < len(l.happenings) {
			limit = min(limit, l.share*(l.done+2))
		}
		switch {
		case ctx.Err() != nil, l.taken == l.st.Requests:
			return 0
		case l.taken < limit:
			l.taken++
			l.turn.Broadcast()
			return l.st.firstSeq + l.taken
		}
		l.turn.Wait()
	}
}

// requests makes requests of one instance until there are no more.
func (l *load) requests(ctx context.Context, in *instance) {
	for {
		seq := l.next(ctx)
		if seq == 0 {
			return
		}
		served, dead := l.request(ctx, in, seq)
		switch {
		case served:
		case dead:
			// Nobody is sent to an instance that is gone until there is
			// another in its place.
			select {
			case <-in.replaced:
			case <-ctx.Done():
			case <-l.over:
				select {
				case <-in.replaced:
				default:
					return
				}
			}
		default:
			_ = sleep(ctx, backOff)
		}
	}
}

// request writes record seq of every item, and tells whether all of them were
// acknowledged, and whether the instance is gone.
func (l *load) request(ctx context.Context, in *instance, seq int) (served, dead bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	served = true
	for _, name := range l.st.Items {
		item := wireItem(l.r.plan.items[name], l.st.Nonces[name])
		item.Seq, item.Rows = seq, 1
		words := ""
		reply, err := in.session.client.Call(ctx, wire.Request{Op: wire.Write, Item: item})
		switch {
		case err != nil:
			words, dead = "the instance is gone", true
		case reply.Error != nil:
			words = reply.Error.Text
		case reply.Found == nil || !reply.Found.Present:
			words = "it was not there right after its write"
		}
		l.mu.Lock()
		if words == "" {
			l.acked[name] = append(l.acked[name], seq)
		} else {
			served = false
			l.lost[name] = append(l.lost[name], seq)
			l.failed(words)
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if served {
		l.rec.Served++
	} else {
		l.rec.Failed++
	}
	return served, dead
}

// failed counts words that a request failed with; of very many different ones
// the first twenty.
func (l *load) failed(words string) {
	for i := range l.rec.Errors {
		if l.rec.Errors[i].Words == words {
			l.rec.Errors[i].Times++
			return
		}
	}
	if len(l.rec.Errors) < 20 {
		l.rec.Errors = append(l.rec.Errors, LoadError{words, 1})
	}
}

// happen lets everything happen that is to happen meanwhile.
func (l *load) happen(ctx context.Context, instances map[string]*instance, sr *StepRecord) error {
	for i, h := range l.happenings {
		l.mu.Lock()
		for l.taken < l.share*(i+1) && l.taken < l.st.Requests && ctx.Err() == nil {
			l.turn.Wait()
		}
		l.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return err
		}
		proof, err := l.r.happen(ctx, h, instances[h.on])
		if err != nil {
			return fmt.Errorf("%s in the middle of the load: %w", h.on, err)
		}
		sr.Others = append(sr.Others, *proof)
		l.mu.Lock()
		l.done++
		if h.kill {
			l.rec.Killed = append(l.rec.Killed, h.on)
		} else {
			l.rec.Replaced = append(l.rec.Replaced, h.on)
		}
		l.turn.Broadcast()
		l.mu.Unlock()
	}
	return nil
}

// happen kills a service and starts it again, or puts a new container in the
// place of an instance.
func (r *runner) happen(ctx context.Context, h happening, in *instance) (*Proof, error) {
	var one StepRecord
	step := func(do func(*runner, context.Context, PlannedStep, *StepRecord) error) error {
		st := PlannedStep{name: r.plan.name(h.on)}
		st.On = h.on
		return do(r, ctx, st, &one)
	}
	proof := &Proof{On: h.on, Before: r.identity(h.on)}
	if in == nil {
		if err := step((*runner).kill); err != nil {
			return nil, err
		}
		proof.ExitCode = one.Proof.ExitCode
		err := step((*runner).start)
		proof.After = one.Proof.After
		return proof, err
	}
	if h.kill {
		if err := step((*runner).kill); err != nil { // whatever it is at
			return nil, err
		}
		proof.ExitCode = one.Proof.ExitCode
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := step((*runner).rm); err != nil {
		return nil, err
	}
	proof.OldIsGone = one.Proof.OldIsGone
	if err := step((*runner).run); err != nil {
		return nil, err
	}
	proof.After = one.Proof.After
	in.session = r.live[h.on].session
	select {
	case in.replaced <- struct{}{}:
	default:
	}
	return proof, nil
}

// loaded is what became of records that a load wrote.
type loaded struct {
	acked, unacked []int
	words          string // that a request failed with
}

func (l *loaded) add(it LoadItem) {
	acked, _ := wire.InRanges(it.Acknowledged)
	unacked, _ := wire.InRanges(it.Unacknowledged)
	l.acked, l.unacked = append(l.acked, acked...), append(l.unacked, unacked...)
}

// missing counts the acknowledged records that are not there, and the others
// that are.
func (l *loaded) missing(there []int) (missing, extra int) {
	slices.Sort(there)
	for _, n := range l.acked {
		if _, ok := slices.BinarySearch(there, n); !ok {
			missing++
		}
	}
	for _, n := range l.unacked {
		if _, ok := slices.BinarySearch(there, n); ok {
			extra++
		}
	}
	return missing, extra
}
