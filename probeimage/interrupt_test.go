//go:build linux

package main

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/probeimage/wire"
)

// interrupted writes the old content, then interrupts the writing of the new,
// at every point of a sweep, and counts what is there then.
func interrupted(t *testing.T, p *process, item wire.Item, points int) (count map[string]int, at []*wire.Interrupted) {
	t.Helper()
	count = map[string]int{}
	clean := false
	for i := range points {
		if !clean {
			p.call(t, wire.Request{Op: wire.Erase, Item: &item})
		}
		item.Nonce = fmt.Sprintf("old%d", i)
		old := p.call(t, wire.Request{Op: wire.Write, Item: &item})
		require.Nil(t, old.Error)
		item.Nonce = fmt.Sprintf("new%d", i)
		reply := p.call(t, wire.Request{Op: wire.Interrupt, Item: &item, Cut: &wire.Cut{Point: i, Of: points}})
		require.Nil(t, reply.Error, "point %d", i)
		require.NotZero(t, reply.Interrupted.PID)
		at = append(at, reply.Interrupted)
		found := reply.Found
		clean = false
		switch {
		case !found.Present:
			count["lost"]++
		case found.Torn != "":
			count["torn"]++
		case found.SHA256 == old.Found.SHA256:
			count["old"]++
			clean = true
			require.False(t, item.Kind == kindSQLite && reply.Interrupted.Acknowledged, "point %d: an acknowledged commit is gone", i)
		case found.Nonces[len(found.Nonces)-1] == item.Nonce || item.Kind == kindCache:
			count["new"]++
			clean = true
			if item.Kind == kindSQLite {
				require.Equal(t, old.Found.Rows+item.Rows, found.Rows)
			}
		default:
			t.Fatalf("point %d: neither old nor new: %+v", i, found)
		}
	}
	return count, at
}

// The naive ways of saving are torn by a kill in the middle, the careful ones
// never.
func TestInterruptedWrites(t *testing.T) {
	points := 60
	if os.Getenv("LAB_TEST_LONG") != "" {
		points = 500
	}
	p := start(t, nil)
	dir := t.TempDir()
	for _, c := range []struct {
		kind, mode string
		torn       bool
	}{
		{kindFile, modePlain, true},
		{kindFile, modeTruncate, true},
		{kindFile, modeFsync, true},
		{kindFile, modeAppend, true},
		{kindFile, modeAtomic, false},
		{kindTurns, modeAppend, true},
		{kindTurns, modeTruncate, true},
		{kindTurns, modeAtomic, false},
		{kindCache, modeTruncate, true},
		{kindSQLite, "", false},
	} {
		t.Run(c.kind+" "+c.mode, func(t *testing.T) {
			item := wire.Item{Kind: c.kind, Mode: c.mode, Path: filepath.Join(dir, c.kind+c.mode), Size: 20_000}
			if c.kind == kindSQLite {
				item.Size, item.Rows = 0, 200
			}
			count, at := interrupted(t, p, item, points)
			t.Log(count)
			require.Zero(t, count["lost"])
			require.NotZero(t, count["old"])
			require.NotZero(t, count["new"])
			if c.torn {
				require.Greater(t, count["torn"], points/2)
			} else {
				require.Zero(t, count["torn"])
			}
			require.Equal(t, stageBefore, at[0].Stage)
			require.Equal(t, stageAfter, at[points-1].Stage)
			require.True(t, at[points-1].Acknowledged)
			if c.kind == kindSQLite {
				return
			}
			require.Zero(t, at[1].Byte)
			require.Equal(t, at[points-2].Total, at[points-2].Byte)
			if c.mode != modeAtomic {
				return
			}
			names, err := filepath.Glob(filepath.Join(dir, ".*.tmp"))
			require.NoError(t, err)
			require.NotEmpty(t, names, "a killed writer can't take its temporary file away")
		})
	}
}

// Whoever was shown an answer that is then not in the transcript has seen
// something that never happened, as far as the program knows.
func TestPersistBeforeOrAfterShowing(t *testing.T) {
	p := start(t, nil)
	for persist, forgotten := range map[string]bool{persistBefore: false, persistAfter: true} {
		item := wire.Item{Kind: kindTurns, Mode: modeAtomic, Persist: persist, Path: filepath.Join(t.TempDir(), "history.jsonl"), Size: 4000}
		_, at := interrupted(t, p, item, 20)
		shown := 0
		for _, i := range at[:19] {
			if i.Acknowledged {
				shown++
			}
		}
		require.Equal(t, forgotten, shown > 0, persist)
	}
}

func TestATornTranscriptIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	s := newStore()
	item := wire.Item{Kind: kindTurns, Path: path, Mode: modeAppend}
	for n := 1; n <= 3; n++ {
		item.Nonce = fmt.Sprintf("n%d", n)
		require.Equal(t, n, mustWrite(t, s, item).Rows)
	}
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	for n := range whole {
		require.NoError(t, os.WriteFile(path, whole[:n], 0o644))
		found, bad := s.read(item)
		require.Nil(t, bad)
		// Whole turns are no tear: nothing says how many there should be.
		if found.Torn == "" {
			require.Contains(t, []int{1, 2, 3}, found.Rows)
			require.Contains(t, []byte("}\n"), whole[n-1])
		}
	}
}

func TestACacheIsRebuiltToTheSameBytes(t *testing.T) {
	s := newStore()
	item := wire.Item{Kind: kindCache, Path: filepath.Join(t.TempDir(), "cache"), Nonce: "input", Work: 8 << 20}
	made := mustWrite(t, s, item)
	require.NoError(t, os.Remove(item.Path))
	found, took, bad := s.rebuild(item)
	require.Nil(t, bad)
	require.Equal(t, made.SHA256, found.SHA256)
	require.Positive(t, took)
	item.Work++
	other := mustWrite(t, s, item)
	require.NotEqual(t, made.SHA256, other.SHA256, "the work must be done to know the result")
}

func TestHealthy(t *testing.T) {
	p := start(t, nil)
	p.call(t, wire.Request{Op: wire.Hello}) // it listens
	dir := t.TempDir()
	says := func(code int, text string, args ...string) {
		t.Helper()
		out, got := p.run(t, append([]string{"healthy"}, args...)...)
		require.Equal(t, code, got, out)
		require.Contains(t, out, text)
	}
	db := filepath.Join(dir, "app.db")
	says(0, "answers", "live")
	says(1, "no such file", "ready", db)
	p.call(t, wire.Request{Op: wire.Write, Item: &wire.Item{Kind: kindSQLite, Path: db, Nonce: "n", Rows: 3}})
	says(0, "3 rows", "ready", db)
	require.NoError(t, withDB(db, "mode=rw", exec1("DELETE FROM lab_rows")))
	says(1, "no rows", "ready", db)
	require.NoError(t, os.WriteFile(db, []byte("SQLite format 3\x00 and then rubbish"), 0o644))
	says(1, "torn", "ready", db)
	says(2, "healthy takes", "neither")
}

func exec1(statement string) func(*sql.DB) error {
	return func(db *sql.DB) error {
		_, err := db.Exec(statement)
		return err
	}
}
