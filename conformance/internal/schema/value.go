package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
)

// maxValues bounds the number of JSON values in one message, and so the memory that validation takes.
const maxValues = 1 << 20

var errTooManyValues = fmt.Errorf("more than %d values in one message: not validated", maxValues)

// syntaxError returns an error that says where a text stops being JSON.
func syntaxError(text []byte) error {
	var raw json.RawMessage
	err := json.Unmarshal(text, &raw)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("not JSON: %w (byte %d)", syntax, syntax.Offset)
	}
	return fmt.Errorf("not JSON: %w", err)
}

// Pointer appends reference tokens to a JSON pointer. The pointer stops growing at a few times finding.MaxText, so that
// a deep message does not cost the square of its depth.
func Pointer(at string, tokens ...string) string {
	for _, token := range tokens {
		if len(at) > 4*finding.MaxText {
			break
		}
		at += "/" + finding.Clip(escape.Replace(token))
	}
	return at
}

// Element returns the pointer of an element of an array.
func Element(array string, i int) string { return array + "/" + strconv.Itoa(i) }

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// maxMagnitude bounds the decimal exponent of the numbers that are passed to the library. The library computes with
// rational numbers and has no limit: 1e999999 would take megabytes, and a longer exponent makes it panic.
const maxMagnitude = 400

// exact returns the number in a form that is cheap to compute with: integers in plain digits (1.0 and 1e2 are
// integers), short fractions unchanged, and other fractions as the integer part and .5. Numbers beyond every bound in a
// schema are replaced by a smaller one that is also beyond them. No schema can tell the difference.
func exact(n json.Number) json.Number {
	const short = 32
	text := string(n)
	if len(text) <= short && !strings.ContainsAny(text, ".eE") && text != "-0" {
		return n
	}
	sign, rest := "", text
	if r, ok := strings.CutPrefix(rest, "-"); ok {
		sign, rest = "-", r
	}
	mantissa, exponent := rest, ""
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa, exponent = rest[:i], rest[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	significant := strings.TrimRight(digits, "0")
	// The value is 0.significant × 10^order.
	order := saturate(exponent) - len(fraction) + len(digits)
	integral := order >= len(significant)
	switch {
	case order > maxMagnitude:
		return json.Number(sign + "1" + strings.Repeat("0", maxMagnitude))
	case integral:
		return json.Number(sign + significant + strings.Repeat("0", order-len(significant)))
	case len(text) <= short && exponent == "":
		return n
	case order <= 0:
		return json.Number(sign + "0.5")
	}
	return json.Number(sign + significant[:order] + ".5")
}

// saturate reads an exponent, keeping it far from overflow.
func saturate(exponent string) int {
	const most = 1 << 30
	if exponent == "" {
		return 0
	}
	e, err := strconv.Atoi(exponent)
	if err != nil || e > most || e < -most {
		if strings.HasPrefix(exponent, "-") {
			return -most
		}
		return most
	}
	return e
}
