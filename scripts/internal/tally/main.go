// Tally reads the output of `go test -json` and says what a person wants of
// it: everything a failed test printed, every skip with its reason, the tests
// that take long, and go test's own closing line of each package, last. It exits
// 1 if anything failed, a package that did not build or died between two tests
// included.
//
//	go test -json ./... | tally -add counts
//
// With -add the numbers of passed, failed and skipped tests are added to the
// three in that file. Subtests count: a case of a table is a test.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

func main() {
	add := flag.String("add", "", "`file` whose three numbers (passed, failed, skipped) are added to")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	c, err := tally(os.Stdin, out)
	if err == nil && *add != "" {
		err = addTo(*add, c)
	}
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "tally: %v\n", err)
		os.Exit(1)
	}
	if c.failed > 0 {
		os.Exit(1)
	}
}

// counts are numbers of tests.
type counts struct{ passed, failed, skipped int }

// event is a line of `go test -json`: go doc test2json, go help buildjson.
type event struct {
	Action, Package, ImportPath, Test, Output, FailedBuild string
	Elapsed                                                float64 // seconds
}

// slow is from how many seconds on a test takes long.
const slow = 10

type key struct{ pkg, test string }

// tally reads events and writes the account of them.
func tally(r io.Reader, w io.Writer) (counts, error) {
	var c counts
	said := map[key]*strings.Builder{} // what each test printed so far
	failedIn := map[string]int{}       // failed tests of a package
	var closing, skips, long strings.Builder

	say := func(k key, s string) {
		if said[k] == nil {
			said[k] = &strings.Builder{}
		}
		said[k].WriteString(s)
	}
	take := func(k key) string {
		b := said[k]
		delete(said, k)
		if b == nil {
			return ""
		}
		return b.String()
	}

	events := 0
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(w, line) // go itself, before it could speak JSON
			} else {
				events++
				k := key{e.Package, e.Test}
				if e.Elapsed >= slow && e.Test != "" && !strings.Contains(e.Test, "/") {
					fmt.Fprintf(&long, "slow: %s: %.0f s\n", e.Test, e.Elapsed)
				}
				switch {
				case e.Action == "output" && e.Test == "" && closes(e.Output, e.Package):
					closing.WriteString(e.Output)
				case e.Action == "output":
					say(k, e.Output)
				case e.Action == "build-output":
					say(key{pkg: "build " + e.ImportPath}, e.Output)
				case e.Action == "pass" && e.Test != "":
					c.passed++
					take(k)
				case e.Action == "skip" && e.Test != "":
					c.skipped++
					fmt.Fprintf(&skips, "skipped: %s: %s\n", e.Test, reason(take(k)))
				case e.Action == "fail" && e.Test != "":
					c.failed++
					failedIn[e.Package]++
					fmt.Fprint(w, take(k))
				case e.Action == "fail":
					fmt.Fprint(w, take(key{pkg: "build " + e.FailedBuild}))
					// Tests that had not ended when the package died.
					for open := range said {
						if open.pkg == e.Package && open.test != "" {
							c.failed++
							failedIn[e.Package]++
							fmt.Fprint(w, take(open))
						}
					}
					fmt.Fprint(w, take(k))
					if failedIn[e.Package] == 0 {
						c.failed++
					}
				}
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return c, err
		}
	}
	if events == 0 {
		return c, errors.New("no test output at all")
	}
	fmt.Fprint(w, skips.String(), long.String(), closing.String())
	return c, nil
}

// closes tells go test's last line about a package that has tests.
func closes(line, pkg string) bool {
	return strings.Contains(line, pkg) && (strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t"))
}

// reason is what a skipped test said, on one line, without go's frame around it.
func reason(out string) string {
	var said []string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}

// addTo adds c to the three numbers in the file, which need not exist.
func addTo(file string, c counts) error {
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var was counts
	if err == nil {
		if _, err := fmt.Sscan(string(b), &was.passed, &was.failed, &was.skipped); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	sum := fmt.Sprintf("%d %d %d\n", was.passed+c.passed, was.failed+c.failed, was.skipped+c.skipped)
	return os.WriteFile(file, []byte(sum), 0o644)
}
