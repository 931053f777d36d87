// Package cli is the lab's command line: a file per command, each a thin
// layer of flags over a function of (ctx, env, options).
//
// What a reader can rely on:
//
//   - Results go to stdout, everything else to stderr.
//   - An error is one line "lab: error: …", lower case, no full stop; a hint
//     after it, "lab: hint: …", is something to type.
//   - Progress is shown on long work, only on a terminal. NO_COLOR and a
//     stdout that is no terminal turn colour off.
//   - The exit code comes from one table (exit.go).
package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"persistencelab/lab/internal/experiment"
)

// Env is everything a command knows of the world.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
	Now    func() time.Time
	// Random gives n random bytes as hex digits.
	Random func(n int) string

	StdoutTTY, StderrTTY bool
	Width                int // columns of stdout; 0 when it is no terminal

	leftMu sync.Mutex
	left   func() []experiment.Made // see quitting
	atEnd  string                   // see ending
}

// Version of the lab, set by the linker for a release.
var version = "dev"

// Main runs the command line and gives the exit code.
func Main(args []string) int {
	env := Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Getenv: os.Getenv, Now: time.Now, Random: randomHex,
		StdoutTTY: term.IsTerminal(int(os.Stdout.Fd())), StderrTTY: term.IsTerminal(int(os.Stderr.Fd())),
	}
	if env.StdoutTTY {
		env.Width, _, _ = term.GetSize(int(os.Stdout.Fd()))
	}
	ctx, quit := withSignals(context.Background(), env.sayEnding)
	root := newRoot(&env)
	root.SetArgs(args)
	code := make(chan int, 1)
	go func() { code <- finish(&env, ctx, root.ExecuteContext(ctx)) }()
	select {
	case c := <-code:
		return c
	case <-quit:
		env.sayLeft()
		return exitInterrupted
	}
}

// withSignals cancels the context at the first SIGINT, SIGTERM or SIGHUP, so
// that what was made is removed; at a second one quit is closed: whoever
// pressed Ctrl-C twice waits no longer.
func withSignals(parent context.Context, say func()) (_ context.Context, quit <-chan struct{}) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	// A reader of stdout or stderr that has gone is an error of the write,
	// not the end of the lab before it has cleaned up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	second := make(chan struct{})
	go func() {
		s := <-signals
		cancel(&interruptedError{signal: s})
		say()
		<-signals
		close(second)
	}()
	return ctx, second
}

// quitting registers what a run has made and not removed yet, for whoever
// quits at once.
func (env *Env) quitting(left func() []experiment.Made) {
	env.leftMu.Lock()
	defer env.leftMu.Unlock()
	env.left = left
}

// ending registers what an interrupt sets off, where that is not the removal
// of what a run made.
func (env *Env) ending(what string) {
	env.leftMu.Lock()
	defer env.leftMu.Unlock()
	env.atEnd = what
}

func (env *Env) sayEnding() {
	env.leftMu.Lock()
	defer env.leftMu.Unlock()
	fmt.Fprintf(env.Stderr, "lab: interrupted: %s (interrupt again to quit at once)\n", cmp.Or(env.atEnd, "removing what this run made"))
}

// sayLeft says what is left when the lab quits before its cleanup is done.
func (env *Env) sayLeft() {
	env.leftMu.Lock()
	defer env.leftMu.Unlock()
	fmt.Fprintln(env.Stderr, "lab: error: quit before the cleanup was done")
	if env.left != nil {
		for _, m := range env.left() {
			fmt.Fprintf(env.Stderr, "lab: left: %s %s\n", m.Kind, m.Name)
		}
	}
	fmt.Fprintln(env.Stderr, "lab: hint: lab clean")
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (crypto/rand, Go 1.24)
	return hex.EncodeToString(b)
}

// knownCommand: what is left to the root is no command's name.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := "lab --help"
	root.SuggestionsMinimumDistance = 2
	if like := root.SuggestionsFor(args[0]); len(like) > 0 {
		hint = "lab " + like[0]
	}
	return usagef(hint, "unknown command %q for %q", args[0], root.Name())
}

func newRoot(env *Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "See what survives when a container goes away",
		Long: "lab runs a small probe on real Podman, lets things happen to its container, and\n" +
			"shows which data came back.",
		Example:       "  lab run                 # the first lesson: three mounts, one rm\n  lab list                # what else there is\n  lab run my.yaml         # your own scenario",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err: err, hint: cmd.CommandPath() + " --help"}
	})
	root.AddCommand(
		newRun(env), newLearn(env), newTable(env), newHandout(env), newList(env), newShow(env), newCheck(env), newNew(env), newSchema(env),
		newDoctor(env), newMatrix(env), newClean(env),
		newProbe(env), newDrill(env), newCompare(env), newAudit(env),
		newBoard(env),
	)
	for _, c := range root.Commands() {
		c.Long += "\n\n" + exitTable
	}
	return root
}
