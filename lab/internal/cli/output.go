package cli

import (
	"bytes"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/experiment"
	"persistencelab/lab/internal/files"
	"persistencelab/lab/internal/report"
)

// output is where a report goes and in which format.
type output struct {
	format  string
	file    string
	verbose bool
}

func (o *output) add(cmd *cobra.Command) {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, f.Name)
	}
	cmd.Flags().StringVar(&o.format, "format", "", "one of "+strings.Join(names, ", ")+" (default: by the file's name, else text)")
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "file to write instead of stdout")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "text: also paths, what exactly was found, and the podman commands")
}

// lookup is the format asked for, or the one the file's name tells.
func (o *output) lookup() (report.Format, error) {
	name := o.format
	if name == "" {
		name = "text"
		for _, f := range report.Formats() {
			if o.file != "" && filepath.Ext(o.file) == f.Ext {
				name = f.Name
				break
			}
		}
	}
	f, err := report.Lookup(name)
	if err != nil {
		return f, &usageError{err: err, hint: "lab run --format json"}
	}
	return f, nil
}

// check tells before a run whether its report could be written after it.
func (o *output) check() error {
	if o.file == "" {
		return nil
	}
	if err := files.Replaceable(o.file); err != nil {
		return &usageError{err: err, hint: "name a file in a folder you may write to"}
	}
	return nil
}

// write writes the report; a file is replaced only once it is whole.
func (o *output) write(env *Env, f report.Format, rep *experiment.Report) error {
	opts := report.Options{Verbose: o.verbose, Unicode: unicodeLocale(env)}
	if o.file == "" {
		opts.Width, opts.Color = min(env.Width, 120), env.StdoutTTY && env.Getenv("NO_COLOR") == "" && env.Getenv("TERM") != "dumb"
		return f.Write(env.Stdout, rep, opts)
	}
	var b bytes.Buffer
	if err := f.Write(&b, rep, opts); err != nil {
		return err
	}
	return files.Replace(o.file, b.Bytes())
}

// unicodeLocale tells whether the user's locale can show ✓.
func unicodeLocale(env *Env) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := env.Getenv(name); v != "" {
			v = strings.ToUpper(v)
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}
