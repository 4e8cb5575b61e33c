package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// dialer is the transport of a client.
type dialer struct {
	url     *url.URL
	bad     error // the error in the URL
	opts    DialOptions
	client  *http.Client
	release func() // closes idle connections
	log     *slog.Logger

	mu      sync.Mutex
	cursors map[string][]byte // the last id that each session's stream had on any connection, with DialOptions.Resume
}

// maxCursors is for how many sessions a dialer keeps a cursor.
const maxCursors = 1000

// arrived keeps the cursor of a session's stream, so that the session can continue there on another connection.
func (d *dialer) arrived(session string, cursor []byte) {
	if !d.opts.Resume || len(cursor) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	old, known := d.cursors[session]
	if bytes.Equal(old, cursor) {
		return
	}
	if !known && len(d.cursors) >= maxCursors {
		for other := range d.cursors {
			delete(d.cursors, other)
			break
		}
	}
	d.cursors[session] = append(old[:0], cursor...)
}

func (d *dialer) cursor(session string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Clone(d.cursors[session])
}

func (d *dialer) forget(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.cursors, session)
}

type refusedKey struct{}

// Refused returns the reason why DialOptions.Header is called again, given the context passed to it: a *StatusError
// with 401 or 403. It returns nil if the request is made for the first time.
func Refused(ctx context.Context) *StatusError {
	refused, _ := ctx.Value(refusedKey{}).(*StatusError)
	return refused
}

// twice makes a request by calling try, and once more with a new header if the response is 401 or 403. The context
// passed to try is for the request.
func (d *dialer) twice(ctx context.Context, try func(context.Context, http.Header) (*http.Response, error)) (
	*http.Response, error) {
	for {
		header := http.Header{}
		if d.opts.Header != nil {
			own, err := d.opts.Header(ctx)
			if err != nil {
				return nil, &unsentError{fmt.Errorf("acp: the header of a request: %w", err)}
			}
			header = own.Clone()
			if header == nil {
				header = http.Header{}
			}
		}
		secret := secretsIn(d.url, header)
		resp, err := try(secret.with(ctx), header)
		err = secret.hideIn(err)
		if resp == nil || d.opts.Header == nil || Refused(ctx) != nil ||
			resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, err
		}
		ctx = context.WithValue(ctx, refusedKey{}, statusError(resp, 0))
	}
}

// do makes a request. The caller closes the body. An *unsentError means that the server has not seen the request.
func (d *dialer) do(ctx context.Context, method string, body []byte, set func(http.Header)) (*http.Response, error) {
	return d.twice(ctx, func(ctx context.Context, header http.Header) (*http.Response, error) {
		var sought, found bool
		trace := &httptrace.ClientTrace{
			GetConn: func(string) { sought = true },
			GotConn: func(httptrace.GotConnInfo) { found = true },
		}
		inner, cancel := context.WithCancel(ctx)
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(inner, trace), method, d.url.String(),
			bytes.NewReader(body))
		if err != nil {
			cancel()
			return nil, &unsentError{withoutURL(err)}
		}
		if body == nil {
			req.Body, req.GetBody = nil, nil
		}
		req.Header = header
		if set != nil {
			set(header)
		}
		if name := unsendable(header); name != "" {
			cancel()
			return nil, &unsentError{fmt.Errorf("acp: header %s: %w", name, errHeader)}
		}
		resp, err := d.client.Do(req)
		if err != nil {
			cancel()
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			err = withoutURL(err)
			if dial := (*net.OpError)(nil); sought && !found || errors.As(err, &dial) && dial.Op == "dial" || untrusted(err) {
				err = &unsentError{err}
			}
			return nil, err
		}
		if resp.Request == nil { // from a RoundTripper that does not make requests
			resp.Request = req
		}
		body := &responseBody{resp.Body, ctx, cancel}
		if resp.StatusCode != http.StatusOK { // only a 200 carries messages
			timer := time.AfterFunc(d.opts.StreamTimeout, cancel)
			body.closed = func() {
				timer.Stop()
				cancel()
			}
		}
		resp.Body = body
		return resp, nil
	})
}

// responseBody is a body whose errors are the causes of a context.
type responseBody struct {
	io.ReadCloser
	ctx    context.Context
	closed func() // called when it is closed
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF && b.ctx.Err() != nil {
		err = context.Cause(b.ctx)
	}
	return n, err
}

func (b *responseBody) Close() error {
	defer b.closed()
	return b.ReadCloser.Close()
}

// errHeader reports that a value, such as the id of a session, cannot be sent in an HTTP header.
var errHeader = errors.New("invalid value")

// unsendable returns the name of a header whose value cannot be sent.
func unsendable(header http.Header) string {
	for name, values := range header {
		for _, value := range values {
			if strings.ContainsFunc(value, unsendableRune) {
				return name
			}
		}
	}
	return ""
}

func unsendableRune(r rune) bool { return r < ' ' && r != '\t' || r == '\x7f' }

// untrusted reports whether the server's identity could not be verified.
func untrusted(err error) bool {
	_, bad := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return bad || unknown || plain
}

// unsentError reports that a request did not reach the server.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }

func (e *unsentError) Unwrap() error { return e.err }

// withoutURL returns an error without the URL, which may contain a token.
func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// statusError returns the error for a response without success, and closes the response. size is the length of the
// request's body.
func statusError(resp *http.Response, size int) *StatusError {
	defer resp.Body.Close()
	// Text that cannot be read is omitted.
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxText))
	e := &StatusError{
		Status:     resp.StatusCode,
		Text:       secretsOf(resp).line(string(text)),
		RetryAfter: retryAfter(resp.Header.Get("Retry-After")),
	}
	if e.Status == http.StatusRequestEntityTooLarge {
		e.Size = size
	}
	return e
}

// retryAfter reads the header: seconds, or a date.
func retryAfter(value string) time.Duration {
	if s, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(s) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// discard reads the rest of a body, up to a bound.
func discard(body io.Reader) error {
	_, err := io.CopyN(io.Discard, body, 64<<10)
	if err == io.EOF {
		return nil
	}
	return err
}
