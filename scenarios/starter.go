package scenarios

import "strings"

// Starter gives a scenario to start from, with comments that say what to
// change. It parses as it stands. A name that is no scenario name is made one.
func Starter(name string) []byte {
	if fixed := slug(name); !slugText.re.MatchString(name) {
		name = fixed
	}
	if name == "" {
		name = "my-scenario"
	}
	return []byte(strings.ReplaceAll(starter, "NAME", name))
}

const starter = `# A scenario: data that is written, what happens to its container, and what
# should come back. Try it:
#
#   lab check NAME.yaml    is it well formed? (needs no Podman)
#   lab run NAME.yaml      run it on real Podman
#
# Editors complete and check it with the schema that lab schema prints.
version: 1
name: NAME
title: What comes back after podman rm and a fresh run
# lesson: mounting-something-that-lasts

# What a student reads first, in Markdown.
about: |
  A container writes a note. Then it is removed, and a fresh one is run from
  the same image.

# What a student answers before the run.
question: Is the note still there?

# Help with the question, from gentle to plain.
hints:
  - Where do the bytes of the note lie?

# What is written and looked for again. Other kinds:
#   rows: {sqlite: /var/lib/app/app.db, rows: 3}
#   seen: {memory: visits}
data:
  note: {file: /var/lib/app/note.txt}

# What is done, in order. A read is a checkpoint: a column of the table. Other
# steps: stop, start, restart, kill, "rm: {volumes: true}".
steps:
  - run
  - write: note
  - rm
  - run
  - read: after rm and run

# Arrangements to compare. Each says what is mounted and what is expected:
# survived, lost, changed or refused.
variants:
  no mount:
    explain: The note lay in the writable layer, and rm took it with the container.
    expect:
      after rm and run: {note: lost}

  named volume:
    explain: The note lay in a volume, which rm leaves alone.
    mounts: [{volume: mydata, target: /var/lib/app}]
    expect:
      after rm and run: {note: survived}

# Wrong predictions, the belief behind each, and one sentence that answers it.
misconceptions:
  - id: files-stay
    variant: no mount
    item: note
    predicted: survived
    belief: A file stays until somebody deletes it.
    answer: The writable layer the file lay in was deleted with the container.
`
