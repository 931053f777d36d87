package stores

import (
	"context"
	"errors"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

type postgresStore struct{ pool *pgxpool.Pool }

func openPostgres(address string) (Store, error) {
	cfg, err := pgxpool.ParseConfig(address)
	if err != nil {
		return nil, errors.New("postgres: the address is no postgres:// URL")
	}
	cfg.ConnConfig.ConnectTimeout = wait
	cfg.MaxConns = 4
	// A connection from before the database was killed still holds what it said
	// in dying, and would give that for an answer. By itself the pool asks only
	// those that were idle for a second.
	cfg.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return true }
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	return postgresStore{pool}, err
}

func (s postgresStore) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return postgresWords(s.pool.Ping(ctx))
}

func table(collection string) string { return pgx.Identifier{collection}.Sanitize() }

func (s postgresStore) Put(ctx context.Context, collection, id string, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	put := "INSERT INTO " + table(collection) + " (id, value) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET value = EXCLUDED.value"
	_, err := s.pool.Exec(ctx, put, id, value)
	if sqlState(err) != undefinedTable {
		return postgresWords(err)
	}
	// Of those that make it at once, one is told that it is there already, in
	// one of several ways: IF NOT EXISTS looks before it makes. What counts is
	// whether it is there then.
	_, makeErr := s.pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+table(collection)+" (id text PRIMARY KEY, value bytea NOT NULL)")
	if _, err = s.pool.Exec(ctx, put, id, value); makeErr != nil && sqlState(err) == undefinedTable {
		err = makeErr
	}
	return postgresWords(err)
}

func (s postgresStore) Get(ctx context.Context, collection, id string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var value []byte
	err := s.pool.QueryRow(ctx, "SELECT value FROM "+table(collection)+" WHERE id = $1", id).Scan(&value)
	return value, postgresWords(err)
}

func (s postgresStore) List(ctx context.Context, collection string) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*wait)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT id, value FROM "+table(collection))
	if err != nil {
		return nil, postgresWords(err)
	}
	all := map[string][]byte{}
	var id string
	var value []byte
	_, err = pgx.ForEachRow(rows, []any{&id, &value}, func() error {
		all[id] = append([]byte(nil), value...)
		return nil
	})
	return all, postgresWords(err)
}

func (s postgresStore) Drop(ctx context.Context, collection string) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_, err := s.pool.Exec(ctx, "DROP TABLE IF EXISTS "+table(collection))
	return postgresWords(err)
}

func (s postgresStore) Close() { s.pool.Close() }

// States of the SQL standard and PostgreSQL's own.
const (
	undefinedTable = "42P01"
	diskFull       = "53100"
	outOfMemory    = "53200"
	wrongPassword  = "28P01"
	notAuthorized  = "28000"
	noSuchDatabase = "3D000"
)

func sqlState(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code
	}
	return ""
}

func postgresWords(err error) error {
	if err == nil {
		return nil
	}
	// Around its own words, and the network's, pgx puts the address and the
	// user.
	own := err
	var pg *pgconn.PgError
	var op *net.OpError
	if errors.As(err, &pg) {
		own = pg
	} else if errors.As(err, &op) {
		own = op
	}
	switch sqlState(err) {
	case undefinedTable:
		return both(ErrNotFound, own)
	case wrongPassword, notAuthorized, noSuchDatabase:
		return both(ErrDenied, own)
	case diskFull, outOfMemory:
		return both(ErrFull, own)
	}
	if errors.Is(err, pgx.ErrNoRows) {
		return both(ErrNotFound, err)
	}
	return own
}
