//go:build linux

package main

import (
	"crypto/sha256"
	"fmt"
	"time"

	"persistencelab/probeimage/wire"
)

// A cache holds what can be worked out again. The work is real: item.Work
// bytes are hashed, and the result, which depends on the nonce alone, stands
// in the file. So whoever works it out again gets the same bytes.

func writeCache(item wire.Item, c *cut) error {
	item.Nonce = workOut(item.Nonce, item.Work)
	item.Kind = kindFile
	return writeFile(item, c)
}

// workOut gives the nonce with the result of the work behind it.
func workOut(nonce string, work int) string {
	block := make([]byte, 1<<20)
	copy(block, nonce)
	sum := sha256.New()
	for left := work; left > 0; left -= len(block) {
		sum.Write(block[:min(left, len(block))])
	}
	return fmt.Sprintf("%.111s-%.16s", nonce, hexSum(sum))
}

// rebuild makes a cache anew and says how long that took.
func (s *store) rebuild(item wire.Item) (*wire.Found, time.Duration, *wire.Error) {
	started := time.Now()
	if err := s.put(item, nil); err != nil {
		return nil, 0, fault(err)
	}
	took := time.Since(started)
	found, bad := s.read(item)
	return found, took, bad
}
