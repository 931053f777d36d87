//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/probeimage/wire"
)

// agentItem is an agent with seven tasks that does three a day.
func agentItem(t *testing.T, mode, persist string) wire.Item {
	t.Helper()
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen.txt")
	require.NoError(t, os.WriteFile(seen, []byte("a first line\nand a second\n"), 0o644))
	tasks := filepath.Join(dir, "tasks.txt")
	require.NoError(t, os.WriteFile(tasks, []byte("look at "+seen+"\n\nlook at /nowhere\nsing\n"+strings.Repeat("look at "+seen+"\n", 4)), 0o644))
	return wire.Item{Kind: kindAgent, Path: filepath.Join(dir, "home/transcript.jsonl"), Nonce: "day1", Rows: 3, Tasks: tasks, Mode: mode, Persist: persist}
}

// What an agent knows is what it can read back: with its memory it goes on,
// without it it begins again.
func TestAgent(t *testing.T) {
	s, item := newStore(), agentItem(t, modeAtomic, persistBefore)
	home := filepath.Dir(item.Path)
	require.Equal(t, 3, mustWrite(t, s, item).Rows)
	for name, has := range map[string]string{
		"task-1.md": `has 2 lines and begins "a first line"`, "task-2.md": "/nowhere is not there", "task-3.md": "I do not know how to do that",
		agentNotes: "/nowhere is not there", "transcript.jsonl": "a first line",
	} {
		text, err := os.ReadFile(filepath.Join(home, name))
		require.NoError(t, err)
		require.Contains(t, string(text), has)
	}

	item.Nonce = "day2"
	found := mustWrite(t, newStore(), item) // another process, the same memory
	require.Equal(t, 6, found.Rows)
	require.Equal(t, []string{"day1", "day1", "day1", "day2", "day2", "day2"}, found.Nonces)

	_, fault := s.write(item) // one task is left, and three are to be done
	require.NotNil(t, fault)
	require.Contains(t, fault.Text, "has 7 tasks, and all of them are done")

	require.NoError(t, os.Remove(filepath.Join(home, "task-2.md")))
	found, fault = s.read(item)
	require.Nil(t, fault)
	require.Equal(t, "task-2.md is missing", found.Torn)

	require.NoError(t, os.RemoveAll(home))
	found, fault = s.read(item)
	require.Nil(t, fault)
	require.False(t, found.Present)
	require.Equal(t, 3, mustWrite(t, s, item).Rows)
}

// Killed in the middle of saving a task: the careful agent has the old
// transcript or the new, the others lack what was shown or have half a turn.
func TestAgentIsInterrupted(t *testing.T) {
	p := start(t, nil)
	for _, c := range []struct {
		mode, persist string
		shown, torn   bool
	}{
		{modeAtomic, persistBefore, false, false},
		{modeAtomic, persistAfter, true, false},
		{modeAppend, persistBefore, false, true},
	} {
		item := agentItem(t, c.mode, c.persist)
		old := p.call(t, wire.Request{Op: wire.Write, Item: &item})
		require.Nil(t, old.Error)
		item.Nonce = "evening"
		reply := p.call(t, wire.Request{Op: wire.Interrupt, Item: &item, Cut: &wire.Cut{Point: 1, Of: 3}})
		require.Nil(t, reply.Error, "%v", reply.Error)
		require.Equal(t, c.shown, reply.Interrupted.Acknowledged, c)
		require.Equal(t, 3, reply.Found.Rows)
		require.Equal(t, c.torn, reply.Found.Torn != "", reply.Found.Torn)
		if !c.torn {
			require.Equal(t, old.Found.SHA256, reply.Found.SHA256)
			require.Equal(t, 6, p.call(t, wire.Request{Op: wire.Write, Item: &item}).Found.Rows, "it goes on where it was")
		}
	}
}

func TestAgentIsChecked(t *testing.T) {
	good := agentItem(t, modeAtomic, persistBefore)
	require.Nil(t, checkItem(wire.Write, good))
	for what, change := range map[string]func(*wire.Item){
		"tasks":                     func(i *wire.Item) { i.Tasks = "tasks.txt" },
		"no rows to write":          func(i *wire.Item) { i.Rows = 0 },
		"an absolute path":          func(i *wire.Item) { i.Path = "home/transcript.jsonl" },
		"a row and an agent are in": func(i *wire.Item) { i.Service, i.Path = "db", "a/b" },
	} {
		bad := good
		change(&bad)
		fault := checkItem(wire.Write, bad)
		require.NotNil(t, fault, what)
		require.Contains(t, fault.Text, what)
	}
	good.Service, good.Path = "db", "agent"
	require.Nil(t, checkItem(wire.Write, good))
	require.NotNil(t, checkItem(wire.Interrupt, good), "a store can't be interrupted in the middle of a value")
}
