//go:build linux

package main

import (
	"cmp"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"persistencelab/probeimage/wire"
)

// The durable settings: an acknowledged transaction is in the file (or its
// write-ahead log) and synced. A file system that can't have a write-ahead log
// keeps a rollback journal instead, which is as durable.
const durable = "&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)"

const schema = `CREATE TABLE IF NOT EXISTS lab_rows (
	id    INTEGER PRIMARY KEY AUTOINCREMENT,
	nonce TEXT NOT NULL,
	n     INTEGER NOT NULL
)`

// databaseFiles are the files SQLite may keep for a database.
func databaseFiles(path string) []string {
	return []string{path, path + "-wal", path + "-shm", path + "-journal"}
}

// writeSQLite adds item.Rows rows in one transaction, making the database and
// missing folders first. Closing the database afterwards folds the
// write-ahead log into it, so that at rest one file holds everything. With
// settings of its own the item's database stays open, and nothing is folded.
// c, when not nil, is where it ends instead.
func (s *store) writeSQLite(item wire.Item, c *cut) (err error) {
	c.startRows(item)
	if db := s.open[item.Path]; db != nil {
		_, err := addRows(db, item, c)
		return inKernelsWords(err, item.Path)
	}
	made, err := prepare(item.Path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && made {
			// Nothing was there before, and nothing was written.
			for _, path := range databaseFiles(item.Path) {
				os.Remove(path)
			}
		}
	}()
	if item.Journal == "" && item.Synchronous == "" {
		var committing time.Time
		err = withDB(item.Path, "mode=rw"+durable, func(db *sql.DB) (err error) {
			committing, err = addRows(db, item, c)
			return err
		})
		if err != nil {
			return inKernelsWords(err, item.Path)
		}
		s.committing = time.Since(committing)
		c.end()
		return nil
	}
	db, err := openDB(item.Path, "mode=rw"+settings(item))
	if err != nil {
		return err
	}
	if _, err := addRows(db, item, c); err != nil {
		db.Close()
		return inKernelsWords(err, item.Path)
	}
	s.open[item.Path] = db
	return nil
}

// settings are an item's own, SQLite's defaults where it has none.
func settings(item wire.Item) string {
	return "&_pragma=busy_timeout(5000)&_pragma=journal_mode(" + cmp.Or(item.Journal, "delete") +
		")&_pragma=synchronous(" + cmp.Or(item.Synchronous, "full") + ")"
}

// addRows adds the item's rows in one transaction, and tells when its commit
// began.
func addRows(db *sql.DB, item wire.Item, c *cut) (committing time.Time, err error) {
	tx, err := db.Begin()
	if err != nil {
		return committing, err
	}
	defer tx.Rollback()
	if _, err := tx.Exec(schema); err != nil {
		return committing, err
	}
	add, err := tx.Prepare("INSERT INTO lab_rows (nonce, n) VALUES (?, ?)")
	if err != nil {
		return committing, err
	}
	for n := range item.Rows {
		c.row(n)
		number := n + 1
		if item.Seq > 0 {
			// A numbered record is kept under a negative number, and so
			// told from the rows of other writes.
			number = -item.Seq
		}
		if _, err := add.Exec(item.Nonce, number); err != nil {
			return committing, err
		}
	}
	c.row(item.Rows)
	c.commit()
	committing = time.Now()
	if err := tx.Commit(); err != nil {
		return committing, err
	}
	c.acknowledge()
	return committing, nil
}

// prepare makes sure that there is a file at path that can be written, and
// tells whether it made it. SQLite's own words for a file it can't have do
// not say why.
func prepare(path string) (made bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return false, err
		}
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o644)
		made = err == nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	return made, mustBeRegular(f)
}

// inKernelsWords puts an errno to those of SQLite's results that have one.
func inKernelsWords(err error, path string) error {
	switch code(err) {
	case lib.SQLITE_FULL:
		return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	case lib.SQLITE_READONLY, lib.SQLITE_CANTOPEN:
		// The database could be opened, so it is its folder, where the log
		// goes.
		const writable = 2
		if errno := syscall.Access(filepath.Dir(path), writable); errno != nil {
			return fmt.Errorf("%w: %w", err, errno)
		}
	case lib.SQLITE_IOERR:
		// Says which call failed, not with what.
		var fs syscall.Statfs_t
		if syscall.Statfs(path, &fs) == nil && fs.Bavail == 0 {
			return fmt.Errorf("%w: %w", err, syscall.ENOSPC)
		}
	}
	return err
}

// code is SQLite's primary result code, 0 when err is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

// readSQLite looks at the rows of the database at path, in a way that leaves
// everything as it is.
func readSQLite(path string) (*wire.Found, error) {
	var found *wire.Found
	for try := 1; ; try++ {
		before, err := look(path)
		if err != nil {
			return nil, err
		}
		if before.db.size == 0 {
			return &wire.Found{Present: true, SHA256: hexSum(sha256.New()), Torn: "empty"}, nil
		}
		found, err = before.read(path)
		if err != nil {
			return nil, err
		}
		found.Size = before.db.size
		// Somebody else may have written meanwhile, and the way of reading
		// may have been wrong for that.
		if after, err := look(path); err != nil || after == before || try == 5 {
			return found, err
		}
	}
}

