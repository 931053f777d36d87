package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/experiment"
	"persistencelab/scenarios"
)

func newList(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the built-in scenarios by lesson",
		Long:    "List the built-in scenarios, by lesson, in the order in which they build on each other.",
		Example: "  lab list",
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return runList(env) },
	}
}

func runList(env *Env) error {
	list := scenarios.Headings()
	var out bytes.Buffer
	for _, lesson := range scenarios.Lessons() {
		var of []scenarios.Heading
		for _, s := range list {
			if s.Lesson == lesson.Key {
				of = append(of, s)
			}
		}
		if len(of) == 0 {
			continue
		}
		fmt.Fprintf(&out, "%s\n", lesson.Title)
		for _, s := range of {
			fmt.Fprintf(&out, "  %-28s %s\n", s.Name, s.Title)
		}
	}
	_, err := env.Stdout.Write(out.Bytes())
	return err
}

func newShow(env *Env) *cobra.Command {
	var allow []string
	cmd := &cobra.Command{
		Use:     "show SCENARIO",
		Short:   "Explain one scenario, with its podman commands",
		Long:    "Explain one scenario: what it asks, what it writes where, and the podman commands of each\nvariant. It shows no expectation: predict first.",
		Example: "  lab show three-mounts\n  lab show my.yaml",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runShow(env, args[0], allow) },
	}
	cmd.Flags().StringArrayVar(&allow, "allow-host-path", nil, "host folder a scenario may bind-mount (repeatable)")
	return cmd
}

func runShow(env *Env, name string, allow []string) error {
	s, err := loadScenario(name, allow)
	if err != nil {
		return err
	}
	jobs, err := plans([]*scenarios.Scenario{s}, experiment.PlanOptions{
		RunID: "RUN", Folder: "LAB", Images: imageMaker(), Stores: serviceStores(env, nil), Nonce: func() string { return "NONCE" },
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s: %s\n", s.Name, s.Title)
	for _, text := range []string{s.About, s.Question} {
		if text = strings.TrimSpace(text); text != "" {
			fmt.Fprintf(&out, "\n%s\n", text)
		}
	}
	fmt.Fprintln(&out)
	for _, it := range s.Data {
		fmt.Fprintf(&out, "  %-12s %s\n", it.Name, experiment.PlaceOf(it))
	}
	for _, j := range jobs {
		fmt.Fprintf(&out, "\n%s\n", j.plan.Variant.Name)
		for _, st := range j.plan.Steps {
			if st.Label != "" {
				fmt.Fprintf(&out, "  # %s\n", st.Label)
			}
			for _, c := range st.Commands {
				fmt.Fprintf(&out, "  %s\n", c)
			}
		}
	}
	_, err = env.Stdout.Write(out.Bytes())
	return err
}

func newCheck(env *Env) *cobra.Command {
	var allow []string
	cmd := &cobra.Command{
		Use:     "check FILE…",
		Short:   "Check scenario files, without Podman",
		Long:    "Check scenario files for every fault at once, each with its line, a caret and what to write\ninstead. It needs no Podman.",
		Example: "  lab check my.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := loadScenarios(args, false, allow)
			if err != nil {
				return err
			}
			for i, s := range list {
				fmt.Fprintf(env.Stdout, "%s: ok: %s, %s\n", args[i], count(len(s.Variants), "variant"), count(len(s.Data), "data item"))
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&allow, "allow-host-path", nil, "host folder a scenario may bind-mount (repeatable)")
	return cmd
}

// count says how many of a thing there are.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func newNew(env *Env) *cobra.Command {
	var decisions bool
	cmd := &cobra.Command{
		Use:     "new NAME",
		Short:   "Write a commented scenario file to start from",
		Long:    "Write NAME.yaml, a commented scenario that runs as it stands. It never overwrites a file.",
		Example: "  lab new my-scenario && lab run my-scenario.yaml\n  lab new --decision-table my-service && lab drill my-service.yaml",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runNew(env, args[0], decisions) },
	}
	cmd.Flags().BoolVar(&decisions, "decision-table", false, "start from a durability decision table: what may be lost, and who makes it again")
	return cmd
}

func runNew(env *Env, name string, decisions bool) error {
	name = strings.TrimSuffix(name, ".yaml")
	text := scenarios.Starter(filepath.Base(name))
	if decisions {
		text = scenarios.DecisionTable(filepath.Base(name))
	}
	file := name + ".yaml"
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if os.IsExist(err) {
		return usagef("lab new another-name", "%s is there already", file)
	}
	if err != nil {
		return &usageError{err: err}
	}
	if _, err = f.Write(text); err == nil {
		err = f.Close()
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout, file)
	fmt.Fprintf(env.Stderr, "lab: hint: lab run %s\n", file)
	return nil
}

func newSchema(env *Env) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of scenario files, for editors",
		Long:    "Print the JSON Schema of scenario files. An editor with a YAML language server completes and\nchecks with it: # yaml-language-server: $schema=scenario.schema.json",
		Example: "  lab schema > scenario.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b, err := scenarios.Schema()
			if err != nil {
				return err
			}
			_, err = env.Stdout.Write(b)
			return err
		},
	}
}
