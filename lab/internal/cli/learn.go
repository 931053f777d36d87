package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"persistencelab/bindings"
	"persistencelab/lab/engine"
	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/teach"
	"persistencelab/scenarios"
)

type learnOptions struct {
	engineFlags
	lesson   string
	all      bool
	again    bool
	fresh    bool
	plain    bool
	answers  string
	identify string
	folder   string
	timeout  time.Duration
	allow    []string
	board    string
	code     string
}

func newLearn(env *Env) *cobra.Command {
	var opts learnOptions
	cmd := &cobra.Command{
		Use:   "learn [LESSON|SCENARIO]",
		Short: "Predict, run, look, and have it explained",
		Long: "A lesson at the terminal: read, predict what survives, seal the predictions, watch the real\n" +
			"run, say what you see, and then have it explained. LESSON is a lesson's key or number, or a\n" +
			"scenario's name or file; without one, the next lesson you have not finished.\n" +
			"\n" +
			"It can be left at any moment (q, Ctrl-C, a power cut) and goes on there the next time. A wrong\n" +
			"prediction is not an error: the exit code is about what Podman did.\n" +
			"\n" +
			"Your answers are one JSON file per session. It carries a nickname made of random bytes, and\n" +
			"nothing of you or this machine, unless you give a name with --identify. Predictions are\n" +
			"sealed with a digest before anything runs: a file that was cut off or edited is noticed by\n" +
			"lab table. The digest is not keyed, so it is no proof against somebody who writes a program.\n" +
			"\n" + teach.AnswersHelp,
		Example: "  lab learn\n  lab learn 4\n  lab learn three-mounts --again      # a second round, after the discussion\n  lab learn --all --answers answers.yaml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runLearn(cmd.Context(), env, opts, args)
		},
	}
	opts.engineFlags.add(cmd)
	f := cmd.Flags()
	f.StringVar(&opts.lesson, "lesson", "", "the lesson, by its key or number (the same as naming it)")
	f.BoolVar(&opts.all, "all", false, "every lesson, one after the other")
	f.BoolVar(&opts.again, "again", false, "also what you have done before: a second round")
	f.BoolVar(&opts.fresh, "new", false, "begin as another learner (a shared machine)")
	f.BoolVar(&opts.plain, "plain", false, "for a screen reader: no drawing, no colour, answers with Enter")
	f.StringVar(&opts.answers, "answers", "", "file with the answers, instead of a person")
	f.StringVar(&opts.identify, "identify", "", "your name in the answers, instead of a nickname")
	f.StringVar(&opts.folder, "attempts", "", "folder for the answers (default: in the lab's state folder)")
	f.StringVar(&opts.board, "board", "", "address of the class's board: predictions go there before the run, results after it")
	f.StringVar(&opts.code, "code", "", "the class code that the board shows")
	f.DurationVar(&opts.timeout, "timeout", 2*time.Minute, "longest time for one variant")
	f.StringArrayVar(&opts.allow, "allow-host-path", nil, "host folder a scenario may bind-mount (repeatable)")
	cmd.MarkFlagsMutuallyExclusive("new", "identify")
	return cmd
}

func runLearn(ctx context.Context, env *Env, opts learnOptions, args []string) error {
	units, err := unitsFor(opts, args)
	if err != nil {
		return err
	}
	state, err := stateDir(env)
	if err != nil {
		return err
	}
	folder := filepath.Join(state, "learn")
	attempts := filepath.Join(folder, "attempts")
	if opts.folder != "" {
		attempts = opts.folder
	}
	name := ""
	if opts.identify != "" {
		if name, err = classroom.CleanName(opts.identify); err != nil {
			return &usageError{err: err, hint: `lab learn --identify "Your Name"`}
		}
	}
	console := teach.Console{Out: env.Stdout}
	if err := learner(env, opts, units, &console); err != nil {
		return err
	}
	progress, damaged, err := teach.LoadProgress(folder, name, env.Random)
	if err != nil {
		return err
	}
	lock, err := lockFolder(folder, true)
	if err != nil {
		return usagef("finish the other one, or: LAB_STATE_DIR=/some/folder lab learn", "another lab learn is going on in %s", folder)
	}
	defer lock.Close()
	if damaged != "" {
		fmt.Fprintf(env.Stderr, "lab: your progress could not be read and was put aside: %s\n", damaged)
	}
	if opts.fresh {
		progress.Anew(env.Random)
	}
	if units, err = next(units, progress, opts, args); err != nil || units == nil {
		if err == nil {
			fmt.Fprintln(env.Stderr, "lab: you have done all of this")
			fmt.Fprintln(env.Stderr, "lab: hint: lab learn --again does a second round")
		}
		return err
	}
	host := &learnLab{env: env, opts: opts}
	defer host.close(ctx)
	tutor := &teach.Tutor{
		Console: console, Open: host.open, Progress: progress, Attempts: attempts,
		Tool: "lab " + version, Now: env.Now, Random: env.Random,
	}
	if err := goToBoard(ctx, env, opts, tutor); err != nil {
		return err
	}
	score, err := tutor.Teach(ctx, units, opts.again)
	left := host.close(ctx)
	return learnt(env, score, left, err)
}

