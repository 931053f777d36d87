package stores

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

type redisStore struct{ c *redis.Client }

func openRedis(address string) (Store, error) {
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, errors.New("redis: the address is no redis:// URL")
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = wait, wait, wait
	o.MaxRetries = -1 // a lost answer is not an acknowledged write sent twice
	o.MinRetryBackoff, o.MaxRetryBackoff = time.Millisecond, time.Millisecond
	return redisStore{redis.NewClient(o)}, nil
}

func (s redisStore) Ping(ctx context.Context) error { return redisWords(s.c.Ping(ctx).Err()) }

func (s redisStore) Put(ctx context.Context, collection, id string, value []byte) error {
	return redisWords(s.c.HSet(ctx, collection, id, value).Err())
}

func (s redisStore) Get(ctx context.Context, collection, id string) ([]byte, error) {
	b, err := s.c.HGet(ctx, collection, id).Bytes()
	return b, redisWords(err)
}

func (s redisStore) List(ctx context.Context, collection string) (map[string][]byte, error) {
	m, err := s.c.HGetAll(ctx, collection).Result()
	if err != nil {
		return nil, redisWords(err)
	}
	if len(m) == 0 { // to Redis an empty hash is none
		return nil, fmt.Errorf("redis: no key %s: %w", collection, ErrNotFound)
	}
	all := make(map[string][]byte, len(m))
	for id, v := range m {
		all[id] = []byte(v)
	}
	return all, nil
}

func (s redisStore) Drop(ctx context.Context, collection string) error {
	return redisWords(s.c.Del(ctx, collection).Err())
}

func (s redisStore) Close() { _ = s.c.Close() }

func redisWords(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, redis.Nil):
		return both(ErrNotFound, err)
	case hasPrefix(err, "WRONGPASS", "NOAUTH", "NOPERM"):
		return both(ErrDenied, err)
	case hasPrefix(err, "OOM", "MISCONF"):
		return both(ErrFull, err)
	}
	return err
}

// hasPrefix: Redis begins an error with a word for what it is.
func hasPrefix(err error, words ...string) bool {
	for _, w := range words {
		if strings.HasPrefix(err.Error(), w) {
			return true
		}
	}
	return false
}
