package acp

import (
	"maps"
	"slices"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Whatever a peer sends is decoded or refused, and what is decoded and can be encoded is decoded to the
// same again.
func FuzzDecode(f *testing.F) {
	tier.Need(f, tier.Normal)
	s := loadSchema(f)
	names := slices.Sorted(maps.Keys(definitions))
	for i, name := range names {
		f.Add(uint16(i), mustMarshal(f, sample.NewMaker(s, uint64(i)).Value(name)))
	}
	f.Fuzz(func(t *testing.T, i uint16, data []byte) {
		name := names[int(i)%len(names)]
		v := definitions[name]()
		if codec.Unmarshal(data, v) != nil {
			return
		}
		first, err := codec.Append(nil, v)
		if err != nil {
			return // what may be received need not be fit to be sent, an empty enum value for one
		}
		again := definitions[name]()
		if err := codec.Unmarshal(first, again); err != nil {
			t.Fatalf("%s: %s came out as %s: %v", name, data, first, err)
		}
		second, err := codec.Append(nil, again)
		if err != nil || string(second) != string(first) {
			t.Fatalf("%s: %s came out as %s, then as %s, %v", name, data, first, second, err)
		}
	})
}
