//go:build linux

package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/probeimage/wire"
)

func fileItem(path, nonce, mode string) wire.Item {
	return wire.Item{Kind: kindFile, Path: path, Nonce: nonce, Mode: mode}
}

func rowsItem(path, nonce string, rows int) wire.Item {
	return wire.Item{Kind: kindSQLite, Path: path, Nonce: nonce, Rows: rows}
}

func mustWrite(t *testing.T, s *store, item wire.Item) *wire.Found {
	t.Helper()
	require.Nil(t, checkItem(wire.Write, item))
	found, fault := s.write(item)
	require.Nil(t, fault, "%v", fault)
	require.True(t, found.Present)
	require.Empty(t, found.Torn)
	again, fault := s.read(item)
	require.Nil(t, fault)
	require.Equal(t, found, again, "reading again gives the same")
	return found
}

// tree lists all below dir with sizes and times: what reading must not change.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		fmt.Fprintln(&b, path, info.Mode(), info.Size(), info.ModTime().UnixNano())
		return err
	}))
	return b.String()
}

func TestFileModes(t *testing.T) {
	for _, mode := range []string{"", modePlain, modeTruncate, modeFsync, modeAtomic, modeRename, modeFsyncRename} {
		for _, size := range []int{0, 3 * pieceBytes} {
			t.Run(fmt.Sprintf("%s %d", mode, size), func(t *testing.T) {
				dir := t.TempDir()
				item := fileItem(filepath.Join(dir, "deep", "er", "note.txt"), "one", mode)
				item.Size = size
				first := mustWrite(t, newStore(), item)
				require.Equal(t, []string{"one"}, first.Nonces)
				require.Equal(t, noteSum("one", size), first.SHA256)
				require.True(t, strings.HasPrefix(first.Excerpt, noteHead))
				if size > 0 {
					require.EqualValues(t, size, first.Size)
				}

				item.Nonce, item.Size = "two", 0 // shorter: nothing of the old may stay
				second := mustWrite(t, newStore(), item)
				require.Equal(t, []string{"two"}, second.Nonces)
				require.Equal(t, noteSum("two", 0), second.SHA256)

				left, err := os.ReadDir(filepath.Dir(item.Path))
				require.NoError(t, err)
				require.Len(t, left, 1, "no temporary file is left")
				info, err := os.Stat(item.Path)
				require.NoError(t, err)
				require.Equal(t, fs.FileMode(0o644), info.Mode())
			})
		}
	}
}

func TestAtomicReplacesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "note")
	inode := func(mode, nonce string) uint64 {
		mustWrite(t, newStore(), fileItem(path, nonce, mode))
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Sys().(*syscall.Stat_t).Ino
	}
	first := inode(modePlain, "a")
	require.Equal(t, first, inode(modeTruncate, "b"), "in place")
	require.NotEqual(t, first, inode(modeAtomic, "c"), "another file under the name")
}

func TestAppendKeepsWhatWasThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	s := newStore()
	mustWrite(t, s, fileItem(path, "one", modeAppend))
	found := mustWrite(t, s, fileItem(path, "two", modeAppend))
	require.Equal(t, []string{"one", "two"}, found.Nonces)
	require.Len(t, found.Excerpt, excerptBytes)
}

func TestReadFindsWhatIsWrongWithAFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "note")
	for name, tc := range map[string]struct{ content, torn string }{
		"cut short": {string(note("n", 5000)[:4096]), "ends after 4096 of 5000 bytes"},
		"emptied":   {"", "empty"},
		"foreign":   {"\xff\xfebinary", ""},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, []byte(tc.content), 0o644))
			found, fault := newStore().read(fileItem(path, "", ""))
			require.Nil(t, fault)
			require.True(t, found.Present)
			require.Equal(t, tc.torn, found.Torn)
			require.EqualValues(t, len(tc.content), found.Size)
			_, err := json.Marshal(found)
			require.NoError(t, err)
		})
	}
}

func TestReadNeverCreates(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), nil, 0o644))
	before := tree(t, dir)
	for _, kind := range []string{kindFile, kindSQLite} {
		for _, path := range []string{"missing", "no/such/folder/x", "plain/x"} {
			found, fault := newStore().read(wire.Item{Kind: kind, Path: filepath.Join(dir, path)})
			require.Nil(t, fault, "%s %s", kind, path)
			require.Equal(t, &wire.Found{}, found, "%s %s", kind, path)
		}
	}
	found, fault := newStore().read(wire.Item{Kind: kindMemory, Path: "visits"})
	require.Nil(t, fault)
	require.False(t, found.Present)
	require.Equal(t, before, tree(t, dir))
}

func TestWhatIsNoFileIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o644))
	for _, kind := range []string{kindFile, kindSQLite} {
		for _, path := range []string{dir, pipe, "/dev/zero"} {
			item := wire.Item{Kind: kind, Path: path, Nonce: "n", Rows: 1}
			_, fault := newStore().read(item)
			require.NotNil(t, fault, "read %s %s", kind, path)
			require.Equal(t, wire.CodeIO, fault.Code)
			_, fault = newStore().write(item)
			require.NotNil(t, fault, "write %s %s", kind, path)
			require.Equal(t, wire.CodeIO, fault.Code)
		}
	}
}

func TestMemory(t *testing.T) {
	s := newStore()
	item := wire.Item{Kind: kindMemory, Path: "visits", Nonce: "one"}
	first := mustWrite(t, s, item)
	item.Nonce = "two"
	second := mustWrite(t, s, item)
	require.NotEqual(t, first.SHA256, second.SHA256)
	require.Equal(t, []string{"two"}, second.Nonces)
	require.Zero(t, second.Size)
}

func TestSQLiteRows(t *testing.T) {
	dir := t.TempDir()
	item := rowsItem(filepath.Join(dir, "new", "a b?c#d%.db"), "one", 3)
	s := newStore()
	first := mustWrite(t, s, item)
	require.Equal(t, 3, first.Rows)
	require.Equal(t, []string{"one"}, first.Nonces)
	item.Nonce, item.Rows = "two", 2
	second := mustWrite(t, s, item)
	require.Equal(t, 5, second.Rows)
	require.Equal(t, []string{"one", "two"}, second.Nonces)
	require.NotEqual(t, first.SHA256, second.SHA256)

	left, err := os.ReadDir(filepath.Dir(item.Path))
	require.NoError(t, err)
	require.Len(t, left, 1, "at rest one file holds everything")

	other := rowsItem(filepath.Join(dir, "other.db"), "one", 3)
	require.Equal(t, first.SHA256, mustWrite(t, s, other).SHA256, "the sum is of the rows, not of the file")
}

func TestSQLiteFindsWhatIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	mustWrite(t, newStore(), rowsItem(path, "one", 2000))
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for name, content := range map[string][]byte{
		"cut in the middle": whole[:len(whole)/2],
		"cut in a page":     whole[:len(whole)-100],
		"another file":      []byte(strings.Repeat("not a database", 100)),
		"emptied":           {},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(path, content, 0o644))
			found, fault := newStore().read(rowsItem(path, "", 0))
			require.Nil(t, fault, "%v", fault)
			require.True(t, found.Present)
			require.NotEmpty(t, found.Torn)
		})
	}
	t.Run("no rows of ours", func(t *testing.T) {
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		require.NoError(t, withDB(path, "mode=rw", func(db *sql.DB) error {
			_, err := db.Exec("CREATE TABLE theirs (x)")
			return err
		}))
		found, fault := newStore().read(rowsItem(path, "", 0))
		require.Nil(t, fault)
		require.True(t, found.Present)
		require.Zero(t, found.Rows)
		require.Empty(t, found.Torn)
	})
}

// killedWriter leaves what a writer that was killed leaves: rows that are
// only in the write-ahead log.
func killedWriter(t *testing.T, dir string) string {
	t.Helper()
	live := filepath.Join(dir, "live.db")
	mustWrite(t, newStore(), rowsItem(live, "one", 3))
	require.NoError(t, withDB(live, "mode=rw"+durable, func(db *sql.DB) error {
		_, err := db.Exec("INSERT INTO lab_rows (nonce, n) VALUES ('two', 1)")
		if err != nil {
			return err
		}
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := copyFile(live+suffix, filepath.Join(dir, "killed.db"+suffix)); err != nil {
				return err
			}
		}
		return nil
	}))
	return filepath.Join(dir, "killed.db")
}

