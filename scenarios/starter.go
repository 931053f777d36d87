package scenarios

import "strings"

// DecisionTable gives a scenario that is a durability decision table: each
// item says what may be lost of it and how it comes back, and the steps find
// out whether that is kept. It parses as it stands.
func DecisionTable(name string) []byte { return fromTemplate(decisionTable, name) }

// Starter gives a scenario to start from, with comments that say what to
// change. It parses as it stands. A name that is no scenario name is made one.
func Starter(name string) []byte { return fromTemplate(starter, name) }

func fromTemplate(text, name string) []byte {
	if fixed := slug(name); !slugText.re.MatchString(name) {
		name = fixed
	}
	if name == "" {
		name = "my-scenario"
	}
	return []byte(strings.ReplaceAll(text, "NAME", name))
}

const decisionTable = `# A durability decision table. Fill it in before you choose a single folder:
# what is it, how much of it may be lost, and who makes it again? The paths and
# mounts follow from that. Try it:
#
#   lab run NAME.yaml      do these mounts keep what the table promises?
#   lab drill NAME.yaml    the whole restart drill, and the list of losses
#   lab audit CONTAINER --policy NAME.yaml    and does a container of yours?
version: 1
name: NAME
title: What may be lost, and what is

# acceptable_loss: none, all, or the time that may be lost, like 1m. Losing
# more is a violation, whatever the scenario expects.
# rebuild: auto where the program makes it again by itself, by hand where a
# person has to. What comes back only by hand is no cache.
data:
  transcript:
    transcript: /var/lib/app/history.jsonl   # a conversation, one turn a write
    mode: atomic                             # beside the file, then renamed
    persist: before                          # saved before the answer is shown
    acceptable_loss: none
  jobs:
    sqlite: /var/lib/app/jobs.db
    rows: 3
    acceptable_loss: 1m
  answers:
    cache: /var/cache/app/answers            # lies in no mount: gone with the container
    work: 32MiB                              # what it costs to work them out again
    rebuild: auto
    acceptable_loss: all

# The mounts are a consequence of the table.
mounts: [{volume: data, target: /var/lib/app}]

steps:
  - run
  - write
  - restart
  - read: after a restart
  - crash: {during: [transcript, jobs], at: mid}
  - start
  - read: after a crash in the middle of a write
  - rm
  - run
  - read: after a redeploy

expect:
  after a restart: {transcript: survived, jobs: survived, answers: survived}
  after a crash in the middle of a write: {transcript: survived, jobs: survived, answers: survived}
  after a redeploy: {transcript: survived, jobs: survived, answers: lost}
`

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
