package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"
)

// catalogue measures every built-in scenario for containers: by `lab run`, and
// as the shell script of podman commands that `lab run --dry-run` gives for the
// same lifecycles; then the lab alone with the catalogue twice and four times
// over. What a person would do by hand is the script; that it is the lab's own
// plan keeps the two about the same work. The lab finds Podman by itself here:
// a service named by its address has no store of its own for the prunes.
func catalogue(ctx context.Context, w io.Writer, tmp string, rounds int, jobs string) error {
	names, _, err := lifecycles(ctx)
	if err != nil {
		return err
	}
	file := filepath.Join(tmp, "catalogue.sh")
	byLab := &work{title: fmt.Sprintf("lab run, %d scenarios", len(names)),
		command: append([]string{"bin/lab", "run", "--jobs", jobs}, names...)}
	byShell := &work{title: "the same lifecycles as a shell script", command: []string{"sh", file}}
	for range rounds {
		// Names and contents are used up by a run of the script.
		_, script, err := lifecycles(ctx)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, script, 0o644); err != nil {
			return err
		}
		for _, k := range []*work{byLab, byShell} {
			u, err := k.once(ctx)
			if err != nil {
				return err
			}
			k.used = append(k.used, u)
		}
	}
	a, b := median(byLab.times()), median(byShell.times())
	fmt.Fprintf(w, "\nthe catalogue, %d rounds\n", rounds)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "work\tmedian\tpeak memory")
	for _, k := range []*work{byLab, byShell} {
		fmt.Fprintf(tw, "%s\t%s\t%s\n", k.title, ms(median(k.times())), mib(k.peak()))
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	target(w, "lab / script", ratio(a, b), 0.30, "")

	fmt.Fprintln(w)
	tw = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "times over\ttime\tfor one\tpeak memory")
	for _, n := range []int{1, 2, 4} {
		u, err := measure(ctx, nil, append([]string{"bin/lab", "run", "--jobs", jobs}, slices.Repeat(names, n)...)...)
		if err != nil {
			return err
		}
		fmt.Fprintf(tw, "%d\t%s\t%s\t%s\n", n, ms(u.wall), ms(u.wall/time.Duration(n)), mib(u.peak))
	}
	return tw.Flush()
}

// lifecycles are the built-in scenarios that are about containers, and their
// podman commands with fresh names.
func lifecycles(ctx context.Context) (names []string, script []byte, err error) {
	list, err := exec.CommandContext(ctx, "bin/lab", "list").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("lab list: %w", err)
	}
	for _, m := range regexp.MustCompile(`(?m)^  (\S+)`).FindAllSubmatch(list, -1) {
		plan, err := exec.CommandContext(ctx, "bin/lab", "run", "--dry-run", string(m[1])).Output()
		if err != nil {
			return nil, nil, fmt.Errorf("lab run --dry-run %s: %w", m[1], err)
		}
		if bytes.Contains(plan, []byte("qemu-system")) {
			continue // a machine's lines are not podman's
		}
		names = append(names, string(m[1]))
		script = append(script, plan...)
	}
	if len(names) == 0 {
		return nil, nil, errors.New("lab list names no scenario")
	}
	// What a step should be refused is no failure of the script's.
	return names, append(script, "true\n"...), nil
}
