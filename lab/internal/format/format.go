// Package format is how the ways to write a result are named and chosen: by
// name, else by the end of the file's name, else the first.
package format

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Format is one way to write a T, with options O.
type Format[T, O any] struct {
	Name  string // what --format takes
	Ext   string // usual end of a file's name, with its dot; "" for none
	Write func(w io.Writer, t T, o O) error
}

// List is the formats of one kind of result, the default one first.
type List[T, O any] []Format[T, O]

// Names are the formats' names, a comma between them.
func (l List[T, O]) Names() string {
	var names []string
	for _, f := range l {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// Pick finds the format of that name; without a name, the first for a file so
// called; else the default. The error is about the name.
func (l List[T, O]) Pick(name, file string) (Format[T, O], error) {
	for _, f := range l {
		if f.Name == name || name == "" && file != "" && f.Ext != "" && strings.EqualFold(filepath.Ext(file), f.Ext) {
			return f, nil
		}
	}
	if name == "" {
		return l[0], nil
	}
	return Format[T, O]{}, fmt.Errorf("no format %q; there are %s", name, l.Names())
}
