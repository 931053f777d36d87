package wire

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrTooLong reports a line of more than MaxLine bytes. The line has been read
// to its end and thrown away, so the next ReadLine starts on the next line.
var ErrTooLong = errors.New("line too long")

// ReadLine reads one line, without its end, of at most MaxLine bytes. The
// bytes are valid until the next read. At the end of the stream it answers
// io.EOF, also when the last line is unfinished: half a line is no message.
func ReadLine(r *bufio.Reader) ([]byte, error) {
	chunk, err := r.ReadSlice('\n')
	if err == nil && len(chunk)-1 <= MaxLine {
		return chunk[:len(chunk)-1], nil // the usual case: no copy
	}
	var line []byte
	long := false
	for errors.Is(err, bufio.ErrBufferFull) {
		if long = long || len(line)+len(chunk) > MaxLine; !long {
			line = append(line, chunk...)
		}
		chunk, err = r.ReadSlice('\n')
	}
	if err != nil {
		return nil, err
	}
	if long || len(line)+len(chunk)-1 > MaxLine {
		return nil, ErrTooLong
	}
	line = append(line, chunk...)
	return line[:len(line)-1], nil
}

// AppendLine appends v, a Request or a Reply, as one line.
func AppendLine(b []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return b, err
	}
	if len(text) > MaxLine {
		return b, fmt.Errorf("%w: %d bytes", ErrTooLong, len(text))
	}
	return append(append(b, text...), '\n'), nil
}
