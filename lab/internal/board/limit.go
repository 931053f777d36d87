package board

import (
	"sync"
	"time"
)

// limiter is a set of token buckets, one for each key. The zero value of a key
// is a full bucket, so buckets that are full again are forgotten.
type limiter struct {
	rate  float64 // tokens a second
	burst float64
	now   func() time.Time

	mu      sync.Mutex
	buckets map[string]bucket
	swept   time.Time
}

type bucket struct {
	tokens float64
	at     time.Time
}

func newLimiter(rate, burst float64, now func() time.Time) *limiter {
	return &limiter{rate: rate, burst: burst, now: now, buckets: map[string]bucket{}}
}

// take takes a token. ok tells whether there was one; otherwise one comes in
// wait.
func (l *limiter) take(key string) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	l.sweep(now)
	tokens := l.tokens(key, now)
	if tokens < 1 {
		return time.Duration((1 - tokens) / l.rate * float64(time.Second)), false
	}
	l.buckets[key] = bucket{tokens - 1, now}
	return 0, true
}

// empty tells whether a take would fail, and takes nothing.
func (l *limiter) empty(key string) (wait time.Duration, yes bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tokens := l.tokens(key, l.now())
	return time.Duration((1 - tokens) / l.rate * float64(time.Second)), tokens < 1
}

func (l *limiter) tokens(key string, now time.Time) float64 {
	b, ok := l.buckets[key]
	if !ok {
		return l.burst
	}
	return min(l.burst, b.tokens+now.Sub(b.at).Seconds()*l.rate)
}

func (l *limiter) sweep(now time.Time) {
	if now.Sub(l.swept) < time.Minute {
		return
	}
	l.swept = now
	for key := range l.buckets {
		if l.tokens(key, now) >= l.burst {
			delete(l.buckets, key)
		}
	}
}
