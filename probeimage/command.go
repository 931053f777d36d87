//go:build linux

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"persistencelab/probeimage/wire"
)

// Exit codes of the commands; the same as the lab's.
const (
	exitKnown   = 0
	exitUsage   = 2
	exitUnknown = 3
)

// askTimeout bounds a command: process 1 answers in milliseconds, but may be
// writing a big file first.
const askTimeout = time.Minute

// command carries out what was typed behind `podman exec NAME /probe` and
// returns the exit code.
func command(args []string, out, errw io.Writer) int {
	switch args[0] {
	case "help", "-h", "--help":
		help(out)
		return exitKnown
	case "hello":
		return sayHello(out, errw)
	case string(wire.Ping):
		return askService(wire.Ping, args[1:], out, errw)
	case string(wire.Drop):
		return askService(wire.Drop, args[1:], out, errw)
	case "relay":
		return relay(os.Stdin, out, errw)
	case "host-report":
		return hostReport(args[1:], out, errw)
	case "healthy":
		return healthy(args[1:], out, errw)
	case string(wire.Write), string(wire.Read), string(wire.Erase), string(wire.Rebuild), string(wire.Interrupt):
	default:
		return misuse(errw, fmt.Errorf("unknown command %q", args[0]))
	}
	op := wire.Op(args[0])
	name, item, at, err := parseItem(op, args[1:])
	if err != nil {
		return misuse(errw, err)
	}
	reply := ask(op, item, at)
	found, fault := reply.Found, reply.Error
	if w := reply.Interrupted; w != nil {
		if w.Held {
			fmt.Fprintf(out, "%s: held %s, at %d of %d\n", name, w.Stage, w.Byte, w.Total)
			return exitKnown
		}
		fmt.Fprintf(out, "%s: killed %s, at %d of %d\n", name, w.Stage, w.Byte, w.Total)
		item.Nonce = "" // old or new, both are good
	}
	if op == wire.Rebuild && found != nil {
		fmt.Fprintf(out, "%s: rebuilt in %v\n", name, time.Duration(reply.Took).Round(time.Millisecond))
		return exitKnown
	}
	if op == wire.Write {
		line, code := writeLine(found, fault)
		fmt.Fprintf(out, "%s: %s\n", name, line)
		return code
	}
	if op == wire.Erase && fault == nil {
		fmt.Fprintf(out, "%s: erased\n", name)
		return exitKnown
	}
	line, code := readLine(item, found, fault)
	fmt.Fprintf(out, "%s: %s\n", name, line)
	return code
}

// askService tells by its exit code whether a service takes requests, or
// removes a collection from it.
func askService(op wire.Op, args []string, out, errw io.Writer) int {
	item := wire.Item{}
	done := "takes requests"
	switch {
	case op == wire.Ping && len(args) == 1 && word(args[0]):
		item.Service = args[0]
	case op == wire.Drop && len(args) == 2 && word(args[0]) && word(args[1]):
		item.Service, item.Path = args[0], args[1]
		done = "no " + item.Path
	default:
		return misuse(errw, errors.New("it takes: ping SERVICE, or drop SERVICE COLLECTION"))
	}
	reply, err := call(wire.Request{Op: op, Item: &item})
	if err == nil && reply.Error != nil {
		err = reply.Error
	}
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", item.Service, err)
		return exitUnknown
	}
	fmt.Fprintf(out, "%s: %s\n", item.Service, done)
	return exitKnown
}

func misuse(errw io.Writer, err error) int {
	fmt.Fprintf(errw, "probe: error: %v\nprobe: hint: /probe help\n", err)
	return exitUsage
}