func TestSQLiteReadsTheLogOfAKilledWriter(t *testing.T) {
	for _, shm := range []bool{true, false} {
		t.Run(fmt.Sprintf("index %v", shm), func(t *testing.T) {
			dir := t.TempDir()
			path := killedWriter(t, dir)
			if !shm {
				require.NoError(t, os.Remove(path+"-shm"))
			}
			names := func() (list []string) {
				entries, err := os.ReadDir(dir)
				require.NoError(t, err)
				for _, e := range entries {
					list = append(list, e.Name())
				}
				return list
			}
			before := names()
			for range 2 {
				found, fault := newStore().read(rowsItem(path, "", 0))
				require.Nil(t, fault, "%v", fault)
				require.Equal(t, 4, found.Rows)
				require.Equal(t, []string{"one", "two"}, found.Nonces)
			}
			require.Equal(t, before, names(), "nothing came into being, nothing went")
		})
	}
}

func TestSQLiteReadsPastAHotJournal(t *testing.T) {
	// A writer with a rollback journal, killed before its commit: what it
	// put into the database is to be rolled back by whoever reads.
	dir := t.TempDir()
	live, path := filepath.Join(dir, "live.db"), filepath.Join(dir, "killed.db")
	mustWrite(t, newStore(), rowsItem(live, "one", 3))
	require.NoError(t, withDB(live, "mode=rw&_pragma=journal_mode(DELETE)&_pragma=cache_size(1)&_pragma=cache_spill(1)", func(db *sql.DB) error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		for n := range 5000 { // more than the cache holds: spilled into the file
			if _, err := tx.Exec("INSERT INTO lab_rows (nonce, n) VALUES ('two', ?)", n); err != nil {
				return err
			}
		}
		for _, suffix := range []string{"", "-journal"} {
			if err := copyFile(live+suffix, path+suffix); err != nil {
				return err
			}
		}
		return nil
	}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(50_000), "the transaction did reach the file")
	before := tree(t, dir)
	found, fault := newStore().read(rowsItem(path, "", 0))
	require.Nil(t, fault, "%v", fault)
	require.Empty(t, found.Torn)
	require.Equal(t, 3, found.Rows)
	require.Equal(t, before, tree(t, dir))
}

func TestCheckItem(t *testing.T) {
	ok := fileItem("/a/b", "n", "")
	require.Nil(t, checkItem(wire.Write, ok))
	for name, change := range map[string]func(*wire.Item){
		"kind":              func(i *wire.Item) { i.Kind = "fifo" },
		"relative path":     func(i *wire.Item) { i.Path = "a" },
		"path with dots":    func(i *wire.Item) { i.Path = "/a/../b" },
		"the root":          func(i *wire.Item) { i.Path = "/" },
		"mode":              func(i *wire.Item) { i.Mode = "careful" },
		"no nonce":          func(i *wire.Item) { i.Nonce = "" },
		"nonce with spaces": func(i *wire.Item) { i.Nonce = "a b" },
		"nonce with a line": func(i *wire.Item) { i.Nonce = "a\nb" },
		"long nonce":        func(i *wire.Item) { i.Nonce = strings.Repeat("n", maxNonce+1) },
		"size":              func(i *wire.Item) { i.Size = maxSize + 1 },
		"rows":              func(i *wire.Item) { i.Rows = -1 },
		"no rows":           func(i *wire.Item) { i.Kind = kindSQLite },
		"no variable":       func(i *wire.Item) { i.Kind, i.Path = kindMemory, "" },
	} {
		item := ok
		change(&item)
		fault := checkItem(wire.Write, item)
		require.NotNil(t, fault, name)
		require.Equal(t, wire.CodeBadRequest, fault.Code, name)
	}
}

func TestErase(t *testing.T) {
	dir := t.TempDir()
	s := newStore()
	for _, item := range []wire.Item{
		fileItem(filepath.Join(dir, "note"), "n1", ""),
		rowsItem(filepath.Join(dir, "db"), "n1", 3),
		{Kind: kindMemory, Path: "visits", Nonce: "n1"},
	} {
		mustWrite(t, s, item)
		for range 2 { // what is gone is gone already
			found, fault := s.erase(item)
			require.Nil(t, fault)
			require.False(t, found.Present)
		}
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// The environment is what the process was started with.
func TestEnvironmentFact(t *testing.T) {
	t.Setenv("GREETING", "hello")
	s := newStore()
	item := wire.Item{Kind: kindFact, Path: "env:GREETING", Nonce: "n"}
	require.Equal(t, "hello", mustWrite(t, s, item).Excerpt)
	item.Path = "env:NOBODY_SETS_THIS"
	found, fault := s.read(item)
	require.Nil(t, fault)
	require.False(t, found.Present)
	for _, bad := range []string{"env:", "env:a b", "environment"} {
		item.Path = bad
		require.NotNil(t, checkItem(wire.Read, item), bad)
	}
}
