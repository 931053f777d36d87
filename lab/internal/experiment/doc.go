// Package experiment is the core of the lab: it resolves a scenario into
// plans, carries a plan out on an engine, and judges what was recorded.
//
//	Scenario ─New→ Plan ─Run [I/O]→ Record ─Judge→ Verdicts
//
// It promises that a verdict is only ever made of what was observed. An item
// is "lost" when its place could be looked at and it was not there, after it
// had been seen there right after its write; what could not be looked at is
// unknown. Every event leaves proof in the record. Everything a run makes is
// written into its ledger before it is made, so that it can be removed after
// any end, the lab's own included.
//
// Only run.go and the verbs beside it touch an engine.
package experiment
