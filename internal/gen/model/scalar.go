package model

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// ScalarOf returns a JSON value as a value of the type: a string, a bool or, for numbers, a [Number] with exactly the
// same value.
func ScalarOf(raw json.RawMessage, t Basic) (any, error) {
	switch t.Kind {
	case String:
		var s *string
		if json.Unmarshal(raw, &s) != nil || s == nil {
			return nil, fmt.Errorf("%s is not a string", raw)
		}
		return *s, nil
	case Bool:
		if s := string(raw); s != "true" && s != "false" {
			return nil, fmt.Errorf("%s is no boolean", raw)
		}
		return string(raw) == "true", nil
	}
	r, err := Rational(raw)
	if err != nil {
		return nil, err
	}
	return NumberOf(r, t, string(raw))
}

// NumberOf returns r as a number of the type. text is the notation of r for errors.
func NumberOf(r *big.Rat, t Basic, text string) (Number, error) {
	if t.Kind == Float {
		v, _ := r.Float64()
		out := strconv.FormatFloat(v, 'g', -1, 64)
		if back, ok := new(big.Rat).SetString(out); !ok || back.Cmp(r) != 0 {
			return "", fmt.Errorf("%s is no float64", text)
		}
		return Number(out), nil
	}
	if !r.IsInt() {
		return "", fmt.Errorf("%s is not an integer", text)
	}
	if least, most := t.Limits(); r.Num().Cmp(least) < 0 || r.Num().Cmp(most) > 0 {
		return "", fmt.Errorf("%s is out of range for %s", text, t.Go())
	}
	return Number(r.Num().String()), nil
}

// maxExponent is the maximum exponent of a number in a schema, which is more than a float64 can have.
const maxExponent = 400

// Rational returns the value of a JSON number.
func Rational(raw json.RawMessage) (*big.Rat, error) {
	var n *json.Number
	if json.Unmarshal(raw, &n) != nil || n == nil || raw[0] == '"' {
		return nil, fmt.Errorf("%s is not a number", raw)
	}
	text := n.String()
	if _, exponent, ok := strings.Cut(strings.ToLower(text), "e"); ok || len(text) > maxExponent {
		if e, err := strconv.Atoi(exponent); err != nil || e > maxExponent || e < -maxExponent {
			return nil, fmt.Errorf("%.40s is out of range", text)
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%.40s is not a number", text)
	}
	return r, nil
}

// Limits returns the minimum and the maximum of an Int or Uint.
func (t Basic) Limits() (least, most *big.Int) {
	one := big.NewInt(1)
	if t.Kind == Uint {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, uint(t.Bits)), one)
	}
	most = new(big.Int).Lsh(one, uint(t.Bits-1))
	return new(big.Int).Neg(most), new(big.Int).Sub(most, one)
}

// Go returns the name of the type in Go.
func (t Basic) Go() string {
	switch t.Kind {
	case String:
		return "string"
	case Bool:
		return "bool"
	case Int:
		return fmt.Sprintf("int%d", t.Bits)
	case Uint:
		return fmt.Sprintf("uint%d", t.Bits)
	}
	return "float64"
}
