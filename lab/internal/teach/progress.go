package teach

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"persistencelab/lab/internal/classroom"
	"persistencelab/lab/internal/files"
)

// Progress is how far a learner is. It is written in one step after every
// answer.
type Progress struct {
	Version    int            `json:"version"` // 1
	Learner    string         `json:"learner"`
	Identified bool           `json:"identified,omitempty"`
	Attempt    string         `json:"attempt,omitempty"` // file of the session that goes on; "" for none
	Draft      *Draft         `json:"draft,omitempty"`
	Done       map[string]int `json:"done"` // scenario → rounds finished
	Skipped    []string       `json:"skipped,omitempty"`

	file string
}

// Draft is a scenario whose predictions are not all there yet. It stays out
// of the attempt: nothing in it is committed to.
type Draft struct {
	Scenario string             `json:"scenario"`
	Hash     string             `json:"hash"`
	Answers  []classroom.Answer `json:"answers"`
	Hints    int                `json:"hints,omitempty"`
}

// LoadProgress reads the progress kept in dir, or starts anew: that of the
// anonymous learner, or of the one with this name. damaged is where a file
// that could not be read was put aside; "" for none.
func LoadProgress(dir, name string, random func(n int) string) (p *Progress, damaged string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, "", fmt.Errorf("the folder for your progress: %w", err)
	}
	file, learner := filepath.Join(dir, "progress.json"), name
	if name == "" {
		learner = classroom.Nickname(random)
	} else {
		sum := sha256.Sum256([]byte(name))
		file = filepath.Join(dir, "progress-"+hex.EncodeToString(sum[:8])+".json")
	}
	b, err := os.ReadFile(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, "", fmt.Errorf("your progress: %w", err)
	default:
		p = &Progress{}
		if json.Unmarshal(b, p) == nil && p.Version == 1 && p.Learner != "" {
			p.file = file
			if p.Done == nil {
				p.Done = map[string]int{}
			}
			return p, "", nil
		}
		damaged = file + ".damaged"
		if err := os.Rename(file, damaged); err != nil {
			return nil, "", fmt.Errorf("your progress: %w", err)
		}
	}
	return &Progress{Version: 1, Learner: learner, Identified: name != "", Done: map[string]int{}, file: file}, damaged, nil
}

// Anew is the progress of a new learner in the place of the last one.
func (p *Progress) Anew(random func(n int) string) {
	*p = Progress{Version: 1, Learner: classroom.Nickname(random), Done: map[string]int{}, file: p.file}
}

func (p *Progress) save() error {
	b, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return err
	}
	return files.Replace(p.file, append(b, '\n'))
}
