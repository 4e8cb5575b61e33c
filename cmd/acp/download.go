package main

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// downloading returns a client that shows the progress of downloads on standard error, if that is a terminal; nil means
// the default client.
func (p *program) downloading() *http.Client {
	shown := newProgress(p.stderr, false)
	if shown.w == nil {
		return nil
	}
	return &http.Client{Transport: &downloads{http.DefaultTransport, shown.line, shown.end}}
}

// downloads shows the progress of each response.
type downloads struct {
	http.RoundTripper
	show func(text string)
	end  func()
}

// RoundTrip implements http.RoundTripper.
func (d *downloads) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := d.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = &download{ReadCloser: response.Body, of: d, size: response.ContentLength, host: request.URL.Host,
			shown: time.Now()}
	}
	return response, err
}

// downloadPause is the time between two lines. A download that takes less shows none.
const downloadPause = 200 * time.Millisecond

// download is the body of a response.
type download struct {
	io.ReadCloser
	of        *downloads
	host      string
	got, size int64 // size is -1 if it is not known
	shown     time.Time
	said      bool
}

func (d *download) Read(p []byte) (int, error) {
	n, err := d.ReadCloser.Read(p)
	d.got += int64(n)
	if now := time.Now(); now.Sub(d.shown) >= downloadPause {
		d.shown, d.said = now, true
		text := fmt.Sprintf("%s: %s", d.host, megabytes(d.got))
		if d.size > 0 {
			text = fmt.Sprintf("%s of %s (%d %%)", text, megabytes(d.size), d.got*100/d.size)
		}
		d.of.show(text)
	}
	return n, err
}

func (d *download) Close() error {
	if d.said {
		d.of.end()
	}
	return d.ReadCloser.Close()
}

// megabytes formats a size for people.
func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
