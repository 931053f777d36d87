package format_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/lab/internal/format"
)

func TestPick(t *testing.T) {
	all := format.List[int, int]{{Name: "text", Ext: ".txt"}, {Name: "html", Ext: ".html"}, {Name: "gradebook"}, {Name: "page", Ext: ".html"}}
	for _, c := range []struct{ name, file, want string }{
		{"", "", "text"},
		{"", "class.html", "html"},
		{"", "CLASS.HTML", "html"},
		{"", "class.pdf", "text"},
		{"", "class", "text"},
		{"page", "class.txt", "page"},
		{"gradebook", "", "gradebook"},
	} {
		f, err := all.Pick(c.name, c.file)
		require.NoError(t, err)
		require.Equal(t, c.want, f.Name, "%+v", c)
	}
	_, err := all.Pick("docx", "class.html")
	require.EqualError(t, err, `no format "docx"; there are text, html, gradebook, page`)
}
