package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/matrix"
)

type matrixOptions struct {
	engineFlags
	mounts, events string
	jobs, repeat   int
	timeout        time.Duration
	from, against  string
	output         output[*matrix.Table, matrix.Options]
	verbose        bool
	list           bool
}

func newMatrix(env *Env) *cobra.Command {
	var opts matrixOptions
	cmd := &cobra.Command{
		Use:   "matrix",
		Short: "Run every mount kind against every event: what survives what",
		Long: "Run every mount kind against every event on real Podman and show the table: what came back,\n" +
			"what did not, and what Podman would not do. Prunes run in a store of the lab's own; your\n" +
			"containers, volumes and images are not touched. The whole table is some 1400 runs; --mounts\n" +
			"and --events pick rows and columns, by name or with * and ?.",
		Example: "  lab matrix --mounts none,'vol-*' --events 'stop*,rm*'\n  lab matrix -o poster.html               # to print: A4, landscape\n" +
			"  lab matrix -o here.json\n  lab matrix --from here.json --against there.json -o poster.html   # marks the cells that differ\n  lab matrix --list                       # the names",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runMatrix(cmd.Context(), env, opts) },
	}
	opts.engineFlags.add(cmd)
	cmd.Flags().StringVar(&opts.mounts, "mounts", "", "mount kinds, a comma between them; * and ? fit (default: all)")
	cmd.Flags().StringVar(&opts.events, "events", "", "events, likewise (default: all)")
	cmd.Flags().IntVar(&opts.jobs, "jobs", min(2*runtime.NumCPU(), 8), "cells run side by side")
	cmd.Flags().IntVar(&opts.repeat, "repeat", 1, "runs of each cell: one whose runs differ varies")
	cmd.Flags().DurationVar(&opts.timeout, "timeout", 2*time.Minute, "longest time for one run")
	cmd.Flags().StringVar(&opts.from, "from", "", "json of a matrix: show that one, and run nothing")
	cmd.Flags().StringVar(&opts.against, "against", "", "json of another matrix: cells that differ from it are marked")
	opts.output.add(cmd, matrix.Formats())
	cmd.Flags().BoolVarP(&opts.verbose, "verbose", "v", false, "text: also what exactly each cell saw")
	cmd.Flags().BoolVar(&opts.list, "list", false, "list the mount kinds and events, and run nothing")
	return cmd
}

func runMatrix(ctx context.Context, env *Env, opts matrixOptions) error {
	format, err := opts.output.pick("lab matrix")
	if err != nil {
		return err
	}
	if opts.jobs < 1 || opts.repeat < 1 {
		return usagef("lab matrix --jobs 1 --repeat 1", "--jobs %d, --repeat %d: one at least", opts.jobs, opts.repeat)
	}
	if opts.from != "" && opts.list {
		return usagef("lab matrix --list", "--from or --list, not both")
	}
	mounts, err := matrix.SelectMounts(opts.mounts)
	if err != nil {
		return selectError(err, "mounts")
	}
	events, err := matrix.SelectEvents(opts.events)
	if err != nil {
		return selectError(err, "events")
	}
	if opts.list {
		return listMatrix(env, mounts, events)
	}
	var other *matrix.Document
	if opts.against != "" {
		if other, err = readMatrix("--against", opts.against); err != nil {
			return err
		}
	}
	if opts.from != "" {
		return showMatrix(env, opts, format, other)
	}
	s, err := openSession(ctx, env, opts.engineFlags)
	if err != nil {
		return err
	}
	table, swept := sweep(ctx, env, s, opts, mounts, events)
	if table == nil {
		s.close(ctx, false)
		return swept
	}
	defer table.Close()
	table.Tool = "lab " + version
	if other != nil {
		table.Compare(other)
	}
	err = writeMatrix(env, opts, format, table)
	left := s.close(ctx, false)
	for _, l := range left {
		fmt.Fprintf(env.Stderr, "lab: error: left behind: %s\n", l)
	}
	switch n, _ := table.Count(); {
	case swept != nil:
		return swept
	case err != nil:
		return err
	case len(left) > 0:
		return &resultError{code: exitUnknown, hint: "lab clean"}
	case n[matrix.Unknown] > 0:
		return &resultError{code: exitUnknown, hint: "run the unknown cells again: lab matrix --mounts … --events …"}
	}
	return nil
}

