package local

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A window is a range of lines. Lines end after "\n" and keep everything before it, "\r" included; there is no line
// after a "\n" at the end of a text.
type window struct {
	first uint32 // counted from 1
	count int64  // maximum number of lines; negative means all that follow
}

var wholeText = window{first: 1, count: -1}

// bounds limit the work for a window.
type bounds struct {
	text   int64 // bytes of its lines
	scan   int64 // bytes before its first line
	likely int64 // bytes of the whole text, or 0 if unknown
}

// chunkSize is how many bytes of a text are examined at once.
const chunkSize = 64 << 10

// read returns the lines of a text in the window. A window that begins after the end is empty.
func (w window) read(ctx context.Context, r io.Reader, most bounds) (string, error) {
	text := bufio.NewReaderSize(r, chunkSize)
	if err := w.skip(ctx, text, most.scan); err != nil {
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		return "", err
	}
	var lines strings.Builder
	if w == wholeText {
		lines.Grow(int(most.likely))
	}
	for left := w.count; left != 0; {
		chunk, err := next(ctx, text)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
		if left > 0 {
			var ended int64
			chunk, ended = head(chunk, left)
			left -= ended
		}
		if int64(lines.Len())+int64(len(chunk)) > most.text {
			return "", ErrTooLarge
		}
		lines.Write(chunk)
		text.Discard(len(chunk)) // cannot fail: the bytes are buffered
	}
	return lines.String(), nil
}

// skip reads up to the first line, which may be far into a large file.
func (w window) skip(ctx context.Context, text *bufio.Reader, most int64) error {
	scanned := int64(0)
	for left := int64(w.first) - 1; left > 0; {
		chunk, err := next(ctx, text)
		if err != nil {
			return err
		}
		chunk, ended := head(chunk, left)
		left -= ended
		if scanned += int64(len(chunk)); scanned > most {
			return fmt.Errorf("%w: line %d does not begin in the first %d bytes", ErrTooFar, w.first, most)
		}
		text.Discard(len(chunk)) // cannot fail: the bytes are buffered
	}
	return nil
}

// next returns the next part of a text, at most a chunk of it, without removing it.
func next(ctx context.Context, text *bufio.Reader) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if _, err := text.Peek(1); err != nil {
		return nil, err
	}
	return text.Peek(text.Buffered())
}

// head returns at most lines lines from the beginning of a chunk, including the available part of a line that ends
// after the chunk, and how many lines end in it.
func head(chunk []byte, lines int64) (_ []byte, ended int64) {
	if n := int64(bytes.Count(chunk, newline)); n < lines {
		return chunk, n
	}
	end := 0
	for range lines {
		end += bytes.IndexByte(chunk[end:], '\n') + 1
	}
	return chunk[:end], lines
}

var newline = []byte{'\n'}
