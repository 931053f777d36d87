package cli

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/files"
	"persistencelab/lab/internal/teach"
	"persistencelab/scenarios"
)

type handoutOptions struct {
	format  string
	file    string
	answers bool
	all     bool
	allow   []string
}

func newHandout(env *Env) *cobra.Command {
	var opts handoutOptions
	cmd := &cobra.Command{
		Use:   "handout [LESSON|SCENARIO]",
		Short: "Write a worksheet for paper",
		Long: "Write a worksheet of a scenario or a whole lesson: the text, a table to fill in, and the\n" +
			"commands to type by hand. With --answers, the teacher's sheet instead: what comes back, why,\n" +
			"the beliefs behind wrong predictions, and the hints.\n" +
			"\n" +
			"It needs no Podman. To type the commands, the probe image must be there: lab doctor loads it,\n" +
			"and lab run SCENARIO --dry-run prints them with what this machine needs.",
		Example: "  lab handout three-mounts -o three-mounts.html\n  lab handout 4 --answers",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return runHandout(env, opts, args) },
	}
	f := cmd.Flags()
	f.StringVar(&opts.format, "format", "", "markdown or html (default: by the file's name, else markdown)")
	f.StringVarP(&opts.file, "output", "o", "", "file to write instead of stdout")
	f.BoolVar(&opts.answers, "answers", false, "the teacher's sheet")
	f.BoolVar(&opts.all, "all", false, "every lesson")
	f.StringArrayVar(&opts.allow, "allow-host-path", nil, "host folder a scenario may bind-mount (repeatable)")
	return cmd
}

func runHandout(env *Env, opts handoutOptions, args []string) error {
	if len(args) == 0 && !opts.all {
		args = []string{defaultScenario}
	}
	units, err := unitsFor(learnOptions{all: opts.all, allow: opts.allow}, args)
	if err != nil {
		return err
	}
	h := teach.Handout{Answers: opts.answers}
	for _, u := range units {
		for i, s := range u.Scenarios {
			w := teach.Worksheet{Scenario: s}
			if i == 0 {
				w.Lesson, w.Text = u.Lesson.Title, teach.LessonText(u.Lesson.Key)
			}
			words := 0
			jobs, err := plans([]*scenarios.Scenario{s}, experiment.PlanOptions{
				RunID: "hand", Folder: "/tmp/lab-hand", Images: imageMaker(),
				Nonce: func() string { words++; return fmt.Sprint("word", words) },
			})
			if err != nil {
				return err
			}
			w.Plans = plansOf(jobs, s)
			h.Parts = append(h.Parts, w)
		}
	}
	if len(h.Parts) == 0 {
		return usagef("lab list", "this lesson has no scenario")
	}
	write := h.Markdown
	switch {
	case opts.format == "html", opts.format == "" && strings.EqualFold(filepath.Ext(opts.file), ".html"):
		write = h.HTML
	case opts.format != "" && opts.format != "markdown":
		return usagef("lab handout --format html -o sheet.html", "no format %q; there are markdown and html", opts.format)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	if opts.file != "" {
		return files.Replace(opts.file, b.Bytes())
	}
	_, err = env.Stdout.Write(b.Bytes())
	return err
}