// learnt says how it ended.
func learnt(env *Env, score teach.Score, left []string, err error) error {
	if score.File != "" {
		fmt.Fprintf(env.Stderr, "\nlab: your answers are in %s\n", score.File)
	}
	for _, l := range left {
		fmt.Fprintf(env.Stderr, "lab: error: left behind: %s\n", l)
	}
	var answers *teach.AnswersError
	var interrupted *interruptedError
	switch {
	case errors.Is(err, teach.ErrQuit):
		fmt.Fprintln(env.Stderr, "lab: hint: lab learn goes on from here")
	case errors.As(err, &interrupted):
		fmt.Fprintln(env.Stderr, "lab: hint: lab learn goes on from here")
		return err
	case errors.As(err, &answers):
		return &usageError{err: err, hint: "lab learn --help shows an answers file"}
	case err != nil:
		return err
	}
	switch {
	case len(left) > 0:
		return &resultError{code: exitUnknown, hint: "lab clean"}
	case score.Unknown > 0:
		return &resultError{code: exitUnknown, hint: "what is unknown could not be observed: run again, or ask lab doctor"}
	case score.Surprised > 0:
		return &resultError{code: exitSurprised}
	}
	return nil
}

// learner finds who answers, and how it is shown to them.
func learner(env *Env, opts learnOptions, units []teach.Unit, c *teach.Console) error {
	c.Width = 80
	if env.Width > 0 {
		c.Width = min(max(env.Width, 40), 100)
	}
	c.Plain = opts.plain
	c.Unicode = unicodeLocale(env) && !opts.plain
	c.Color = env.StdoutTTY && !opts.plain && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"
	if opts.answers != "" {
		src, err := os.ReadFile(opts.answers)
		if err != nil {
			return &usageError{err: err, hint: "lab learn --help shows an answers file"}
		}
		answers, err := teach.ParseAnswers(opts.answers, src)
		if err == nil {
			for _, u := range units {
				if err = answers.Check(u.Scenarios); err != nil {
					break
				}
			}
		}
		if err != nil {
			return &usageError{err: err, hint: "lab learn --help shows an answers file"}
		}
		c.Keys, c.Echo = answers, true
		return nil
	}
	file, ok := env.Stdin.(*os.File)
	if !ok || !isTerminal(file) {
		return usagef("lab learn --answers FILE   # lab learn --help shows one", "a lesson needs a terminal to answer at, and stdin is none")
	}
	c.Keys, c.Echo = &keyboard{in: file, lines: opts.plain || env.Getenv("TERM") == "dumb"}, !opts.plain && env.Getenv("TERM") != "dumb"
	return nil
}

// unitsFor is what was asked for.
func unitsFor(opts learnOptions, args []string) ([]teach.Unit, error) {
	want := opts.lesson
	if len(args) > 0 {
		if want != "" {
			return nil, usagef("lab learn "+args[0], "--lesson and %s: name one", args[0])
		}
		want = args[0]
	}
	if opts.all && want != "" {
		return nil, usagef("lab learn --all", "--all is every lesson; name one or say --all, not both")
	}
	var all []teach.Unit
	for i, l := range scenarios.Lessons() {
		u := teach.Unit{Lesson: l}
		for _, s := range scenarios.Catalogue() {
			if s.Lesson == l.Key {
				u.Scenarios = append(u.Scenarios, s)
			}
		}
		if want == l.Key || want == strconv.Itoa(i+1) {
			return []teach.Unit{u}, nil
		}
		all = append(all, u)
	}
	if want == "" {
		return all, nil
	}
	if opts.lesson != "" {
		return nil, usagef("lab list", "there is no lesson %q", want)
	}
	s, err := loadScenario(want, opts.allow)
	if err != nil {
		return nil, err
	}
	return []teach.Unit{{Scenarios: []*scenarios.Scenario{s}}}, nil
}

