package board

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"persistencelab/lab/internal/classroom"
)

// Client is a learner's side of a board.
//
//	c, err := board.Join(ctx, "http://teacher.local:8737", "K7M-2QX", attempt)
//	r := attempt.Seal(round, now)        // and save the attempt
//	receipt, err := c.Submit(ctx, r)     // before the run
//	…                                    // run, look, fill in the results
//	err = c.Report(ctx, attempt)         // after it: the results, too
//
// A board or network that goes away is waited for: every call tries again
// until it gets an answer or ctx is done. All of them can be repeated, also by
// another process that has the same attempt.
//
// Errors are a *Refusal (the board said no: its Code says why, its Message is
// for the learner) or an *UnreachableError.
type Client struct {
	base    string
	session string
	http    *http.Client
	// Waiting, when set, is told of each try that failed.
	Waiting func(error)
}

// UnreachableError: no board answered at the address.
type UnreachableError struct {
	URL string
	Err error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no board answers at %s: %v", e.URL, e.Err)
}
func (e *UnreachableError) Unwrap() error { return e.Err }

// Knock asks whether a class with this code is at the address, and changes
// nothing.
func Knock(ctx context.Context, base, code string) error {
	c, err := newClient(base)
	if err != nil {
		return err
	}
	return c.once(ctx, http.MethodPost, "/api/code", map[string]string{"code": code}, new(struct{}))
}

func newClient(base string) (*Client, error) {
	u, err := url.Parse(strings.TrimSuffix(base, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is no board's address: it looks like http://192.168.1.20:8737", base)
	}
	return &Client{
		base: (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String(),
		http: &http.Client{Timeout: 20 * time.Second},
	}, nil
}

// Join enters the class as the learner of the attempt. Doing it again, after
// an interruption, is the same learner.
func Join(ctx context.Context, base, code string, a *classroom.Attempt) (*Client, error) {
	c, err := newClient(base)
	if err != nil {
		return nil, err
	}
	c.session = a.Session
	in := struct {
		Code string `json:"code"`
		joining
	}{code, joining{Session: a.Session, Learner: a.Learner, Identified: a.Identified}}
	// A wrong address should be said at once, so here one try must do.
	return c, c.once(ctx, http.MethodPost, "/api/join", in, new(View))
}

// View is what the board shows now: topics, rounds, and the bars of those that
// were revealed.
func (c *Client) View(ctx context.Context) (*View, error) {
	var v View
	return &v, c.call(ctx, http.MethodGet, "/api/board", nil, &v)
}

// Submit sends a sealed round's predictions, whatever round the board is at.
// When it returns without an error, they are on the board's disk. A topic the
// board does not ask about is a Refusal with the code NoTopic.
func (c *Client) Submit(ctx context.Context, r *classroom.Round) (*Receipt, error) {
	in := Answers{Topic: r.Scenario, Hash: r.Hash, OwnSeal: r.Seal}
	for _, a := range r.Answers {
		a.Result = nil
		in.Answers = append(in.Answers, a)
	}
	var receipt Receipt
	return &receipt, c.call(ctx, http.MethodPost, "/api/answers", in, &receipt)
}

// Report sends what came of the rounds that were submitted before.
func (c *Client) Report(ctx context.Context, a *classroom.Attempt) error {
	file, err := a.Encode()
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, "/api/attempt", file, new(struct{}))
}

// call tries until there is an answer.
func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := c.once(ctx, method, path, in, out)
		var no *Refusal
		if err == nil || errors.As(err, &no) && no.Code != Unavailable && no.Code != TooMany {
			return err
		}
		if c.Waiting != nil {
			c.Waiting(err)
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func (c *Client) once(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, ready := in.([]byte)
		if !ready {
			var err error
			if b, err = json.Marshal(in); err != nil {
				return err
			}
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.session)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address, which stands before it
		}
		return &UnreachableError{c.base, err}
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return &UnreachableError{c.base, err}
	}
	if resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal(reply, out); err != nil {
			return &UnreachableError{c.base, errors.New("what answers there is no board")}
		}
		return nil
	}
	no := Refusal{Status: resp.StatusCode}
	if json.Unmarshal(reply, &no) != nil || no.Code == "" {
		return &UnreachableError{c.base, fmt.Errorf("what answers there is no board: HTTP %s", resp.Status)}
	}
	return &no
}
