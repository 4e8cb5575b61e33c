package ledger

import "encoding/json"

// Message is the envelope of a JSON-RPC message.
type Message struct {
	ID     json.RawMessage
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
}

// Read reads a message by encoding/json. It fails where the line is not JSON, or an envelope's member has
// another type; whether the members go together it does not say.
func Read(line []byte) (m Message, err error) {
	err = json.Unmarshal(line, &m)
	return m, err
}

// IsRequest reports whether the message is to be answered.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether the message has a method and is not to be answered.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsAnswer reports whether the message answers a request. An error whose id is null answers none: the
// peer could not read the request.
func (m *Message) IsAnswer() bool {
	return m.Method == "" && m.ID != nil && string(m.ID) != "null" && (m.Result != nil || m.Error != nil)
}
