package audit

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"persistencelab/lab/internal/format"
	"persistencelab/lab/internal/report"
	"persistencelab/scenarios"
)

// Options are what the person asking can choose. The zero value is safe
// anywhere: 80 columns, ASCII signs.
type Options struct {
	Width   int
	Unicode bool
	Verbose bool // text: every finding, also those beyond maxShown
}

// maxShown findings of a container are written out; the rest is counted.
// json has all.
const maxShown = 25

// Format is one way to write audits.
type Format = format.Format[[]*Audit, Options]

// Formats lists every format, the default one first.
func Formats() format.List[[]*Audit, Options] {
	return format.List[[]*Audit, Options]{
		{Name: "text", Ext: ".txt", Write: Text},
		{Name: "json", Ext: ".json", Write: JSON},
		{Name: "markdown", Ext: ".md", Write: Markdown},
		{Name: "html", Ext: ".html", Write: HTML},
	}
}

func sign(o scenarios.Outcome, unicode bool) string {
	signs := map[scenarios.Outcome]string{scenarios.Survived: "+", scenarios.Lost: "x", scenarios.Changed: "~"}
	if unicode {
		signs = map[scenarios.Outcome]string{scenarios.Survived: "✓", scenarios.Lost: "✗", scenarios.Changed: "≠"}
	}
	if s := signs[o]; s != "" {
		return s
	}
	return "?"
}

// fate is the verdict in words.
func (fi *Finding) fate() string {
	switch fi.Outcome {
	case scenarios.Lost:
		return "lost by " + strings.Join(fi.LostBy, ", ")
	case scenarios.Survived:
		return "stays"
	case scenarios.Changed:
		return "comes back by " + strings.Join(fi.LostBy, ", ")
	}
	return "unknown"
}

// size is files and bytes in words; "" where there is nothing to count.
func (fi *Finding) size() string {
	var parts []string
	if fi.Files > 0 {
		parts = append(parts, count(fi.Files, "file"))
	}
	if fi.Bytes > 0 || fi.Bytes == 0 && fi.Files > 0 {
		parts = append(parts, bytesWords(fi.Bytes))
	}
	if fi.age != "" {
		parts = append(parts, "changed "+fi.age+" ago")
	}
	return strings.Join(parts, ", ")
}

// place is the storage, with its source where that adds something.
func (fi *Finding) place() string {
	if fi.Source == "" {
		return string(fi.Storage)
	}
	return string(fi.Storage) + " " + short(fi.Source)
}

// remark is what else there is to say: the policy's word.
func (fi *Finding) remark() string {
	switch {
	case fi.Broken != "":
		return "NOT ACCEPTABLE: " + fi.Broken
	case fi.Accepted != "":
		return "accepted (" + fi.Accepted + ")"
	}
	return ""
}

