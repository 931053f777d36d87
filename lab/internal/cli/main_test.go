package cli

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes this binary the lab itself where it is started as "lab", so
// that the tests run it as a process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"lab": func() { os.Exit(Main(os.Args[1:])) },
	})
}
