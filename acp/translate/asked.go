package translate

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/acpgo/sdk/acp/rpc"
)

// maxBefore is how much a client may send before its first request, in bytes.
const maxBefore = 1 << 20

// Asked is for agents that have both versions natively. It connects to t, reads up to the client's first request, and
// returns 2 if that asks for version 2 or a later one, and otherwise 1. The connection then begins with what was read:
//
//	version, transport, err := translate.Asked(ctx, acp.Stdio())
//
// The returned transport connects once, and whoever uses it closes the stream. ctx bounds the wait.
func Asked(ctx context.Context, t rpc.Transport) (version int, _ rpc.Transport, err error) {
	stream, err := t.Connect(ctx)
	if err != nil {
		return 0, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() }) // reading returns the error
	var first [][]byte
	for size := 0; version == 0; {
		line, err := stream.Read()
		if err != nil {
			_ = stream.Close() // the error of reading says more
			if stop(); ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			return 0, nil, err
		}
		first = append(first, bytes.Clone(line))
		if size += len(line); size > maxBefore {
			version = 1
		}
		var asked int
		switch m, fault := read(ClientSide, line); {
		case fault != nil || m == nil || m.method == "" || m.id == nil: // the chosen version says what is wrong with it
		case m.method == "initialize" && json.Unmarshal(m.params.get("protocolVersion"), &asked) == nil && asked > 1:
			version = 2
		default:
			version = 1
		}
	}
	if !stop() {
		return 0, nil, context.Cause(ctx)
	}
	return version, once{rpc.Wrap(stream, rpc.Wrapper{Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
		if len(first) == 0 {
			return next()
		}
		line := first[0]
		first = first[1:]
		return line, nil
	}})}, nil
}

// once is the transport of a stream.
type once struct{ stream rpc.Stream }

func (o once) Connect(context.Context) (rpc.Stream, error) { return o.stream, nil }
