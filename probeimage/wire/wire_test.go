package wire_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"persistencelab/probeimage/wire"
)

// peer runs the other end of a pipe: answer is called for every request line
// and returns the bytes to send back; nil ends the stream.
func peer(t *testing.T, answer func(wire.Request) []byte) (*wire.Client, net.Conn) {
	t.Helper()
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	go func() {
		defer there.Close()
		r := bufio.NewReader(there)
		for {
			line, err := wire.ReadLine(r)
			if err != nil {
				return
			}
			var req wire.Request
			if json.Unmarshal(line, &req) != nil {
				return
			}
			text := answer(req)
			if text == nil {
				return
			}
			if _, err := there.Write(text); err != nil {
				return
			}
		}
	}()
	return wire.NewClient(here), here
}

func line(t *testing.T, v any) []byte {
	t.Helper()
	b, err := wire.AppendLine(nil, v)
	require.NoError(t, err)
	return b
}

func TestCallMatchesAnswersByID(t *testing.T) {
	client, _ := peer(t, func(req wire.Request) []byte {
		require.Equal(t, wire.Version, req.V)
		// Somebody else's answers come first, as on a container that two
		// clients are attached to.
		other := line(t, wire.Reply{V: 1, ID: req.ID - 1000, Found: &wire.Found{Size: 1}})
		mine := line(t, wire.Reply{V: 1, ID: req.ID, Found: &wire.Found{Present: true, Size: int64(req.Item.Size)}})
		return append(other, mine...)
	})
	for size := range 3 {
		reply, err := client.Call(t.Context(), wire.Request{Op: wire.Read, Item: &wire.Item{Size: size}})
		require.NoError(t, err)
		require.Equal(t, int64(size), reply.Found.Size)
	}
}

func TestCallGivesTheProbesRefusalAsAnAnswer(t *testing.T) {
	client, _ := peer(t, func(req wire.Request) []byte {
		return line(t, wire.Reply{V: 1, ID: req.ID, Error: &wire.Error{Code: wire.CodeReadOnly, Text: "open /x: read-only file system"}})
	})
	reply, err := client.Call(t.Context(), wire.Request{Op: wire.Write})
	require.NoError(t, err)
	require.Equal(t, wire.CodeReadOnly, reply.Error.Code)
}

func TestCallFails(t *testing.T) {
	long := strings.Repeat("x", wire.MaxLine+1) + "\n"
	for name, tc := range map[string]struct {
		answer string
		want   string
	}{
		"on text that is no answer":      {"panic: no such thing\n", "not an answer of a probe"},
		"on a line that is too long":     {long, "line too long"},
		"on a request that was unread":   {`{"v":1,"error":{"code":"bad-request","text":"not a request"}}` + "\n", "not a request"},
		"when the answer is interrupted": {`{"v":1,`, "EOF"},
		"when the probe is gone":         {"", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			defer here.Close()
			go func() {
				defer there.Close()
				wire.ReadLine(bufio.NewReader(there))
				io.WriteString(there, tc.answer)
			}()
			client := wire.NewClient(here)
			_, err := client.Call(t.Context(), wire.Request{Op: wire.Hello})
			require.ErrorContains(t, err, tc.want)
			if tc.want == "EOF" {
				require.ErrorIs(t, err, io.EOF)
			}
			_, again := client.Call(t.Context(), wire.Request{Op: wire.Hello})
			require.ErrorContains(t, again, tc.want, "a broken stream stays broken")
		})
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) io.ReadWriter{
		"closing the stream":               func(c net.Conn) io.ReadWriter { return c },
		"leaving one that can't be closed": func(c net.Conn) io.ReadWriter { return struct{ io.ReadWriter }{c} },
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			defer here.Close()
			defer there.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			client := wire.NewClient(wrap(here)) // nobody reads: the request itself blocks
			start := time.Now()
			_, err := client.Call(ctx, wire.Request{Op: wire.Hello})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Less(t, time.Since(start), 5*time.Second)
			_, err = client.Call(t.Context(), wire.Request{Op: wire.Hello})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if name == "closing the stream" {
				_, err := here.Write([]byte("x"))
				require.ErrorIs(t, err, io.ErrClosedPipe)
			}
		})
	}
}

func TestReadLineIsBounded(t *testing.T) {
	exact := strings.Repeat("a", wire.MaxLine)
	for _, buffer := range []int{16, 4096, 2 * wire.MaxLine} {
		t.Run(fmt.Sprint(buffer), func(t *testing.T) {
			r := bufio.NewReaderSize(strings.NewReader("one\n\n"+exact+"\n"+exact+"a\n"+exact+exact+"\nlast\nhalf"), buffer)
			for _, want := range []string{"one", "", exact} {
				got, err := wire.ReadLine(r)
				require.NoError(t, err)
				require.Equal(t, len(want), len(got))
				require.True(t, want == string(got))
			}
			for range 2 {
				_, err := wire.ReadLine(r)
				require.True(t, errors.Is(err, wire.ErrTooLong), "%v", err)
			}
			got, err := wire.ReadLine(r)
			require.NoError(t, err)
			require.Equal(t, "last", string(got), "the next line is whole")
			_, err = wire.ReadLine(r)
			require.ErrorIs(t, err, io.EOF)
		})
	}
}
