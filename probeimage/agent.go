//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"persistencelab/probeimage/wire"
)

// An agent works through a list of tasks, and knows of its work only what it
// can read back: it is the program around a language model, without the model.
// One write is a day of work. The agent reads its transcript, takes up the
// list after the last task that is in there, and leaves three things of each
// task: what came of it in task-N.md, a line in notes.md, and a turn in the
// transcript, saved and shown in the order item.Persist says. Without its
// memory it begins again with the first task, as if that were its first day.
//
// The memory is a folder, item.Path being the transcript in it, or, with
// item.Service, a collection of a store.

const (
	agentNotes      = "notes.md"
	agentTranscript = "transcript.jsonl" // in a store; in a folder the item says
	maxTaskList     = 64 << 10
	maxLookedAt     = 64 << 10
)

func taskFile(n int) string { return fmt.Sprintf("task-%d.md", n) }

// memory is where an agent keeps what it is to know tomorrow.
type memory interface {
	// load gives nil for what is not there.
	load(name string) ([]byte, error)
	save(name string, content []byte, c *cut) error
}

// memoryOf gives an agent's memory and what the transcript is called in it.
func (s *store) memoryOf(item wire.Item) (memory, string, error) {
	if item.Service == "" {
		dir, name := filepath.Split(item.Path)
		return memoryFolder{dir, item.Mode}, name, nil
	}
	c, err := s.services.client(item.Service)
	return memoryStore{c, item.Path}, agentTranscript, err
}

type memoryFolder struct{ dir, mode string }

func (m memoryFolder) load(name string) ([]byte, error) {
	f, err := openRegular(m.dir + name)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

func (m memoryFolder) save(name string, content []byte, c *cut) error {
	return save(m.dir+name, m.mode, c, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// memoryStore: a store replaces a value whole, or not at all.
type memoryStore struct {
	client     client
	collection string
}

func (m memoryStore) load(name string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), serviceTime)
	defer cancel()
	content, err := m.client.Get(ctx, m.collection, name)
	if isNotFound(err) {
		return nil, nil
	}
	return content, err
}

func (m memoryStore) save(name string, content []byte, _ *cut) error {
	ctx, cancel := context.WithTimeout(context.Background(), serviceTime)
	defer cancel()
	return m.client.Put(ctx, m.collection, name, content)
}

// workDay is a day of the agent. c, when not nil, is where it ends, in its
// first task.
func (s *store) workDay(item wire.Item, c *cut) error {
	list, err := readTasks(item.Tasks)
	if err != nil {
		return err
	}
	mem, transcript, err := s.memoryOf(item)
	if err != nil {
		return err
	}
	for range item.Rows {
		past, err := mem.load(transcript)
		if err != nil {
			return err
		}
		n := lastTurn(past) + 1
		if n > len(list) {
			return fmt.Errorf("%s has %d tasks, and all of them are done", item.Tasks, len(list))
		}
		task := list[n-1]
		finding, err := carryOut(task)
		if err != nil {
			return err
		}
		if err := mem.save(taskFile(n), fmt.Appendf(nil, "# %s\n\n%s\n", task, finding), nil); err != nil {
			return err
		}
		notes, err := mem.load(agentNotes)
		if err != nil {
			return err
		}
		line := fmt.Appendf(nil, "- %s: %s\n", task, finding)
		if item.Mode != modeAppend || item.Service != "" {
			line = append(notes, line...)
		}
		if err := mem.save(agentNotes, line, nil); err != nil {
			return err
		}
		err = addTurn(item, past, task, finding, c, func(content []byte) error { return mem.save(transcript, content, c) })
		if err != nil {
			return err
		}
	}
	return nil
}

func readTasks(path string) ([]string, error) {
	text, err := readAtMost(path, maxTaskList)
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			list = append(list, line)
		}
	}
	return list, nil
}

// carryOut does a task. This agent can look at files, and says what it saw.
func carryOut(task string) (string, error) {
	path, ok := strings.CutPrefix(task, "look at ")
	if !ok {
		return "I do not know how to do that: I can look at files.", nil
	}
	text, err := readAtMost(path, maxLookedAt)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return path + " is not there.", nil
	case err != nil:
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if r := []rune(strings.ToValidUTF8(first, "\uFFFD")); len(r) > 60 {
		first = string(r[:60]) + "…"
	}
	return fmt.Sprintf("%s has %d lines and begins %q.", path, bytes.Count(text, []byte("\n")), first), nil
}

func readAtMost(path string, most int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// known is what an agent would know if its day began now.
func (s *store) known(item wire.Item) (*wire.Found, error) {
	mem, transcript, err := s.memoryOf(item)
	if err != nil {
		return nil, err
	}
	past, err := mem.load(transcript)
	if past == nil || err != nil {
		return &wire.Found{}, err
	}
	found := &wire.Found{Present: true, Size: int64(len(past)), Excerpt: strings.ToValidUTF8(string(past[:min(len(past), excerptBytes)]), "\uFFFD")}
	found.SHA256 = fmt.Sprintf("%x", sha256.Sum256(past))
	if found.Nonces, found.Rows, found.Torn, err = parseTurns(bytes.NewReader(past)); err != nil {
		return nil, err
	}
	notes, err := mem.load(agentNotes)
	if n := bytes.Count(notes, []byte("\n")); err == nil && n < found.Rows && found.Torn == "" {
		found.Torn = fmt.Sprintf("%s has %d lines for %d tasks", agentNotes, n, found.Rows)
	}
	for n := 1; n <= found.Rows && err == nil && found.Torn == ""; n++ {
		var text []byte
		if text, err = mem.load(taskFile(n)); err == nil && len(text) == 0 {
			found.Torn = taskFile(n) + " is missing"
		}
	}
	return found, err
}
