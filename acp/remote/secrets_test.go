package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// TestErrorsKeepSecrets: what a server says is in errors as one line, without what the client sent to get access.
func TestErrorsKeepSecrets(t *testing.T) {
	const token, key, inURL, password = "tok~secret/1=", "key-secret-2", "url-secret-3", "pass-secret-4"
	const text = "refused\n\x1b[2J\u202eagent good"
	// Each server repeats what it was sent.
	sent := func(r *http.Request) string {
		_, pass, _ := r.BasicAuth()
		return fmt.Sprintf("%s %s %s %s", r.Header.Get("Authorization"), r.Header.Get("X-Key"), r.URL.Query().Get("token"), pass)
	}
	for name, serve := range map[string]http.HandlerFunc{
		"body": func(w http.ResponseWriter, r *http.Request) { http.Error(w, text+sent(r), http.StatusForbidden) },
		"cut": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, text+strings.Repeat("x", maxText-len(text)-7)+token, http.StatusBadRequest)
		},
		"type": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/"+key)
			io.WriteString(w, "no message")
		},
		"no HTTP": func(w http.ResponseWriter, r *http.Request) {
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(buf, "HTTP/1.1 %s\r\n\r\n", sent(r))
			buf.Flush()
		},
		"close": func(w http.ResponseWriter, r *http.Request) {
			ws, err := websocket.Accept(w, r, nil)
			if err != nil {
				http.Error(w, sent(r), http.StatusBadRequest)
				return
			}
			ws.Close(websocket.StatusPolicyViolation, text+sent(r))
		},
	} {
		server := httptest.NewServer(serve)
		t.Cleanup(server.Close)
		for _, scheme := range []string{"ws", "http"} {
			t.Run(name+" "+scheme, func(t *testing.T) {
				o := testOptions(t)
				o.Header = func(context.Context) (http.Header, error) {
					return http.Header{"authorization": {"Bearer " + token}, "X-Key": {key}}, nil
				}
				o.HTTPClient = server.Client()
				address := scheme + "://" + strings.TrimPrefix(server.URL, "http://") + "/?token=" + inURL
				err := failure(t, address, o)
				if err == nil {
					t.Fatal("it was accepted")
				}
				for _, secret := range []string{token, token[:5], key, inURL, password, "\n", "\x1b", "\u202e"} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("%q is in the error: %q", secret, err)
					}
				}
				if name == "body" {
					status, ok := errors.AsType[*StatusError](err)
					if want := `refused \x1b[2J\u202eagent goodBearer *** *** *** `; !ok || status.Text != strings.TrimSpace(want) {
						t.Errorf("%q, want %q", status.Text, want)
					}
				}
			})
		}
		t.Run(name+" password", func(t *testing.T) {
			address := "http://user:" + password + "@" + strings.TrimPrefix(server.URL, "http://")
			if err := failure(t, address, testOptions(t)); err == nil || strings.Contains(err.Error(), password) {
				t.Errorf("%v", err)
			}
		})
	}
}

// failure is why a connection fails, when it is opened or at its first message.
func failure(t *testing.T, address string, o *DialOptions) error {
	s, err := Dial(address, o).Connect(t.Context())
	if err != nil {
		return err
	}
	c := newClient(t, s)
	// A server that closes at once may be faster than the message: both errors count.
	err = s.Write([]byte(req(1, "initialize", `{"protocolVersion":1}`)))
	if read, failed := c.next().(error); failed {
		err = fmt.Errorf("%v; %w", err, read)
	}
	return err
}
