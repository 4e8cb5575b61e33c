package acp

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/acpgo/sdk/codec"
)

// String returns the names of the constants in x, as Go source.
func (x Features) String() string {
	if x == 0 {
		return "0"
	}
	var names []string
	for rest := x; rest != 0; rest &= rest - 1 {
		if i := bits.TrailingZeros64(uint64(rest)); i < len(featureNames) && featureNames[i] != "" {
			names = append(names, featureNames[i])
		} else {
			names = append(names, fmt.Sprintf("%#x", uint64(1)<<i))
		}
	}
	return strings.Join(names, "|")
}

// lacks returns an error if one of the values, which are messages and handlers, uses a feature that is not in x.
// options names the type whose field Experimental enables features.
func (x Features) lacks(options string, values ...any) error {
	for _, v := range values {
		if off := Features(codec.Features(v, featuresOf)) &^ x; off != 0 {
			return fmt.Errorf("%w: %s.Experimental lacks %v", ErrExperimental, options, off)
		}
	}
	return nil
}
