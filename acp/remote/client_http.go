// This file owns the client's side of streamable HTTP.

package remote

import (
	"context"
	"errors"

	"github.com/acpgo/sdk/acp/rpc"
)

func (d *dialer) connectHTTP(ctx context.Context) (rpc.Stream, error) {
	return nil, errors.ErrUnsupported
}
