package experiment

import (
	"fmt"
	"strings"

	"persistencelab/probeimage/wire"
	"persistencelab/scenarios"
)

// fate is what became of an item whose write was killed.
type fate int

const (
	fateUnknown   fate = iota // could not be looked at
	fateNew                   // all that was being written is there
	fateOld                   // what was there before is there, untouched
	fateTorn                  // half of something
	fateLost                  // nothing is there
	fateForgotten             // the write had been acknowledged, and is not there
	fateOther                 // whole, and neither old nor new
)

// fateOf judges one crash by what was found afterwards.
func fateOf(it scenarios.Item, c Crash, found *wire.Found) fate {
	switch {
	case c.Error != nil, c.Where == nil, c.Old == nil, found == nil:
		return fateUnknown
	case !found.Present:
		return fateLost
	case found.Torn != "":
		return fateTorn
	case isNew(it, c, found):
		return fateNew
	case found.SHA256 == c.Old.SHA256 && c.Where.Acknowledged:
		return fateForgotten
	case found.SHA256 == c.Old.SHA256:
		return fateOld
	}
	return fateOther
}

// isNew: found is whole, ends with what was being written, and has all of it.
func isNew(it scenarios.Item, c Crash, found *wire.Found) bool {
	if len(found.Nonces) == 0 {
		return false
	}
	switch last := found.Nonces[len(found.Nonces)-1]; it.Kind {
	case scenarios.SQLite:
		return last == c.Nonce && found.Rows == c.Old.Rows+it.Rows
	case scenarios.Transcript, scenarios.Agent:
		return last == c.Nonce && found.Rows == c.Old.Rows+1
	case scenarios.Cache:
		return strings.HasPrefix(last, c.Nonce+"-")
	default:
		return last == c.Nonce
	}
}

// afterCrash is the outcome of an item whose last write was killed at a
// single point.
func (s *sight) afterCrash() (scenarios.Outcome, string) {
	c := *s.crash
	c.Old = s.wrote.Found
	where := placeInWrite(s.item, c.Where)
	switch fateOf(s.item, c, s.seen.Found) {
	case fateNew:
		return scenarios.Survived, s.withHost("the new content, whole; killed " + where)
	case fateOld:
		return scenarios.Survived, s.withHost("the old content, whole; killed " + where)
	case fateTorn:
		return scenarios.Changed, "torn: " + s.seen.Found.Torn + "; killed " + where
	case fateForgotten:
		return scenarios.Changed, forgotten(s.item) + "; killed " + where
	case fateUnknown:
		if c.Error != nil {
			return scenarios.Unknown, "the write could not be interrupted: " + c.Error.Text
		}
		return scenarios.Unknown, "it is not known where the write was"
	}
	return scenarios.Changed, s.difference()
}

func forgotten(it scenarios.Item) string {
	if it.Kind.InTurns() {
		return "older: the last answer was shown, and is not in the transcript"
	}
	return "older: the last write was acknowledged, and is gone"
}

// placeInWrite says where a write was when it ended.
func placeInWrite(it scenarios.Item, w *wire.Interrupted) string {
	if w == nil {
		return "somewhere in the write"
	}
	switch unit := "byte"; {
	case w.Delay > 0:
		return fmt.Sprintf("%.2f ms into the commit", float64(w.Delay)/1e6)
	case w.Byte == 0 && w.Stage == "before the write", w.Stage == "after the write":
		return w.Stage
	default:
		if it.Kind == scenarios.SQLite {
			unit = "row"
		}
		return fmt.Sprintf("at %s %d of %d", unit, w.Byte, w.Total)
	}
}

// tally counts a sweep.
func tally(it scenarios.Item, sweep []Crash) *Kills {
	k := &Kills{Kills: len(sweep)}
	for _, c := range sweep {
		if c.How == ByPodman {
			k.ByPodman++
		}
		switch fateOf(it, c, c.Found) {
		case fateNew:
			k.New++
		case fateOld:
			k.Old++
		case fateTorn:
			k.Torn++
		case fateLost:
			k.Lost++
		case fateForgotten:
			k.Forgotten++
		case fateOther:
			k.Other++
		default:
			k.Unknown++
		}
	}
	return k
}

// afterSweep is the outcome of an item after a sweep: the worst of all its
// crashes.
func (s *sight) afterSweep() (scenarios.Outcome, string) {
	k := s.kills
	detail := k.String() + s.firstBad()
	switch {
	case k.Lost > 0:
		return scenarios.Lost, detail
	case k.Torn+k.Forgotten+k.Other > 0:
		return scenarios.Changed, detail
	case k.Unknown > 0:
		return scenarios.Unknown, detail
	}
	return scenarios.Survived, detail
}

// firstBad tells of the first crash that left something that is neither old
// nor new.
func (s *sight) firstBad() string {
	for _, c := range s.sweep {
		switch f := fateOf(s.item, c, c.Found); f {
		case fateTorn:
			return fmt.Sprintf("; torn first where it was killed %s: %s", placeInWrite(s.item, c.Where), c.Found.Torn)
		case fateLost:
			return fmt.Sprintf("; lost first where it was killed %s", placeInWrite(s.item, c.Where))
		case fateForgotten:
			return fmt.Sprintf("; first where it was killed %s: %s", placeInWrite(s.item, c.Where), forgotten(s.item))
		case fateUnknown:
			if c.Error != nil {
				return "; " + c.Error.Text
			}
		}
	}
	return ""
}

// String is the count in words: "60 kills (6 by podman): 57 torn, 2 new, 1 old".
func (k *Kills) String() string {
	parts := []string{}
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(k.Torn, "torn")
	add(k.Lost, "lost")
	add(k.Forgotten, "forgotten")
	add(k.Other, "something else")
	add(k.New, "the new content")
	add(k.Old, "the old content")
	add(k.Unknown, "not known")
	return fmt.Sprintf("%d kills (%d of the container, by podman): %s", k.Kills, k.ByPodman, strings.Join(parts, ", "))
}