// foldedLine says what was folded away.
func (a *Audit) foldedLine() string {
	files, size := map[Category]int{}, map[Category]int64{}
	for _, fi := range a.Folded {
		files[fi.What] += fi.Files
		size[fi.What] += max(0, fi.Bytes)
	}
	var parts []string
	for _, c := range categoryOrder {
		if files[c] > 0 {
			parts = append(parts, fmt.Sprintf("%s of %s (%s)", count(files[c], "file"), c, bytesWords(size[c])))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "Folded away, for a fresh container makes them again: " + and(parts) + "."
}

// Text writes the audits for people.
func Text(w io.Writer, audits []*Audit, o Options) error {
	var b bytes.Buffer
	width := max(o.Width, 48)
	if o.Width == 0 {
		width = 80
	}
	para := func(first, rest, text string) {
		for i, line := range report.Wrap(report.Line(text), width-len(rest)) {
			if i > 0 {
				first = rest
			}
			fmt.Fprintf(&b, "%s%s\n", first, line)
		}
	}
	for n, a := range audits {
		if n > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s  %s, %s\n\n", report.Line(a.Container), report.Line(a.Image), report.Line(a.State))
		para("", "", a.Answer)
		b.WriteByte('\n')
		shown := a.Findings
		if !o.Verbose && len(shown) > maxShown {
			shown = shown[:maxShown]
		}
		for _, fi := range shown {
			var about []string
			for _, s := range []string{string(fi.What), fi.size()} {
				if s != "" {
					about = append(about, s)
				}
			}
			head := fi.Where
			if len(about) > 0 {
				head += ": " + strings.Join(about, ", ")
			}
			para(sign(fi.Outcome, o.Unicode)+" ", "    ", head)
			para("    ", "    ", fi.place()+": "+fi.fate())
			if text := strings.TrimSpace(strings.TrimPrefix(fi.Text, layerText)); text != "" {
				para("    ", "    ", text) // the line above has said the first sentence
			}
			if r := fi.remark(); r != "" {
				para("    ", "    ", r)
			}
			for _, c := range fi.Fix {
				fmt.Fprintf(&b, "    $ %s\n", report.Line(c))
			}
		}
		if n := len(a.Findings) - len(shown); n > 0 {
			para("  ", "    ", fmt.Sprintf("and %s more (--verbose)", count(n, "place")))
		}
		if s := a.foldedLine(); s != "" {
			para("  ", "    ", s)
		}
		if len(a.Notes) > 0 {
			b.WriteByte('\n')
		}
		for _, note := range a.Notes {
			para("! ", "  ", note)
		}
		if a.Rerun != "" {
			fmt.Fprintf(&b, "\nThen run it again with what was saved:\n    $ podman rm -f %s\n    $ %s\n", quote(a.Container), report.Line(a.Rerun))
		} else if mounts := a.mounts(); len(mounts) > 0 {
			fmt.Fprintf(&b, "\nThen run it again with: %s\n", report.Line(strings.Join(mounts, " ")))
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// mounts are the options the findings call for.
func (a *Audit) mounts() []string {
	var list []string
	for _, fi := range a.Findings {
		if fi.mount != "" {
			list = append(list, "-v "+quote(fi.mount))
		}
	}
	return list
}

// Document is what JSON writes.
type Document struct {
	Version int      `json:"version"`
	Audits  []*Audit `json:"audits"`
}

// JSON writes the audits as one document.
func JSON(w io.Writer, audits []*Audit, _ Options) error {
	d := Document{Version: Version, Audits: []*Audit{}}
	for _, a := range audits {
		c := *a
		c.Findings, c.Folded, c.Notes = append([]Finding{}, a.Findings...), append([]Finding{}, a.Folded...), append([]string{}, a.Notes...)
		d.Audits = append(d.Audits, &c)
	}
	return report.Document(w, d)
}

// Markdown writes the audits as GitHub's tables.
func Markdown(w io.Writer, audits []*Audit, _ Options) error {
	var b bytes.Buffer
	md := report.MarkdownText
	for _, a := range audits {
		fmt.Fprintf(&b, "## %s\n\n**%s**\n\n%s, %s\n\n", md(a.Container), md(a.Answer), md(a.Image), md(a.State))
		b.WriteString("| where | what | size | on | verdict | |\n|---|---|---|---|---|---|\n")
		for _, fi := range a.Findings[:min(maxShown, len(a.Findings))] {
			text := fi.Text
			if r := fi.remark(); r != "" {
				text += " " + r
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s %s | %s |\n", md(fi.Where), fi.What, md(fi.size()), md(fi.place()), sign(fi.Outcome, true), md(fi.fate()), md(text))
		}
		b.WriteByte('\n')
		if n := len(a.Findings) - maxShown; n > 0 {
			fmt.Fprintf(&b, "- and %s more\n", count(n, "place"))
		}
		if s := a.foldedLine(); s != "" {
			fmt.Fprintf(&b, "- %s\n", md(s))
		}
		for _, n := range a.Notes {
			fmt.Fprintf(&b, "- **%s**\n", md(n))
		}
		if script := a.script(); len(script) > 0 {
			b.WriteString("\n```sh\n")
			for _, c := range script {
				fmt.Fprintln(&b, strings.ReplaceAll(report.Line(c), "```", "` ` `"))
			}
			b.WriteString("```\n")
		}
		b.WriteByte('\n')
	}
	_, err := w.Write(b.Bytes())
	return err
}

// script is every command of the audit in order.
func (a *Audit) script() []string {
	var list []string
	for _, fi := range a.Findings {
		for _, c := range fi.Fix {
			if !slices.Contains(list, c) {
				list = append(list, c)
			}
		}
	}
	if a.Rerun != "" {
		list = append(list, "podman rm -f "+quote(a.Container), a.Rerun)
	}
	return list
}

//go:embed audit.html.tmpl
var page string

// HTML writes one page that needs nothing else.
func HTML(w io.Writer, audits []*Audit, _ Options) error {
	t, err := template.New("audit").Funcs(template.FuncMap{
		"line":   report.Line,
		"sign":   func(fi Finding) string { return sign(fi.Outcome, true) },
		"fate":   func(fi Finding) string { return report.Line(fi.fate()) },
		"size":   func(fi Finding) string { return fi.size() },
		"place":  func(fi Finding) string { return report.Line(fi.place()) },
		"remark": func(fi Finding) string { return report.Line(fi.remark()) },
		"folded": (*Audit).foldedLine,
		"script": (*Audit).script,
		"shown":  func(a *Audit) []Finding { return a.Findings[:min(maxShown, len(a.Findings))] },
		"more":   func(a *Audit) int { return max(0, len(a.Findings)-maxShown) },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("write the audit as html: %w", err)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, audits); err != nil {
		return fmt.Errorf("write the audit as html: %w", err)
	}
	_, err = w.Write(b.Bytes())
	return err
}
