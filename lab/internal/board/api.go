package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"persistencelab/lab/internal/classroom"
)

// Bounds of what is read from anybody, in bytes.
const (
	maxAnswers = 64 << 10
	maxReport  = 64 << 20 // the teacher's
)

func (b *Board) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/code", b.apiCode)
	mux.HandleFunc("POST /api/join", b.apiJoin)
	mux.HandleFunc("GET /api/board", b.apiBoard)
	mux.HandleFunc("POST /api/answers", b.apiAnswers)
	mux.HandleFunc("POST /api/attempt", b.apiAttempt)
	mux.HandleFunc("GET /events", b.events)
	b.pages(mux)
	return b.guard(mux)
}

// guard is what holds for every request.
func (b *Board) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // not no-referrer: forms would then come from origin "null"
		h.Set("Cache-Control", "no-store")
		if wait, ok := b.requests.take(addressOf(r)); !ok {
			b.refuse(w, r, tooMany(w, wait))
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead && !sameOrigin(r) {
			b.refuse(w, r, refuse(NotTeacher, "this request comes from another site's page"))
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(20 * time.Second))
		next.ServeHTTP(w, r)
	})
}

// sameOrigin tells whether a request that changes something comes from the
// board's own page, or from no page at all.
func sameOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host
}

// addressOf is who asks, for limits. Headers that claim another address are
// not believed.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func tooMany(w http.ResponseWriter, wait time.Duration) *Refusal {
	seconds := int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", fmt.Sprint(seconds))
	return refuse(TooMany, "too many requests: try again in %d s", seconds)
}

func (b *Board) apiJoin(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Code string `json:"code"`
		joining
	}
	if !b.body(w, r, maxAnswers, &in) {
		return
	}
	if err := b.join(w, r, in.Code, in.joining); err != nil {
		b.refuse(w, r, err)
		return
	}
	reply(w, b.View())
}

func (b *Board) join(w http.ResponseWriter, r *http.Request, code string, j joining) error {
	return b.guess(w, r, func() error {
		return b.store.do(func(st *state) ([]event, error) { return st.join(code, j, b.opts.Seats) })
	})
}

func (b *Board) apiCode(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Code string `json:"code"`
	}
	if !b.body(w, r, maxAnswers, &in) {
		return
	}
	err := b.guess(w, r, func() (err error) {
		b.store.read(func(st *state) { err = st.isCode(in.Code) })
		return err
	})
	if err != nil {
		b.refuse(w, r, err)
		return
	}
	reply(w, struct{}{})
}

// guess carries out what looks at a code. A wrong one costs a token, and
// without one none is looked at: a code is short, to be read from a wall.
func (b *Board) guess(w http.ResponseWriter, r *http.Request, look func() error) error {
	who := addressOf(r)
	if wait, yes := b.guesses.empty(who); yes {
		return tooMany(w, wait)
	}
	err := look()
	var no *Refusal
	if errors.As(err, &no) && no.Code == WrongCode {
		b.guesses.take(who)
	}
	return err
}

func (b *Board) apiBoard(w http.ResponseWriter, r *http.Request) {
	if b.session(r) == "" && !b.isTeacher(b.cookie(r, teacherCookie)) {
		b.refuse(w, r, refuse(NotJoined, "join the class first"))
		return
	}
	reply(w, b.View())
}

func (b *Board) apiAnswers(w http.ResponseWriter, r *http.Request) {
	var in Answers
	if !b.body(w, r, maxAnswers, &in) {
		return
	}
	receipt, err := b.answer(w, b.session(r), in)
	if err != nil {
		b.refuse(w, r, err)
		return
	}
	reply(w, receipt)
}

func (b *Board) answer(w http.ResponseWriter, session string, in Answers) (receipt *Receipt, err error) {
	if session == "" {
		return nil, refuse(NotJoined, "join the class first")
	}
	if wait, ok := b.answers.take(session); !ok {
		return nil, tooMany(w, wait)
	}
	round := 0
	err = b.store.do(func(st *state) (es []event, err error) {
		es, receipt, err = st.answer(session, in)
		if len(es) > 0 {
			round = es[0].Answer.Round
		}
		return es, err
	})
	if err == nil && receipt == nil {
		b.store.read(func(st *state) {
			r, _ := st.learner(session).round(in.Topic, round)
			receipt = receiptOf(r, false)
		})
	}
	return receipt, err
}

