// Package board is the class's board: predictions come in over HTTP, stay
// hidden until the teacher reveals them, and end as the same attempt files
// that `lab learn` writes.
//
// What it promises:
//
//   - An answer that was acknowledged is on disk: it survives a kill -9 of the
//     board, and the loss of power as far as the disk keeps its word.
//   - How a round was answered leaves the board only once the teacher has
//     revealed that round. There is one function that gives it away (view.go),
//     and pages, API and events all go through it. Before, everybody, the
//     teacher too, sees how many have answered and nothing else.
//   - A learner answers a round once. The same answer sent again gets the same
//     receipt; another one is refused, and so is one that comes after the
//     reveal, each with a sentence that says so.
//   - The class code lets nobody do what the teacher does: that takes the
//     teacher's secret, of which the board keeps only a hash.
//   - Names and all other text that comes in are shown as text.
//
// What it does not promise: it speaks plain HTTP, so on a network that others
// listen to they can read along; and whoever knows the code can join twice
// under two names. The number who joined is on the board, and the teacher can
// close the door.
//
// # HTTP API
//
// JSON in and out. A refusal has a 4xx status and {"code": …, "message": …};
// the codes are the constants in refusal.go. After joining, the learner's
// session stands in "Authorization: Bearer …" (or the cookie a browser got).
//
//	POST /api/code      {"code"}: is it the class's?                  → {}
//	POST /api/join      {"code", "session", "learner", "identified"}  → View
//	GET  /api/board                                                   → View
//	POST /api/answers   {"topic", "hash", "round", "seal", "answers"} → Receipt
//	POST /api/attempt   an attempt file, with its results             → {"rounds": n}
//	GET  /events        server-sent events: a Pulse at every change
//
// Joining again with the same session is the same learner. round is the round
// that was looked at when the prediction was made, or 0 for the one that is
// open; seal is the client's own, by which a repetition is recognised and the
// results of an attempt find their round later.
//
// # The store
//
// One SQLite file with one table: the log of what happened, in order. The
// state is what reading the log gives, at a start as at any other time, so
// nothing can be in the one and not in the other.
package board
