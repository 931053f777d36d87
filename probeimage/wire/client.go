package wire

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
)

// Client asks a probe, one question at a time. It is not safe for concurrent
// use. The stream may be one that other clients are, or were, attached to:
// their answers are passed over, told apart by the ID.
type Client struct {
	rw   io.ReadWriter
	r    *bufio.Reader
	next int64
	err  error // why the stream can't be used any more
}

// NewClient makes a client over a stream to a probe. Closing the stream stays
// the caller's job.
func NewClient(rw io.ReadWriter) *Client {
	// A random start, because every client attached to a container is
	// handed the answers to all of them.
	return &Client{rw: rw, r: bufio.NewReader(rw), next: rand.Int64N(1 << 40)}
}

// Call sends req, with V and ID filled in, and waits for its answer. What the
// probe says against the request stands in Reply.Error; the error is for the
// stream: it wraps io.EOF when the probe has gone (the only answer to Crash)
// and ctx.Err() when ctx ended first. After any error the stream has an answer
// of unknown age in it: further calls fail with the same error, and where ctx
// ended a stream that is an io.Closer has been closed, to let go of what was
// blocked on it.
func (c *Client) Call(ctx context.Context, req Request) (Reply, error) {
	if c.err == nil {
		c.err = ctx.Err()
	}
	if c.err != nil {
		return Reply{}, fmt.Errorf("ask the probe to %s: %w", req.Op, c.err)
	}
	c.next++
	req.V, req.ID = Version, c.next

	type answer struct {
		reply Reply
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		reply, err := c.exchange(req)
		done <- answer{reply, err}
	}()
	select {
	case a := <-done:
		if a.err == nil {
			return a.reply, nil
		}
		c.err = a.err
	case <-ctx.Done():
		c.err = ctx.Err()
		if closer, ok := c.rw.(io.Closer); ok {
			closer.Close()
		}
	}
	return Reply{}, fmt.Errorf("ask the probe to %s: %w", req.Op, c.err)
}

func (c *Client) exchange(req Request) (Reply, error) {
	line, err := AppendLine(nil, req)
	if err != nil {
		return Reply{}, err
	}
	if _, err := c.rw.Write(line); err != nil {
		return Reply{}, err
	}
	for {
		line, err := ReadLine(c.r)
		if errors.Is(err, ErrTooLong) {
			return Reply{}, fmt.Errorf("answer: %w", err)
		}
		if err != nil {
			return Reply{}, err
		}
		var reply Reply
		if err := json.Unmarshal(line, &reply); err != nil {
			return Reply{}, fmt.Errorf("not an answer of a probe: %.80q", line)
		}
		switch {
		case reply.ID == req.ID:
			return reply, nil
		case reply.ID == 0 && reply.Error != nil:
			// The probe could not even read an ID. Only a request
			// sent on this stream can have caused that.
			return Reply{}, reply.Error
		}
	}
}
