package mcpacp

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// emptyCursor stands for the cursor "" between this package and the MCP SDK, to which an empty cursor is none.
const emptyCursor = "mcpacp: empty cursor"

// repair returns a message of the server as the MCP SDK understands it: with another text for an empty nextCursor, and
// without the tools that can only be called as tasks, which the MCP SDK does not read as such.
func (v *server) repair(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"nextCursor"`)) && !bytes.Contains(message, []byte(`"taskSupport"`)) {
		return message
	}
	var m, result map[string]json.RawMessage
	if json.Unmarshal(message, &m) != nil || json.Unmarshal(m["result"], &result) != nil {
		return message
	}
	if string(result["nextCursor"]) == `""` {
		result["nextCursor"], _ = json.Marshal(emptyCursor) // a string can always be encoded
	}
	var tools []json.RawMessage
	if json.Unmarshal(result["tools"], &tools) == nil && tools != nil {
		tools = slices.DeleteFunc(tools, func(text json.RawMessage) bool {
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
		})
	}
	if tools != nil {
		text, err := json.Marshal(tools)
		if err != nil {
			return message
		}
		result["tools"] = text
	}
	text, err := json.Marshal(result)
	if err != nil {
		return message
	}
	m["result"] = text
	if text, err = json.Marshal(m); err != nil {
		return message
	}
	return text
}

// restore returns a message to the server as the MCP SDK means it.
func restore(message []byte) []byte {
	return bytes.ReplaceAll(message, []byte(`"`+emptyCursor+`"`), []byte(`""`))
}

// isStray reports whether a message is an answer without an id, which some servers send to notifications.
func isStray(message []byte) bool {
	var m struct {
		ID, Method, Result, Error json.RawMessage
	}
	return json.Unmarshal(message, &m) == nil && (m.ID == nil || string(m.ID) == "null") && m.Method == nil && (m.Result != nil || m.Error != nil)
}

// isNotification reports whether a message expects no answer.
func isNotification(message []byte) bool {
	m, err := jsonrpc.DecodeMessage(message)
	req, ok := m.(*jsonrpc.Request)
	return err == nil && (!ok || !req.IsCall())
}