func (b *Board) apiAttempt(w http.ResponseWriter, r *http.Request) {
	session := b.session(r)
	if session == "" {
		b.refuse(w, r, refuse(NotJoined, "join the class first"))
		return
	}
	if wait, ok := b.answers.take(session); !ok {
		b.refuse(w, r, tooMany(w, wait))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, classroom.MaxFile))
	if err != nil {
		b.refuse(w, r, bodyError(err))
		return
	}
	a, err := classroom.Decode(body)
	if err != nil {
		b.refuse(w, r, refuse(BadRequest, "%v", err))
		return
	}
	n := 0
	err = b.store.do(func(st *state) (es []event, err error) {
		es, n, err = st.report(session, a)
		return es, err
	})
	if err != nil {
		b.refuse(w, r, err)
		return
	}
	reply(w, map[string]int{"rounds": n})
}

// events is the stream of pulses.
func (b *Board) events(w http.ResponseWriter, r *http.Request) {
	who := b.session(r)
	if t := b.cookie(r, teacherCookie); who == "" && b.isTeacher(t) {
		who = t
	}
	if who == "" {
		b.refuse(w, r, refuse(NotJoined, "join the class first"))
		return
	}
	pulses, ok := b.watch(who)
	if !ok {
		b.refuse(w, r, refuse(TooMany, "too many open pages"))
		return
	}
	defer b.unwatch(pulses)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	_ = out.SetReadDeadline(time.Time{})
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, err := io.WriteString(w, text)
		return err == nil && out.Flush() == nil
	}
	tell := func(p Pulse) bool {
		j, _ := json.Marshal(p)
		return send("data: " + string(j) + "\n\n")
	}
	var p Pulse
	b.store.read(func(st *state) { p = st.pulse() })
	// The first goes out also when nothing changed since: the page may be
	// older than the stream.
	if !tell(p) {
		return
	}
	alive := time.NewTicker(20 * time.Second) // so that neither side keeps a dead line
	defer alive.Stop()
	for ok := true; ok; {
		select {
		case p := <-pulses:
			ok = tell(p)
		case <-alive.C:
			ok = send(": still here\n\n")
		case <-r.Context().Done():
			return
		case <-b.quit:
			return
		}
	}
}

// session is the session of the learner who asks; "" for none that is known.
func (b *Board) session(r *http.Request) string {
	s, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		s = b.cookie(r, learnerCookie)
	}
	known := false
	b.store.read(func(st *state) { known = st.learner(s) != nil })
	if !known {
		return ""
	}
	return s
}

// Cookies do not know ports, so their names carry the board's id.
const (
	learnerCookie = "lab-learner-"
	teacherCookie = "lab-teacher-"
)

func (b *Board) cookie(r *http.Request, kind string) string {
	c, err := r.Cookie(kind + b.id())
	if err != nil {
		return ""
	}
	return c.Value
}

func (b *Board) setCookie(w http.ResponseWriter, kind, value string) {
	http.SetCookie(w, &http.Cookie{Name: kind + b.id(), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

func (b *Board) id() (id string) {
	b.store.read(func(st *state) { id = st.id })
	return id
}

// body reads a JSON body; false: the answer is given.
func (b *Board) body(w http.ResponseWriter, r *http.Request, limit int64, into any) bool {
	if t, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); t != "application/json" {
		b.refuse(w, r, refuse(BadRequest, "the body must be application/json"))
		return false
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit)).Decode(into); err != nil {
		b.refuse(w, r, bodyError(err))
		return false
	}
	return true
}

func bodyError(err error) *Refusal {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		return &Refusal{Code: BadRequest, Message: fmt.Sprintf("more than %d bytes", large.Limit), Status: http.StatusRequestEntityTooLarge}
	}
	return refuse(BadRequest, "the request can't be read: %v", err)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client's loss
}

// refuse says no: to programs in JSON.
func (b *Board) refuse(w http.ResponseWriter, _ *http.Request, err error) {
	var no *Refusal
	if !errors.As(err, &no) {
		no = refuse(Unavailable, "%v", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(no.Status)
	_ = json.NewEncoder(w).Encode(no)
}
