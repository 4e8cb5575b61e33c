package inspect

import (
	"context"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/test/must"
)

// The recording of a tap that is killed has no end, which is no one's fault.
func TestKilledTap(t *testing.T) {
	i := serveTest(t, Options{})
	var wire net.Conn
	client := &http.Client{Transport: &http.Transport{DialContext: func(_ context.Context, network, address string) (_ net.Conn, err error) {
		wire, err = net.Dial(network, address)
		return wire, err
	}}}
	conn, _, err := websocket.Dial(t.Context(), "ws://"+i.server.host+tapPath, &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: http.Header{tapHeader: {"n." + proof(i.secret, "tap", "n")}},
	})
	must.Do(t, err)
	p := i.browser().open(0, "")
	to := websocket.NetConn(t.Context(), conn, websocket.MessageBinary)
	w := must.Get(recording.NewWriter(to, recording.Header{Tool: "acp"}, nil))(t)
	for _, m := range []conformance.Message{
		{Direction: conformance.ToAgent, Line: []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)},
		{Direction: conformance.ToClient, Line: []byte(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"a","version":"1"}}}`)},
		{Direction: conformance.ToAgent, Line: []byte(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)},
	} {
		must.Do(t, w.Message(m))
	}
	p.row("1", "the last request", func(r *rowEvent) bool { return r.Method == "session/new" })
	must.Do(t, wire.Close())
	p.until("the end", func() bool { return len(p.state.Sources) == 1 && !p.state.Sources[0].Open })
	p.row("1", "that there is no end", func(r *rowEvent) bool {
		return r.Kind == "gap" && strings.Contains(r.Text, recording.ErrNoEnd.Error())
	})
	if len(p.late) > 0 {
		t.Errorf("findings at the end: %+v", p.late)
	}
}

// The end of an agent does not wait for an inspection that was stopped.
func TestStoppedInspection(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	over := make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nonce, _, _ := strings.Cut(r.Header.Get(tapHeader), ".")
		w.Header().Set(tapHeader, proof("secret", "inspection", nonce))
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		<-over
		conn.CloseNow()
	})}
	go server.Serve(l)
	defer server.Close()
	defer close(over)
	path := filepath.Join(t.TempDir(), "inspect.json")
	must.Get(WriteTapFile(path, TapFile{l.Addr().String(), "secret"}))(t)
	to := must.Get(DialTap(path))(t)
	must.Get(to.Write([]byte("x\n")))(t)
	begun := time.Now()
	_ = to.Close()
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("it takes %v", took)
	}
}
