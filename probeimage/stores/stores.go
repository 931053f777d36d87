// Package stores speaks to the stores a scenario keeps state in outside its
// containers: NATS JetStream, PostgreSQL, Redis and what speaks its protocol
// (Valkey), and everything that speaks Amazon's S3. Each is reached by the
// library its own people, or the field, keep.
//
// To the lab they are one thing: collections of values, each under an id. A
// collection is a key-value bucket, a table, a hash or an S3 bucket.
//
// It promises that Put returns nil only when the store has acknowledged the
// value, that what is not there is ErrNotFound and nothing else is, and that a
// store that went away and came back is found again by the next call. An error
// keeps the store's own words.
package stores

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Store is one service as a client sees it. It is safe for concurrent use.
type Store interface {
	// Ping returns nil once the store takes requests from this client.
	Ping(ctx context.Context) error
	// Put keeps a value, making the collection first where there is none.
	Put(ctx context.Context, collection, id string, value []byte) error
	// Get gives a value, or ErrNotFound.
	Get(ctx context.Context, collection, id string) ([]byte, error)
	// List gives the whole collection, or ErrNotFound.
	List(ctx context.Context, collection string) (map[string][]byte, error)
	// Drop removes the collection, if there is one.
	Drop(ctx context.Context, collection string) error
	Close()
}

// Errors that callers tell apart. They wrap the store's own.
var (
	ErrNotFound = errors.New("it is not there")
	ErrDenied   = errors.New("the store does not let this user in")
	ErrFull     = errors.New("the store has no space left")
)

// wait bounds one exchange with a store, for libraries that would try longer.
const wait = 5 * time.Second

// Open gives the store at a URL with user and password in it: nats://,
// postgres://, redis://, and http:// or https:// for S3. It does not have to
// be up yet.
func Open(address string) (Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		// Its words would repeat the password.
		return nil, errors.New("the store's address is no URL")
	}
	switch u.Scheme {
	case "nats":
		return openNATS(u)
	case "postgres", "postgresql":
		return openPostgres(address)
	case "redis", "rediss":
		return openRedis(address)
	case "http", "https":
		return openS3(u)
	}
	return nil, fmt.Errorf("there is no driver for %s://: nats, postgres, redis, or http and https for S3", u.Scheme)
}

// both marks an error with one of ours, keeping the store's words alone.
func both(mark, err error) error { return &marked{mark, err} }

type marked struct{ mark, err error }

func (m *marked) Error() string   { return m.err.Error() }
func (m *marked) Unwrap() []error { return []error{m.mark, m.err} }
