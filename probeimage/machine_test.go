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

// What only the init of a virtual machine may do, a probe in a container
// refuses: a sync there is the host's, and a reboot more so.
func TestAContainerIsNoMachine(t *testing.T) {
	p := start(t, nil)
	path := filepath.Join(t.TempDir(), "note")
	for _, req := range []wire.Request{{Op: wire.Sync}, {Op: wire.Reboot}, {Op: wire.Begin, Item: &wire.Item{Kind: kindFile, Path: path, Nonce: "n", Size: 100, UpTo: 10}}} {
		reply := p.call(t, req)
		require.NotNil(t, reply.Error, req.Op)
		require.Equal(t, wire.CodeUnknownOp, reply.Error.Code, req.Op)
	}
	require.NoFileExists(t, path)
	require.NotNil(t, p.call(t, wire.Request{Op: wire.Hello}).Hello, "it serves on")
}

func TestFacts(t *testing.T) {
	s := newStore()
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	for fact, want := range map[string]string{factBootID: strings.TrimSpace(string(boot)), factHostname: host} {
		found := mustWrite(t, s, wire.Item{Kind: kindFact, Path: fact, Nonce: "n"})
		require.Equal(t, want, found.Excerpt)
	}
	require.NotNil(t, checkItem(wire.Read, wire.Item{Kind: kindFact, Path: "/etc/passwd"}))
}

func TestZeroTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note")
	s := newStore()
	mustWrite(t, s, fileItem(path, "n1", modeAppend))
	for size, text := range map[int64]string{210: strings.Repeat("\x00", 210), 5: "a\x00b" + strings.Repeat("\x00", 5), 0: "\x00end", 200_000: strings.Repeat("\x00", 200_000)} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		found, fault := s.read(fileItem(path, "", ""))
		require.Nil(t, fault)
		require.Equal(t, size, found.ZeroTail, "%.20q", text)
	}
}

// With settings of its own a database stays open between two writes: its log
// is there, not folded in, and what the settings ask for is in force.
func TestDatabasesStayOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	s := newStore()
	item := rowsItem(path, "n1", 1)
	item.Journal, item.Synchronous = "wal", "normal"
	for n := 1; n <= 21; n++ {
		require.Equal(t, n, mustWrite(t, s, item).Rows)
	}
	info, err := os.Stat(path + "-wal")
	require.NoError(t, err)
	require.NotZero(t, info.Size())
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "1"} {
		var got string
		require.NoError(t, s.open[path].QueryRow("PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
	s.close()
	require.NoFileExists(t, path+"-wal")

	item.Path, item.Journal, item.Synchronous = filepath.Join(t.TempDir(), "db"), "", "extra"
	mustWrite(t, s, item)
	for pragma, want := range map[string]string{"journal_mode": "delete", "synchronous": "3"} {
		var got string
		require.NoError(t, s.open[item.Path].QueryRow("PRAGMA "+pragma).Scan(&got))
		require.Equal(t, want, got, pragma)
	}
	s.close()
	require.Empty(t, s.open)
}

// A write that is begun leaves, for each way of saving, what a power cut at
// that moment would find.
func TestBegin(t *testing.T) {
	for mode, want := range map[string]int64{modeTruncate: 5000, modePlain: 5000, modeAtomic: 8192, modeRename: 8192, modeAppend: 8192 + 5000} {
		path := filepath.Join(t.TempDir(), "note")
		s := newStore()
		item := fileItem(path, "n1", mode)
		item.Size = 8192
		mustWrite(t, s, item)
		item.Nonce, item.UpTo = "n2", 5000
		require.Nil(t, checkItem(wire.Begin, item))
		require.Nil(t, s.begin(item))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, want, info.Size(), mode)
	}
	item := fileItem("/note", "n", "")
	item.UpTo = 1
	require.NotNil(t, checkItem(wire.Begin, item), "beyond its end")
	require.NotNil(t, checkItem(wire.Begin, rowsItem("/db", "n", 1)), "no file")
}
