// This file owns the client's side of WebSocket.

package remote

import (
	"context"
	"errors"

	"github.com/acpgo/sdk/acp/rpc"
)

func (d *dialer) connectWebSocket(ctx context.Context) (rpc.Stream, error) {
	return nil, errors.ErrUnsupported
}
