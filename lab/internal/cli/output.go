package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/experiment"
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
	return writeFile(o.file, b.Bytes())
}

// writeFile replaces a file in one step.
func writeFile(file string, b []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), "."+filepath.Base(file)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(b)
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
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
