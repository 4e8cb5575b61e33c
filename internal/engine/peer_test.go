package engine_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
)

type rawPeer struct {
	t     *testing.T
	w     io.WriteCloser
	lines chan string // closed at the end of the stream
}

// newPeer connects a Conn to a raw peer.
func newPeer(t *testing.T, routes []Route, opts *Options) (*rawPeer, *Conn) {
	t.Helper()
	return newPeerLimit(t, routes, opts, 0)
}

// newPeerLimit is newPeer with a limit on the length of messages.
func newPeerLimit(t *testing.T, routes []Route, opts *Options, maxMessage int) (*rawPeer, *Conn) {
	t.Helper()
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	p := &rawPeer{t: t, w: w1, lines: make(chan string, 100)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(p.lines)
		in := bufio.NewReader(r2)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			p.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	conn := must.Get(Connect(t.Context(), rpc.IO(r1, w2, maxMessage), func(*Conn) []Route { return routes }, opts))(t)
	t.Cleanup(func() {
		w1.Close()
		if err := conn.Close(); err != nil && !errors.Is(err, rpc.ErrStuck) {
			t.Error(err)
		}
		go func() {
			for range p.lines {
			}
		}()
		<-done
	})
	return p, conn
}

func (p *rawPeer) send(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(p.w, l+"\n"); err != nil {
			p.t.Error(err)
		}
	}
}

// updates sends the updates from n to m-1 of session s.
func (p *rawPeer) updates(n, m int) {
	p.t.Helper()
	for ; n < m; n++ {
		p.send(note("update", fmt.Sprintf(`{"sessionId":"s","n":%d}`, n)))
	}
}

func (p *rawPeer) read() string {
	p.t.Helper()
	l, ok := <-p.lines
	if !ok {
		p.t.Fatal("the stream has ended")
	}
	return l
}

// expect reads a line that must be the same JSON as want.
func (p *rawPeer) expect(want string) {
	p.t.Helper()
	if got := p.read(); !sameJSON(got, want) {
		p.t.Fatalf("got  %s\nwant %s", got, want)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// going calls f in a goroutine, and returns what receives its error.
func going(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

type echoParams struct {
	SessionID string `json:"sessionId,omitempty"`
	N         int    `json:"n"`
}

var errPlain = errors.New("the database password is hunter2")

// endTurn is the answer that ends the turn whose request has an id.
func endTurn(id int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":"end_turn"}}`, id)
}

func request(id any, method string, params string) string {
	raw, err := json.Marshal(id)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, raw, method, params)
}

func note(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}