// sides is a database and what lies beside it.
type sides struct {
	db, wal, shm, journal fileState
}

type fileState struct {
	size  int64 // -1: there is none
	mtime int64
}

func look(path string) (s sides, err error) {
	f, err := openRegular(path)
	if err != nil {
		return s, err
	}
	f.Close()
	for suffix, state := range map[string]*fileState{"": &s.db, "-wal": &s.wal, "-shm": &s.shm, "-journal": &s.journal} {
		info, err := os.Stat(path + suffix)
		switch {
		case err == nil:
			*state = fileState{info.Size(), info.ModTime().UnixNano()}
		case errors.Is(err, os.ErrNotExist):
			*state = fileState{size: -1}
		default:
			return s, err
		}
	}
	s.shm.mtime = 0 // readers write there
	return s, nil
}

// read picks the way to read that makes no file beside the database. At rest
// the database is alone and complete, and is opened as immutable. A log that a
// killed writer left has rows of its own: where its index is there too, SQLite
// reads both as they stand. Without the index, and with a rollback journal,
// SQLite would have to write before it can read, so it is given a copy.
func (s sides) read(path string) (*wire.Found, error) {
	switch {
	case s.wal.size <= 0 && s.journal.size <= 0:
		return readRows(path, "mode=ro&immutable=1")
	case s.wal.size > 0 && s.shm.size > 0 && s.journal.size <= 0:
		found, err := readRows(path, "mode=ro&_pragma=busy_timeout(5000)")
		if c := code(err); c != lib.SQLITE_CANTOPEN && c != lib.SQLITE_READONLY {
			return found, err
		}
	}
	return readCopy(path)
}

// readCopy reads a copy of the database and its logs.
func readCopy(path string) (found *wire.Found, err error) {
	dir, err := scratchDir()
	if err != nil {
		return nil, fmt.Errorf("%s was left in the middle of a write, and there is no place to read a copy of it: %w", path, err)
	}
	defer os.RemoveAll(dir)
	twin := filepath.Join(dir, "db")
	for _, suffix := range []string{"", "-wal", "-journal"} {
		err := copyFile(path+suffix, twin+suffix)
		if err != nil && (suffix == "" || !errors.Is(err, os.ErrNotExist)) {
			return nil, err
		}
	}
	return readRows(twin, "mode=rw")
}

// scratchDir makes a folder where there is memory to write to, or at least
// room: in a read-only container /dev/shm is often all there is.
func scratchDir() (dir string, err error) {
	for _, place := range []string{"/dev/shm", os.TempDir(), "/run"} {
		if dir, err = os.MkdirTemp(place, ".lab-probe-"); err == nil {
			return dir, nil
		}
	}
	return "", err
}

func copyFile(from, to string) error {
	in, err := openRegular(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// readRows reads all rows of the database. What SQLite can't make sense of is
// torn, not an error.
func readRows(path, options string) (*wire.Found, error) {
	found := &wire.Found{Present: true}
	err := withDB(path, options, func(db *sql.DB) error {
		// Also where every row can be read, an index or a page that no row
		// needs may be damaged.
		var verdict string
		if err := db.QueryRow("PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
			return err
		}
		if verdict != "ok" {
			found.Torn = "integrity check: " + verdict
		}
		var tables int
		if err := db.QueryRow("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'lab_rows'").Scan(&tables); err != nil {
			return err
		}
		sum := sha256.New()
		defer func() { found.SHA256 = hexSum(sum) }()
		if tables == 0 {
			return nil
		}
		rows, err := db.Query("SELECT id, nonce, n FROM lab_rows ORDER BY id")
		if err != nil {
			return err
		}
		defer rows.Close()
		last := ""
		var seqs []int
		defer func() { found.Seqs = wire.Ranges(seqs) }()
		for rows.Next() {
			var id int64
			var nonce sql.NullString
			var n sql.NullInt64
			if err := rows.Scan(&id, &nonce, &n); err != nil {
				return err
			}
			fmt.Fprintf(sum, "%d %q %d\n", id, nonce.String, n.Int64)
			found.Rows++
			if !nonce.Valid || !n.Valid {
				// No row was ever written so. SQLite reads the missing
				// end of a file as zeros.
				found.Torn = fmt.Sprintf("row %d is damaged", id)
				continue
			}
			if n.Int64 < 0 {
				seqs = append(seqs, int(-n.Int64))
			}
			if nonce.String != last {
				last = nonce.String
				found.Nonces = keepNonce(found.Nonces, last)
			}
		}
		return rows.Err()
	})
	switch code(err) {
	case lib.SQLITE_CORRUPT, lib.SQLITE_NOTADB:
		found.Torn = err.Error()
		return found, nil
	}
	return found, err
}

// withDB opens a database for as long as use runs.
func withDB(path, options string, use func(*sql.DB) error) error {
	db, err := openDB(path, options)
	if err != nil {
		return err
	}
	return errors.Join(use(db), db.Close())
}

func openDB(path, options string) (*sql.DB, error) {
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: options}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}
