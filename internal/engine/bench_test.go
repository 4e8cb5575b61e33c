package engine_test

import (
	"context"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
)

// chunk is what generated code makes of a small message.
type chunk struct{ SessionID, Text string }

func (c *chunk) EncodeJSON(e *codec.Encoder) {
	e.BeginObject()
	e.Name("sessionId")
	e.Str(c.SessionID)
	e.Name("text")
	e.Str(c.Text)
	e.EndObject()
}

func (c *chunk) DecodeJSON(d *codec.Decoder) {
	*c = chunk{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "sessionId":
			c.SessionID = d.Intern()
		case "text":
			c.Text = d.Str()
		default:
			d.Skip()
		}
	}
}

var (
	chunkMethod = NotificationMethod[chunk]{Name: "chunk"}
	tellMethod  = RequestMethod[chunk, chunk]{Name: "tell"}
)

// benchPair connects two sides, of which one serves routes and the other is returned.
func benchPair(b *testing.B, routes ...Route) *Conn {
	b.Helper()
	near, far := rpc.Pipe()
	server := must.Get(Connect(b.Context(), far, func(*Conn) []Route { return routes }, nil))(b)
	client := must.Get(Connect(b.Context(), near, nil, nil))(b)
	b.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client
}

// BenchmarkNotify sends notifications and waits until the last was handled.
func BenchmarkNotify(b *testing.B) {
	handled, left := make(chan struct{}), b.N
	c := benchPair(b, chunkMethod.Handle(func(context.Context, *chunk) error {
		if left--; left == 0 {
			close(handled)
		}
		return nil
	}))
	params := &chunk{SessionID: "s", Text: strings.Repeat("x", 64)}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		must.Do(b, chunkMethod.Notify(b.Context(), c, params))
	}
	<-handled
}

// BenchmarkCall makes one call after the other.
func BenchmarkCall(b *testing.B) {
	c := benchPair(b, tellMethod.Handle(func(_ context.Context, p *chunk) (*chunk, error) { return p, nil }))
	params := &chunk{SessionID: "s", Text: strings.Repeat("x", 64)}
	b.ReportAllocs()
	for b.Loop() {
		must.Get(tellMethod.Call(b.Context(), c, params))(b)
	}
}

// BenchmarkCallParallel has many calls in flight.
func BenchmarkCallParallel(b *testing.B) {
	c := benchPair(b, tellMethod.Handle(func(_ context.Context, p *chunk) (*chunk, error) { return p, nil }))
	b.SetParallelism(8)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		params := &chunk{SessionID: "s", Text: strings.Repeat("x", 64)}
		for pb.Next() {
			if _, err := tellMethod.Call(b.Context(), c, params); err != nil {
				b.Error(err)
			}
		}
	})
}
