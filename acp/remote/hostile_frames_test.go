package remote_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// frame is a frame as a client sends it, with a mask of zeros.
func frame(first byte, payload string) string {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	default:
		b = append(b, 0x80|126, byte(n>>8), byte(n))
	}
	return string(append(b, 0, 0, 0, 0)) + payload
}

const (
	text, continued, closing, ping = 0x01, 0x00, 0x88, 0x89
	final                          = 0x80
)

// TestREM20_HostileFrames: what breaks the protocol of frames, which the library has tests for, ends the connection, and
// nothing is left of it; what does not, however strange, does nothing.
func TestREM20_HostileFrames(t *testing.T) {
	tier.Need(t, tier.Normal)
	say := request(7, "x", "{}")
	answer := result(7, "x")
	for name, c := range map[string]struct {
		sends string
		ends  bool // otherwise say is answered afterwards
	}{
		"fragments with pings between": {frame(text, say[:5]) + frame(ping, "a") + frame(continued, say[5:9]) + frame(ping, "") + frame(final|continued, say[9:]), false},
		"many pings":                   {strings.Repeat(frame(ping, strings.Repeat("x", 125)), 5000) + frame(final|text, say), false},
		"no mask":                      {"\x81\x02{}", true},
		"a close, and more":            {frame(closing, "\x03\xe8") + frame(final|text, say), true},
		"half a header":                {"\x81", true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, &remote.HandlerOptions{MaxMessage: 1 << 20}, func(f *fixture) {
				f.frames(c.sends, c.ends, answer)
				f.gone(remote.WebSocket, time.Minute)
			})
		})
	}
}

// frames sends initialize and then frames on a new connection, and requires that it ends or, otherwise, an answer.
func (f *fixture) frames(frames string, ends bool, answer string) {
	t := f.t
	conn := must.Get(f.client.Transport.(*http.Transport).DialContext(t.Context(), "tcp", "localhost:80"))(t)
	defer conn.Close()
	must.Do(t, conn.SetReadDeadline(time.Now().Add(f.patience)))
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, "GET /acp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"+frame(final|text, initialize)+frames)
	}()
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(resp, err)
	}
	if ends && len(frames) == 1 { // the client goes in the middle of a header
		<-sent
		conn.Close()
	}
	var got []byte
	for buf := make([]byte, 64<<10); ; {
		n, err := in.Read(buf)
		if got = append(got, buf[:n]...); !ends && bytes.Contains(got, []byte(answer)) {
			return
		}
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			t.Fatalf("nothing more came after %d bytes: %.300q", len(got), got)
		}
		if err != nil {
			break
		}
	}
	if !ends || bytes.Contains(got, []byte(answer)) {
		t.Errorf("it ended after %.300q", got)
	}
}
