package remote

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/pipenet"
)

// TestREM50_GaveUp: who waits for a stream hears why it is given up, although its life ends with that.
func TestREM50_GaveUp(t *testing.T) {
	why := errors.New("why")
	st := &eventStream{s: &httpStream{d: &dialer{}}, opened: make(chan struct{}), err: why}
	st.s.d.opts.StreamTimeout = time.Minute
	st.life, st.cancel = context.WithCancelCause(t.Context())
	close(st.opened)
	st.cancel(nil)
	for range 100 { // which of the two is seen is random
		if err := st.await(); err != why {
			t.Fatalf("got %v", err)
		}
	}
}

// asleep is a connection that can become silent without an end.
type asleep struct {
	net.Conn
	silent *atomic.Bool
}

func (c asleep) Write(p []byte) (int, error) {
	if c.silent.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// TestAsleep: a stream over HTTP/2 whose server is gone, which nobody said while the machine was asleep, ends.
func TestAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		web := &httptest.Server{Listener: l, EnableHTTP2: true, Config: &http.Server{Handler: http.HandlerFunc(
			func(w http.ResponseWriter, r *http.Request) {
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})}}
		web.StartTLS()
		defer web.Close()
		var silent atomic.Bool
		client, release := (&dialer{}).makeClient()
		defer release()
		transport := client.Transport.(*http.Transport)
		transport.TLSClientConfig = web.Client().Transport.(*http.Transport).TLSClientConfig
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := l.Dial(ctx, "", "")
			return asleep{conn, &silent}, err
		}
		stream := must.Get(client.Get("https://example.com"))(t)
		defer stream.Body.Close()
		silent.Store(true)
		began := time.Now()
		_, err := stream.Body.Read(make([]byte, 1))
		if took := time.Since(began); err == nil || took > time.Minute {
			t.Errorf("%v after %v", err, took)
		}
	})
}
