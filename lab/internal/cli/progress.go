package cli

import (
	"fmt"
	"sync"

	"persistencelab/lab/internal/experiment"
)

// progress is one line on a terminal's stderr, rewritten as a run goes on;
// nothing anywhere else.
type progress struct {
	mu       sync.Mutex
	env      *Env
	on       bool
	finished int
	total    int
}

func newProgress(env *Env, total int) *progress {
	return &progress{env: env, total: total, on: env.StderrTTY && env.Getenv("TERM") != "dumb"}
}

// step shows which step of which variant begins.
func (p *progress) step(plan *experiment.Plan, st experiment.PlannedStep) {
	p.show(fmt.Sprintf("%s, %s: %s", plan.Scenario.Name, plan.Variant.Name, st.Verb))
}

func (p *progress) done() {
	p.mu.Lock()
	p.finished++
	p.mu.Unlock()
}

func (p *progress) show(text string) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := []rune(text); len(r) > 60 {
		text = string(r[:59]) + "…"
	}
	fmt.Fprintf(p.env.Stderr, "\r\x1b[K[%d/%d] %s", p.finished, p.total, text)
}

// end takes the line away.
func (p *progress) end() {
	if p.on {
		fmt.Fprint(p.env.Stderr, "\r\x1b[K")
	}
}
