package remote

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/plain"
)

// secrets are the credentials in a request, which a server may repeat.
type secrets []string

type secretsKey struct{}

// with returns a context for the request with these secrets.
func (s secrets) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, secretsKey{}, s)
}

// secretsOf returns the secrets of the request that a response answers.
func secretsOf(resp *http.Response) secrets {
	s, _ := resp.Request.Context().Value(secretsKey{}).(secrets)
	return s
}

// minSecret is the least length of a header value that counts as a secret, unless the header is Authorization.
const minSecret = 8

// secretsIn returns the secrets of a request to a URL with the headers of DialOptions.
func secretsIn(u *url.URL, header http.Header) (s secrets) {
	add := func(value string, least int) {
		if value = strings.TrimSpace(value); len(value) >= least {
			s = append(s, value)
		}
	}
	for name, values := range header {
		for _, value := range values {
			if http.CanonicalHeaderKey(name) == "Authorization" {
				_, token, ok := strings.Cut(strings.TrimSpace(value), " ")
				if !ok {
					token = value
				}
				add(token, 1)
			} else {
				add(value, minSecret)
			}
		}
	}
	password, _ := u.User.Password()
	add(password, 1)
	for name, values := range u.Query() {
		for _, value := range values {
			if secretName(name) {
				add(value, 1)
			}
		}
	}
	// Longest first, because a secret may contain others.
	slices.SortFunc(s, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return s
}

// hidden replaces a secret.
const hidden = "***"

func (s secrets) hide(text string) string {
	for _, secret := range s {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}

// line returns a peer's text as one line that can be shown. A text of maxText bytes may end within a secret.
func (s secrets) line(text string) string {
	cut := len(text) >= maxText
	text = s.hide(text)
	if end := s.begun(text); cut && end > 0 {
		text = text[:len(text)-end] + hidden
	}
	return plain.Line(strings.Join(strings.Fields(text), " "))
}

// begun returns how many bytes at the end of a text are the beginning of a secret.
func (s secrets) begun(text string) (most int) {
	for _, secret := range s {
		for n := min(len(secret), len(text)); n > most; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				most = n
			}
		}
	}
	return most
}

// hideIn returns an error like err, but without the secrets in its text.
func (s secrets) hideIn(err error) error {
	if err == nil || s.hide(err.Error()) == err.Error() {
		return err
	}
	return &hiddenError{s.hide(err.Error()), err}
}

// hiddenError is an error with another text.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }

func (e *hiddenError) Unwrap() error { return e.err }

// maxText is how many bytes of a server's text are kept.
const maxText = 1 << 10

// hasSecrets reports whether a URL seems to contain credentials.
func hasSecrets(u *url.URL) bool {
	return u.User != nil || slices.ContainsFunc(slices.Collect(maps.Keys(u.Query())), secretName)
}

// secretName reports whether a URL parameter seems to contain credentials.
func secretName(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"token", "key", "secret", "auth", "pass", "ticket"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}
