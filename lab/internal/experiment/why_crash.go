package experiment

import (
	"strings"

	"persistencelab/scenarios"
)

// whyHealth explains what a health check says by what it looks at.
func whyHealth(c scenarios.Container, s sight, o scenarios.Outcome) string {
	switch {
	case s.item.Kind != scenarios.Health || c.Health == nil || o == scenarios.Unknown:
		return ""
	case c.Health.Ready == "":
		return "the check asks whether the process answers, and nothing else"
	}
	return "the check looks at " + c.Health.Ready + " itself"
}

// whyCrash explains what a kill in the middle of a write left by the way of
// writing.
func whyCrash(s sight, o scenarios.Outcome) string {
	if s.crash == nil && s.kills == nil || o == scenarios.Unknown || s.seen == nil || s.seen.Found == nil || !s.seen.Found.Present {
		return ""
	}
	how := map[scenarios.WriteMode]string{
		scenarios.Plain:    "a rewrite in place empties the file first and fills it piece by piece",
		scenarios.Truncate: "a rewrite in place empties the file first and fills it piece by piece",
		scenarios.Fsync:    "a rewrite in place empties the file first; fsync at the end does not help a write that has no end",
		scenarios.Append:   "an append grows the file piece by piece",
		scenarios.Atomic:   "the new content is written beside the old and takes its name in one step",
	}[s.item.Mode]
	if s.item.Kind == scenarios.SQLite {
		how = "a transaction is in the database whole or not at all"
	}
	switch {
	case o == scenarios.Survived && s.kills != nil && s.item.Mode != scenarios.Atomic && s.item.Kind != scenarios.SQLite:
		return "no kill met it in the middle"
	case s.kills != nil && s.kills.Forgotten > 0, s.kills == nil && strings.HasPrefix(s.detail, "older"):
		return "what was shown first and saved later is known to the reader alone"
	}
	return how
}
