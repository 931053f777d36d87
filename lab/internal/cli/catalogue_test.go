package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/engine/enginetest"
	"persistencelab/scenarios"
)

// TestCatalogueHolds runs the catalogue as lab run --all does, without the
// virtual machines: what a lesson expects is so, on every engine, and what an
// engine can't do is skipped, not unknown. Without --long it is the lessons
// without a store, once: the others have tests of their own.
func TestCatalogueHolds(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, target enginetest.Target) {
		d := newDesk(t, target)
		b := d.standBy()
		args, times := []string{"run", "-v"}, 1
		if enginetest.Long() {
			times = 3
		}
		for _, s := range scenarios.Catalogue() {
			if s.Machine == "" && (enginetest.Long() || len(s.Services) == 0) {
				args = append(args, s.Name)
			}
		}
		for range times {
			r := d.start(args...)
			_, ok := r.step(1)
			require.True(t, ok, r.shown())
			id := d.runID()
			<-r.done // it may take minutes
			res := r.end(t)
			require.Zero(t, res.code, res.stdout+res.stderr)
			d.requireNothingLeft(id, res.stderr)
			b.requireUntouched(res.stderr)
		}
	})
}
