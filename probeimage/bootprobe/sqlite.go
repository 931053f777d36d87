//go:build unix

package bootprobe

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"modernc.org/sqlite" // pure Go: the probe and the lab are static binaries
	lib "modernc.org/sqlite/lib"
)

// addRow looks at the table and adds this run's row, in one transaction that
// holds the write lock from its start: two runs at once both count.
//
// The rollback journal is kept, not the write-ahead log: at rest one file
// holds everything, which is what a copy or a volume has to carry.
func addRow(out *SQLite, r *Report, now func() time.Time) error {
	before := &Before{}
	info, err := os.Lstat(out.Path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return errors.New("something that is not a regular file has the probe's name")
	case err == nil:
		before.Present, before.Bytes = true, info.Size()
		before.AgeSeconds = float64(now().Sub(info.ModTime()).Milliseconds()) / 1000
	case !errors.Is(err, os.ErrNotExist):
		return err
	}
	out.Before = before
	if err := writable(out.Path, before.Present); err != nil {
		if before.Present {
			// What an earlier run left can be read all the same.
			readErr := withDB(out.Path, "mode=ro&immutable=1", func(tx *sql.Tx) error {
				_, err := readRows(tx, before)
				return err
			})
			out.Rows = before.Runs
			before.Damage = damageOf(readErr)
		}
		return err
	}
	err = withDB(out.Path, "_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(DELETE)&_pragma=synchronous(FULL)", func(tx *sql.Tx) error {
		if _, err := tx.Exec("CREATE TABLE IF NOT EXISTS lab_probe (n INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT NOT NULL, at TEXT NOT NULL, boot_id TEXT NOT NULL)"); err != nil {
			return err
		}
		sum, err := readRows(tx, before)
		if err != nil {
			return err
		}
		at := r.At.Format(time.RFC3339Nano)
		if _, err := tx.Exec("INSERT INTO lab_probe (run, at, boot_id) VALUES (?, ?, ?)", r.Run, at, r.BootID); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		addSum(sum, r.Run, at)
		out.Rows, out.SHA256 = before.Runs+1, hex.EncodeToString(sum.Sum(nil))
		return nil
	})
	before.Damage = damageOf(err)
	if err != nil && !before.Present {
		os.Remove(out.Path) // the empty file SQLite could not use
	}
	return err
}

// writable says in the kernel's words why the database can't be written:
// SQLite's own do not say.
func writable(path string, present bool) error {
	const w = 2 // W_OK
	if present {
		if err := syscall.Access(path, w); err != nil {
			return err
		}
	}
	return syscall.Access(filepath.Dir(path), w) // the journal goes there
}

// readRows adds what the table holds to before, and gives the running
// checksum over its rows.
func readRows(tx *sql.Tx, before *Before) (hash.Hash, error) {
	sum := sha256.New()
	rows, err := tx.Query("SELECT run, at FROM lab_probe ORDER BY n")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	before.Runs, before.Seen = 0, nil
	for rows.Next() {
		var run, at string
		if err := rows.Scan(&run, &at); err != nil {
			return nil, err
		}
		addSum(sum, run, at)
		before.Runs++
		before.Seen = append(before.Seen, run)
	}
	before.Seen = before.Seen[max(0, len(before.Seen)-seenRuns):]
	if before.Runs > 0 {
		before.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	return sum, rows.Err()
}

func addSum(h hash.Hash, run, at string) { fmt.Fprintf(h, "%q %q\n", run, at) }

// damageOf tells what SQLite can't make sense of from what could not be done.
func damageOf(err error) string {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
			return err.Error()
		}
	}
	return ""
}

// withDB runs use in one transaction.
func withDB(path, options string, use func(*sql.Tx) error) error {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: options}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	tx, err := db.Begin()
	if err != nil {
		return errors.Join(err, db.Close())
	}
	err = use(tx)
	_ = tx.Rollback() // does nothing after a commit
	return errors.Join(err, db.Close())
}
