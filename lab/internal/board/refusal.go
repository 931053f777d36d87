package board

import (
	"fmt"
	"net/http"
)

// Refusal is an answer of the board that says no, and why: for people in
// Message, for programs in Code.
type Refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Status  int    `json:"-"` // of HTTP
}

func (r *Refusal) Error() string { return r.Message }

// Codes of refusals.
const (
	WrongCode   = "wrong code"    // no class has this code here
	DoorClosed  = "door closed"   // nobody can join any more
	NotJoined   = "not joined"    // the session is unknown
	NotTeacher  = "not teacher"   // that is the teacher's to do
	Late        = "late"          // the round is over
	Repeated    = "repeated"      // the round was answered, differently
	NoTopic     = "no such topic" // the board does not ask about that scenario
	OtherText   = "other text"    // the scenario has another hash here
	BadRequest  = "bad request"
	TooMany     = "too many" // slow down: see Retry-After
	OutOfTurn   = "out of turn"
	Unavailable = "unavailable" // the store could not be written
)

var statuses = map[string]int{
	WrongCode: http.StatusForbidden, DoorClosed: http.StatusForbidden, NotJoined: http.StatusUnauthorized,
	NotTeacher: http.StatusForbidden, Late: http.StatusConflict, Repeated: http.StatusConflict,
	NoTopic: http.StatusNotFound, OtherText: http.StatusConflict, BadRequest: http.StatusBadRequest,
	TooMany: http.StatusTooManyRequests, OutOfTurn: http.StatusConflict, Unavailable: http.StatusServiceUnavailable,
}

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...), Status: statuses[code]}
}
