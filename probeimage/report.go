//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"persistencelab/probeimage/bootprobe"
)

// hostReport is `lab probe` for containers: it needs no process 1 of the
// lab's and prints the same document.
func hostReport(paths []string, out, errw io.Writer) int {
	r := bootprobe.Run(bootprobe.Options{Paths: paths, Getenv: os.Getenv, Now: time.Now})
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		fmt.Fprintf(errw, "probe: error: %s\n", err)
		return exitUnknown
	}
	return exitKnown
}
