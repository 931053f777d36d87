//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"persistencelab/probeimage/wire"
)

// A transcript is a conversation with something that remembers nothing: JSON
// lines, two for each turn, what the user said and what was answered. The
// whole file is the memory.

type turnLine struct {
	Turn  int    `json:"turn"`
	Role  string `json:"role"`
	Nonce string `json:"nonce"`
	Text  string `json:"text"`
}

const (
	roleUser  = "user"
	roleReply = "assistant"
)

// writeTurn carries out one turn. Mode append adds two lines; the others write
// the whole conversation anew, as a program does that keeps it in one variable.
func writeTurn(item wire.Item, c *cut) error {
	past, err := os.ReadFile(item.Path)
	if err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR) {
		return err
	}
	return addTurn(item, past, "What did I say before?", answerTo(item.Nonce, item.Size), c, func(content []byte) error {
		return save(item.Path, item.Mode, c, func(w io.Writer) error {
			_, err := w.Write(content)
			return err
		})
	})
}

// addTurn shows the answer and saves the turn after those of past, in the
// order item.Persist says.
func addTurn(item wire.Item, past []byte, question, answer string, c *cut, save func(content []byte) error) error {
	turn := lastTurn(past) + 1
	var added bytes.Buffer
	lines := json.NewEncoder(&added)
	for _, l := range []turnLine{
		{turn, roleUser, item.Nonce, question},
		{turn, roleReply, item.Nonce, answer},
	} {
		if err := lines.Encode(l); err != nil {
			return err
		}
	}
	content := added.Bytes()
	if item.Mode != modeAppend || item.Service != "" {
		content = append(bytes.Clone(past), content...)
	}
	c.start(int64(len(content)))
	if item.Persist == persistAfter {
		c.show(answer)
	}
	if err := save(content); err != nil {
		return err
	}
	if item.Persist != persistAfter {
		c.show(answer)
	}
	c.end()
	return nil
}

// answerTo is what a model says that knows nothing but what it is given.
func answerTo(nonce string, size int) string {
	answer := "You said " + nonce + "; I know that from the transcript, and nothing else."
	if room := size - len(answer); room > 0 {
		answer += strings.Repeat(" "+nonce, room/(len(nonce)+1)+1)[:room]
	}
	return answer
}

// lastTurn is the number of the last turn whose question can be read.
func lastTurn(text []byte) int {
	last := 0
	for line := range bytes.Lines(text) {
		var l turnLine
		if json.Unmarshal(line, &l) == nil && l.Role == roleUser {
			last = l.Turn
		}
	}
	return last
}

func readTurns(path string) (*wire.Found, error) {
	turns := 0
	found, err := readFile(path, func(r io.Reader) (nonces []string, torn string, err error) {
		nonces, turns, torn, err = parseTurns(r)
		return nonces, torn, err
	})
	if err == nil {
		found.Rows = turns
	}
	return found, err
}

// parseTurns reads a transcript to its end or to where it stops making sense.
// turns counts whole ones.
func parseTurns(r io.Reader) (nonces []string, turns int, torn string, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	open := "" // nonce of a question that has no answer yet
	for n := 1; ; n++ {
		line, err := br.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nonces, turns, "", err
		}
		if len(line) == 0 {
			break
		}
		var l turnLine
		role, number := roleUser, turns+1
		if open != "" {
			role = roleReply
		}
		switch {
		case json.Unmarshal(line, &l) != nil && err == io.EOF:
			return nonces, turns, fmt.Sprintf("ends in the middle of line %d: half of turn %d", n, turns+1), nil
		case json.Unmarshal(line, &l) != nil:
			return nonces, turns, fmt.Sprintf("line %d is damaged", n), nil
		case l.Role != role || l.Turn != number || role == roleReply && l.Nonce != open:
			return nonces, turns, fmt.Sprintf("line %d is of turn %d (%s), and %s of turn %d must stand there", n, l.Turn, l.Role, role, number), nil
		case role == roleUser:
			open = l.Nonce
		default:
			open = ""
			turns++
			nonces = keepNonce(nonces, l.Nonce)
		}
	}
	switch {
	case open != "":
		return nonces, turns, fmt.Sprintf("half of turn %d: a question without its answer", turns+1), nil
	case turns == 0:
		return nil, 0, "empty", nil
	}
	return nonces, turns, "", nil
}
