//go:build linux

package main

import (
	"fmt"
	"io"

	"persistencelab/probeimage/wire"
)

// Exit codes of `probe healthy`, as Podman's health checks read them.
const (
	exitHealthy   = 0
	exitUnhealthy = 1
)

// healthy answers a health check. live asks whether process 1 answers; ready
// whether the state it needs is there: the database at path can be read and
// has rows in it, or the file there is whole.
func healthy(args []string, out, errw io.Writer) int {
	switch {
	case len(args) == 1 && args[0] == "live":
		reply, err := call(wire.Request{Op: wire.Hello})
		if err != nil {
			fmt.Fprintln(out, "not live: process 1 does not answer")
			return exitUnhealthy
		}
		fmt.Fprintf(out, "live: process %d answers\n", reply.Hello.PID)
		return exitHealthy
	case len(args) == 2 && args[0] == "ready":
		text, ok := ready(args[1])
		if !ok {
			fmt.Fprintln(out, "not ready: "+text)
			return exitUnhealthy
		}
		fmt.Fprintln(out, "ready: "+text)
		return exitHealthy
	}
	return misuse(errw, fmt.Errorf("healthy takes live, or ready PATH"))
}

// ready looks at the state itself, not at a process that holds it: what is on
// the disk is what the next start will have.
func ready(path string) (string, bool) {
	item := wire.Item{Kind: kindFile, Path: path}
	if bad := checkItem(wire.Read, item); bad != nil {
		return bad.Text, false
	}
	if isDatabase(path) {
		item.Kind = kindSQLite
	}
	found, bad := newStore().read(item)
	switch {
	case bad != nil:
		return bad.Text, false
	case !found.Present:
		return "no such file: " + path, false
	case found.Torn != "":
		return path + " is torn: " + found.Torn, false
	case item.Kind == kindSQLite && found.Rows == 0:
		return "no rows in " + path, false
	case item.Kind == kindSQLite:
		return fmt.Sprintf("%d rows in %s", found.Rows, path), true
	}
	return fmt.Sprintf("%d bytes in %s", found.Size, path), true
}

// isDatabase tells by the first bytes, as file(1) does.
func isDatabase(path string) bool {
	const magic = "SQLite format 3\x00"
	f, err := openRegular(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, len(magic))
	_, err = io.ReadFull(f, start)
	return err == nil && string(start) == magic
}
