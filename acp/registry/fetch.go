package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/acpgo/sdk/internal/plain"
)

// StatusError reports that a request was answered with a status other than 200.
type StatusError struct {
	// URL is the address.
	URL string
	// Status is the status, such as "404 Not Found".
	Status string
}

// Error implements the error interface.
func (e *StatusError) Error() string {
	return plain.Sprintf("%s: unexpected status %s", e.URL, e.Status)
}

// ArchiveError reports that an archive, or a program that is downloaded on its own, was rejected: its checksum does not
// match, or it is broken, too large, or hostile. None of it is kept.
type ArchiveError struct{ Reason error }

// Error implements the error interface.
func (e *ArchiveError) Error() string { return e.Reason.Error() }

// Unwrap returns Reason.
func (e *ArchiveError) Unwrap() error { return e.Reason }

func brokenf(format string, args ...any) error { return &ArchiveError{fmt.Errorf(format, args...)} }

// ErrPlainHTTP reports that an address is http without encryption, and was rejected because it, or the address that led
// to it, is not on this machine.
var ErrPlainHTTP = errors.New("the address is not https")

// secure refuses an address at which others could answer: plain http, unless it is allowed and to this machine.
func secure(u *url.URL, plain bool) error {
	switch {
	case u.Host == "":
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http":
		if plain && isLocal(u) {
			return nil
		}
		return fmt.Errorf("%w: %s", ErrPlainHTTP, u.Redacted())
	}
	return fmt.Errorf("%q is not an https address", short(u.Redacted()))
}

// isLocal reports whether an address is on this machine.
func isLocal(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// plainHTTP reports whether an address is plain http on this machine. Such an address may lead to others of that kind.
func plainHTTP(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Scheme == "http" && isLocal(u)
}

// maxRedirects is how many redirections are followed.
const maxRedirects = 10

// ask makes a request to an address, which may be plain http on this machine if plain is set.
func ask(ctx context.Context, with *http.Client, address string, plain bool,
	header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if err := secure(request.URL, plain); err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	request.Header.Set("User-Agent", "acp-go-sdk")
	client := *cmp.Or(with, &http.Client{})
	more := client.CheckRedirect
	client.CheckRedirect = func(request *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		// A server on the other side of https must not make this program send requests to this machine.
		if err := secure(request.URL, plain && via[len(via)-1].URL.Scheme == "http"); err != nil {
			return err
		}
		if more != nil {
			return more(request, via)
		}
		return nil
	}
	response, err := client.Do(request)
	return response, causeOf(ctx, err)
}

// causeOf adds to an error the reason why its context has ended.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// fetch writes the content of an address to a file, and returns its SHA-256.
func fetch(ctx context.Context, with *http.Client, address string, plain bool, name string, most int64) (sum string,
	err error) {
	// Some servers treat the compression of an archive as an encoding, which would be undone here; the checksum and the
	// name are those of the archive.
	response, err := ask(ctx, with, address, plain, http.Header{"Accept-Encoding": {"identity"}})
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", &StatusError{address, response.Status}
	}
	if response.ContentLength > most {
		return "", brokenf("it has %d bytes, more than the limit of %d", response.ContentLength, most)
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(file, hash), io.LimitReader(response.Body, most+1))
	if err != nil {
		return "", causeOf(ctx, err)
	}
	if n > most {
		return "", brokenf("it has more than %d bytes", most)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// fileName returns the last part of an address.
func fileName(address string) string {
	if u, err := url.Parse(address); err == nil {
		address = u.Path
	}
	return address[strings.LastIndex(address, "/")+1:]
}
