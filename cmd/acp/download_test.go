package main

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
)

// roundTrip is a function as a http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// slow reads a megabyte per 150 ms.
type slow struct{ left int }

func (s *slow) Read(p []byte) (int, error) {
	time.Sleep(150 * time.Millisecond)
	if s.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), 1_000_000, s.left)
	s.left -= n
	return n, nil
}

// The progress of a slow download is shown from time to time and removed at the end; a fast one shows nothing.
func TestDownload(t *testing.T) {
	for _, test := range []struct {
		name string
		body io.Reader
		size int64
		want []string
	}{
		{"slow", &slow{3_000_000}, 3_000_000, []string{"h: 2.0 MB of 3.0 MB (66 %)", "h: 3.0 MB of 3.0 MB (100 %)", "end"}},
		{"of a size that is not known", &slow{1_000_000}, -1, []string{"h: 1.0 MB", "end"}},
		{"fast", bytes.NewReader(make([]byte, 3_000_000)), 3_000_000, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got []string
				inner := roundTrip(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(test.body), ContentLength: test.size}, nil
				})
				client := http.Client{Transport: &downloads{inner, func(line string) { got = append(got, line) }, func() { got = append(got, "end") }}}
				response := must.Get(client.Get("http://h/archive"))(t)
				if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{response.Body}, make([]byte, 1_000_000)); err != nil {
					t.Error(err)
				}
				if err := response.Body.Close(); err != nil || !slices.Equal(got, test.want) {
					t.Errorf("got %q, want %q, %v", got, test.want, err)
				}
			})
		})
	}
	if (&program{stderr: io.Discard}).downloading() != nil {
		t.Error("there is no terminal")
	}
}
