package board

import (
	"crypto/sha256"
	"regexp"
	"slices"
	"time"

	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

// Topic is one scenario that the class is asked about.
type Topic struct {
	Name           string                    `json:"name"`
	Title          string                    `json:"title"`
	Lesson         string                    `json:"lesson,omitempty"`
	Question       string                    `json:"question,omitempty"`
	About          string                    `json:"about,omitempty"` // what the scenario does, in paragraphs
	Items          []Item                    `json:"items,omitempty"`
	Built          []Built                   `json:"built,omitempty"` // how each variant is built
	Hash           string                    `json:"hash"`
	Questions      []classroom.Question      `json:"questions"`
	Choices        []scenarios.Outcome       `json:"choices"`
	Misconceptions []scenarios.Misconception `json:"misconceptions,omitempty"`
}

// Item is what a question is about.
type Item struct {
	Name  string `json:"name"`
	Place string `json:"place"` // where it is written
}

// Built says in words how the containers of a variant are built.
type Built struct {
	Variant string   `json:"variant"`
	Says    []string `json:"says"`
}

// Phase is where a topic stands in its round.
type Phase string

// Phases.
const (
	Predicting Phase = "predicting" // predictions come in; nothing is shown of them
	Shown      Phase = "shown"      // the round is over, its bars are shown
	Told       Phase = "told"       // what really happened stands beside them
)

// event is one line of the log. Which fields are set, its kind says.
type event struct {
	Kind  string    `json:"kind"`
	At    time.Time `json:"at"`
	Topic string    `json:"topic,omitempty"`

	Opening *opening     `json:"opening,omitempty"`
	Join    *joining     `json:"join,omitempty"`
	Session string       `json:"session,omitempty"`
	Answer  *answering   `json:"answer,omitempty"`
	Actual  *actual      `json:"actual,omitempty"`
	Rounds  []ownResults `json:"rounds,omitempty"`
	Secret  string       `json:"secret,omitempty"`
}

// Kinds of events.
const (
	opened    = "opened"   // the board; the first
	newSecret = "secret"   // the teacher's, anew
	joined    = "joined"   // a learner
	answered  = "answered" // a round, by a learner
	reported  = "reported" // a learner's results
	asked     = "asked"    // a topic is the one shown
	revealed  = "revealed" // a round
	again     = "again"    // the next round of a topic
	happened  = "happened" // the class's results of a topic are known
	told      = "told"     // … and shown
	closed    = "closed"   // the door
	reopened  = "reopened"
)

type opening struct {
	ID     string  `json:"id"`
	Code   string  `json:"code"`
	Secret string  `json:"secret"` // SHA-256 of the teacher's, hex
	Topics []Topic `json:"topics"`
}

type joining struct {
	Session    string `json:"session"`
	Learner    string `json:"learner"`
	Identified bool   `json:"identified,omitempty"`
}

type answering struct {
	Round   int                `json:"round"`
	OwnSeal string             `json:"own_seal,omitempty"`
	Answers []classroom.Answer `json:"answers"`
}

// actual is what really happened, for every question that was looked at.
type actual struct {
	Engine   *classroom.Engine    `json:"engine,omitempty"`
	Verdicts []experiment.Verdict `json:"verdicts"`
}

// ownResults are a learner's own results of a round that was sealed here.
type ownResults struct {
	OwnSeal  string             `json:"own_seal"`
	Engine   *classroom.Engine  `json:"engine,omitempty"`
	Hints    int                `json:"hints,omitempty"`
	Finished time.Time          `json:"finished"`
	Answers  []classroom.Answer `json:"answers"`
}

// state is what the log amounts to.
type state struct {
	id       string
	code     string
	secret   string // SHA-256, hex
	topics   []*topic
	current  *topic
	learners map[[32]byte]*learner // by the hash of the session, which is their key
	order    []*learner
	closed   bool
	version  int // of the teacher's page, its counts apart
}

type topic struct {
	Topic
	round    int
	phase    Phase
	shown    []int // rounds whose bars were revealed
	actual   *actual
	actualAt time.Time
}

type learner struct {
	attempt *classroom.Attempt    // its rounds have no results: those come at the export
	own     map[string]ownResults // by the client's seal
	seals   []string              // the client's, per round
}

func newState() *state { return &state{learners: map[[32]byte]*learner{}} }

func (st *state) topic(name string) *topic {
	for _, t := range st.topics {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func (st *state) learner(session string) *learner { return st.learners[sha256.Sum256([]byte(session))] }

// round is what the learner answered in a round of a topic; nil for nothing.
func (l *learner) round(topic string, n int) (*classroom.Round, string) {
	for i := range l.attempt.Rounds {
		if r := &l.attempt.Rounds[i]; r.Scenario == topic && r.Number == n {
			return r, l.seals[i]
		}
	}
	return nil, ""
}

// apply makes the state what it is after the event. Events were checked before
// they were written, so it can't fail.
func (st *state) apply(e event) {
	t := st.topic(e.Topic)
	switch e.Kind {
	case opened:
		st.id, st.code, st.secret = e.Opening.ID, e.Opening.Code, e.Opening.Secret
		for _, given := range e.Opening.Topics {
			st.topics = append(st.topics, &topic{Topic: given, round: 1, phase: Predicting})
		}
		st.current = st.topics[0]
	case newSecret:
		st.secret = e.Secret
	case joined:
		j := e.Join
		l := &learner{own: map[string]ownResults{}, attempt: classroom.New("lab board", j.Learner, j.Identified, e.At, func(int) string { return j.Session })}
		st.learners[sha256.Sum256([]byte(j.Session))] = l
		st.order = append(st.order, l)
	case answered:
		l := st.learner(e.Session)
		l.seals = append(l.seals, e.Answer.OwnSeal)
		l.attempt.Seal(classroom.Round{
			Scenario: t.Name, Title: t.Title, Lesson: t.Lesson, Hash: t.Hash, Number: e.Answer.Round, Answers: e.Answer.Answers,
		}, e.At)
	case reported:
		l := st.learner(e.Session)
		for _, r := range e.Rounds {
			l.own[r.OwnSeal] = r
		}
	case asked:
		st.current = t
	case revealed:
		t.phase = Shown
		t.shown = append(t.shown, t.round)
	case again:
		t.phase = Predicting
		t.round++
	case happened:
		t.actual, t.actualAt = e.Actual, e.At
	case told:
		t.phase = Told
	case closed, reopened:
		st.closed = e.Kind == closed
	}
	switch e.Kind {
	case joined, answered: // these are counted, and shown without a new page
	default:
		st.version++
	}
}

var (
	sessionForm = regexp.MustCompile(`^[0-9a-f]{16,64}$`)
	sealForm    = regexp.MustCompile(`^[0-9a-f]{0,64}$`)
)

func (st *state) isCode(code string) error {
	if !sameText(cleanCode(code), st.code) {
		return refuse(WrongCode, "no class here has the code %q", shorten(code))
	}
	return nil
}

// join decides on a learner who wants in. Coming back is not joining again.
func (st *state) join(code string, j joining, seats int) ([]event, error) {
	if !sessionForm.MatchString(j.Session) {
		return nil, refuse(BadRequest, "a session is 16 to 64 hex digits")
	}
	name, err := classroom.CleanName(j.Learner)
	if err != nil {
		return nil, refuse(BadRequest, "%v", err)
	}
	j.Learner = name
	if err := st.isCode(code); err != nil {
		return nil, err
	}
	if l := st.learner(j.Session); l != nil {
		if l.attempt.Learner != j.Learner {
			return nil, refuse(BadRequest, "this session joined under another name")
		}
		return nil, nil
	}
	switch {
	case st.closed:
		return nil, refuse(DoorClosed, "the teacher has closed the door: nobody can join any more")
	case len(st.order) >= seats:
		return nil, refuse(DoorClosed, "all %d seats are taken", seats)
	}
	return []event{{Kind: joined, Join: &j}}, nil
}

// Receipt acknowledges an answer: it is on disk.
type Receipt struct {
	Topic    string    `json:"topic"`
	Round    int       `json:"round"`
	Sealed   time.Time `json:"sealed"`
	Seal     string    `json:"seal"`
	Repeated bool      `json:"repeated,omitempty"` // it was here before
}

func receiptOf(r *classroom.Round, repeated bool) *Receipt {
	return &Receipt{Topic: r.Scenario, Round: r.Number, Sealed: r.Sealed, Seal: r.Seal, Repeated: repeated}
}

// Answers is a prediction as it comes in.
type Answers struct {
	Topic   string             `json:"topic"`
	Hash    string             `json:"hash"`
	Round   int                `json:"round"` // 0: the one that is open
	OwnSeal string             `json:"seal,omitempty"`
	Answers []classroom.Answer `json:"answers"`
}

// answer decides on a prediction. It gives either an event to write, or the
// receipt of the same answer sent before.
func (st *state) answer(session string, in Answers) ([]event, *Receipt, error) {
	l := st.learner(session)
	if l == nil {
		return nil, nil, refuse(NotJoined, "join the class first")
	}
	t := st.topic(in.Topic)
	if t == nil {
		return nil, nil, refuse(NoTopic, "the board does not ask about %q", shorten(in.Topic))
	}
	if in.Hash != t.Hash {
		return nil, nil, refuse(OtherText, "scenario %s is another text here than the one answered: use the same lab and file as the teacher", t.Name)
	}
	given, err := t.check(in.Answers)
	if err != nil {
		return nil, nil, err
	}
	if !sealForm.MatchString(in.OwnSeal) {
		return nil, nil, refuse(BadRequest, "a seal is up to 64 hex digits")
	}
	if in.OwnSeal != "" {
		// The same again, perhaps after the board or the network went away:
		// also when the round is over by now.
		if i := slices.Index(l.seals, in.OwnSeal); i >= 0 && l.attempt.Rounds[i].Scenario == t.Name {
			if r := &l.attempt.Rounds[i]; sameAnswers(r.Answers, given) {
				return nil, receiptOf(r, true), nil
			}
			return nil, nil, refuse(Repeated, "you have sent other answers under this seal: the first ones count")
		}
	}
	round := in.Round
	if round == 0 {
		round = t.round
	}
	if r, _ := l.round(t.Name, round); r != nil {
		if sameAnswers(r.Answers, given) {
			return nil, receiptOf(r, true), nil
		}
		return nil, nil, refuse(Repeated, "you have answered round %d already, at %s: the first answer counts", round, clock(r.Sealed))
	}
	if round != t.round || t.phase != Predicting {
		return nil, nil, refuse(Late, "round %d of %s is over: your answer came too late and does not count", round, t.Name)
	}
	return []event{{Kind: answered, Topic: t.Name, Session: session, Answer: &answering{Round: round, OwnSeal: in.OwnSeal, Answers: given}}}, nil, nil
}

// check gives the answers in the order of the questions.
func (t *topic) check(answers []classroom.Answer) ([]classroom.Answer, error) {
	if len(answers) == 0 {
		return nil, refuse(BadRequest, "nothing is answered")
	}
	given := map[classroom.Question]classroom.Answer{}
	for _, a := range answers {
		switch _, twice := given[a.Question]; {
		case !slices.Contains(t.Questions, a.Question):
			return nil, refuse(BadRequest, "%s does not ask about %s in %s at %q", t.Name, shorten(a.Item), shorten(a.Variant), shorten(a.Checkpoint))
		case twice:
			return nil, refuse(BadRequest, "%s in %s is answered twice", a.Item, a.Variant)
		case !slices.Contains(t.Choices, a.Predicted):
			return nil, refuse(BadRequest, "%s in %s: %q is no answer", a.Item, a.Variant, shorten(a.Predicted.String()))
		}
		a.Result = nil // what really happened is not the learner's to say here
		given[a.Question] = a
	}
	var out []classroom.Answer
	for _, q := range t.Questions {
		if a, ok := given[q]; ok {
			out = append(out, a)
		}
	}
	return out, nil
}

func sameAnswers(a, b []classroom.Answer) bool {
	return slices.EqualFunc(a, b, func(a, b classroom.Answer) bool {
		sure := (a.Sure == nil) == (b.Sure == nil) && (a.Sure == nil || *a.Sure == *b.Sure)
		return a.Question == b.Question && a.Predicted == b.Predicted && sure
	})
}

// report decides on a learner's own results. Only rounds that were sealed here
// before are taken.
func (st *state) report(session string, a *classroom.Attempt) ([]event, int, error) {
	l := st.learner(session)
	if l == nil {
		return nil, 0, refuse(NotJoined, "join the class first")
	}
	if a.Session != l.attempt.Session || a.Learner != l.attempt.Learner {
		return nil, 0, refuse(BadRequest, "this is another learner's attempt file")
	}
	var own []ownResults
	for _, r := range a.Rounds {
		if r.Finished.IsZero() || !slices.Contains(l.seals, r.Seal) {
			continue
		}
		own = append(own, ownResults{OwnSeal: r.Seal, Engine: r.Engine, Hints: r.Hints, Finished: r.Finished, Answers: r.Answers})
	}
	if len(own) == 0 {
		return nil, 0, refuse(OutOfTurn, "none of its rounds was sent to the board before it was run")
	}
	return []event{{Kind: reported, Session: session, Rounds: own}}, len(own), nil
}

// Action is something the teacher does to a topic, or to the board.
type Action string

// Actions.
const (
	Ask       Action = "ask"    // put the topic on the board
	Reveal    Action = "reveal" // end the round and show its bars
	Again     Action = "again"  // the next round, after discussion
	Tell      Action = "tell"   // show what really happened
	CloseDoor Action = "close"  // nobody joins any more
	OpenDoor  Action = "open"
)

// act decides on what the teacher wants done.
func (st *state) act(a Action, name string) ([]event, error) {
	switch a {
	case CloseDoor:
		return []event{{Kind: closed}}, nil
	case OpenDoor:
		return []event{{Kind: reopened}}, nil
	}
	t := st.topic(name)
	if t == nil {
		return nil, refuse(NoTopic, "the board does not ask about %q", shorten(name))
	}
	kind, ok := "", false
	switch a {
	case Ask:
		kind, ok = asked, true
	case Reveal:
		kind, ok = revealed, t.phase == Predicting
	case Again:
		kind, ok = again, t.phase == Shown
	case Tell:
		kind, ok = told, t.phase == Shown && len(st.whatHappened(t)) > 0
	default:
		return nil, refuse(BadRequest, "there is no action %q", shorten(string(a)))
	}
	if !ok {
		// Two windows, or a button pressed twice: nothing is lost by saying no.
		return nil, refuse(OutOfTurn, "%s is not possible now: round %d of %s is %s", a, t.round, t.Name, t.phase)
	}
	return []event{{Kind: kind, Topic: t.Name}}, nil
}

// results decides on a report of the teacher's: its verdicts on what is asked.
func (st *state) results(rep *experiment.Report) ([]event, error) {
	var events []event
	for _, t := range st.topics {
		if !slices.ContainsFunc(rep.Scenarios, func(s experiment.ScenarioSummary) bool { return s.Name == t.Name && s.Hash == t.Hash }) {
			continue
		}
		a := &actual{Engine: classroom.EngineOf(rep.Engine)}
		for _, v := range rep.Results {
			if v.Scenario == t.Name && slices.Contains(t.Questions, classroom.Question{Variant: v.Variant, Item: v.Item, Checkpoint: v.Checkpoint}) {
				a.Verdicts = append(a.Verdicts, v)
			}
		}
		if len(a.Verdicts) > 0 {
			events = append(events, event{Kind: happened, Topic: t.Name, Actual: a})
		}
	}
	if len(events) == 0 {
		return nil, refuse(OtherText, "nothing in this report is about what the board asks, by the same scenario text")
	}
	return events, nil
}

func clock(t time.Time) string { return t.Local().Format("15:04:05") }

func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}
