package teach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"persistencelab/lab/engine"
	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// Lab is where scenarios are really run.
type Lab interface {
	Facts() engine.Facts
	// Plans resolves every variant of a scenario, in order.
	Plans(s *scenarios.Scenario) ([]*experiment.Plan, error)
	// Lacks says what is missing here for a plan, as far as that is known
	// before it is run; "" for nothing.
	Lacks(ctx context.Context, p *experiment.Plan) string
	// Run carries one plan out; progress is told of each step as it begins.
	Run(ctx context.Context, p *experiment.Plan, progress func(*experiment.Plan, experiment.PlannedStep)) *experiment.Record
}

// Tutor leads one learner through scenarios.
type Tutor struct {
	Console  Console
	Open     func(ctx context.Context) (Lab, error) // called once, before the first scenario
	Progress *Progress
	Attempts string // folder of the attempt files
	Tool     string
	Now      func() time.Time
	Random   func(n int) string // n random bytes as hex
	// Sealed is told of each round that was sealed, before anything runs
	// (again when an interrupted one goes on), and Finished when its results are there. An error ends the lesson;
	// the round stays as it is in the file. Either may be nil.
	Sealed, Finished func(ctx context.Context, a *classroom.Attempt, r *classroom.Round) error

	lab     Lab
	attempt *classroom.Attempt
	score   Score
	// keysSaid are the choices whose keys have been explained.
	keysSaid string
	// legendSaid: the marks of the strip have been explained.
	legendSaid bool
}

// Score counts what one call of Teach went through.
type Score struct {
	Right, Wrong, NotCounted int // predictions
	Surprised, Unknown       int // verdicts, whatever was predicted
	File                     string
}

// ErrQuit: the learner ended the lesson. All there is, is kept.
var ErrQuit = errors.New("quit")

// errSkip: the learner skips this scenario; errNotHere: it can't be run here.
var (
	errSkip    = errors.New("skip")
	errNotHere = errors.New("not here")
)

// Unit is one lesson, or a scenario that belongs to none, with what is to be
// learnt of it.
type Unit struct {
	Lesson    scenarios.Lesson // zero for a scenario by itself
	Scenarios []*scenarios.Scenario
}

// Teach goes through the units: what is done already is passed over, unless
// again. It returns ErrQuit, the error of ctx, or what broke.
func (t *Tutor) Teach(ctx context.Context, units []Unit, again bool) (Score, error) {
	if err := t.resume(); err != nil {
		return t.score, err
	}
	for _, u := range units {
		todo := slices.DeleteFunc(slices.Clone(u.Scenarios), func(s *scenarios.Scenario) bool {
			return !again && t.Progress.Done[s.Name] > 0
		})
		if len(todo) == 0 && len(u.Scenarios) > 0 {
			continue
		}
		err := t.unit(ctx, u, todo)
		if errors.Is(err, errSkip) {
			continue
		}
		if err != nil {
			return t.score, err
		}
	}
	if t.attempt != nil {
		t.Progress.Attempt = ""
		if err := t.Progress.save(); err != nil {
			return t.score, err
		}
	}
	return t.score, t.Console.err
}

// resume takes up the session that goes on, if there is one.
func (t *Tutor) resume() error {
	if t.Progress.Attempt == "" {
		return nil
	}
	file := filepath.Join(t.Attempts, t.Progress.Attempt)
	a, err := classroom.ReadFile(file)
	var bad *classroom.FileError
	switch {
	case errors.As(err, &bad):
		// Nothing is added to a file that does not hold together, and it is
		// not thrown away either.
		t.Console.para(0, fmt.Sprintf("The answers of your last session can't be gone on with (%s); a new file is begun.", bad))
		t.Progress.Attempt = ""
		return t.Progress.save()
	case err != nil:
		return err
	}
	t.attempt, t.score.File = a, file
	return nil
}

