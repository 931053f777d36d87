// Package storestest holds the contract that every driver of package stores
// must keep, tried on a real store.
package storestest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"persistencelab/probeimage/stores"
)

// Contract tries everything a stores.Store promises on the store at address,
// whose password is in there. It ends with nothing in the store.
func Contract(t *testing.T, address string) {
	ctx := t.Context()
	s, err := stores.Open(address)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.NoError(t, s.Ping(ctx))
	const collection, big = "lab-contract", 3 << 20
	t.Cleanup(func() { require.NoError(t, s.Drop(context.Background(), collection)) })

	t.Run("what is not there", func(t *testing.T) {
		_, err := s.Get(ctx, collection, "one")
		require.ErrorIs(t, err, stores.ErrNotFound, "no collection")
		_, err = s.List(ctx, collection)
		require.ErrorIs(t, err, stores.ErrNotFound, "no collection")
		require.NoError(t, s.Drop(ctx, collection), "there is nothing to drop")
	})
	t.Run("the first writers meet", func(t *testing.T) {
		for range 10 {
			require.NoError(t, s.Drop(ctx, collection))
			meet(t, address, collection)
			all, err := s.List(ctx, collection)
			require.NoError(t, err)
			require.Len(t, all, 8)
			for i := range 8 {
				require.Equal(t, fmt.Sprint("value ", i), string(all[fmt.Sprint("seq-", i)]))
			}
		}
	})
	t.Run("a value is what was put last", func(t *testing.T) {
		for _, value := range [][]byte{[]byte("first"), {0, 255, '\n'}, bytes.Repeat([]byte("0123456789abcdef"), big/16)} {
			require.NoError(t, s.Put(ctx, collection, "task-1.md", value))
			got, err := s.Get(ctx, collection, "task-1.md")
			require.NoError(t, err)
			require.True(t, bytes.Equal(value, got), "%d bytes put, %d got", len(value), len(got))
		}
		_, err := s.Get(ctx, collection, "another")
		require.ErrorIs(t, err, stores.ErrNotFound)
	})
	t.Run("dropped is gone", func(t *testing.T) {
		require.NoError(t, s.Drop(ctx, collection))
		_, err := s.List(ctx, collection)
		require.ErrorIs(t, err, stores.ErrNotFound)
		require.NoError(t, s.Put(ctx, collection, "one", []byte("again")))
		all, err := s.List(ctx, collection)
		require.NoError(t, err)
		require.Len(t, all, 1)
	})
	t.Run("who may not come in", func(t *testing.T) {
		u, err := url.Parse(address)
		require.NoError(t, err)
		u.User = url.UserPassword(u.User.Username(), "not-the-password")
		other, err := stores.Open(u.String())
		require.NoError(t, err)
		defer other.Close()
		err = other.Ping(ctx)
		require.ErrorIs(t, err, stores.ErrDenied)
		require.NotContains(t, err.Error(), "not-the-password")
		require.ErrorIs(t, other.Put(ctx, collection, "one", nil), stores.ErrDenied)
	})
}

// meet has eight writers make the collection at once.
func meet(t *testing.T, address, collection string) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			other, err := stores.Open(address)
			if err == nil {
				defer other.Close()
				err = other.Put(t.Context(), collection, fmt.Sprint("seq-", i), fmt.Append(nil, "value ", i))
			}
			if err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		}()
	}
	wg.Wait()
}
