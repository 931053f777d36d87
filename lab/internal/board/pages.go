package board

import (
	"archive/zip"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

//go:embed pages.html.tmpl board.css board.js
var assets embed.FS

// pages are the board's pages for browsers: whole documents that work by
// forms. The script only follows events and takes the teacher's secret out of
// the address.
func (b *Board) pages(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", b.learnerPage)
	mux.HandleFunc("POST /join", b.joinForm)
	mux.HandleFunc("POST /answer", b.answerForm)
	mux.HandleFunc("GET /teacher", b.teacherPage)
	mux.HandleFunc("POST /teacher/login", b.loginForm)
	mux.HandleFunc("POST /teacher/do", b.teacher(b.actForm))
	mux.HandleFunc("POST /teacher/results", b.teacher(b.resultsForm))
	mux.HandleFunc("GET /teacher/attempts.zip", b.teacher(b.attemptsFile))
	for name, kind := range map[string]string{"board.css": "text/css; charset=utf-8", "board.js": "text/javascript; charset=utf-8"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
			content, _ := assets.ReadFile(name)
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(content)
		})
	}
}

// page is what the templates are given.
type page struct {
	*View
	Teacher bool
	Code    string // class code: for the teacher's page, or as the link gave it
	Address string // where learners go
	Alert   string // what was refused, and why
	Topic   *TopicView
	State   string // of the topic on the board; see Pulse

	// A learner's page.
	Learner string
	Mine    []*classroom.Round // of this topic, by round; nil: not answered
	Ready   bool               // teacher: what happened is known, and can be shown
}

// Answered is what the learner answered in the round that is on; nil for
// nothing.
func (p *page) Answered() *classroom.Round { return p.mine(p.Topic.Round) }

func (p *page) mine(round int) *classroom.Round {
	if round > len(p.Mine) {
		return nil
	}
	return p.Mine[round-1]
}

// Variants are the topic's questions, variant by variant, with all there is to
// show of each.
func (p *page) Variants() []shownVariant {
	var out []shownVariant
	for i, q := range p.Topic.Questions {
		if len(out) == 0 || out[len(out)-1].Name != q.Variant {
			v := shownVariant{Name: q.Variant}
			for _, b := range p.Topic.Built {
				if b.Variant == q.Variant {
					v.Built = b.Says
				}
			}
			out = append(out, v)
		}
		place := ""
		for _, it := range p.Topic.Items {
			if it.Name == q.Item {
				place = it.Place
			}
		}
		sq := shownQuestion{Question: q, Place: place, Field: fmt.Sprint("q", i), Choices: p.Topic.Choices}
		j := slices.IndexFunc(p.Topic.Happened, func(h Happened) bool { return h.Question == q })
		if j >= 0 {
			h := p.Topic.Happened[j]
			sq.Happened, sq.Truth = describe(h), h.Outcome()
		}
		for _, rb := range p.Topic.Bars {
			r := shownRound{Round: rb.Round, Learners: rb.Learners}
			mine := scenarios.Unknown
			if m := p.mine(rb.Round); m != nil {
				mine = answerTo(m, q)
			}
			for _, c := range rb.Bars[i].Counts {
				r.Bars = append(r.Bars, shownBar{
					Count: c, Of: max(rb.Learners, 1),
					Mine: c.Outcome == mine, True: sq.Truth != scenarios.Unknown && c.Outcome == sq.Truth,
				})
			}
			sq.Rounds = append(sq.Rounds, r)
		}
		if m := p.Answered(); m != nil {
			sq.Mine = answerTo(m, q)
		}
		v := &out[len(out)-1]
		v.Questions = append(v.Questions, sq)
	}
	return out
}

type shownVariant struct {
	Name      string
	Built     []string
	Questions []shownQuestion
}

type shownQuestion struct {
	classroom.Question
	Place    string
	Field    string
	Choices  []scenarios.Outcome
	Mine     scenarios.Outcome
	Rounds   []shownRound
	Happened string
	Truth    scenarios.Outcome
}

type shownRound struct {
	Round, Learners int
	Bars            []shownBar
}

type shownBar struct {
	Count
	Of         int
	Mine, True bool
}

// About is what the scenario does, paragraph by paragraph.
func (p *page) About() []string {
	var out []string
	for _, text := range strings.Split(strings.TrimSpace(p.Topic.About), "\n\n") {
		if text = strings.Join(strings.Fields(marks.Replace(text)), " "); text != "" {
			out = append(out, text)
		}
	}
	return out
}

