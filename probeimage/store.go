//go:build linux

package main

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"persistencelab/probeimage/wire"
)

// Bounds of one item: more is a mistake, and would only fill a disk.
const (
	maxNonce = 128
	maxRows  = 100_000
	maxSeq   = 10_000_000
	maxSize  = 1 << 30
	maxVars  = 1024 // variables in memory
	maxWork  = 16 << 30
	maxCuts  = 10_000
	// keptNonces is how many nonces Found lists; the last ones are kept.
	keptNonces = 64
)

// Kinds and modes as the scenario file has them.
const (
	kindFile   = "file"
	kindSQLite = "sqlite"
	kindMemory = "memory"
	kindFact   = "fact"
	kindTurns  = "transcript"
	kindCache  = "cache"
	kindAgent  = "agent"
	kindRow    = "row"
	kindKey    = "key"
	kindObject = "object"

	modePlain    = "plain"
	modeTruncate = "truncate"
	modeFsync    = "fsync"
	modeAtomic   = "atomic"
	modeAppend   = "append"

	modeRename      = "rename"       // temporary file, rename; nothing synced
	modeFsyncRename = "fsync-rename" // the same with the file synced, the folder not

	persistBefore = "before"
	persistAfter  = "after"
)

// store holds the variables and knows where everything else is. Its methods
// expect an item that checkItem let pass.
type store struct {
	vars map[string]string  // variable → nonce of the last write
	open map[string]*sql.DB // databases kept open, by path
	held []*os.File         // files of writes that were begun and are never finished

	// committing is how long the last commit took, closing included: what
	// the points in a commit are spread over.
	committing time.Duration

	services services
}

func newStore() *store {
	return &store{vars: map[string]string{}, open: map[string]*sql.DB{}, services: services{}}
}

func (s *store) write(item wire.Item) (*wire.Found, *wire.Error) {
	if _, known := s.vars[item.Path]; item.Kind == kindMemory && !known && len(s.vars) >= maxVars {
		return nil, badRequest("%d variables are enough", maxVars)
	}
	switch item.Kind {
	case kindRow, kindKey, kindObject:
		return s.services.write(item)
	}
	if err := s.put(item, nil); err != nil {
		return nil, serviceFault(err)
	}
	return s.read(item)
}

// put writes item. c, when not nil, is where it ends instead.
func (s *store) put(item wire.Item, c *cut) error {
	switch item.Kind {
	case kindFile:
		return writeFile(item, c)
	case kindTurns:
		return writeTurn(item, c)
	case kindAgent:
		return s.workDay(item, c)
	case kindCache:
		return writeCache(item, c)
	case kindSQLite:
		return s.writeSQLite(item, c)
	case kindMemory:
		s.vars[item.Path] = item.Nonce
	case kindFact:
		// Nobody writes a fact; the answer notes it.
	}
	return nil
}

func (s *store) read(item wire.Item) (*wire.Found, *wire.Error) {
	var found *wire.Found
	var err error
	switch item.Kind {
	case kindFile, kindCache:
		found, err = readFile(item.Path, parseNotes)
	case kindTurns:
		found, err = readTurns(item.Path)
	case kindAgent:
		found, err = s.known(item)
	case kindSQLite:
		found, err = readSQLite(item.Path)
	case kindFact:
		found, err = readFact(item.Path)
	case kindRow, kindKey, kindObject:
		return s.services.read(item)
	case kindMemory:
		found = &wire.Found{}
		if value, ok := s.vars[item.Path]; ok {
			sum := sha256.Sum256([]byte(value))
			found = &wire.Found{Present: true, SHA256: hex.EncodeToString(sum[:]), Nonces: []string{value}, Excerpt: value}
		}
	}
	switch {
	// A missing folder, and a file where a folder should be, both mean that
	// the place could be looked at and the item is not there.
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENOTDIR):
		return &wire.Found{}, nil
	case err != nil:
		return nil, serviceFault(err)
	}
	return found, nil
}

// erase takes an item away, a database with the files beside it. One that is
// not there is gone already.
func (s *store) erase(item wire.Item) (*wire.Found, *wire.Error) {
	switch item.Kind {
	case kindMemory:
		delete(s.vars, item.Path)
	case kindFile, kindTurns, kindCache, kindSQLite, kindAgent:
		paths := []string{item.Path}
		if item.Kind == kindSQLite {
			paths = databaseFiles(item.Path)
		}
		for _, path := range paths {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return nil, fault(err)
			}
		}
	}
	return s.read(item)
}

// Facts: what the kernel says of itself, and what process 1 was told when it
// was started. Nothing is written; a "write" notes the value, so that a later
// look can be compared.
const (
	factBootID   = "boot-id"
	factHostname = "hostname"
	factEnv      = "env:" // a variable's name follows
)

func readFact(name string) (*wire.Found, error) {
	var value string
	var err error
	if variable, ok := strings.CutPrefix(name, factEnv); ok {
		if value, ok = os.LookupEnv(variable); !ok {
			return &wire.Found{}, nil
		}
	} else if name == factBootID {
		value, err = bootID()
	} else {
		value, err = os.Hostname()
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(value))
	return &wire.Found{Present: true, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(value)), Excerpt: value}, nil
}

