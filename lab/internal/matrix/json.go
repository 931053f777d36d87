package matrix

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"persistencelab/lab/engine"
)

// DocumentVersion is the version of the JSON document.
const DocumentVersion = 1

// Document is what the JSON of a matrix says, without the evidence, which is
// read past.
type Document struct {
	Version int            `json:"version"`
	Kind    string         `json:"document"` // "matrix"
	Tool    string         `json:"tool"`
	Started time.Time      `json:"started"`
	Took    time.Duration  `json:"took_ns"`
	Engine  engine.Facts   `json:"engine"`
	Mounts  []Named        `json:"mounts"`
	Events  []Named        `json:"events"`
	Cells   []DocumentCell `json:"cells"`
}

// Named is a mount kind or an event and what it is.
type Named struct {
	Name  string `json:"name"`
	Doc   string `json:"doc"`
	Group string `json:"group,omitempty"`
}

// DocumentCell is one cell.
type DocumentCell struct {
	Mount   string        `json:"mount"`
	Event   string        `json:"event"`
	Outcome Outcome       `json:"outcome"` // "unknown" in JSON for ""
	Detail  string        `json:"detail"`
	Took    time.Duration `json:"took_ns"`
	Against *Outcome      `json:"against,omitempty"`
}

// MarshalJSON says unknown in words.
func (o Outcome) MarshalJSON() ([]byte, error) { return json.Marshal(o.String()) }

// UnmarshalJSON takes the words, and nothing else.
func (o *Outcome) UnmarshalJSON(b []byte) error {
	var word string
	if err := json.Unmarshal(b, &word); err != nil {
		return err
	}
	for _, known := range order {
		if known.String() == word {
			*o = known
			return nil
		}
	}
	return fmt.Errorf("%q is no outcome of a cell", word)
}

// JSON writes the table with every cell's records, one at a time.
func JSON(w io.Writer, t *Table, _ Options) error {
	out := bufio.NewWriter(w)
	doc := Document{
		Version: DocumentVersion, Kind: "matrix", Tool: t.Tool, Started: t.Started, Took: t.Took, Engine: t.Engine,
	}
	for _, k := range t.Mounts {
		doc.Mounts = append(doc.Mounts, Named{Name: k.Name, Doc: k.Doc})
	}
	for _, e := range t.Events {
		doc.Events = append(doc.Events, Named{Name: e.Name, Doc: e.Doc, Group: e.Group})
	}
	head, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	out.WriteString(strings.TrimSuffix(string(head), `null}`) + "[")
	for i := range t.Cells {
		c := &t.Cells[i]
		var cell struct {
			DocumentCell
			Records []json.RawMessage `json:"records"`
		}
		cell.DocumentCell = DocumentCell{Mount: c.Mount, Event: c.Event, Outcome: c.Outcome, Detail: c.Detail, Took: c.Took, Against: c.Against}
		for _, at := range c.evidence {
			rec, err := t.records.read(at)
			if err != nil {
				return fmt.Errorf("read a cell's record back: %w", err)
			}
			cell.Records = append(cell.Records, rec)
		}
		line, err := json.Marshal(cell)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		out.Write(line)
	}
	out.WriteString("\n]}\n")
	return out.Flush()
}

// Read reads a document JSON wrote.
func Read(r io.Reader) (*Document, error) {
	var doc Document
	if err := json.NewDecoder(r).Decode(&doc); err != nil {
		return nil, fmt.Errorf("this is not the json of a matrix: %w", err)
	}
	switch {
	case doc.Kind != "matrix":
		return nil, fmt.Errorf("this is not the json of a matrix")
	case doc.Version != DocumentVersion:
		return nil, fmt.Errorf("this matrix is of version %d, and this lab reads version %d", doc.Version, DocumentVersion)
	}
	return &doc, nil
}

// Table is the table that the document was written of, without its records,
// with those of the mount kinds and events that mounts and events pick (see
// SelectMounts).
func (d *Document) Table(mounts, events string) (*Table, error) {
	t := &Table{Tool: d.Tool, Started: d.Started, Took: d.Took, Engine: d.Engine}
	var err error
	if t.Mounts, err = pick("mount", mounts, kindsOf(d.Mounts), func(k Kind) string { return k.Name }); err != nil {
		return nil, err
	}
	if t.Events, err = pick("event", events, eventsOf(d.Events), func(e Event) string { return e.Name }); err != nil {
		return nil, err
	}
	cells := map[[2]string]Cell{}
	for _, c := range d.Cells {
		cells[[2]string{c.Mount, c.Event}] = Cell{Mount: c.Mount, Event: c.Event, Outcome: c.Outcome, Detail: c.Detail, Took: c.Took}
	}
	for _, k := range t.Mounts {
		for _, e := range t.Events {
			c, ok := cells[[2]string{k.Name, e.Name}]
			if !ok {
				return nil, fmt.Errorf("the cell %s × %s is not there: the file is cut off or was edited", k.Name, e.Name)
			}
			t.Cells = append(t.Cells, c)
		}
	}
	return t, nil
}

func kindsOf(names []Named) (kinds []Kind) {
	for _, n := range names {
		kinds = append(kinds, Kind{Name: n.Name, Doc: n.Doc})
	}
	return kinds
}

func eventsOf(names []Named) (events []Event) {
	for _, n := range names {
		events = append(events, Event{Name: n.Name, Doc: n.Doc, Group: n.Group})
	}
	return events
}
