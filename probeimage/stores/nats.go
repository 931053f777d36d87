package stores

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

type natsStore struct {
	url string

	mu      sync.Mutex
	conn    *nats.Conn
	js      jetstream.JetStream
	buckets map[string]jetstream.KeyValue
}

func openNATS(u *url.URL) (Store, error) {
	return &natsStore{url: u.String(), buckets: map[string]jetstream.KeyValue{}}, nil
}

// jetStream connects, the first time and whenever the library has given up.
func (s *natsStore) jetStream() (jetstream.JetStream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && !s.conn.IsClosed() {
		return s.js, nil
	}
	conn, err := nats.Connect(s.url,
		nats.Timeout(wait), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0),
		// A write is sent now or fails now: one that waits for the store to
		// come back would be there although nobody was told.
		nats.ReconnectBufSize(-1))
	if err != nil {
		return nil, natsWords(err)
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	s.conn, s.js = conn, js
	return js, nil
}

func (s *natsStore) bucket(ctx context.Context, name string, make bool) (jetstream.KeyValue, error) {
	js, err := s.jetStream()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	kv := s.buckets[name]
	s.mu.Unlock()
	if kv != nil {
		return kv, nil
	}
	if make {
		kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name})
	} else {
		kv, err = js.KeyValue(ctx, name)
	}
	if err != nil {
		return nil, natsWords(err)
	}
	s.mu.Lock()
	s.buckets[name] = kv
	s.mu.Unlock()
	return kv, nil
}

// forget drops what is known of a bucket: the store may have been replaced by
// an empty one.
func (s *natsStore) forget(name string) {
	s.mu.Lock()
	delete(s.buckets, name)
	s.mu.Unlock()
}

func (s *natsStore) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	js, err := s.jetStream()
	if err != nil {
		return err
	}
	_, err = js.AccountInfo(ctx)
	return natsWords(err)
}

func (s *natsStore) Put(ctx context.Context, collection, id string, value []byte) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	kv, err := s.bucket(ctx, collection, true)
	if err != nil {
		return err
	}
	if _, err = kv.Put(ctx, id, value); err != nil {
		s.forget(collection)
	}
	return natsWords(err)
}

// settled waits for a connection that the library is making anew, as after the
// store was replaced: a read has nothing to lose by it.
func (s *natsStore) settled(ctx context.Context) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	for deadline := time.Now().Add(wait / 2); conn != nil && conn.IsReconnecting() && time.Now().Before(deadline); {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

func (s *natsStore) Get(ctx context.Context, collection, id string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	s.settled(ctx)
	// Asked anew every time, so that a bucket that is gone is told from one
	// that is empty.
	s.forget(collection)
	kv, err := s.bucket(ctx, collection, false)
	if err != nil {
		return nil, err
	}
	entry, err := kv.Get(ctx, id)
	if err != nil {
		return nil, natsWords(err)
	}
	return entry.Value(), nil
}

func (s *natsStore) List(ctx context.Context, collection string) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*wait)
	defer cancel()
	s.settled(ctx)
	s.forget(collection)
	kv, err := s.bucket(ctx, collection, false)
	if err != nil {
		return nil, err
	}
	watch, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, natsWords(err)
	}
	defer watch.Stop()
	all := map[string][]byte{}
	for {
		select {
		case entry, ok := <-watch.Updates():
			switch {
			case !ok:
				return nil, errors.New("nats: the connection broke in the middle of a list")
			case entry == nil: // all there was when it was asked for
				return all, nil
			}
			all[entry.Key()] = entry.Value()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *natsStore) Drop(ctx context.Context, collection string) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	js, err := s.jetStream()
	if err != nil {
		return err
	}
	s.forget(collection)
	err = natsWords(js.DeleteKeyValue(ctx, collection))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (s *natsStore) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
		s.conn = nil
	}
}

// JetStream's error codes for a store that is full: of memory or disk, of an
// account's, of a stream's.
const (
	natsAccountExceeded       = 10002
	natsInsufficientResources = 10023
	natsStorageExceeded       = 10047
	natsStreamStoreFailed     = 10077
)

func natsWords(err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrReconnectBufExceeded): // its words are about the buffer we do without
		return errors.New("nats: no connection to the server")
	case errors.Is(err, jetstream.ErrBucketNotFound), errors.Is(err, jetstream.ErrKeyNotFound):
		return both(ErrNotFound, err)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired):
		return both(ErrDenied, err)
	case errors.As(err, &api) && (api.ErrorCode == natsAccountExceeded || api.ErrorCode == natsInsufficientResources || api.ErrorCode == natsStorageExceeded || api.ErrorCode == natsStreamStoreFailed):
		return both(ErrFull, err)
	}
	return err
}
