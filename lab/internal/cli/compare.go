package cli

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/compare"
	"persistencelab/scenarios"
)

func newCompare(env *Env) *cobra.Command {
	var out output[*compare.Comparison, compare.Options]
	cmd := &cobra.Command{
		Use:   "compare FIRST SECOND",
		Short: "Explain two reports of the probe: what happened, what came back",
		Long: `Compare two reports of lab probe, made before and after, and explain the difference: rebooted or
restarted, the same box or another, redeployed, and which places kept what was written there. It
also reads the output of the Python boot-id probe (boot_id, hostname, cwd, deploy_id, tmp_file,
home_file, sqlite_tmp, sqlite_home). - is stdin.

It exits with 1 when a place lost or changed what it held, and with 3 when nothing can be told,
as of two different machines.`,
		Example: "  lab compare run-1.json run-2.json\n  lab compare run-1.json run-2.json --format markdown",
		Args:    cobra.ExactArgs(2),
		RunE:    func(_ *cobra.Command, args []string) error { return runCompare(env, args[0], args[1], out) },
	}
	out.add(cmd, compare.Formats())
	return cmd
}

func runCompare(env *Env, first, second string, out output[*compare.Comparison, compare.Options]) error {
	format, err := out.pick("lab compare " + first + " " + second)
	if err != nil {
		return err
	}
	a, err := readSide(env, first)
	if err != nil {
		return err
	}
	b, err := readSide(env, second)
	if err != nil {
		return err
	}
	c := compare.Explain(a, b)
	opts := compare.Options{Width: min(env.Width, 100), Unicode: unicodeLocale(env)}
	if err := out.write(env, format, c, opts); err != nil {
		return err
	}
	switch {
	case c.Count(scenarios.Lost)+c.Count(scenarios.Changed) > 0:
		return &resultError{code: exitSurprised}
	case c.Count(scenarios.Unknown) > 0 || len(c.Places) == 0:
		return &resultError{code: exitUnknown}
	}
	return nil
}

func readSide(env *Env, name string) (*compare.Side, error) {
	var in io.Reader = env.Stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &usageError{err: err, hint: "lab probe > " + name}
		}
		defer f.Close()
		in = f
	}
	s, err := compare.Read(name, in)
	var damaged *compare.Damaged
	if errors.As(err, &damaged) {
		return nil, &usageError{err: err, hint: "lab probe > run-2.json"}
	}
	return s, err
}
