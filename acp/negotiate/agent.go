package negotiate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/engine"
	"github.com/acpgo/sdk/internal/serve"
)

// Agent serves a client in the version that the client asks for.
type Agent struct {
	// V1 serves version 1, usually with acp.ServeAgent, until the connection is over. Nil means that the agent does not
	// support it.
	V1 func(ctx context.Context, transport rpc.Transport) error
	// V2 serves version 2, usually with acpv2.ServeAgent. Nil means that the agent does not support it.
	V2 func(ctx context.Context, transport rpc.Transport) error
}

// Serve serves one client over transport until the connection is over or ctx ends. It reads up to the initialize
// request, calls V2 if the request asks for version 2 or newer, and otherwise V1, and returns its error. The transport
// passed to V1 or V2 begins with that request; the choice is final.
//
// Before that, it behaves like an agent that waits for initialize: other requests are refused, notifications are
// ignored, and an initialize request for a version that does not exist gets the error −32022.
func (a Agent) Serve(ctx context.Context, transport rpc.Transport) error {
	switch {
	case a.V1 == nil && a.V2 == nil:
		return errors.New("acp: an agent that speaks no version")
	case a.V2 == nil:
		return a.V1(ctx, transport)
	case a.V1 == nil:
		return a.V2(ctx, transport)
	}
	door := &door{Transport: transport}
	conn, err := serve.Connect(ctx, door, waitForInitialize, nil)
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), conn.Close(), door.stream.Close())
	case <-conn.Done():
	}
	if err := conn.Wait(); door.initialize == nil {
		return err
	}
	serve := a.V1
	if door.version >= 2 {
		serve = a.V2
	}
	stream := replay(door.stream, door.initialize)
	return errors.Join(serve(ctx, only{stream}), stream.Close())
}

// waitForInitialize returns the routes for messages before the initialize request that chooses the version.
func waitForInitialize(*rpc.Conn) ([]engine.Route, error) {
	initialize := engine.RequestMethod[initializeParams, struct{}]{Name: methodInitialize}.Handle(refuseVersion)
	initialize.Inline = true
	return []engine.Route{initialize, {Gate: refuseOthers}}, nil
}

var (
	errNotInitialized     = rpc.ErrInvalidRequest.WithMessagef("Invalid request: initialize comes first")
	errUnsupportedVersion = &rpc.Error{Code: -32022, Message: "Unsupported protocol version"}
)

func refuseOthers() error { return errNotInitialized }

// refuseVersion answers requests for versions older than the first.
func refuseVersion(_ context.Context, req *initializeParams) (*struct{}, error) {
	return nil, errUnsupportedVersion.WithData(unsupportedVersion{req.ProtocolVersion, []uint16{1, 2}})
}

// unsupportedVersion is the data of errUnsupportedVersion.
type unsupportedVersion struct {
	Requested uint16   `json:"requested"`
	Supported []uint16 `json:"supported"`
}

// door is a transport whose stream ends before the initialize request that chooses the version. It leaves the
// underlying stream open for the connection in that version.
type door struct {
	rpc.Transport
	stream rpc.Stream // the underlying stream

	chosen     atomic.Bool
	initialize []byte // set before chosen
	version    uint16
}

func (d *door) Connect(ctx context.Context) (rpc.Stream, error) {
	var err error
	if d.stream, err = d.Transport.Connect(ctx); err != nil {
		return nil, err
	}
	return rpc.Wrap(d.stream, rpc.Wrapper{Read: d.read, Close: d.close}), nil
}

func (d *door) read(next func() ([]byte, error), _ func()) ([]byte, error) {
	if d.chosen.Load() {
		return nil, io.EOF
	}
	line, err := next()
	if err != nil {
		return nil, err
	}
	var r request
	if codec.Unmarshal(line, &r) != nil || !r.chooses() {
		return line, nil // the connection answers it
	}
	d.initialize, d.version = bytes.Clone(line), r.asked.ProtocolVersion
	d.chosen.Store(true)
	return nil, io.EOF
}

func (d *door) close() error {
	if d.chosen.Load() {
		return nil
	}
	return d.stream.Close()
}

// request holds the parts of a message that show whether it chooses the version.
type request struct {
	jsonrpc, method string
	hasID           bool
	asked           initializeParams
	understood      bool // asked is valid
	twice           bool // a member occurs twice
}

// chooses reports whether the message is a request for an existing version.
func (r *request) chooses() bool {
	return r.jsonrpc == "2.0" && r.hasID && r.method == methodInitialize && r.understood && !r.twice && r.asked.ProtocolVersion > 0
}

// DecodeJSON implements codec.Value.
func (r *request) DecodeJSON(d *codec.Decoder) {
	seen := map[string]bool{}
	for o := d.Object(); o.Next(); {
		name := string(o.Name())
		r.twice = r.twice || seen[name]
		switch name {
		case "jsonrpc", "id", "method", "params":
			seen[name] = true
		}
		switch name {
		case "jsonrpc":
			r.jsonrpc = d.Str()
		case "id":
			r.hasID = true
			d.Skip()
		case "method":
			r.method = d.Str()
		case "params":
			begin := d.Offset()
			d.Skip()
			r.understood = d.Err() == nil && codec.Unmarshal(d.Slice(begin), &r.asked) == nil
		default:
			d.Skip()
		}
	}
}

// replay returns a stream whose first message has already been read.
func replay(inner rpc.Stream, first []byte) rpc.Stream {
	return rpc.Wrap(inner, rpc.Wrapper{
		Read: func(next func() ([]byte, error), _ func()) ([]byte, error) {
			if message := first; message != nil {
				first = nil
				return message, nil
			}
			return next()
		},
	})
}
