package remote_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/pipenet"
)

var errNo = fmt.Errorf("no: %w", remote.ErrForbidden)

// withTokens lets alice and bob in, and knows mallory, who may not.
func withTokens() *remote.HandlerOptions {
	bearer := remote.BearerToken(map[string]string{"alice": "s3cret-a", "bob": "s3cret-b", "nobody": ""})
	return &remote.HandlerOptions{Authenticate: func(r *http.Request) (string, error) {
		if r.Header.Get("Authorization") == "Bearer s3cret-m" {
			return "", errNo
		}
		return bearer(r)
	}}
}

// TestREM81_BearerToken: a token is one principal's, always the same, and white space round it makes no difference.
func TestREM81_BearerToken(t *testing.T) {
	who := remote.BearerToken(map[string]string{"a": "one\r\n", "b": "two", "c": "two", "d": "two", "e": " ", "f": ""})
	for header, want := range map[string]string{
		"Bearer one": "a", "bearer  one ": "a", "Bearer two": "b", "Bearer ": "", "Bearer  ": "", "Bearer": "", "two": "",
	} {
		for range 20 {
			got, err := who(&http.Request{Header: http.Header{"Authorization": {header}}})
			if got != want || (err == nil) != (want != "") {
				t.Fatalf("%q: %q, %v, want %q", header, got, err, want)
			}
		}
	}
}

// TestNewHTTPServer_SlowBody: a body that a handler does not read bounds how long its answer takes; one that it has read
// does not.
func TestNewHTTPServer_SlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		mux := http.NewServeMux()
		mux.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
			select {
			case <-time.After(time.Hour):
			case <-r.Context().Done():
				t.Error("a request is cut whose body was read")
			}
		})
		srv := remote.NewHTTPServer(mux)
		served := make(chan error)
		go func() { served <- srv.Serve(l) }()
		for _, c := range []struct {
			path, length, want string
			took               time.Duration
		}{
			{"/long", "1", "HTTP/1.1 200 ", time.Hour},
			{"/none", "1000", "HTTP/1.1 404 ", time.Minute},
		} {
			conn := must.Get(l.Dial(t.Context(), "", ""))(t)
			began := time.Now()
			must.Get(io.WriteString(conn, "POST "+c.path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+c.length+"\r\n\r\n{"))(t)
			answer, err := bufio.NewReader(conn).ReadString('\n')
			if took := time.Since(began); err != nil || !strings.HasPrefix(answer, c.want) || took != c.took {
				t.Errorf("%s: %q, %v after %v, want %s after %v", c.path, answer, err, took, c.want, c.took)
			}
			conn.Close()
		}
		must.Do(t, srv.Close())
		if err := <-served; err != http.ErrServerClosed {
			t.Error(err)
		}
	})
}

// TestREM80_CheckListener: without authentication only this machine may reach the listener.
func TestREM80_CheckListener(t *testing.T) {
	everywhere := must.Get(net.Listen("tcp", "0.0.0.0:0"))(t)
	defer everywhere.Close()
	here := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer here.Close()
	open, closed := remote.Handler(nil, nil), remote.Handler(nil, withTokens())
	if open.CheckListener(everywhere) == nil || open.CheckListener(here) != nil || closed.CheckListener(everywhere) != nil {
		t.Error("CheckListener")
	}
}