func selectError(err error, flag string) error {
	var unknown *matrix.SelectError
	if !errors.As(err, &unknown) {
		return err
	}
	hint := "lab matrix --list"
	if unknown.Nearest != "" {
		hint = fmt.Sprintf("did you mean %q? lab matrix --list shows all %s", unknown.Nearest, flag)
	}
	return &usageError{err: err, hint: hint}
}

func listMatrix(env *Env, mounts []matrix.Kind, events []matrix.Event) error {
	var out bytes.Buffer
	fmt.Fprintln(&out, "mount kinds")
	for _, k := range mounts {
		place := k.Place
		if place == "" {
			place = "memory"
		}
		fmt.Fprintf(&out, "  %-26s %-18s %s\n", k.Name, place, k.Doc)
	}
	group := ""
	for _, e := range events {
		if e.Group != group {
			group = e.Group
			fmt.Fprintf(&out, "events: %s\n", group)
		}
		fmt.Fprintf(&out, "  %-33s %s\n", e.Name, e.Doc)
	}
	_, err := env.Stdout.Write(out.Bytes())
	return err
}

func readMatrix(flag, file string) (*matrix.Document, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, usagef("lab matrix -o "+file+" writes one", "%s: %v", flag, err)
	}
	defer f.Close()
	doc, err := matrix.Read(f)
	if err != nil {
		return nil, usagef("lab matrix -o other.json writes one", "%s %s: %v", flag, file, err)
	}
	return doc, nil
}

// showMatrix writes a matrix that was run before.
func showMatrix(env *Env, opts matrixOptions, format matrix.Format, other *matrix.Document) error {
	if format.Name == "json" {
		return usagef("lab matrix --from "+opts.from+" -o poster.html", "--from %s is json as it is", opts.from)
	}
	doc, err := readMatrix("--from", opts.from)
	if err != nil {
		return err
	}
	table, err := doc.Table(opts.mounts, opts.events)
	if err != nil {
		return usagef("lab matrix --list", "--from %s: %v", opts.from, err)
	}
	if other != nil {
		table.Compare(other)
	}
	return writeMatrix(env, opts, format, table)
}

// sweep runs the cells. With an error and a table, it was cut short.
func sweep(ctx context.Context, env *Env, s *session, opts matrixOptions, mounts []matrix.Kind, events []matrix.Event) (*matrix.Table, error) {
	meter := &meter{env: env, total: len(mounts) * len(events) * opts.repeat, on: env.StderrTTY && env.Getenv("TERM") != "dumb", began: env.Now()}
	defer meter.end()
	return matrix.Sweep{
		Mounts: mounts, Events: events, Jobs: opts.jobs, Repeat: opts.repeat, Timeout: opts.timeout,
		Folder: s.folder, Plan: s.planOptions(env), Now: env.Now, Facts: s.engine.Facts,
		CarryOut: func(ctx context.Context, p *experiment.Plan) *experiment.Record {
			return s.carryOut(ctx, p, experiment.Env{Now: env.Now, Ledger: s.ledger})
		},
		Begun: meter.begun,
		Done: func(c *matrix.Cell, left []string) {
			meter.done()
			for _, l := range left {
				fmt.Fprintf(env.Stderr, "lab: error: %s, %s: not removed: %s\n", c.Mount, c.Event, l)
			}
		},
	}.Run(ctx)
}

func writeMatrix(env *Env, opts matrixOptions, f matrix.Format, t *matrix.Table) error {
	o := matrix.Options{Unicode: unicodeLocale(env), Verbose: opts.verbose}
	if opts.output.file == "" {
		o.Width = env.Width
	}
	return opts.output.write(env, f, t, o)
}

// meter is one line on a terminal's stderr: how far, and how long yet.
type meter struct {
	mu       sync.Mutex
	env      *Env
	on       bool
	finished int
	total    int
	began    time.Time
}

func (m *meter) begun(k matrix.Kind, e matrix.Event) {
	if !m.on {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	yet := ""
	if m.finished > 0 {
		took := m.env.Now().Sub(m.began)
		rest := time.Duration(float64(took) / float64(m.finished) * float64(m.total-m.finished))
		yet = ", " + rest.Round(time.Second).String() + " to go"
	}
	fmt.Fprintf(m.env.Stderr, "\r\x1b[K[%d/%d%s] %.30s × %.30s", m.finished, m.total, yet, k.Name, e.Name)
}

func (m *meter) done() {
	m.mu.Lock()
	m.finished++
	m.mu.Unlock()
}

func (m *meter) end() {
	if m.on {
		fmt.Fprint(m.env.Stderr, "\r\x1b[K")
	}
}
