package scenarios

import (
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// ParsePolicy reads a durability decision table: the data: part of a scenario
// file. A whole scenario is one, and so is a file with nothing but data:
//
//	data:
//	  jobs:  {sqlite: /var/lib/app/jobs.db, acceptable_loss: none}
//	  cache: {file: /var/cache/app, acceptable_loss: all, rebuild: auto}
//
// Steps and mounts of a scenario play no part and are not looked at. The
// error is Errors: every fault, in the file's order.
func ParsePolicy(name string, src []byte) ([]Item, error) {
	d := &decoder{file: name, verbs: verbTable(), nodes: map[Position]*yaml.Node{}}
	if len(src) <= MaxBytes {
		d.source = strings.Split(lineEnds.Replace(string(src)), "\n")
	}
	root := d.document(src)
	if root == nil {
		return nil, d.errs.tidy()
	}
	fields := slices.Clone(scenarioTable())
	for i, f := range fields {
		fields[i].required = f.name == "data"
		if f.name != "data" && f.name != "version" {
			fields[i].read = func(*decoder, *yaml.Node, *draft) {}
		}
	}
	s := draft{Scenario: &Scenario{}}
	readMap(d, root, "a decision table", fields, &s)
	if len(d.errs) > 0 {
		return nil, d.errs.tidy()
	}
	return s.Data, nil
}

// Nearest is the candidate that word was probably meant to be, "" when none
// comes near.
func Nearest(word string, candidates []string) string { return nearest(word, candidates) }
