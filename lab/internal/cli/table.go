package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/classroom"
)

type tableOptions struct {
	output    output[*classroom.Table, classroom.Options]
	by        string
	anonymous bool
	reveal    bool
	watch     bool
	roster    string
	run       string
}

// watchEvery is how often --watch looks at the files.
const watchEvery = time.Second

func newTable(env *Env) *cobra.Command {
	var opts tableOptions
	cmd := &cobra.Command{
		Use:   "table [FILE|FOLDER…]",
		Short: "Make the class table of learners' answers",
		Long: "Make the class table of the files that lab learn and lab board write: what was predicted, what\n" +
			"came back, before and after a second round, the beliefs behind wrong predictions, what was\n" +
			"wrong though sure, and which lesson to repeat. Of a folder, every .json file below it is\n" +
			"read; without an argument, your own answers on this machine.\n" +
			"\n" +
			"What it shows is fit for the projector: learners are numbers, and a cell that stands for\n" +
			"fewer than " + fmt.Sprint(classroom.Enough) + " learners is hidden, as is what it could be computed from (--anonymous=false\n" +
			"shows all). What came back, and so what was right, is shown with --reveal only. csv and the\n" +
			"gradebooks are for the teacher: they have every answer, and a gradebook has the names.\n" +
			"\n" +
			"A file that is cut off, was edited, or is something else is named and left out, and the exit\n" +
			"code is 3: the table is not of the whole class. An outcome that could not be observed\n" +
			"(unknown) counts as neither right nor wrong.\n" +
			"\n" +
			"html draws the picture of each scenario, how its containers are built. --run FILE names what lab\n" +
			"run --format json wrote: with --reveal, the picture then shows that run, step by step.\n" +
			"\n" +
			"Gradebooks: whole numbers from 0 to 100 for done, right before and right after. Moodle finds a\n" +
			"user by the column you pick under \"Map from\"; Canvas by ID, SIS User ID, SIS Login ID or\n" +
			"name. --roster FILE says who a nickname is: a csv whose header names learner and some of\n" +
			strings.TrimPrefix(classroom.RosterColumns, "learner, ") + ".",
		Example: "  lab table answers/\n  lab table --reveal --by scenario answers/\n  lab table --watch -o class.html answers/\n  lab table --reveal --run run.json -o class.html answers/\n  lab table --format gradebook-moodle --roster roster.csv -o grades.csv answers/",
		RunE: func(cmd *cobra.Command, args []string) error {
			return runTable(cmd.Context(), env, opts, args)
		},
	}
	f := cmd.Flags()
	opts.output.add(cmd, classroom.Formats())
	f.StringVar(&opts.by, "by", string(classroom.ByLearner), "what the rows are: learner or scenario")
	f.BoolVar(&opts.anonymous, "anonymous", true, "numbers instead of names, and nothing about fewer than 3 learners")
	f.BoolVar(&opts.reveal, "reveal", false, "show what came back, and so what was right")
	f.BoolVar(&opts.watch, "watch", false, "follow the files and folders, and write the table again when they change")
	f.StringVar(&opts.run, "run", "", "report of lab run (json), for the pictures of the html page")
	f.StringVar(&opts.roster, "roster", "", "csv file that says who a nickname is in the gradebook")
	return cmd
}

func runTable(ctx context.Context, env *Env, opts tableOptions, paths []string) error {
	format, err := opts.output.pick("lab table")
	if err != nil {
		return err
	}
	write := classroom.Options{
		View: classroom.View{Anonymous: opts.anonymous, Reveal: opts.reveal},
		By:   classroom.Rows(opts.by), Unicode: unicodeLocale(env), Width: min(env.Width, 160),
	}
	if write.By != classroom.ByLearner && write.By != classroom.ByScenario {
		return usagef("lab table --by scenario", "--by %q: rows are by learner or by scenario", opts.by)
	}
	if opts.roster != "" {
		f, err := os.Open(opts.roster)
		if err != nil {
			return &usageError{err: err}
		}
		defer f.Close()
		if write.Roster, err = classroom.ReadRoster(f); err != nil {
			return &usageError{err: err, hint: "lab table --help"}
		}
	}
	if opts.watch {
		write.Refresh = 5
	}
	if write.Pictures, err = classPictures(opts); err != nil {
		return err
	}
	if len(paths) == 0 {
		state, err := stateDir(env)
		if err != nil {
			return err
		}
		paths = []string{filepath.Join(state, "learn", "attempts")}
		if _, err := os.Stat(paths[0]); err != nil {
			return usagef("lab learn", "there are no answers of yours yet")
		}
	}
	var reader classroom.Reader
	attempts, bad := reader.Read(paths)
	if err := nothing(attempts, bad, paths, opts.watch); err != nil {
		return err
	}
	if err := writeTable(env, opts, format, write, attempts, bad); err != nil {
		return err
	}
	if opts.watch {
		return watchTable(ctx, env, opts, format, write, &reader, paths)
	}
	for _, err := range bad {
		fmt.Fprintf(env.Stderr, "lab: error: left out: %s\n", err)
	}
	if len(bad) > 0 {
		return &resultError{code: exitUnknown, hint: "ask for these files again; the table is without them"}
	}
	return nil
}

// nothing is the error of having no attempt at all; while watching, they may
// still come.
func nothing(attempts []*classroom.Attempt, bad []error, paths []string, watch bool) error {
	var file *classroom.FileError
	switch {
	case len(attempts) > 0:
		return nil
	case len(bad) == 1 && errors.As(bad[0], &file) && file.Fault == classroom.Unreadable:
		return &usageError{err: bad[0], hint: "lab table FOLDER, with the files that lab learn wrote"}
	case len(bad) > 0:
		return nil // named below an empty table
	case watch:
		return nil
	}
	return usagef("lab table FOLDER, with the files that lab learn wrote", "no answers in %s", strings.Join(paths, ", "))
}

func writeTable(env *Env, opts tableOptions, format classroom.Format, write classroom.Options, attempts []*classroom.Attempt, bad []error) error {
	table := classroom.Make(attempts)
	write.LeftOut = bad
	if strings.HasPrefix(format.Name, "gradebook-") {
		if n := len(table.Unmatched(write.Roster)); n > 0 {
			fmt.Fprintf(env.Stderr, "lab: %d learners have a nickname that the gradebook does not know\n", n)
			fmt.Fprintln(env.Stderr, "lab: hint: lab table --roster FILE says who they are (lab table --help)")
		}
	}
	return opts.output.write(env, format, table, write)
}

// watchTable writes the table again whenever the files have changed, until it
// is interrupted.
func watchTable(ctx context.Context, env *Env, opts tableOptions, format classroom.Format, write classroom.Options, reader *classroom.Reader, paths []string) error {
	env.ending("the table stays as it was written last")
	shown := reader.State()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(watchEvery):
		}
		attempts, bad := reader.Read(paths)
		if now := reader.State(); now == shown {
			continue
		} else {
			shown = now
		}
		if opts.output.file == "" && env.StdoutTTY && env.Getenv("TERM") != "dumb" {
			fmt.Fprint(env.Stdout, "\x1b[H\x1b[2J")
		}
		if err := writeTable(env, opts, format, write, attempts, bad); err != nil {
			return err
		}
	}
}