// parseItem reads ITEM KIND PLACE [NONCE] [POINT OF] and flags, in any order.
func parseItem(op wire.Op, args []string) (name string, item wire.Item, at *wire.Cut, err error) {
	var words []string
	hold := false
	for i := 0; i < len(args); i++ {
		flag, isFlag := strings.CutPrefix(args[i], "--")
		if !isFlag {
			words = append(words, args[i])
			continue
		}
		if flag == "hold" {
			hold = true
			continue
		}
		flag, value, given := strings.Cut(flag, "=")
		if !given {
			if i++; i == len(args) {
				return "", item, nil, fmt.Errorf("--%s needs a value", flag)
			}
			value = args[i]
		}
		switch flag {
		case "rows":
			item.Rows, err = strconv.Atoi(value)
		case "size":
			item.Size, err = strconv.Atoi(value)
		case "work":
			item.Work, err = strconv.Atoi(value)
		case "persist":
			item.Persist = value
		case "mode":
			item.Mode = value
		case "seq":
			item.Seq, err = strconv.Atoi(value)
		case "service":
			item.Service = value
		case "tasks":
			item.Tasks = value
		default:
			return "", item, nil, fmt.Errorf("unknown flag --%s", flag)
		}
		if err != nil {
			return "", item, nil, fmt.Errorf("--%s %q: a number is needed", flag, value)
		}
	}
	most, least := 4, 3
	takes := "ITEM KIND PLACE NONCE"
	switch op {
	case wire.Write, wire.Rebuild:
		least = 4
	case wire.Interrupt:
		most, least = 6, 6
		takes += " POINT OF"
	}
	if len(words) < least || len(words) > most {
		return "", item, nil, fmt.Errorf("%s takes %s, not %d words", op, takes, len(words))
	}
	name, item.Kind, item.Path = words[0], words[1], words[2]
	if op == wire.Interrupt {
		at = &wire.Cut{Hold: hold}
		_, err1 := fmt.Sscan(words[4], &at.Point)
		_, err2 := fmt.Sscan(words[5], &at.Of)
		if err1 != nil || err2 != nil || at.Of < 3 || at.Of > maxCuts || at.Point < 0 || at.Point >= at.Of {
			return "", item, nil, fmt.Errorf("point %s of %s: 0 of 3 is before the write, 2 of 3 after it", words[4], words[5])
		}
	}
	if len(words) > 3 {
		item.Nonce = words[3]
		if !word(item.Nonce) {
			return "", item, nil, fmt.Errorf("nonce %q: 1 to %d printable ASCII characters without a space", item.Nonce, maxNonce)
		}
	}
	if fault := checkItem(op, item); fault != nil {
		return "", item, nil, fault
	}
	return name, item, at, nil
}

// ask has process 1 do it. Where no probe answers, what is in memory can't be
// known, but the files are here to be looked at.
func ask(op wire.Op, item wire.Item, at *wire.Cut) wire.Reply {
	reply, err := call(wire.Request{Op: op, Item: &item, Cut: at})
	cannot := func(text string) wire.Reply { return wire.Reply{Error: &wire.Error{Code: wire.CodeIO, Text: text}} }
	switch {
	case err == nil:
		return reply
	case !errors.Is(err, errNoProbe):
		return cannot(err.Error())
	case item.Kind == kindMemory, op == wire.Interrupt:
		return cannot("no probe is process 1 of this container")
	}
	switch s := newStore(); op {
	case wire.Write:
		reply.Found, reply.Error = s.write(item)
	case wire.Erase:
		reply.Found, reply.Error = s.erase(item)
	case wire.Rebuild:
		var took time.Duration
		reply.Found, took, reply.Error = s.rebuild(item)
		reply.Took = int64(took)
	default:
		reply.Found, reply.Error = s.read(item)
	}
	return reply
}

// errNoProbe: nobody listens, or the one who does will not talk to this user.
var errNoProbe = errors.New("no probe answers")

func call(req wire.Request) (wire.Reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	conn, err := dialProbe()
	if err != nil {
		return wire.Reply{}, errNoProbe
	}
	defer conn.Close()
	client := wire.NewClient(conn)
	// The first question has no effect, so that being turned away is told
	// from being left in the middle of a write.
	if _, err := client.Call(ctx, wire.Request{Op: wire.Hello}); err != nil {
		return wire.Reply{}, errNoProbe
	}
	return client.Call(ctx, req)
}

