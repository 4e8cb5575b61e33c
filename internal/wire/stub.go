// This file owns how the library learns that a call is over.

package wire

import (
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/sourcegraph/jsonrpc2"
)

// stub makes the library's message for a call that is over: a response that has an id and no more, since
// the payload goes to the caller directly. The library's message is of a type of its own that only JSON
// can fill, which takes some 25 allocations and 4 µs. So the first one is kept, and assigned to the later
// ones after the id in its response was changed: that response is the one that the library's OnRecv hook
// is shown, and nobody reads it once the hook has run. Should that not hold in another release of the
// library, seen tells, and JSON fills all of them.
type stub struct {
	token    uint64             // what the library was given last
	response *jsonrpc2.Response // in message; nil before the first
	message  reflect.Value      // the one that is kept
	off      bool               // keeping it does not work
}

// fill fills the library's message with the response to the call of that token.
func (s *stub) fill(message any, token uint64) error {
	s.token = token
	v := reflect.Indirect(reflect.ValueOf(message))
	if s.response != nil && v.CanSet() && v.Type() == s.message.Type() {
		s.response.ID.Num = token
		v.Set(s.message)
		return nil
	}
	text := strconv.AppendUint([]byte(`{"jsonrpc":"2.0","result":null,"id":`), token, 10)
	if err := message.(json.Unmarshaler).UnmarshalJSON(append(text, '}')); err != nil {
		return err
	}
	s.message = reflect.New(v.Type()).Elem()
	s.message.Set(v)
	return nil
}

// seen is told which response the library has found in its message, and reports false when that is not
// the one that it was given.
func (s *stub) seen(response *jsonrpc2.Response) bool {
	if response.ID.Num != s.token {
		s.response, s.off = nil, true
		return false
	}
	if !s.off {
		s.response = response
	}
	return true
}
