package board

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"persistencelab/lab/internal/classroom"
)

// Options is what a board is opened with.
type Options struct {
	File   string // the store
	Topics []Topic
	Seats  int // how many can join
	// Address is where learners go, as it stands on the teacher's page; "":
	// where the teacher went.
	Address string
	Now     func() time.Time
	Random  func(n int) string // n random bytes as hex
}

// Board is a class's board. Make one with Open, serve it with Serve.
type Board struct {
	opts  Options
	store *store

	mu       sync.Mutex
	teachers map[[32]byte]bool     // hashes of the cookies of teachers who are in
	watchers map[chan Pulse]string // of events, with whose they are
	quit     chan struct{}         // closed: watchers go

	guesses  *limiter // wrong codes, by address
	requests *limiter // of anybody, by address: a whole class may share one
	answers  *limiter // by learner
}

// Open opens the store and, where it is new, the class: with a new code and a
// new teacher's secret, which is given here and nowhere else. A store that has
// a class already goes on with it; then secret is "", and topics are the
// store's.
func Open(o Options) (b *Board, secret string, err error) {
	s, err := openStore(o.File, true, o.Now)
	if err != nil {
		return nil, "", err
	}
	b = &Board{
		opts: o, store: s,
		teachers: map[[32]byte]bool{}, watchers: map[chan Pulse]string{}, quit: make(chan struct{}),
		// A code has 31^6 (887 million) forms: at one guess a second it
		// outlasts the class by far.
		guesses:  newLimiter(1, 30, o.Now),
		requests: newLimiter(300, 2000, o.Now),
		answers:  newLimiter(2, 20, o.Now),
	}
	if len(s.st.topics) == 0 {
		if len(o.Topics) == 0 {
			s.close()
			return nil, "", errors.New("a board needs something to ask")
		}
		secret = o.Random(16)
		first := opening{ID: o.Random(4), Code: newCode(o.Random), Secret: hashOf(secret), Topics: o.Topics}
		if err := s.do(func(*state) ([]event, error) { return []event{{Kind: opened, Opening: &first}}, nil }); err != nil {
			s.close()
			return nil, "", err
		}
	}
	go b.announce()
	return b, secret, nil
}

// NewSecret replaces the teacher's secret, for one who has lost it.
func (b *Board) NewSecret() (string, error) {
	secret := b.opts.Random(16)
	return secret, b.store.do(func(*state) ([]event, error) {
		return []event{{Kind: newSecret, Secret: hashOf(secret)}}, nil
	})
}

// Code is the class code as people read it.
func (b *Board) Code() string {
	var code string
	b.store.read(func(st *state) { code = st.code })
	return showCode(code)
}

// View is what the board shows.
func (b *Board) View() (v *View) {
	b.store.read(func(st *state) { v = st.view() })
	return v
}

// Export gives every learner's attempt.
func (b *Board) Export() (as []*classroom.Attempt) {
	b.store.read(func(st *state) { as = st.export() })
	return as
}

// Close lets go of the store. Serve must have returned.
func (b *Board) Close() error {
	b.hangUp()
	return b.store.close()
}

func (b *Board) hangUp() {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-b.quit:
	default:
		close(b.quit)
	}
}

// Export reads the attempts of a store that no board has open.
func Export(file string, now func() time.Time) ([]*classroom.Attempt, error) {
	s, err := openStore(file, false, now)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return s.st.export(), nil
}

// Serve answers on the listener until ctx is done; requests that have begun
// are answered.
func (b *Board) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           b.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       20 * time.Second, // the body, too
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		// Writes have deadlines of their own: events go on for hours.
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("the board: %w", err)
	case <-ctx.Done():
	}
	b.hangUp()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		return srv.Close()
	}
	return nil
}

// announce tells watchers of changes, a few times a second at most: in a class
// that answers all at once everybody's page would else be told of everybody.
func (b *Board) announce() {
	const pause = 200 * time.Millisecond
	for {
		select {
		case <-b.store.changed:
		case <-b.quit:
			return
		}
		var p Pulse
		b.store.read(func(st *state) { p = st.pulse() })
		b.mu.Lock()
		for w := range b.watchers {
			select {
			case <-w: // what was not read yet is old
			default:
			}
			w <- p
		}
		b.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-b.quit:
			return
		}
	}
}

// watch registers somebody for events; at most perWatcher each, so that nobody
// takes all there are.
func (b *Board) watch(who string) (chan Pulse, bool) {
	const perWatcher = 4
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, w := range b.watchers {
		if w == who {
			n++
		}
	}
	if n >= perWatcher {
		return nil, false
	}
	w := make(chan Pulse, 1)
	b.watchers[w] = who
	return w, true
}

func (b *Board) unwatch(w chan Pulse) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.watchers, w)
}

// login checks the teacher's secret and gives a cookie for it.
func (b *Board) login(secret string) (cookie string, ok bool) {
	var want string
	b.store.read(func(st *state) { want = st.secret })
	if !sameText(hashOf(strings.TrimSpace(secret)), want) {
		return "", false
	}
	cookie = b.opts.Random(16)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.teachers[sha256.Sum256([]byte(cookie))] = true
	return cookie, true
}

func (b *Board) isTeacher(cookie string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.teachers[sha256.Sum256([]byte(cookie))]
}

// codeLetters leaves out what is read wrongly from a wall: 0 O, 1 I L.
const (
	codeLetters = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
	codeLength  = 6
)

// newCode makes a class code of random bytes, every letter as likely.
func newCode(random func(int) string) string {
	var code []byte
	for len(code) < codeLength {
		b, err := hex.DecodeString(random(1))
		if err != nil || len(b) != 1 {
			panic("board: random gives no hex")
		}
		if int(b[0]) < 256/len(codeLetters)*len(codeLetters) {
			code = append(code, codeLetters[int(b[0])%len(codeLetters)])
		}
	}
	return string(code)
}

// showCode is a code in two groups.
func showCode(code string) string { return code[:codeLength/2] + "-" + code[codeLength/2:] }

// cleanCode is a code as somebody typed it, without what does not count.
func cleanCode(code string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(shorten(code)))
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// sameText compares in a time that does not tell how much is the same.
func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
