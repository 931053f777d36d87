package classroom

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
)

// A gradebook gets three columns, and the teacher maps those that count: the
// share of the class table's scenarios that were done, and the share of
// predictions that were right in the first and in the last round. A wrong
// prediction is how the lesson works, so "done" is the one to grade.
var gradeColumns = []string{"Persistence Lab: done", "Persistence Lab: right before", "Persistence Lab: right after"}

// grades are whole numbers from 0 to 100: no decimal sign, which gradebooks
// read by the language they are set to. "" is no grade.
func (t *Table) grades(l *Learner) []string {
	hundred := func(n, of int) string {
		if of == 0 {
			return ""
		}
		return fmt.Sprint((200*n + of) / (2 * of))
	}
	return []string{
		hundred(len(l.Scenarios), len(t.Scenarios)),
		hundred(l.Total.Before.Right, l.Total.Before.Of()),
		hundred(l.Total.After.Right, l.Total.After.Of()),
	}
}

// Roster says who a learner is in a gradebook: by nickname or name.
type Roster map[string]Person

// Person is one line of a roster. Empty is not known.
type Person struct {
	Name, Email, Username, IDNumber, CanvasID, SISUserID, SISLoginID, Section string
}

// RosterColumns are what a roster's header may name.
const RosterColumns = "learner, name, email, username, id_number, canvas_id, sis_user_id, sis_login_id, section"

// maxRoster bounds a roster, in bytes.
const maxRoster = 4 << 20

// ReadRoster reads a CSV file whose header names the column learner and some
// of the others in RosterColumns.
func ReadRoster(r io.Reader) (Roster, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxRoster+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxRoster {
		return nil, fmt.Errorf("the roster is larger than %d MB", maxRoster>>20)
	}
	rows, err := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(b, []byte("\ufeff")))).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("the roster: %w", err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("the roster is empty; its first line names columns: %s", RosterColumns)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		name = strings.ToLower(strings.TrimSpace(name))
		if !strings.Contains(", "+RosterColumns+",", ", "+name+",") || name == "" {
			return nil, fmt.Errorf("the roster has an unknown column %q; there are %s", name, RosterColumns)
		}
		column[name] = i
	}
	if _, ok := column["learner"]; !ok {
		return nil, fmt.Errorf("the roster has no column learner")
	}
	roster := Roster{}
	for n, row := range rows[1:] {
		get := func(name string) string {
			if i, ok := column[name]; ok {
				return strings.TrimSpace(row[i])
			}
			return ""
		}
		key := get("learner")
		if _, twice := roster[key]; twice {
			return nil, fmt.Errorf("the roster has %q twice, the second time in line %d", key, n+2)
		}
		roster[key] = Person{get("name"), get("email"), get("username"), get("id_number"), get("canvas_id"), get("sis_user_id"), get("sis_login_id"), get("section")}
	}
	return roster, nil
}

// person is who a learner is, at least by name.
func (o Options) person(l *Learner) Person {
	p := o.Roster[l.Name]
	if p.Name == "" {
		p.Name = l.Name
	}
	return p
}

// Unmatched are the learners a gradebook can't know: they have a nickname,
// and the roster does not name them.
func (t *Table) Unmatched(r Roster) []string {
	var names []string
	for i := range t.Learners {
		if l := &t.Learners[i]; !l.Identified {
			if _, ok := r[l.Name]; !ok {
				names = append(names, l.Name)
			}
		}
	}
	return names
}

// Moodle writes a file for Moodle's grade import (Grades → Import → CSV file).
// Moodle identifies a user by one of email address, ID number, username or
// Moodle's own id, which the teacher picks under "Map from", and asks for each
// other column whether it is a grade item; names are free. A grade is a number
// up to 100, and "-" is no grade (grade/import/csv/classes/load_data.php).
func Moodle(w io.Writer, t *Table, o Options) error {
	rows := [][]string{append([]string{"Full name", "Username", "ID number", "Email address"}, gradeColumns...)}
	for i := range t.Learners {
		l := &t.Learners[i]
		p := o.person(l)
		row := []string{p.Name, p.Username, p.IDNumber, p.Email}
		for _, g := range t.grades(l) {
			if g == "" {
				g = "-"
			}
			row = append(row, g)
		}
		rows = append(rows, row)
	}
	return writeCSV(w, rows)
}

// Canvas writes a file for Canvas' gradebook import. Canvas wants the columns
// Student, ID, SIS User ID, SIS Login ID and Section first, in this order,
// then one column for each assignment, and finds a student by Canvas' id, then
// the SIS user id, the SIS login id, and the name. A first row "Points
// Possible" says what an assignment is worth; an assignment it does not know it
// offers to make (lib/gradebook_importer.rb).
func Canvas(w io.Writer, t *Table, o Options) error {
	rows := [][]string{
		append([]string{"Student", "ID", "SIS User ID", "SIS Login ID", "Section"}, gradeColumns...),
		{"Points Possible", "", "", "", "", "100", "100", "100"},
	}
	for i := range t.Learners {
		l := &t.Learners[i]
		p := o.person(l)
		rows = append(rows, append([]string{p.Name, p.CanvasID, p.SISUserID, p.SISLoginID, p.Section}, t.grades(l)...))
	}
	return writeCSV(w, rows)
}
