//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"persistencelab/probeimage/wire"
)

// client is a store outside the container: a stores.Store.
type client interface {
	Ping(ctx context.Context) error
	Put(ctx context.Context, collection, id string, value []byte) error
	Get(ctx context.Context, collection, id string) ([]byte, error)
	List(ctx context.Context, collection string) (map[string][]byte, error)
	Drop(ctx context.Context, collection string) error
	Close()
}

// services are the stores this container's environment names, by the name of
// the service. A connection is opened when it is first needed and kept: that
// is how real programs use a store, and what makes a store's restart
// interesting.
type services map[string]client

// serviceTime bounds one exchange with a store.
const serviceTime = 20 * time.Second

// maxValue bounds what an item puts into a store in one piece.
const maxValue = 64 << 20

func (s services) client(service string) (client, error) {
	if c := s[service]; c != nil {
		return c, nil
	}
	address := os.Getenv(wire.ServiceEnv(service))
	if address == "" {
		return nil, fmt.Errorf("the environment does not say where service %s is: %s is not set", service, wire.ServiceEnv(service))
	}
	c, err := dialStore(address)
	if err == nil {
		s[service] = c
	}
	return c, err
}

func (s services) ping(service string) *wire.Error {
	c, err := s.client(service)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), serviceTime)
		defer cancel()
		err = c.Ping(ctx)
	}
	if err == nil {
		return nil
	}
	return serviceFault(err)
}

func (s services) drop(item wire.Item) *wire.Error {
	c, err := s.client(item.Service)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), serviceTime)
		defer cancel()
		err = c.Drop(ctx, item.Path)
	}
	if err == nil {
		return nil
	}
	return serviceFault(err)
}

func (s services) write(item wire.Item) (*wire.Found, *wire.Error) {
	c, err := s.client(item.Service)
	if err != nil {
		return nil, serviceFault(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), serviceTime)
	defer cancel()
	collection, id, _ := strings.Cut(item.Path, "/")
	switch {
	case item.Kind != kindRow:
		var note bytes.Buffer
		if err = writeNote(&note, item.Nonce, item.Size); err == nil {
			err = c.Put(ctx, collection, id, note.Bytes())
		}
	case item.Seq > 0:
		err = c.Put(ctx, collection, seqID(item.Seq), []byte(item.Nonce))
	default:
		for n := 1; n <= item.Rows && err == nil; n++ {
			err = c.Put(ctx, collection, fmt.Sprintf("%s-%06d", item.Nonce, n), []byte(item.Nonce))
		}
	}
	if err != nil {
		return nil, serviceFault(err)
	}
	return s.read(item)
}

func (s services) read(item wire.Item) (*wire.Found, *wire.Error) {
	c, err := s.client(item.Service)
	if err != nil {
		return nil, serviceFault(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), serviceTime)
	defer cancel()
	collection, id, _ := strings.Cut(item.Path, "/")
	var found *wire.Found
	switch {
	case item.Kind == kindRow && item.Seq > 0:
		var value []byte
		if value, err = c.Get(ctx, collection, seqID(item.Seq)); err == nil {
			found = foundRows(map[string][]byte{seqID(item.Seq): value})
		}
	case item.Kind == kindRow:
		var all map[string][]byte
		if all, err = c.List(ctx, collection); err == nil {
			found = foundRows(all)
		}
	default:
		var value []byte
		if value, err = c.Get(ctx, collection, id); err == nil {
			found, err = foundNote(value)
		}
	}
	switch {
	case isNotFound(err):
		return &wire.Found{}, nil
	case err != nil:
		return nil, serviceFault(err)
	}
	return found, nil
}

const seqPrefix = "seq-"

func seqID(seq int) string { return fmt.Sprintf("%s%08d", seqPrefix, seq) }

// foundRows describes a collection: its rows in the order of their ids.
func foundRows(all map[string][]byte) *wire.Found {
	f := &wire.Found{Present: len(all) > 0, Rows: len(all)}
	sum := sha256.New()
	var seqs []int
	for _, id := range slices.Sorted(maps.Keys(all)) {
		value := all[id]
		fmt.Fprintf(sum, "%s %s\n", id, value)
		f.Size += int64(len(value))
		var seq int
		if n, _ := fmt.Sscanf(id, seqPrefix+"%d", &seq); n == 1 {
			seqs = append(seqs, seq)
		}
		if n := string(value); word(n) && (len(f.Nonces) == 0 || f.Nonces[len(f.Nonces)-1] != n) {
			f.Nonces = keepNonce(f.Nonces, n)
		}
	}
	f.SHA256 = hexSum(sum)
	f.Seqs = wire.Ranges(seqs)
	return f
}

func foundNote(value []byte) (*wire.Found, error) {
	nonces, torn, err := parseNotes(bytes.NewReader(value))
	if err != nil && err != io.EOF {
		return nil, err
	}
	sum := sha256.Sum256(value)
	return &wire.Found{
		Present: true, SHA256: fmt.Sprintf("%x", sum), Size: int64(len(value)), Nonces: nonces, Torn: torn,
		Excerpt: strings.ToValidUTF8(string(value[:min(len(value), 200)]), ""),
	}, nil
}

// checkServiceItem says what is wrong with an item in a service, or nil.
func checkServiceItem(item wire.Item) *wire.Error {
	collection, id, both := strings.Cut(item.Path, "/")
	switch {
	case !word(item.Service):
		return badRequest("%s %.80q: in which service?", item.Kind, item.Path)
	case !word(collection) || both != (item.Kind == kindKey || item.Kind == kindObject) || both && !word(id):
		return badRequest("%s %.80q: a row and an agent are in a collection, a key or object at collection/id", item.Kind, item.Path)
	case item.Size > maxValue:
		return badRequest("size %d: at most %d bytes in a store", item.Size, maxValue)
	}
	return nil
}
