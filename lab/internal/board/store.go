package board

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite" // registers the driver, and names its errors
	sqlite3 "modernc.org/sqlite/lib"
)

// storeMark tells a board's file from another SQLite file ("LabB").
const storeMark = 0x4c616242

// store is the log and the state it amounts to. Changes go through one
// goroutine, which writes those that wait in one transaction: a class that
// answers all at once costs a few syncs of the disk, not two hundred.
type store struct {
	db  *sql.DB
	now func() time.Time

	mu sync.RWMutex // held for writing until what was decided is on disk
	st *state

	broken error // only the goroutine's

	ops     chan *op
	changed chan struct{} // capacity 1: something is new
	stop    chan struct{}
	done    chan struct{}
}

// op is one change: decide looks at the state and gives the events, if any.
type op struct {
	decide func(*state) ([]event, error)
	err    error
	ready  chan struct{}
}

// maxBatch bounds a transaction.
const maxBatch = 256

// openStore opens the board's file, or makes it. create false: it must be
// there.
func openStore(file string, create bool, now func() time.Time) (*store, error) {
	if _, err := os.Stat(file); err != nil && !create {
		return nil, fmt.Errorf("the board's store: %w", err)
	}
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("the board's store: %w", err)
	}
	// Exclusive: a second board on the same file is refused, and a dead one's
	// lock is gone with it.
	pragmas := url.Values{"_pragma": {"locking_mode(EXCLUSIVE)", "journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(1000)"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: abs}).EscapedPath()+"?"+pragmas.Encode())
	if err != nil {
		return nil, fmt.Errorf("the board's store %s: %w", file, err)
	}
	db.SetMaxOpenConns(1)
	s := &store{
		db: db, now: now, st: newState(),
		ops: make(chan *op), changed: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err = s.prepare(); err == nil {
		err = s.replay()
	}
	if err != nil {
		db.Close()
		return nil, storeError(file, err)
	}
	go s.loop()
	return s, nil
}

func storeError(file string, err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
			return fmt.Errorf("the board's store %s is in use by a board that runs", file)
		case sqlite3.SQLITE_NOTADB:
			return fmt.Errorf("%s is no board's store", file)
		}
	}
	return fmt.Errorf("the board's store %s: %w", file, err)
}

var errForeign = errors.New("another program's SQLite file, not a board's")

func (s *store) prepare() error {
	var mark, tables int
	if err := s.db.QueryRow("PRAGMA application_id").Scan(&mark); err != nil {
		return err
	}
	if err := s.db.QueryRow("SELECT count(*) FROM sqlite_master").Scan(&tables); err != nil {
		return err
	}
	if mark != storeMark && (mark != 0 || tables > 0) {
		return errForeign
	}
	_, err := s.db.Exec(fmt.Sprintf(`BEGIN IMMEDIATE;
PRAGMA application_id = %d;
CREATE TABLE IF NOT EXISTS log (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL) STRICT;
COMMIT`, storeMark))
	return err
}

// replay makes the state of the log.
func (s *store) replay() error {
	rows, err := s.db.Query("SELECT body FROM log ORDER BY seq")
	if err != nil {
		return err
	}
	defer rows.Close()
	st := newState()
	for rows.Next() {
		var body []byte
		var e event
		if err := rows.Scan(&body); err != nil {
			return err
		}
		if err := json.Unmarshal(body, &e); err != nil {
			return fmt.Errorf("a line of the log can't be read: %w", err)
		}
		st.apply(e)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	s.st = st
	return nil
}

// do carries out one change. When it returns nil, the change is on disk.
func (s *store) do(decide func(*state) ([]event, error)) error {
	o := &op{decide: decide, ready: make(chan struct{})}
	select {
	case s.ops <- o:
		<-o.ready
		return o.err
	case <-s.stop:
		return refuse(Unavailable, "the board is closing")
	}
}

// read looks at the state.
func (s *store) read(look func(*state)) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	look(s.st)
}

func (s *store) loop() {
	defer close(s.done)
	for {
		var batch []*op
		select {
		case o := <-s.ops:
			batch = append(batch, o)
		case <-s.stop:
			return
		}
	more:
		for len(batch) < maxBatch {
			select {
			case o := <-s.ops:
				batch = append(batch, o)
			default:
				break more
			}
		}
		s.write(batch)
	}
}

// write decides on a batch of changes, one after the other, and answers once
// all are on disk. If the disk says no, none of them happened.
func (s *store) write(batch []*op) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []event
	for _, o := range batch {
		if s.broken != nil {
			o.err = refuse(Unavailable, "the board's store is gone: %v", s.broken)
			continue
		}
		var es []event
		if es, o.err = o.decide(s.st); o.err != nil {
			continue
		}
		for _, e := range es {
			e.At = s.now().UTC().Truncate(time.Millisecond)
			s.st.apply(e)
			events = append(events, e)
		}
	}
	if len(events) > 0 {
		if err := s.append(events); err != nil {
			no := refuse(Unavailable, "the board could not write to its store: %v", err)
			for _, o := range batch {
				o.err = no
			}
			// What was applied is taken back. If the store can't be read
			// either, memory holds more than the disk: nothing more may be
			// acknowledged.
			s.broken = s.replay()
		} else {
			select {
			case s.changed <- struct{}{}:
			default:
			}
		}
	}
	for _, o := range batch {
		close(o.ready)
	}
}

func (s *store) append(events []event) error {
	tx, err := s.db.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, e := range events {
		body, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT INTO log (kind, body) VALUES (?, ?)", e.Kind, string(body)); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// close ends the goroutine and lets go of the file.
func (s *store) close() error {
	close(s.stop)
	<-s.done
	return s.db.Close()
}
