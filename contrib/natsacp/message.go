package natsacp

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/wire"
)

// lines puts messages together that arrive in parts.
type lines struct{ partial []byte }

// add adds a part, and returns the messages that are complete with it, each with its newline.
func (l *lines) add(part []byte) []byte {
	end := bytes.LastIndexByte(part, '\n') + 1
	if end == 0 {
		l.partial = append(l.partial, part...)
		return nil
	}
	complete := part[:end:end]
	if len(l.partial) > 0 {
		complete = append(l.partial, complete...)
	}
	l.partial = slices.Clone(part[end:])
	return complete
}

// idPrefix begins the ids under which clients know the requests of agents.
const idPrefix = "acp:"

// member returns a text in an object, or "". If the object is wrong, the agent or the client says so.
func member(object []byte, name string) string {
	return string(wire.TextMember(codec.NewDecoder(nil), object, name))
}

func idText(id rpc.ID) json.RawMessage {
	text, _ := codec.Append(nil, &id) // an id can always be written
	return text
}

// replaceID returns a message with another id.
func replaceID(line []byte, m wire.Message, id rpc.ID) []byte {
	out := slices.Concat(line[:m.IDAt], idText(id), line[m.IDEnd:])
	return wire.AppendLine(out[:0], out)
}

// unread returns an error in place of an answer that cannot be read, because no other one will come; or nil if a line
// is not an answer. whose says who has answered.
func unread(line []byte, m wire.Message, whose string) (id rpc.ID, lost []byte) {
	id, response, known := wire.Recover(line)
	if m.Broken != nil {
		id, response, known = m.ID, true, true
	}
	if !response || !known {
		return m.ID, nil
	}
	return id, wire.Unread{ID: id, Response: true, Err: errors.New(whose + " answer cannot be read")}.Answer()
}

// renumber returns a $/cancel_request with another id, or nil.
func renumber(params []byte, number func(rpc.ID) (rpc.ID, bool)) []byte {
	var p map[string]json.RawMessage
	var id rpc.ID
	if json.Unmarshal(params, &p) != nil || codec.Unmarshal(p["requestId"], &id) != nil {
		return nil
	}
	id, ok := number(id)
	if !ok {
		return nil
	}
	p["requestId"] = idText(id)
	return requestLine(nil, wire.MethodCancelRequest, p)
}

// errorLine returns the answer to a request that has failed.
func errorLine(id rpc.ID, err error) []byte {
	return wire.ErrorLine(id, failure(err))
}

// failure returns what the other side sees of an error.
func failure(err error) *wire.Error {
	e := rpc.ErrorOf(err)
	return &wire.Error{Code: int(e.Code), Message: e.Message, Data: e.Data}
}

// failed returns the error of an answer.
func failed(e *wire.Error) error {
	return &rpc.Error{Code: rpc.Code(e.Code), Message: e.Message, Data: e.Data}
}

// requestLine returns a request, or a notification if it has no id.
func requestLine(id json.RawMessage, method string, params any) []byte {
	line, _ := json.Marshal(struct { // what was read can be written
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  any             `json:"params"`
	}{"2.0", id, method, params})
	return line
}

func resultLine(id rpc.ID, result json.RawMessage) []byte {
	return slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), idText(id), []byte(`,"result":`), result, []byte("}"))
}
