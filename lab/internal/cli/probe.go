package cli

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"persistencelab/lab/internal/files"
	"persistencelab/probeimage/bootprobe"
)

func newProbe(env *Env) *cobra.Command {
	var (
		paths  []string
		file   string
		forget bool
	)
	cmd := &cobra.Command{
		Use:   "probe",
		Short: "Leave evidence on this box, to see later what came back",
		Long: `Report which boot, container and process 1 this is, and leave a file and a SQLite row in the
temp, the home and the working folder and in each --path. Run it again after a restart, on any
Linux box or in any container, and let lab compare explain the two reports. It needs no Podman,
adds to what earlier runs left and never takes any of it away (--forget does). In a container:

  podman run --rm -v "$(command -v lab)":/lab:ro -v mydata:/data IMAGE /lab probe --path /data

What can't be learned or written stands in the report as an error; the exit code is 0 all the same.`,
		Example: "  lab probe > run-1.json\n  # restart the box now\n  lab probe > run-2.json\n  lab compare run-1.json run-2.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return runProbe(env, bootprobe.Options{Paths: paths, Getenv: env.Getenv, Now: env.Now}, file, forget)
		},
	}
	cmd.Flags().StringArrayVar(&paths, "path", nil, "a further folder to leave evidence in (repeatable)")
	cmd.Flags().StringVarP(&file, "output", "o", "", "file to write instead of stdout")
	cmd.Flags().BoolVar(&forget, "forget", false, "remove what earlier runs left in these folders, and do nothing else")
	return cmd
}

func runProbe(env *Env, opts bootprobe.Options, file string, forget bool) error {
	if forget {
		removed, err := bootprobe.Forget(opts)
		for _, path := range removed {
			fmt.Fprintf(env.Stdout, "removed %s\n", path)
		}
		return err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(bootprobe.Run(opts)); err != nil {
		return err
	}
	if file != "" {
		return files.Replace(file, b.Bytes())
	}
	_, err := env.Stdout.Write(b.Bytes())
	return err
}