// dialProbe reaches process 1. A restored container has another mount
// namespace than the one its probe named its socket after: then the only probe
// of this network namespace is the one.
func dialProbe() (net.Conn, error) {
	conn, err := net.Dial("unix", socketName())
	if err == nil {
		return conn, nil
	}
	table, readErr := os.ReadFile("/proc/net/unix")
	if readErr != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		name := fields[len(fields)-1]
		if strings.HasPrefix(name, socketPrefix) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		return nil, err
	}
	return net.Dial("unix", names[0])
}

// relay joins a client on stdin and stdout with process 1, for where its own
// stdin can't be reached any more.
func relay(in io.Reader, out, errw io.Writer) int {
	conn, err := dialProbe()
	if err != nil {
		fmt.Fprintf(errw, "probe: error: %v\n", errNoProbe)
		return exitUnknown
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, in)
		conn.Close() // whoever asked has gone
	}()
	_, _ = io.Copy(out, conn)
	return exitKnown
}

func sayHello(out, errw io.Writer) int {
	reply, err := call(wire.Request{Op: wire.Hello})
	if err != nil {
		fmt.Fprintf(errw, "probe: error: %v\n", err)
		return exitUnknown
	}
	text, err := json.MarshalIndent(reply.Hello, "", "  ")
	if err != nil {
		fmt.Fprintf(errw, "probe: error: %v\n", err)
		return exitUnknown
	}
	fmt.Fprintf(out, "%s\n", text)
	return exitKnown
}

// writeLine says in one line what became of a write.
func writeLine(found *wire.Found, fault *wire.Error) (string, int) {
	switch {
	case fault == nil && found.Present:
		return "written", exitKnown
	case fault == nil:
		return "written, and gone at once", exitKnown
	case fault.Code == wire.CodeReadOnly:
		return "refused (read-only file system)", exitKnown
	case fault.Code == wire.CodePermission:
		return "refused (permission denied)", exitKnown
	case fault.Code == wire.CodeNoSpace:
		return "refused (no space left on device)", exitKnown
	default:
		return fmt.Sprintf("unknown (%s)", fault.Text), exitUnknown
	}
}

// readLine says in one line what became of an item, as far as the nonce and
// the flags tell what it should be.
func readLine(item wire.Item, found *wire.Found, fault *wire.Error) (string, int) {
	switch {
	case fault != nil && fault.Code == wire.CodePermission:
		return "unknown (permission denied)", exitUnknown
	case fault != nil:
		return fmt.Sprintf("unknown (%s)", fault.Text), exitUnknown
	case !found.Present && item.Kind == kindMemory:
		return "lost (process 1 does not know it)", exitKnown
	case !found.Present:
		return "lost (no such file)", exitKnown
	case found.Torn != "":
		return fmt.Sprintf("changed (torn: %s)", found.Torn), exitKnown
	case item.Nonce == "":
		return "there" + nonceText(found), exitKnown
	case item.Kind == kindSQLite && item.Rows > 0 && found.Rows != item.Rows:
		return fmt.Sprintf("changed (%d rows -> %d)", item.Rows, found.Rows), exitKnown
	case len(found.Nonces) == 0:
		return "changed (different content)", exitKnown
	case item.Kind == kindCache && strings.HasPrefix(found.Nonces[len(found.Nonces)-1], item.Nonce+"-"):
		return "survived", exitKnown
	case found.Nonces[len(found.Nonces)-1] != item.Nonce:
		return fmt.Sprintf("changed (%s -> %s)", item.Nonce, found.Nonces[len(found.Nonces)-1]), exitKnown
	case item.Kind == kindFile && item.Mode != modeAppend && found.SHA256 != noteSum(item.Nonce, item.Size):
		return "changed (different content)", exitKnown
	default:
		return "survived", exitKnown
	}
}

func nonceText(found *wire.Found) string {
	if len(found.Nonces) == 0 {
		return ""
	}
	return fmt.Sprintf(" (written with %s)", found.Nonces[len(found.Nonces)-1])
}

// noteSum is the checksum of a file that holds one note.
func noteSum(nonce string, size int) string {
	sum := sha256.New()
	writeNote(sum, nonce, size) // a hash takes everything
	return hexSum(sum)
}
