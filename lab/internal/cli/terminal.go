package cli

import (
	"os"
	"strings"

	"golang.org/x/term"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// rawTerminal lets single keys through until restore is called.
func rawTerminal(f *os.File) (restore func(), err error) {
	before, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(f.Fd()), before) }, nil
}

func trimLine(s string) string { return strings.TrimSpace(strings.TrimSuffix(s, "\r")) }
