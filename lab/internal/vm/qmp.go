package vm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// monitor is a conversation with QEMU in its Machine Protocol
// (docs/interop/qmp-spec in QEMU's sources).
type monitor struct {
	conn    net.Conn
	mu      sync.Mutex // one question at a time
	answers chan qmpMessage
	resets  chan struct{} // the guest restarted
	gone    chan struct{}
}

type qmpMessage struct {
	Return json.RawMessage `json:"return"`
	Error  *qmpError       `json:"error"`
	Event  string          `json:"event"`
	Data   struct {
		Guest bool `json:"guest"` // the guest did it, not QEMU
	} `json:"data"`
}

type qmpError struct {
	Desc string `json:"desc"`
}

func (e *qmpError) Error() string { return e.Desc }

var errMonitorGone = errors.New("qemu has ended")

// newMonitor takes QEMU's greeting and gets ready to ask.
func newMonitor(ctx context.Context, conn net.Conn) (*monitor, error) {
	m := &monitor{conn: conn, answers: make(chan qmpMessage, 1), resets: make(chan struct{}, 16), gone: make(chan struct{})}
	go m.listen()
	return m, m.ask(ctx, "qmp_capabilities", nil, nil)
}

// listen sorts what QEMU says until it ends. The greeting is neither an
// answer nor an event and is passed over.
func (m *monitor) listen() {
	defer close(m.gone)
	for in := json.NewDecoder(m.conn); ; {
		var msg qmpMessage
		if in.Decode(&msg) != nil {
			return
		}
		switch {

		case msg.Event == "RESET" && msg.Data.Guest:
			select {
			case m.resets <- struct{}{}:
			default:
			}
		case msg.Error != nil || msg.Return != nil:
			m.answers <- msg
		}
	}
}

// ask gives a command and waits for its answer. After an error of ctx the
// monitor is of no use any more.
func (m *monitor) ask(ctx context.Context, command string, args, answer any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{command, args})
	if err != nil {
		return err
	}
	if _, err := m.conn.Write(text); err != nil {
		return fmt.Errorf("qemu %s: %w", command, errMonitorGone)
	}
	select {
	case msg := <-m.answers:
		if msg.Error != nil {
			return fmt.Errorf("qemu %s: %w", command, msg.Error)
		}
		if answer != nil {
			return json.Unmarshal(msg.Return, answer)
		}
		return nil
	case <-m.gone:
		return fmt.Errorf("qemu %s: %w", command, errMonitorGone)
	case <-ctx.Done():
		m.conn.Close()
		return fmt.Errorf("qemu %s: %w", command, ctx.Err())
	}
}

// job runs a command that QEMU carries out in the background, and waits for
// its end. The answer to the command itself only says that it began.
func (m *monitor) job(ctx context.Context, command string, args map[string]any) error {
	const id = "job"
	args["job-id"] = id
	if err := m.ask(ctx, command, args, nil); err != nil {
		return err
	}
	for {
		var jobs []struct{ ID, Status, Error string }
		if err := m.ask(ctx, "query-jobs", nil, &jobs); err != nil {
			return err
		}
		for _, j := range jobs {
			if j.ID != id || j.Status != "concluded" {
				continue
			}
			err := m.ask(ctx, "job-dismiss", map[string]any{"id": id}, nil)
			if j.Error != "" {
				err = fmt.Errorf("qemu %s: %s", command, j.Error)
			}
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
