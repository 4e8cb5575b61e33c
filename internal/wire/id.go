// This file owns what request ids mean to a connection.

package wire

import (
	"math"
	"strconv"

	"github.com/acpgo/sdk/acp/codec"
)

// ID is a JSON-RPC request id.
type ID = codec.ID

// IntID returns an integer id.
func IntID(n int64) ID { return codec.IntID(n) }

// callNumber returns the number of the call of ours that a response with this id is for. Some peers
// write all numbers with a fraction.
func callNumber(id ID) (n uint64, ok bool) {
	if n, ok := id.Int(); ok {
		return uint64(n), n > 0
	}
	if _, text := id.Str(); text || id.IsNull() {
		return 0, false
	}
	f, err := strconv.ParseFloat(id.String(), 64)
	return uint64(f), err == nil && f > 0 && f < 1<<53 && f == math.Trunc(f)
}
