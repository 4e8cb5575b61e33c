package wire

import (
	"math"
	"strconv"

	"github.com/acpgo/sdk/codec"
)

// ID is a JSON-RPC request id.
type ID = codec.ID

// IntID returns an integer id.
func IntID(n int64) ID { return codec.IntID(n) }

// Canonical returns the same id for all ids of the same value: an integer written as 7.0 or 7e0 becomes 7, as some
// peers write all numbers with a fraction. Other ids, and integers of 2⁵³ and more, are returned unchanged.
func Canonical(id ID) ID {
	if _, ok := id.Int(); ok || id.IsNull() {
		return id
	}
	if _, text := id.Str(); text {
		return id
	}
	f, err := strconv.ParseFloat(id.String(), 64)
	if err != nil || math.Abs(f) >= 1<<53 || f != math.Trunc(f) {
		return id
	}
	return IntID(int64(f))
}

// callNumber returns the number of this side's call that a response with this id answers.
func callNumber(id ID) (n uint64, ok bool) {
	number, ok := Canonical(id).Int()
	return uint64(number), ok && number > 0
}
