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
	"persistencelab/lab/internal/experiment"
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
  3    podman or a store failed, an outcome is unknown, or a file was left out
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
		address     *bindings.AddressError
		foreign     *bindings.ForeignError
		refused     *bindings.RefusedError
		down        *engine.UnreachableError
		store       *experiment.StoreError
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
	case errors.As(err, &store):
		code, hint = exitUsage, "lab run "+store.Scenario+"   # on the lab's own stores"
		if store.Variable != "" {
			hint = "export " + store.Variable + "=" + experiment.AddressExample(store.Kind)
		}
	case errors.As(err, &folder):
		hint = "set LAB_STATE_DIR to a folder you may write to, with room in it"
	case errors.As(err, &absent):
		hint = "install podman with your system's package manager, or name a service with --url (`lab doctor` says more)"
	case errors.As(err, &address):
		code, hint = exitUsage, addressHint(address)
	case errors.As(err, &foreign):
		hint = "podman --remote --url " + foreign.URL + " version   # what is it?"
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

// addressHint is what to type instead of an address that can't be one.
func addressHint(e *bindings.AddressError) string {
	switch {
	case e.Asked == "--url":
		return "--url unix:///run/podman/podman.sock"
	case e.Asked == "CONTAINER_HOST":
		return "unset CONTAINER_HOST   # or: export CONTAINER_HOST=unix:///run/podman/podman.sock"
	}
	return "podman system connection ls"
}

// unreachableHint is what to type for each way in which a service does not
// answer.
func unreachableHint(down *engine.UnreachableError) string {
	start := "podman system service --time=0 " + down.URL
	var silent *bindings.SilentError
	switch {
	case strings.HasPrefix(down.URL, "ssh://"):
		return "try the same by hand: ssh " + strings.TrimPrefix(down.URL, "ssh://")
	case errors.Is(down.Err, syscall.ENOENT):
		return start + "   # no socket is there; " + without(down)
	case errors.Is(down.Err, syscall.ECONNREFUSED):
		return start + "   # nobody listens there; " + without(down)
	case errors.Is(down.Err, syscall.EACCES), errors.Is(down.Err, syscall.EPERM):
		return "ls -l " + strings.TrimPrefix(down.URL, "unix://") + "   # you may not use it; " + without(down)
	case errors.As(down.Err, &silent):
		return "restart what listens there: systemctl restart podman.socket podman; " + without(down)
	}
	return "lab doctor"
}

// without is how to do without the service that was asked for.
func without(down *engine.UnreachableError) string {
	switch {
	case strings.HasPrefix(down.Asked, "CONTAINER_"):
		return "or unset " + down.Asked + ": the lab starts a service of its own"
	case strings.HasPrefix(down.Asked, "--"):
		return "or leave out " + down.Asked + ": the lab starts a service of its own"
	}
	return "or look at podman system connection ls"
}
