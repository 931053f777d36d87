package cli

import (
	"bufio"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/files"
	"persistencelab/lab/internal/format"
)

// output is where a result goes, and in which of its formats.
type output[T, O any] struct {
	formats format.List[T, O]
	format  string
	file    string
}

func (o *output[T, O]) add(cmd *cobra.Command, formats format.List[T, O]) {
	o.formats = formats
	cmd.Flags().StringVar(&o.format, "format", "", "one of "+formats.Names()+" (default: by the file's name, else "+formats[0].Name+")")
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "file to write instead of stdout")
}

// pick is the format asked for, or the one the file's name tells. It also
// tells, before the work, whether the file could be written after it.
func (o *output[T, O]) pick(cmd string) (format.Format[T, O], error) {
	f, err := o.formats.Pick(o.format, o.file)
	if err != nil {
		return f, &usageError{err: err, hint: cmd + " --format " + o.formats[1].Name}
	}
	if o.file != "" {
		if err := files.Replaceable(o.file); err != nil {
			return f, &usageError{err: err, hint: "name a file in a folder you may write to"}
		}
	}
	return f, nil
}

// write writes the result; a file is replaced only once it is whole.
func (o *output[T, O]) write(env *Env, f format.Format[T, O], result T, opts O) error {
	if o.file == "" {
		return f.Write(env.Stdout, result, opts)
	}
	return files.ReplaceWith(o.file, func(w *os.File) error {
		b := bufio.NewWriter(w)
		if err := f.Write(b, result, opts); err != nil {
			return err
		}
		return b.Flush()
	})
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
