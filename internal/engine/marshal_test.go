package engine_test

import (
	"encoding/json"
)

// marshaler is a value whose encoding does something.
type marshaler struct{ do func() }

func (m marshaler) MarshalJSON() ([]byte, error) {
	m.do()
	return json.Marshal(map[string]int{"n": 1})
}