func (t *Tutor) unit(ctx context.Context, u Unit, todo []*scenarios.Scenario) error {
	c := &t.Console
	if u.Lesson.Key != "" {
		c.heading("Lesson: " + u.Lesson.Title)
		c.prose(LessonText(u.Lesson.Key))
		if len(todo) == 0 {
			c.para(0, "(No scenario of this lesson is in the catalogue.)")
			return nil
		}
		if err := t.pause(ctx, "s skips the lesson, "); err != nil {
			return err
		}
	}
	here := false // there is something on the screen to read first
	for _, s := range todo {
		var err error
		if here {
			err = t.pause(ctx, "s skips the next, ")
		}
		if err == nil {
			err = t.scenario(ctx, s)
		}
		here = !errors.Is(err, errNotHere)
		if errors.Is(err, errSkip) || !here {
			c.line("")
			c.para(0, "Skipped: lab learn "+s.Name+" comes back to it.")
			t.Progress.Draft = nil
			if !slices.Contains(t.Progress.Skipped, s.Name) {
				t.Progress.Skipped = append(t.Progress.Skipped, s.Name)
			}
			err = t.Progress.save()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pause lets the learner read.
func (t *Tutor) pause(ctx context.Context, skip string) error {
	c := &t.Console
	c.line("")
	for {
		keys, err := c.ask(ctx, "Enter goes on, "+skip+"q quits: ", Ask{Moment: GoOn})
		if err != nil {
			return t.ended(err)
		}
		for _, k := range keys {
			switch k {
			case '\n', ' ':
				c.echo("")
				return nil
			case 's':
				c.echo("skipped")
				return errSkip
			case 'q':
				c.echo("")
				return ErrQuit
			}
		}
		c.echo("?")
	}
}

// ended makes of the end of the keys what a learner meant by it.
func (t *Tutor) ended(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrQuit
	}
	return err
}

// scenario is one scenario from its text to its explanation.
func (t *Tutor) scenario(ctx context.Context, s *scenarios.Scenario) error {
	c := &t.Console
	qs := Questions(s)
	if len(qs) == 0 {
		c.heading(s.Title)
		c.para(0, "There is nothing to predict in "+s.Name+": what it shows varies from run to run. lab run "+s.Name+" shows it.")
		return nil
	}
	if t.lab == nil {
		lab, err := t.Open(ctx)
		if err != nil {
			return err
		}
		t.lab = lab
	}
	plans, err := t.lab.Plans(s)
	if err != nil {
		return err
	}
	c.heading(s.Title)
	round := t.unfinished(s)
	if round == nil {
		// Nobody should predict what can't be seen here.
		if qs = t.possible(ctx, plans, qs); len(qs) == 0 {
			return errNotHere
		}
	}
	c.prose(s.About)
	c.line("")
	t.data(s)
	if s.Question != "" {
		c.line("")
		c.para(0, s.Question)
	}
	if round == nil {
		if round, err = t.predict(ctx, s, plans, qs); err != nil {
			return err
		}
	} else {
		c.line("")
		c.para(0, fmt.Sprintf("Your predictions are sealed since %s (seal %s); now for the run.", round.Sealed.Local().Format("15:04:05"), classroom.ShortSeal(round.Seal)))
	}
	if t.Sealed != nil {
		if err := t.Sealed(ctx, t.attempt, round); err != nil {
			return err
		}
	}
	return t.reveal(ctx, s, plans, round)
}

// possible leaves of the questions those about variants that this host has all
// for, and says what is missing for the others.
func (t *Tutor) possible(ctx context.Context, plans []*experiment.Plan, qs []classroom.Question) []classroom.Question {
	var reasons []string
	lacking := map[string][]string{} // variants, by reason
	for _, p := range plans {
		name := p.Variant.Name
		asked := slices.ContainsFunc(qs, func(q classroom.Question) bool { return q.Variant == name })
		reason := t.lab.Lacks(ctx, p)
		if reason == "" || !asked {
			continue
		}
		if lacking[reason] == nil {
			reasons = append(reasons, reason)
		}
		lacking[reason] = append(lacking[reason], name)
		qs = slices.DeleteFunc(slices.Clone(qs), func(q classroom.Question) bool { return q.Variant == name })
	}
	for _, reason := range reasons {
		if len(qs) > 0 {
			reason = report.List(lacking[reason]) + ": " + reason
		}
		t.Console.para(0, "Not here: "+reason+".")
	}
	return qs
}

func (t *Tutor) data(s *scenarios.Scenario) {
	width := 0
	for _, it := range s.Data {
		width = max(width, report.Columns(it.Name))
	}
	for _, it := range s.Data {
		t.Console.label("  "+report.Pad(it.Name, width)+"  ", string(it.Kind)+": "+experiment.PlaceOf(it))
	}
}

// unfinished is the round of this scenario that was sealed and not revealed.
func (t *Tutor) unfinished(s *scenarios.Scenario) *classroom.Round {
	if t.attempt == nil {
		return nil
	}
	for i := len(t.attempt.Rounds) - 1; i >= 0; i-- {
		if r := &t.attempt.Rounds[i]; r.Scenario == s.Name && r.Hash == s.Hash && r.Finished.IsZero() {
			return r
		}
	}
	return nil
}

// seal puts the predictions into the attempt's file, on disk, before anything
// runs.
func (t *Tutor) seal(s *scenarios.Scenario, d *Draft) (*classroom.Round, error) {
	if t.attempt == nil {
		t.attempt = classroom.New(t.Tool, t.Progress.Learner, t.Progress.Identified, t.Now(), t.Random)
	}
	round := t.attempt.Seal(classroom.Round{
		Scenario: s.Name, Title: s.Title, Lesson: s.Lesson, Hash: s.Hash, Number: t.Progress.Done[s.Name] + 1,
		Answers: d.Answers, Hints: d.Hints,
	}, t.Now())
	if err := t.keep(); err != nil {
		return nil, err
	}
	t.Progress.Attempt, t.Progress.Draft = filepath.Base(t.score.File), nil
	return round, t.Progress.save()
}

func (t *Tutor) keep() error {
	if err := os.MkdirAll(t.Attempts, 0o755); err != nil {
		return fmt.Errorf("the folder for your answers: %w", err)
	}
	file, err := t.attempt.WriteFile(t.Attempts)
	if err == nil {
		t.score.File = file
	}
	return err
}

// hint shows the next hint.
func (t *Tutor) hint(s *scenarios.Scenario, d *Draft) {
	hints := Hints(s)
	if d.Hints >= len(hints) {
		t.Console.para(4, "There is no further hint.")
		return
	}
	t.Console.label("    hint: ", hints[d.Hints])
	d.Hints++
}

// Hints are a scenario's hints, from gentle to plain: its own, or the two that
// help everywhere.
func Hints(s *scenarios.Scenario) []string {
	if len(s.Hints) > 0 {
		return s.Hints
	}
	return []string{
		"Ask of each item not what path it was written to, but where its bytes lie: in memory, in the container's own layer, or in something that was only mounted.",
		"Memory ends with the process. The writable layer ends with the container. What is mounted ends when somebody removes it.",
	}
}

func onOff(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// checkpoints of some questions, in order.
func checkpoints(qs []classroom.Question) []string {
	var cs []string
	for _, q := range qs {
		if !slices.Contains(cs, q.Checkpoint) {
			cs = append(cs, q.Checkpoint)
		}
	}
	return cs
}

func sureWord(sure *bool) string {
	switch {
	case sure == nil:
		return ""
	case *sure:
		return ", sure"
	}
	return ", unsure"
}

// normal takes out of a podman line what differs from run to run, so that two
// variants can be compared.
func normal(p *experiment.Plan, line string) string {
	line = strings.ReplaceAll(line, p.Prefix, "lab")
	for _, st := range p.Steps {
		for _, n := range st.Nonces {
			line = strings.ReplaceAll(line, n, "NONCE")
		}
	}
	return strings.ReplaceAll(line, p.Folder, "LAB")
}