// next leaves of the units what there is to do: without a name, the first
// lesson that is not finished. nil for nothing.
func next(units []teach.Unit, p *teach.Progress, opts learnOptions, args []string) ([]teach.Unit, error) {
	if opts.again {
		return units, nil
	}
	units = slices.DeleteFunc(slices.Clone(units), func(u teach.Unit) bool {
		return !slices.ContainsFunc(u.Scenarios, func(s *scenarios.Scenario) bool {
			return p.Done[s.Name] == 0 && (len(units) == 1 || !slices.Contains(p.Skipped, s.Name))
		})
	})
	if len(units) == 0 {
		return nil, nil
	}
	if !opts.all && opts.lesson == "" && len(args) == 0 && opts.answers == "" {
		units = units[:1]
	}
	return units, nil
}

// learnLab runs scenarios for a lesson, in one session that is opened with
// the first of them.
type learnLab struct {
	env     *Env
	opts    learnOptions
	session *session
	shell   experiment.Shell
	plans   int
	closed  bool
}

func (l *learnLab) open(ctx context.Context) (teach.Lab, error) {
	s, err := openSession(ctx, l.env, l.opts.engineFlags)
	if err != nil {
		return nil, err
	}
	l.session = s
	if dialed, err := dialOptions(l.env, l.opts.engineFlags, "", ""); err == nil {
		l.shell = experiment.NewShell(bindings.HostShell(dialed))
	}
	return l, nil
}

// close is safe to call twice; what is left is told once.
func (l *learnLab) close(ctx context.Context) []string {
	if l.session == nil || l.closed {
		return nil
	}
	l.closed = true
	return l.session.close(ctx, false)
}

// Facts implements teach.Lab.
func (l *learnLab) Facts() engine.Facts { return l.session.engine.Facts() }

// Plans implements teach.Lab.
func (l *learnLab) Plans(s *scenarios.Scenario) ([]*experiment.Plan, error) {
	o := l.session.planOptions(l.env)
	o.Number, o.Podman = l.plans, l.shell
	jobs, err := plans([]*scenarios.Scenario{s}, o)
	l.plans += len(jobs)
	return plansOf(jobs, s), err
}

// Lacks implements teach.Lab.
func (l *learnLab) Lacks(ctx context.Context, p *experiment.Plan) string {
	return l.session.lacks(ctx, p)
}

// Run implements teach.Lab.
func (l *learnLab) Run(ctx context.Context, p *experiment.Plan, progress func(*experiment.Plan, experiment.PlannedStep)) *experiment.Record {
	ctx, cancel := context.WithTimeoutCause(ctx, l.opts.timeout, fmt.Errorf("it took longer than %s (--timeout)", l.opts.timeout))
	defer cancel()
	return l.session.carryOut(ctx, p, experiment.Env{Now: l.env.Now, Ledger: l.session.ledger, Progress: progress, Machines: l.session.machines})
}

// keyboard gives the keys pressed at a terminal: one at a time, or, with
// lines, a line and Enter.
type keyboard struct {
	in      *os.File
	lines   bool
	pending []byte
}

// Keys implements teach.Keys.
func (k *keyboard) Keys(ctx context.Context, _ teach.Ask) (string, error) {
	restore := func() {}
	if !k.lines {
		var err error
		if restore, err = rawTerminal(k.in); err != nil {
			return "", err
		}
	}
	defer restore()
	for {
		if keys, ok, err := k.take(); ok || err != nil {
			return keys, err
		}
		type read struct {
			b   []byte
			err error
		}
		got := make(chan read, 1)
		go func() {
			b := make([]byte, 256)
			n, err := k.in.Read(b)
			got <- read{b[:n], err}
		}()
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case r := <-got:
			if r.err != nil && len(r.b) == 0 {
				return "", io.EOF // a terminal that went away gives EIO
			}
			k.pending = append(k.pending, r.b...)
		}
	}
}

// take gives the next key of what was read.
func (k *keyboard) take() (keys string, ok bool, err error) {
	if k.lines {
		i := slices.Index(k.pending, '\n')
		if i < 0 {
			return "", false, nil
		}
		line := string(k.pending[:i])
		k.pending = k.pending[i+1:]
		if line = trimLine(line); line == "" {
			line = "\n"
		}
		return line, true, nil
	}
	for len(k.pending) > 0 {
		c := k.pending[0]
		switch {
		case c == 3: // Ctrl-C, which a raw terminal hands over as a key
			return "", false, &interruptedError{signal: os.Interrupt}
		case c == 4: // Ctrl-D
			return "", false, io.EOF
		case c == 27: // a cursor or function key: what follows is no answer
			k.pending = nil
			return "", false, nil
		}
		k.pending = k.pending[1:]
		if c == '\r' {
			c = '\n'
		}
		if c == '\n' || c >= ' ' && c < 127 {
			return string(rune(c)), true, nil
		}
	}
	return "", false, nil
}
