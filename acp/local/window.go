// This file owns which lines of a text a request wants.

package local

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

// A window is a run of lines. Lines end after "\n" and keep whatever precedes it, "\r" included; a
// text that ends in "\n" has no line after it.
type window struct {
	first uint32 // counted from 1
	count int64  // at most so many; negative: all that follow
}

var wholeText = window{first: 1, count: -1}

// read returns the window's lines of a text, at most limit bytes in total. A window that lies behind
// the end is empty.
func (w window) read(ctx context.Context, r io.Reader, limit int64) (string, error) {
	text := bufio.NewReaderSize(r, 64<<10)
	if err := w.skip(ctx, text); err != nil {
		if errors.Is(err, io.EOF) {
			return "", nil
		}
		return "", err
	}
	var lines strings.Builder
	if w.count < 0 {
		if _, err := io.Copy(&lines, io.LimitReader(text, limit+1)); err != nil {
			return "", err
		}
	}
	for n := int64(0); n < w.count && int64(lines.Len()) <= limit; {
		piece, err := text.ReadSlice('\n')
		lines.Write(piece)
		switch {
		case err == nil:
			n++
		case errors.Is(err, io.EOF):
			n = w.count
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", err
		}
	}
	if int64(lines.Len()) > limit {
		return "", ErrTooLarge
	}
	return lines.String(), nil
}

// skip reads up to the first line, which may be far into a large file.
func (w window) skip(ctx context.Context, text *bufio.Reader) error {
	for line := uint32(1); line < w.first; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		_, err := text.ReadSlice('\n')
		switch {
		case err == nil:
			line++
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
	return nil
}
