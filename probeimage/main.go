//go:build linux

// Command probe is process 1 of the lab's containers: the thing that writes
// data items and looks for them again. It is one static file in an image that
// holds nothing else, so that what a container keeps or loses is what the
// probe put there.
//
// Without arguments it serves the protocol of package wire on stdin and
// stdout, and on an abstract unix socket for a probe exec'd in the same
// container. It promises:
//
//   - It never speaks first, and the end of stdin does not end it: a client
//     may attach, leave and attach again.
//   - Reading changes nothing: no file, folder or SQLite side file comes into
//     being, and a read-only mount can be read.
//   - A write is answered after the data is where its mode says, with what a
//     second look at the place found.
//   - SIGTERM and SIGINT end it at once with code 0, in the middle of a write
//     too; SIGUSR2 with code 3.
//   - It holds no file or database open between two requests.
//
// As /init of a virtual machine it first makes a system of the bare kernel, and
// serves on the second serial port (machine.go).
//
// With arguments it is what a person types after `podman exec`: see `probe
// help`.
package main

import (
	"io"
	"os"
)

// version is set by the build: it changes with the probe's sources.
var version = "unversioned"

func main() {
	if isInit() {
		runMachine()
	}
	if args := os.Args[1:]; len(args) > 0 {
		if args[0] == writerCommand {
			os.Exit(writer(os.Stdin, os.Stdout))
		}
		os.Exit(command(args, os.Stdout, os.Stderr))
	}
	os.Exit(serve(os.Stdin, os.Stdout, os.Stderr))
}

const usage = `the probe of Persistence Lab: process 1 of its containers. It writes data items
and looks for them again, so that you can see what a container keeps.

  probe write ITEM KIND PLACE NONCE [--rows N] [--size N] [--mode MODE]
  probe read  ITEM KIND PLACE [NONCE] [--rows N] [--size N] [--mode MODE]
  probe erase ITEM KIND PLACE
  probe rebuild   ITEM cache PLACE NONCE [--work N]
  probe interrupt ITEM KIND PLACE NONCE POINT OF [--hold] [flags of write]
  probe healthy live | ready PLACE
  probe ping SERVICE
  probe drop SERVICE COLLECTION
  probe hello
  probe host-report [PATH…]
  probe help

ITEM is the name printed in front of the answer. KIND is file, sqlite,
transcript, cache, agent (with --tasks PATH), memory or fact; PLACE is an absolute
path, for memory the name of a variable, for a fact boot-id, hostname or env:NAME.
In the probe of scenarios with services KIND can be row, key or object, too, with
--service NAME; PLACE is then a table, also for an agent, or collection/key. NONCE
is any word: write puts it into the content, read compares with it. MODE says how a
file is saved: plain, truncate, fsync, atomic, append, rename or fsync-rename. interrupt writes in another process and kills
that at a point of the write (0 of 3 is before it, 1 in its middle, 2 after it);
with --hold it stands there until the container is killed.

  podman exec NAME /probe write note file /var/lib/app/note.txt monday
  podman exec NAME /probe read note file /var/lib/app/note.txt monday

The work is done by process 1 of the container, but for host-report: that is
'lab probe' without the lab, for a container the lab does not fit into.

Exit codes: 0 the answer is
known, also when it is "lost" or "refused"; 2 wrong usage; 3 unknown. healthy: 0
or 1, as Podman's health checks want it.
`

func help(w io.Writer) { io.WriteString(w, usage) }
