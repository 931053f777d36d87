package teach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"persistencelab/lab/internal/classroom"
	"persistencelab/scenarios"
)

// AnswersHelp describes an answers file.
const AnswersHelp = `An answers file (YAML) stands for a person at the keyboard:

  version: 1
  answers:
    three-mounts:
      predict:                      # variant → item → survived, lost, changed or
        no mount:                   # refused; "sure" or "unsure" may follow
          note: survived sure
          rows: lost
          seen: lost unsure
        named volume: survived      # for all items
        bind mount:
          after rm and run: {note: survived, rows: survived, seen: lost}
      seen: as shown                # or as predict has it; left out: no answer
      hints: 1                      # ask for so many hints first
    stop-and-start: {predict: lost} # for everything
    another-scenario: {skip: true}

A scenario that is not named is skipped.`

// Answers is a learner in a file. It implements Keys.
type Answers struct {
	file      string
	scenarios map[string]scriptedAnswers
	// hinted are the scenarios whose hints were asked for.
	hinted map[string]bool
}

type scriptedAnswers struct {
	Predict any  `yaml:"predict"`
	Seen    any  `yaml:"seen"`
	Hints   int  `yaml:"hints"`
	Skip    bool `yaml:"skip"`
}

// AnswersError says what is wrong with an answers file.
type AnswersError struct{ File, Reason string }

func (e *AnswersError) Error() string { return e.File + ": " + e.Reason }

// maxAnswers bounds an answers file, in bytes.
const maxAnswers = 1 << 20

// ParseAnswers reads an answers file. Every error is an *AnswersError.
func ParseAnswers(file string, src []byte) (*Answers, error) {
	bad := func(format string, args ...any) error {
		return &AnswersError{file, fmt.Sprintf(format, args...)}
	}
	if len(src) > maxAnswers {
		return nil, bad("larger than %d MB", maxAnswers>>20)
	}
	if bytes.ContainsAny(src, "&*") {
		// No answer needs one, and aliases can make a small file enormous.
		return nil, bad("anchors and aliases are not understood here")
	}
	var doc struct {
		Version int                        `yaml:"version"`
		Answers map[string]scriptedAnswers `yaml:"answers"`
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	dec.KnownFields(true)
	if err := dec.Decode(&doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, bad("%s", strings.TrimPrefix(strings.Join(strings.Fields(err.Error()), " "), "yaml: "))
	}
	switch {
	case doc.Version != 1:
		return nil, bad("version must be 1")
	case len(doc.Answers) == 0:
		return nil, bad("answers: names no scenario")
	}
	return &Answers{file, doc.Answers, map[string]bool{}}, nil
}

// Check finds out before anything runs whether every question of the scenarios
// is answered.
func (a *Answers) Check(list []*scenarios.Scenario) error {
	for _, s := range list {
		mine, ok := a.scenarios[s.Name]
		if !ok || mine.Skip {
			continue
		}
		if mine.Hints < 0 || mine.Hints > len(Hints(s)) {
			return &AnswersError{a.file, fmt.Sprintf("%s: hints must be 0 to %d", s.Name, len(Hints(s)))}
		}
		for _, q := range Questions(s) {
			keys, err := a.predictKeys(s.Name, q)
			if err != nil {
				return err
			}
			o, _ := outcomeOf([]rune(strings.ToLower(keys))[0], scenarios.Outcomes())
			if !slices.Contains(Choices(s), o) {
				return &AnswersError{a.file, fmt.Sprintf("%s, %s: %q can't be predicted here", s.Name, q.Variant, o)}
			}
			if _, err := a.seenKey(s.Name, q, scenarios.Unknown); err != nil {
				return err
			}
		}
	}
	return nil
}

// Keys answers what is asked from the file.
func (a *Answers) Keys(_ context.Context, ask Ask) (string, error) {
	mine, ok := a.scenarios[ask.Scenario]
	switch ask.Moment {
	case Predict:
		if !ok || mine.Skip {
			return "s", nil
		}
		keys, err := a.predictKeys(ask.Scenario, ask.Question)
		if !a.hinted[ask.Scenario] {
			a.hinted[ask.Scenario] = true
			keys = strings.Repeat("h", mine.Hints) + keys
		}
		return keys, err
	case See:
		return a.seenKey(ask.Scenario, ask.Question, ask.Shown)
	}
	return "\n", nil
}

func (a *Answers) predictKeys(scenario string, q classroom.Question) (string, error) {
	word, err := a.find(a.scenarios[scenario].Predict, scenario, "predict", q)
	if err != nil {
		return "", err
	}
	outcome, sure, _ := strings.Cut(word, " ")
	key := string(keyOf[scenarios.Outcome(outcome)])
	switch {
	case keyOf[scenarios.Outcome(outcome)] == 0:
	case sure == "":
		return key, nil
	case sure == "sure":
		return strings.ToUpper(key), nil
	case sure == "unsure":
		return key + "-", nil
	}
	return "", &AnswersError{a.file, fmt.Sprintf("%s, %s: %q is no prediction; write survived, lost, changed or refused, and sure or unsure after it", scenario, q.Variant, word)}
}

func (a *Answers) seenKey(scenario string, q classroom.Question, shown scenarios.Outcome) (string, error) {
	said := a.scenarios[scenario].Seen
	switch said {
	case nil:
		return "s", nil
	case "as shown":
		if key := keyOf[shown]; key != 0 {
			return string(key), nil
		}
		return "u", nil
	}
	word, err := a.find(said, scenario, "seen", q)
	if err != nil {
		return "", err
	}
	if key := keyOf[scenarios.Outcome(word)]; key != 0 {
		return string(key), nil
	}
	if word == "unknown" {
		return "u", nil
	}
	return "", &AnswersError{a.file, fmt.Sprintf("%s, %s: %q can't be seen; write survived, lost, changed, refused, unknown, or as shown for all", scenario, q.Variant, word)}
}

// find gives the word for one question: of everything, of the variant, of the
// checkpoint, or of the item alone.
func (a *Answers) find(v any, scenario, part string, q classroom.Question) (string, error) {
	path := []string{q.Variant, q.Checkpoint, q.Item}
	for i := 0; ; i++ {
		switch x := v.(type) {
		case string:
			return strings.Join(strings.Fields(x), " "), nil
		case map[string]any:
			if i == len(path) {
				break
			}
			next, ok := x[path[i]]
			if !ok && i == 1 { // no checkpoint named: its items
				continue
			}
			if ok {
				v = next
				continue
			}
		}
		return "", &AnswersError{a.file, fmt.Sprintf("%s: %s: has nothing for %s, %s, %s", scenario, part, q.Variant, q.Checkpoint, q.Item)}
	}
}
