package browsertest

import (
	_ "embed"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed look.js
var look string

// Look checks what can be checked by measuring, on the page as it stands:
// text against its background at WCAG AA's contrast (4.5, or 3 where it is
// large), everything that can be operated has a name, every picture a
// description or none wanted, headings in order, one h1 and one main, no id
// twice, no aria reference into nothing, a language, and nothing wider than
// the window. It gives how many texts it measured.
func (p *Page) Look(t testing.TB) int {
	t.Helper()
	var found struct {
		Faults []string
		Texts  int
	}
	p.Eval(look, &found)
	require.Empty(t, found.Faults)
	require.Positive(t, found.Texts)
	return found.Texts
}
