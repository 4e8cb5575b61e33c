package mcpacp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// received returns a message of the server as the MCP SDK understands it. id is that of the call that it answers, if
// any: what is not a message is an error then. In a stream of messages, nothing remains of an answer to a notification.
func (v *server) received(id jsonrpc.ID, message []byte, stream bool) []byte {
	message = v.repair(message)
	if _, err := jsonrpc.DecodeMessage(message); err == nil {
		return message
	}
	forgot := forgotText.Match(message)
	switch {
	case stream && isStray(message) && !(id.IsValid() && forgot):
		v.ignore(string(message))
		return nil
	case !id.IsValid():
		return message
	}
	answer := &jsonrpc.Error{Code: codeRejected, Message: fmt.Sprintf("it sent an invalid message: %.100q", message)}
	if forgot {
		answer = &jsonrpc.Error{Code: codeForgotten, Message: "session not found"}
	}
	text, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: answer})
	if err != nil {
		return message
	}
	return text
}

// ignore logs what the server answers to a notification, ten times.
func (v *server) ignore(answer string) {
	if v.ignored.Add(1) <= maxPanics {
		v.set.opts.Logger.Warn("an MCP server answered a notification", "server", v.title, "answer",
			shorten(answer, maxReason))
	}
}

// isStray reports whether a message is an answer without an id, which some servers send to notifications.
func isStray(message []byte) bool {
	var m struct{ ID, Method, Result, Error json.RawMessage }
	none := json.Unmarshal(message, &m) == nil && (m.ID == nil || string(m.ID) == "null") && m.Method == nil
	return none && (m.Result != nil || m.Error != nil)
}

// repair repairs the result in a message, if it has one that needs it.
func (v *server) repair(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"taskSupport"`)) && !bytes.Contains(message, []byte(`"structuredContent"`)) {
		return message
	}
	var m map[string]json.RawMessage
	if json.Unmarshal(message, &m) != nil || m["result"] == nil {
		return message
	}
	m["result"] = v.repairResult(m["result"])
	return encode(m, message)
}

// encode returns a value as JSON, or the message that it was made of: raw values cannot fail, but the JSON in them may
// be too deep.
func encode(value any, message []byte) []byte {
	if text, err := json.Marshal(value); err == nil {
		return text
	}
	return message
}

// repairResult returns a result without the tools that can only be called as tasks, which the MCP SDK does not read as
// such, and with its structured content as a text, since models get nothing else.
func (v *server) repairResult(text json.RawMessage) json.RawMessage {
	var result map[string]json.RawMessage
	if json.Unmarshal(text, &result) != nil {
		return text
	}
	var tools, content []json.RawMessage
	if json.Unmarshal(result["tools"], &tools) == nil && tools != nil {
		result["tools"] = encode(slices.DeleteFunc(tools, v.isTask), result["tools"])
	}
	if value := result["structuredContent"]; value != nil && string(value) != "null" {
		if c := result["content"]; c != nil && json.Unmarshal(c, &content) != nil {
			return text // which is not valid
		}
		if !says(content, value) {
			said := string(value)
			if len(content) > 0 {
				said = "\n" + said
			}
			result["content"] = encode(append(content, encode(map[string]string{"type": "text", "text": said}, nil)),
				result["content"])
		}
	}
	return encode(result, text)
}

// isTask reports whether a tool can only be called as a task, and notes its name.
func (v *server) isTask(text json.RawMessage) bool {
	var tool struct {
		Name      string
		Execution struct{ TaskSupport string }
	}
	if json.Unmarshal(text, &tool) != nil || tool.Execution.TaskSupport != "required" {
		return false
	}
	v.set.mu.Lock()
	defer v.set.mu.Unlock()
	v.tasks = append(v.tasks, tool.Name)
	return true
}

// says reports whether the texts of a result have the value of its structured content already, as MCP asks of servers.
// Some servers have made an object with the member result of a text, or of a list of texts.
func says(content []json.RawMessage, structured json.RawMessage) bool {
	var value any
	if json.Unmarshal(structured, &value) != nil {
		return false
	}
	values := []any{value}
	if object, ok := value.(map[string]any); ok && len(object) == 1 && object["result"] != nil {
		values = append(values, object["result"])
	}
	var texts []any // as they are, and as JSON
	for _, c := range content {
		var block struct{ Type, Text string }
		if json.Unmarshal(c, &block) != nil || block.Type != "text" {
			continue
		}
		var decoded any
		if json.Unmarshal([]byte(block.Text), &decoded) != nil {
			decoded = block.Text
		}
		texts = append(texts, decoded)
		for _, value := range values {
			if reflect.DeepEqual(decoded, value) || value == block.Text {
				return true
			}
		}
	}
	return len(texts) > 0 && reflect.DeepEqual(any(texts), values[len(values)-1])
}
