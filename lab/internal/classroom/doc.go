// Package classroom holds what learners committed to and what they then saw:
// attempts, the files they are kept in, and the table a teacher makes of them.
// It runs nothing and knows no engine; the table is a pure function of
// attempts.
//
// # The attempt file
//
// One JSON document per learner and session, written in one step (a reader
// finds the old one or the new one, never half of it), version 1:
//
//	{
//	  "kind": "persistencelab attempt",
//	  "version": 1,
//	  "tool": "lab 0.1.0",
//	  "session": "5d0c…",            16 hex digits; the file is <learner>-<session>.json
//	  "learner": "amber-otter-3f2a", a nickname made of random bytes, or the name given
//	  "identified": true,            only where the learner gave a name
//	  "started": "2026-03-01T09:00:00Z",
//	  "rounds": [{
//	    "scenario": "three-mounts", "title": "…", "lesson": "…",
//	    "hash": "…",                 SHA-256 of the scenario file that was answered
//	    "round": 1,                  of this learner and scenario: 2 is after the discussion
//	    "answers": [{
//	      "variant": "no mount", "item": "note", "checkpoint": "after rm and run",
//	      "predicted": "survived",
//	      "sure": true,              absent: not said
//	      "result": {                absent until it is revealed
//	        "seen": "lost",          what the learner said; "unknown": could not tell; absent: not said
//	        "actual": "lost",        "unknown" counts as neither right nor wrong
//	        "expected": "lost",
//	        "verdict": "as expected",
//	        "detail": "no such file",
//	        "misconception": "layer-outlives-rm", "belief": "…", where the prediction was wrong
//	      }
//	    }],
//	    "hints": 1,
//	    "sealed": "2026-03-01T09:02:11Z", "seal": "…",
//	    "engine": {"name": "podman", "version": "4.3.1", …},
//	    "finished": "2026-03-01T09:03:40Z"
//	  }],
//	  "digest": "sha256:…"           always the last member
//	}
//
// A field this version does not know is passed over and stays covered by the
// digest; a version this lab does not know is refused. Nothing in a file names
// the user, the host, a path or the engine's address, unless the learner gave
// a name.
//
// # What the seal and the digest are worth
//
// The seal of a round is a SHA-256 over the session, the learner, the scenario
// and its hash, the predictions with how sure they were, the time, and the
// seal of the round before. It is written to the file before anything runs,
// and its first digits are shown: a prediction changed later has another seal.
// The digest is a SHA-256 over the whole document, its white space apart.
//
// Together they notice a file that was cut off, damaged or edited by hand, and
// a round taken out, put in or moved. They are not keyed: whoever writes a
// program can make a file that holds together, so they are no proof against
// cheating, as nothing can be that a learner makes on their own machine. Who
// needs that notes the shown seals before the run, or has the predictions come
// in on a machine of the teacher's (lab board), where the time is the board's.
package classroom
