// Command lab shows, on real Podman and with your own bytes, what survives
// when a container goes away.
package main

import (
	"os"

	"persistencelab/lab/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
