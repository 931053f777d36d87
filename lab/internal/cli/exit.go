package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"persistencelab/bindings"
	"persistencelab/lab/engine"
	"persistencelab/scenarios"
)

// Exit codes. The table in help and README is exitTable.
const (
	exitAsExpected  = 0
	exitSurprised   = 1
	exitUsage       = 2
	exitUnknown     = 3
	exitInterrupted = 130
)

const exitTable = `Exit codes:
  0    everything as expected
  1    surprised: an expectation or an acceptable loss did not hold
  2    the command line or a scenario file is wrong
  3    podman could not be reached, an outcome is unknown, or a file was left out
  130  interrupted`

// usageError: what was typed is wrong.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(hint, format string, args ...any) error {
	return &usageError{err: fmt.Errorf(format, args...), hint: hint}
}

// interruptedError: a signal ended the run.
type interruptedError struct{ signal os.Signal }

func (e *interruptedError) Error() string { return "interrupted (" + e.signal.String() + ")" }

// resultError is an exit code without an error line: the report has said it.
type resultError struct {
	code int
	hint string
}

func (e *resultError) Error() string { return fmt.Sprintf("exit %d", e.code) }

// finish says what went wrong, and gives the exit code: message and code from
// one switch, so that they can't drift apart.
func finish(env *Env, ctx context.Context, err error) int {
	if err == nil {
		return exitAsExpected
	}
	var (
		interrupted *interruptedError
		result      *resultError
		usage       *usageError
		faults      scenarios.Errors
		folder      *folderError
		absent      *bindings.NotInstalledError
		refused     *bindings.RefusedError
		down        *engine.UnreachableError
	)
	code, hint := exitUnknown, ""
	switch {
	case errors.As(err, &interrupted), errors.As(context.Cause(ctx), &interrupted):
		return exitInterrupted // said when the signal came
	case errors.As(err, &result):
		if result.hint != "" {
			fmt.Fprintln(env.Stderr, "lab: hint: "+result.hint)
		}
		return result.code
	case errors.Is(err, syscall.EPIPE):
		return exitAsExpected // whoever reads has had enough
	case errors.As(err, &faults):
		fmt.Fprint(env.Stderr, faults.Excerpt())
		return exitUsage
	case errors.As(err, &usage):
		code, hint = exitUsage, usage.hint
	case strings.HasPrefix(err.Error(), "unknown command"), strings.HasPrefix(err.Error(), "accepts "),
		strings.HasPrefix(err.Error(), "requires "), strings.HasPrefix(err.Error(), "if any flags in the group"):
		// cobra has no types for these.
		code, hint = exitUsage, "lab --help"
	case errors.As(err, &folder):
		hint = "set LAB_STATE_DIR to a folder you may write to, with room in it"
	case errors.As(err, &absent):
		hint = "install podman with your system's package manager, or name a service with --url (`lab doctor` says more)"
	case errors.As(err, &refused):
		hint = refused.Hint
	case errors.As(err, &down):
		hint = unreachableHint(down)
	}
	fmt.Fprintf(env.Stderr, "lab: error: %s\n", err)
	if hint != "" {
		fmt.Fprintf(env.Stderr, "lab: hint: %s\n", hint)
	}
	return code
}

// unreachableHint is what to type for each way in which a service does not
// answer.
func unreachableHint(down *engine.UnreachableError) string {
	path := strings.TrimPrefix(down.URL, "unix://")
	switch {
	case errors.Is(down.Err, syscall.ENOENT):
		return "no socket is there; start one: podman system service --time=0 " + down.URL
	case errors.Is(down.Err, syscall.ECONNREFUSED):
		return "a socket is there but nobody listens; start one: podman system service --time=0 " + down.URL
	case errors.Is(down.Err, syscall.EACCES):
		return "you may not use " + path + "; leave out --url to use a service of your own"
	case strings.HasPrefix(down.URL, "ssh://"):
		return "try the same by hand: ssh " + strings.TrimPrefix(down.URL, "ssh://")
	}
	return "lab doctor"
}
