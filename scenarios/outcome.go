package scenarios

import "fmt"

// Outcomes lists every outcome an expectation or a prediction may name, in
// the order people list them.
func Outcomes() []Outcome { return []Outcome{Survived, Lost, Changed, Refused, Varies} }

// MarshalText gives the outcome's word, so that JSON and csv say "unknown"
// rather than nothing.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads an outcome's word; "unknown" and "" are Unknown.
func (o *Outcome) UnmarshalText(text []byte) error {
	word := Outcome(text)
	if word == "unknown" || word == Unknown {
		*o = Unknown
		return nil
	}
	for _, known := range Outcomes() {
		if word == known {
			*o = word
			return nil
		}
	}
	return fmt.Errorf("no such outcome: %q", string(text))
}