// marks are an author's Markdown, which is shown as plain text.
var marks = strings.NewReplacer("**", "", "*", "", "`", "")

// Width is the bar's, in hundredths.
func (s shownBar) Width() int { return 100 * s.N / s.Of }

func answerTo(r *classroom.Round, q classroom.Question) scenarios.Outcome {
	for _, a := range r.Answers {
		if a.Question == q {
			return a.Predicted
		}
	}
	return scenarios.Unknown
}

// describe says what was seen: "lost (no such file)", "lost in 23 of 24 runs,
// unknown in 1".
func describe(h Happened) string {
	runs := 0
	for _, c := range h.Counts {
		runs += c.N
	}
	if len(h.Counts) == 1 {
		s := h.Counts[0].Outcome.String()
		if runs > 1 {
			s += fmt.Sprintf(" in all %d runs", runs)
		}
		if h.Detail != "" {
			s += " (" + h.Detail + ")"
		}
		return s
	}
	var parts []string
	for _, c := range h.Counts {
		parts = append(parts, fmt.Sprintf("%s in %d of %d runs", c.Outcome, c.N, runs))
	}
	return strings.Join(parts, ", ")
}

var templates = template.Must(template.New("pages.html.tmpl").Funcs(template.FuncMap{
	"clock":    clock,
	"short":    classroom.ShortSeal,
	"word":     choiceWord,
	"class":    func(o scenarios.Outcome) string { return o.String() },
	"question": func(s string) string { return strings.TrimSpace(s) },
	"plus":     func(a, b int) int { return a + b },
	"learners": func(n int) string {
		if n == 1 {
			return "1 learner"
		}
		return fmt.Sprintf("%d learners", n)
	},
}).ParseFS(assets, "pages.html.tmpl"))

// choiceWord is a choice as a learner reads it.
func choiceWord(o scenarios.Outcome) string {
	switch o {
	case scenarios.Survived:
		return "survives"
	case scenarios.Lost:
		return "is lost"
	case scenarios.Changed:
		return "comes back changed"
	case scenarios.Refused:
		return "can't even be written"
	}
	return o.String()
}

// show writes the page as it stands for whoever asks.
func (b *Board) show(w http.ResponseWriter, r *http.Request, name string, status int, alert string) {
	p := page{Alert: alert, Teacher: name == "teacher" || name == "login", Address: b.address(r)}
	session := b.session(r)
	b.store.read(func(st *state) {
		p.View = st.view()
		p.Topic = p.View.Topic(p.Current)
		p.State = st.pulse().State
		p.Ready = len(st.whatHappened(st.current)) > 0
		if name == "teacher" {
			p.Code = showCode(st.code)
		}
		if l := st.learner(session); l != nil && name == "learner" {
			p.Learner = l.attempt.Learner
			for n := 1; n <= st.current.round; n++ {
				mine, _ := l.round(st.current.Name, n)
				p.Mine = append(p.Mine, mine)
			}
		}
	})
	if name == "join" {
		p.Code = shorten(r.FormValue("code"))
	}
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, &p); err != nil {
		b.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes())
}

// no shows a page with what was refused.
func (b *Board) no(w http.ResponseWriter, r *http.Request, name string, err error) {
	var no *Refusal
	if !errors.As(err, &no) {
		no = refuse(Unavailable, "%v", err)
	}
	b.show(w, r, name, no.Status, no.Message)
}

func (b *Board) address(r *http.Request) string {
	if b.opts.Address != "" {
		return b.opts.Address
	}
	return "http://" + r.Host + "/"
}

func (b *Board) learnerPage(w http.ResponseWriter, r *http.Request) {
	if b.session(r) == "" {
		b.show(w, r, "join", http.StatusOK, "")
		return
	}
	b.show(w, r, "learner", http.StatusOK, "")
}