func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// begin starts a write and leaves it where it is.
func (s *store) begin(item wire.Item) *wire.Error {
	f, err := beginFile(item)
	if err != nil {
		return fault(err)
	}
	s.held = append(s.held, f)
	syscall.Sync()
	return nil
}

// close closes the databases kept open.
func (s *store) close() {
	for path, db := range s.open {
		db.Close()
		delete(s.open, path)
	}
}

// checkItem says what is wrong with an item, or nil.
func checkItem(op wire.Op, item wire.Item) *wire.Error {
	switch kind := item.Kind; {
	case kind == kindAgent && item.Service != "", kind == kindRow, kind == kindKey, kind == kindObject:
		if fault := checkServiceItem(item); fault != nil {
			return fault
		}
	case kind == kindFile, kind == kindSQLite, kind == kindTurns, kind == kindCache, kind == kindAgent:
		if !filepath.IsAbs(item.Path) || filepath.Clean(item.Path) != item.Path || item.Path == "/" || len(item.Path) > 4096 {
			return badRequest("%s %.80q: an absolute path is needed", item.Kind, item.Path)
		}
	case kind == kindMemory:
		if !word(item.Path) {
			return badRequest("memory %.80q: the name of a variable is needed", item.Path)
		}
	case kind == kindFact:
		variable, _ := strings.CutPrefix(item.Path, factEnv)
		if item.Path != factBootID && item.Path != factHostname && (variable == item.Path || !word(variable)) {
			return badRequest("unknown fact %.40q: %s, %s or %sNAME", item.Path, factBootID, factHostname, factEnv)
		}
	default:
		return badRequest("unknown kind %.40q: file, sqlite, transcript, cache, agent, memory, fact, row, key or object", item.Kind)
	}
	for _, word := range []struct {
		what, value string
		known       []string
	}{
		{"mode", item.Mode, []string{modePlain, modeTruncate, modeFsync, modeAtomic, modeAppend, modeRename, modeFsyncRename}},
		{"persist", item.Persist, []string{persistBefore, persistAfter}},
		{"journal", item.Journal, []string{"wal", "delete"}},
		{"synchronous", item.Synchronous, []string{"off", "normal", "full", "extra"}},
	} {
		if word.value != "" && !slices.Contains(word.known, word.value) {
			return badRequest("unknown %s %.40q: %s", word.what, word.value, strings.Join(word.known, ", "))
		}
	}
	if item.Seq < 0 || item.Seq > maxSeq {
		return badRequest("record %d: 0 to %d", item.Seq, maxSeq)
	}
	if item.Rows < 0 || item.Rows > maxRows {
		return badRequest("%d rows: 0 to %d", item.Rows, maxRows)
	}
	if item.Size < 0 || item.Size > maxSize {
		return badRequest("size %d: 0 to %d bytes", item.Size, maxSize)
	}
	if op == wire.Begin && (item.Kind != kindFile || item.UpTo < 0 || item.UpTo > max(item.Size, 0)) {
		return badRequest("begin is for a file, up to its size")
	}
	if item.Work < 0 || item.Work > maxWork {
		return badRequest("work %d: 0 to %d bytes", item.Work, maxWork)
	}
	switch op {
	case wire.Read, wire.Erase:
		return nil
	case wire.Rebuild:
		if item.Kind != kindCache {
			return badRequest("a %s is not rebuilt: only a cache is", item.Kind)
		}
	case wire.Interrupt:
		if item.Kind == kindMemory || item.Kind == kindFact || item.Service != "" {
			return badRequest("a %s is not written in pieces", item.Kind)
		}
		if item.Journal != "" || item.Synchronous != "" {
			return badRequest("a database that process 1 keeps open can't be interrupted in another process")
		}
	}
	if !word(item.Nonce) {
		return badRequest("nonce %.40q: 1 to %d printable ASCII characters without a space", item.Nonce, maxNonce)
	}
	if (item.Kind == kindSQLite || item.Kind == kindRow || item.Kind == kindAgent) && item.Rows == 0 {
		return badRequest("no rows to write")
	}
	if item.Kind == kindAgent && !filepath.IsAbs(item.Tasks) {
		return badRequest("tasks %.80q: an absolute path is needed", item.Tasks)
	}
	return nil
}

// word tells whether s can stand in a line of text and be found again.
func word(s string) bool {
	if s == "" || len(s) > maxNonce {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// fault classes an error by what the kernel said.
func fault(err error) *wire.Error {
	code := wire.CodeIO
	switch {
	case errors.Is(err, syscall.EROFS):
		code = wire.CodeReadOnly
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		code = wire.CodePermission
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		code = wire.CodeNoSpace
	}
	return &wire.Error{Code: code, Text: err.Error()}
}

// keepNonce adds a nonce to a list, and drops the oldest of too many.
func keepNonce(list []string, nonce string) []string {
	if len(list) == keptNonces {
		list = append(list[:0], list[1:]...)
	}
	return append(list, nonce)
}
