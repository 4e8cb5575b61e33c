// The formats that the schema uses. Validators ignore formats by default.

package schema

import (
	"encoding/json"
	"strconv"
)

// formats maps a format to its check. Values of other JSON types pass, because the keyword "type" restricts these. The
// library has the remaining formats (uri, date-time).
var formats = map[string]func(any) bool{
	"int32":  signed(32),
	"int64":  signed(64),
	"uint16": unsigned(16),
	"uint32": unsigned(32),
	"uint64": unsigned(64),
	"double": number(func(n string) error { _, err := strconv.ParseFloat(n, 64); return err }),
	// These are ECMAScript regular expressions, which Go cannot check.
	"regex": func(any) bool { return true },
}

func signed(bits int) func(any) bool {
	return number(func(n string) error { _, err := strconv.ParseInt(n, 10, bits); return err })
}

func unsigned(bits int) func(any) bool {
	return number(func(n string) error { _, err := strconv.ParseUint(n, 10, bits); return err })
}

func number(check func(string) error) func(any) bool {
	return func(v any) bool {
		n, ok := v.(json.Number)
		return !ok || check(string(n)) == nil
	}
}