func (b *Board) joinForm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxAnswers)
	name := strings.TrimSpace(r.PostFormValue("name"))
	j := joining{Session: b.opts.Random(8), Learner: name, Identified: name != ""}
	if name == "" {
		j.Learner = classroom.Nickname(b.opts.Random)
	}
	if err := b.join(w, r, r.PostFormValue("code"), j); err != nil {
		b.no(w, r, "join", err)
		return
	}
	b.setCookie(w, learnerCookie, j.Session)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (b *Board) answerForm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxAnswers)
	session := b.session(r)
	if session == "" {
		b.no(w, r, "join", refuse(NotJoined, "join the class first"))
		return
	}
	round, _ := strconv.Atoi(r.PostFormValue("round"))
	in := Answers{Topic: r.PostFormValue("topic"), Hash: r.PostFormValue("hash"), Round: max(round, 1)}
	if t := b.View().Topic(in.Topic); t != nil {
		for i, q := range t.Questions {
			a := classroom.Answer{Question: q}
			value := r.PostFormValue(fmt.Sprint("q", i))
			if value == "" {
				continue
			}
			if err := a.Predicted.UnmarshalText([]byte(value)); err != nil {
				b.no(w, r, "learner", refuse(BadRequest, "%q is no answer", shorten(value)))
				return
			}
			if r.PostFormValue(fmt.Sprint("q", i, "-sure")) != "" {
				sure := true
				a.Sure = &sure
			}
			in.Answers = append(in.Answers, a)
		}
	}
	if _, err := b.answer(w, session, in); err != nil {
		b.no(w, r, "learner", err)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (b *Board) teacherPage(w http.ResponseWriter, r *http.Request) {
	if !b.isTeacher(b.cookie(r, teacherCookie)) {
		b.show(w, r, "login", http.StatusOK, "")
		return
	}
	b.show(w, r, "teacher", http.StatusOK, "")
}

func (b *Board) loginForm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxAnswers)
	// Nobody guesses 128 bits, so tries are not counted: a learner behind the
	// same address could lock the teacher out.
	cookie, ok := b.login(r.PostFormValue("secret"))
	if !ok {
		b.no(w, r, "login", refuse(NotTeacher, "this is not the teacher's secret"))
		return
	}
	b.setCookie(w, teacherCookie, cookie)
	http.Redirect(w, r, "/teacher", http.StatusSeeOther)
}

// teacher lets only the teacher through.
func (b *Board) teacher(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !b.isTeacher(b.cookie(r, teacherCookie)) {
			b.no(w, r, "login", refuse(NotTeacher, "that is for the teacher to do"))
			return
		}
		next(w, r)
	}
}

func (b *Board) actForm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxAnswers)
	action, topic := Action(r.PostFormValue("action")), r.PostFormValue("topic")
	round, noRound := strconv.Atoi(r.PostFormValue("round"))
	err := b.store.do(func(st *state) ([]event, error) {
		// A page that shows an earlier round must not end this one.
		if t := st.topic(topic); noRound == nil && t != nil && round != t.round {
			return nil, refuse(OutOfTurn, "the board is at round %d of %s already", t.round, t.Name)
		}
		return st.act(action, topic)
	})
	if err != nil {
		b.no(w, r, "teacher", err)
		return
	}
	http.Redirect(w, r, "/teacher", http.StatusSeeOther)
}

func (b *Board) resultsForm(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxReport)
	file, _, err := r.FormFile("report")
	if err != nil {
		b.no(w, r, "teacher", refuse(BadRequest, "no result file came along: choose one that lab run --format json wrote"))
		return
	}
	defer file.Close()
	rep, err := report.Read(file)
	if err != nil {
		b.no(w, r, "teacher", refuse(BadRequest, "%v", err))
		return
	}
	if err := b.store.do(func(st *state) ([]event, error) { return st.results(rep) }); err != nil {
		b.no(w, r, "teacher", err)
		return
	}
	http.Redirect(w, r, "/teacher", http.StatusSeeOther)
}

// attemptsFile gives the attempts as they are now, as `lab table` reads them.
func (b *Board) attemptsFile(w http.ResponseWriter, r *http.Request) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, a := range b.Export() {
		content, err := a.Encode()
		if err == nil {
			var f interface{ Write([]byte) (int, error) }
			if f, err = z.Create("attempts/" + a.FileName()); err == nil {
				_, err = f.Write(content)
			}
		}
		if err != nil {
			b.no(w, r, "teacher", err)
			return
		}
	}
	if err := z.Close(); err != nil {
		b.no(w, r, "teacher", err)
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(5 * time.Minute))
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", `attachment; filename="attempts.zip"`)
	_, _ = w.Write(out.Bytes())
}
