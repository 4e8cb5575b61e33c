package local

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestWindow(t *testing.T) {
	const text = "one\ntwo\r\n\nfour\rstill four\nfive"
	long := strings.Repeat("x", 200<<10) // longer than any buffer
	around := long + "\nshort\n" + long
	tests := map[string]struct {
		text string
		w    window
		want string
	}{
		"whole":                  {text, wholeText, text},
		"first line":             {text, window{1, 1}, "one\n"},
		"CRLF is kept":           {text, window{2, 1}, "two\r\n"},
		"an empty line":          {text, window{3, 1}, "\n"},
		"CR alone ends no line":  {text, window{4, 1}, "four\rstill four\n"},
		"last line without LF":   {text, window{5, 1}, "five"},
		"two":                    {text, window{2, 2}, "two\r\n\n"},
		"more than there are":    {text, window{4, 100}, "four\rstill four\nfive"},
		"to the end":             {text, window{4, -1}, "four\rstill four\nfive"},
		"no lines":               {text, window{1, 0}, ""},
		"behind the end":         {text, window{6, -1}, ""},
		"far behind":             {text, window{1 << 31, 10}, ""},
		"behind a final newline": {"a\nb\n", window{3, -1}, ""},
		"empty text":             {"", wholeText, ""},
		"empty text, second":     {"", window{2, 1}, ""},
		"long line":              {around, window{1, 1}, long + "\n"},
		"between long lines":     {around, window{2, 1}, "short\n"},
		"before a long line":     {around, window{2, 2}, "short\n" + long},
		"long last line":         {around, window{3, -1}, long},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for limit := int64(len(tt.want)); limit <= int64(len(tt.want))+1; limit++ {
				got, err := tt.w.read(t.Context(), iotest.OneByteReader(strings.NewReader(tt.text)), bounds{text: limit, scan: 1 << 20})
				if err != nil || got != tt.want {
					t.Errorf("limit %d: got %.100q, %v, want %.100q", limit, got, err, tt.want)
				}
			}
			if limit := int64(len(tt.want)) - 1; limit >= 0 {
				if got, err := tt.w.read(t.Context(), strings.NewReader(tt.text), bounds{text: limit, scan: 1 << 20}); !errors.Is(err, ErrTooLarge) {
					t.Errorf("limit %d: got %.100q, %v, want %v", limit, got, err, ErrTooLarge)
				}
			}
		})
	}
}

func TestWindowIsBounded(t *testing.T) {
	zeros := readerFunc(func(p []byte) (int, error) { return len(p), nil }) // one line that never ends
	for _, w := range []window{wholeText, {1, 1}} {
		if _, err := w.read(t.Context(), zeros, bounds{text: 1 << 20, scan: 1 << 20}); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%v: got %v, want %v", w, err, ErrTooLarge)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	read := 0
	_, err := window{2, 1}.read(ctx, readerFunc(func(p []byte) (int, error) {
		if read++; read == 3 {
			cancel(enough)
		}
		return len(p), nil
	}), bounds{text: 1 << 20, scan: 1 << 20})
	if !errors.Is(err, enough) {
		t.Errorf("cancelled: got %v, want %v", err, enough)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestWindowReportsFailure(t *testing.T) {
	broken := errors.New("broken disk")
	for _, w := range []window{wholeText, {1, 5}, {3, -1}} {
		r := iotest.OneByteReader(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(broken)))
		if got, err := w.read(t.Context(), r, bounds{text: 100, scan: 100}); !errors.Is(err, broken) || got != "" {
			t.Errorf("%v: got %q, %v, want %v", w, got, err, broken)
		}
	}
}
