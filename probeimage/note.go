//go:build linux

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"strconv"
	"strings"
)

// A note is what a file item holds: text that says of itself how long it is
// and what it adds up to, so that half a note is known for half a note.
//
//	persistence lab note, 4096 bytes, nonce 5b3f
//	You wrote this from inside a container. If you can read it, it is still here.
//	00000001 5b3f 5b3f 5b3f 5b3f …
//	end sha256 2f1d…
//
// The bytes are a function of nonce and size alone. The length counts the
// whole note; the sum covers all before the last line. A file written in mode
// append holds several notes.
const (
	noteHead  = "persistence lab note, "
	noteText  = "You wrote this from inside a container. If you can read it, it is still here.\n"
	noteTail  = "end sha256 "
	tailBytes = len(noteTail) + 2*sha256.Size + 1
	padBytes  = 64 // a whole line of padding
)

// measure gives the length of a note of about size bytes and of the part that
// is not padding.
func measure(nonce string, size int) (whole, least int) {
	// The length stands in the note and adds to its length.
	short := func(n int) int {
		return len(noteHead) + len(strconv.Itoa(n)) + len(" bytes, nonce \n") + len(nonce) + len(noteText) + tailBytes
	}
	least = short(100)
	if size < least {
		size = least
	}
	for least != short(size) { // more digits
		least = short(size)
		size = max(size, least)
	}
	return size, least
}

// noteSize is how many bytes writeNote writes.
func noteSize(nonce string, size int) int {
	whole, _ := measure(nonce, size)
	return whole
}

// writeNote writes the note of nonce. size is its length in bytes; one too
// small for the text gives the short note.
func writeNote(w io.Writer, nonce string, size int) error {
	size, least := measure(nonce, size)
	sum := sha256.New()
	body := io.MultiWriter(w, sum)
	if _, err := fmt.Fprintf(body, "%s%d bytes, nonce %s\n%s", noteHead, size, nonce, noteText); err != nil {
		return err
	}
	fill := strings.Repeat(nonce+" ", padBytes/(len(nonce)+1)+1)
	line := make([]byte, 0, 2*padBytes)
	for i, left := 1, size-least; left > 0; i++ {
		line = fmt.Appendf(line[:0], "%08d %s", i, fill)
		line = line[:min(left, padBytes)]
		line[len(line)-1] = '\n'
		if _, err := body.Write(line); err != nil {
			return err
		}
		left -= len(line)
	}
	_, err := fmt.Fprintf(w, "%s%x\n", noteTail, sum.Sum(nil))
	return err
}

// parseNotes reads notes to the end of r. torn says why the content is not
// whole notes; content that does not even begin like one is somebody else's
// and is not torn. An error is one of reading.
func parseNotes(r io.Reader) (nonces []string, torn string, err error) {
	br := bufio.NewReaderSize(r, 64<<10)
	for n := 1; ; n++ {
		start, err := br.Peek(len(noteHead))
		if err != nil && err != io.EOF {
			return nonces, "", err
		}
		switch {
		case len(start) == 0 && n == 1:
			return nil, "empty", nil
		case len(start) == 0:
			return nonces, "", nil
		case len(start) < len(noteHead) && strings.HasPrefix(noteHead, string(start)):
			return nonces, "ends in the first line of a note", nil
		case string(start) != noteHead && n == 1:
			return nil, "", nil
		case string(start) != noteHead:
			return nonces, fmt.Sprintf("something else follows note %d", n-1), nil
		}
		nonce, torn, err := parseNote(br)
		if err != nil {
			return nonces, "", err
		}
		if nonce != "" {
			nonces = keepNonce(nonces, nonce)
		}
		if torn != "" {
			if n > 1 {
				torn = fmt.Sprintf("note %d: %s", n, torn)
			}
			return nonces, torn, nil
		}
	}
}

// parseNote reads one note that is known to begin with noteHead.
func parseNote(br *bufio.Reader) (nonce, torn string, err error) {
	sum := sha256.New()
	head, err := br.ReadSlice('\n')
	if err == io.EOF {
		return "", "ends in the first line of a note", nil
	}
	if err != nil && err != bufio.ErrBufferFull {
		return "", "", err
	}
	sum.Write(head)
	var size int
	if _, scanErr := fmt.Sscanf(string(head[len(noteHead):]), "%d bytes, nonce %s\n", &size, &nonce); err != nil || scanErr != nil || !word(nonce) {
		return "", "the first line of the note is damaged", nil
	}
	rest := size - len(head) - tailBytes
	if rest < 0 {
		return nonce, "the length in the first line is damaged", nil
	}
	got, err := io.CopyN(sum, br, int64(rest))
	var tail []byte
	if err == nil {
		tail = make([]byte, tailBytes)
		var n int
		n, err = io.ReadFull(br, tail)
		got += int64(n)
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nonce, fmt.Sprintf("ends after %d of %d bytes", int64(len(head))+got, size), nil
	}
	if err != nil {
		return nonce, "", err
	}
	if string(tail) != noteTail+hexSum(sum)+"\n" {
		return nonce, "the content does not add up to its checksum", nil
	}
	return nonce, "", nil
}

func hexSum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }
