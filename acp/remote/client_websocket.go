package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp/rpc"
)

// socketBuffer is how many bytes of a WebSocket are read at once. Agents send many small messages.
const socketBuffer = 32 << 10

func (d *dialer) connectWebSocket(ctx context.Context) (rpc.Stream, error) {
	defer d.release() // for responses that did not become a WebSocket
	var below *frames
	client := *d.client
	client.Transport = gathering{client.Transport, func(conn io.ReadWriteCloser) io.ReadWriteCloser {
		below = newFrames(conn, d.opts.StallTimeout, socketBuffer)
		return below
	}}
	mode := websocket.CompressionDisabled
	if d.opts.Compression {
		mode = websocket.CompressionContextTakeover
	}
	var ws *websocket.Conn
	resp, err := d.twice(ctx, func(ctx context.Context, header http.Header) (resp *http.Response, err error) {
		ws, resp, err = websocket.Dial(ctx, d.url.String(), &websocket.DialOptions{
			HTTPClient:      &client,
			HTTPHeader:      header,
			Subprotocols:    d.opts.Subprotocols,
			CompressionMode: mode,
		})
		return resp, err
	})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, fmt.Errorf("acp: opening a WebSocket: %w", context.Cause(ctx))
	case resp != nil && resp.StatusCode != http.StatusSwitchingProtocols:
		return nil, fmt.Errorf("acp: opening a WebSocket: %w", statusError(resp, 0))
	default:
		return nil, fmt.Errorf("acp: opening a WebSocket: %w", withoutURL(err))
	}
	if below == nil {
		// A RoundTripper that invents responses.
		return nil, errors.Join(errors.New("acp: opening a WebSocket: the RoundTripper did not hand over the connection"),
			ws.CloseNow())
	}
	return newSocket(ws, below, socketOptions{
		maxMessage:   d.opts.MaxMessage,
		keepAlive:    max(d.opts.KeepAlive, 0),
		closeTimeout: d.opts.CloseTimeout,
		log:          d.log,
		secrets:      secretsOf(resp),
	}), nil
}

// gathering is a RoundTripper that wraps the connection of an upgraded response.
type gathering struct {
	http.RoundTripper
	wrap func(io.ReadWriteCloser) io.ReadWriteCloser
}

func (g gathering) RoundTrip(req *http.Request) (*http.Response, error) {
	inner := cmp.Or(g.RoundTripper, http.DefaultTransport)
	resp, err := inner.RoundTrip(req)
	if err == nil && resp.Request == nil {
		resp.Request = req
	}
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		return resp, err
	}
	if conn, ok := resp.Body.(io.ReadWriteCloser); ok {
		resp.Body = g.wrap(conn)
	}
	return resp, nil
}
