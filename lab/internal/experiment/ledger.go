package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Made is one thing a run makes in the engine.
type Made struct {
	Kind string `json:"kind"` // container, volume, secret, pod, image, PauseImage, Collection
	Name string `json:"name"`
	Gone bool   `json:"gone,omitempty"` // it was removed, or never came to be
}

// Ledger is the list of what a run makes, written down before it is made and
// kept on disk as long as any of it may exist: after a kill -9 it tells
// `lab clean` what the labels can't (volumes that Podman made by itself, and
// volumes without a name, carry none).
type Ledger struct {
	mu   sync.Mutex
	file *os.File
	made []Made // what may still be there: a run of any length holds little
}

// LedgerFile is the ledger's name in a run's folder.
const LedgerFile = "made.jsonl"

// OpenLedger starts a ledger in the run's folder, or goes on with the one that
// is there.
func OpenLedger(folder string) (*Ledger, error) {
	f, err := os.OpenFile(filepath.Join(folder, LedgerFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	made, torn, err := readLedger(f.Name())
	if err == nil && torn {
		_, err = f.WriteString("\n") // so that the next line is whole
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	made = left(made)
	slices.Reverse(made)
	return &Ledger{file: f, made: made}, nil
}

// Add writes down that something is about to be made.
func (l *Ledger) Add(kind, name string) error { return l.note(Made{Kind: kind, Name: name}) }

// Gone writes down that it is no more.
func (l *Ledger) Gone(kind, name string) error {
	return l.note(Made{Kind: kind, Name: name, Gone: true})
}

func (l *Ledger) note(m Made) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line, err := json.Marshal(m)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("the run's ledger: %w", err)
	}
	if m.Gone {
		m.Gone = false
		if i := slices.Index(l.made, m); i >= 0 {
			l.made = slices.Delete(l.made, i, i+1)
		}
		return nil
	}
	l.made = append(l.made, m)
	return nil
}

// Left is what was made and is not gone, the newest first.
func (l *Ledger) Left() []Made {
	l.mu.Lock()
	defer l.mu.Unlock()
	made := slices.Clone(l.made)
	slices.Reverse(made)
	return made
}

// Close closes the file; the folder's owner removes it.
func (l *Ledger) Close() error { return l.file.Close() }

// ReadLedger gives what a run that is dead had made and not removed, the
// newest first. A last line cut short by the kill is skipped: what it would
// have announced was not made yet.
func ReadLedger(folder string) ([]Made, error) {
	made, _, err := readLedger(filepath.Join(folder, LedgerFile))
	return left(made), err
}

// readLedger gives every line, and whether the last one was cut short.
func readLedger(file string) (made []Made, torn bool, err error) {
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, false, err
	}
	for line := range bytes.Lines(b) {
		var m Made
		if json.Unmarshal(line, &m) == nil && m.Kind != "" {
			made = append(made, m)
		}
	}
	return made, len(b) > 0 && b[len(b)-1] != '\n', nil
}

func left(made []Made) []Made {
	gone := map[Made]int{}
	var l []Made
	for i := len(made) - 1; i >= 0; i-- {
		m := made[i]
		key := Made{Kind: m.Kind, Name: m.Name}
		switch {
		case m.Gone:
			gone[key]++
		case gone[key] > 0:
			gone[key]--
		default:
			l = append(l, m)
		}
	}
	return l
}
