// Rules of the page content.

package conformance

import (
	"mime"
	"strings"
)

var contentRules = []rule{
	{
		ID:       "CON-3",
		Versions: both,
		Breaks:   "Data of an image, of audio or of a blob that is not base64; an image or audio whose mimeType is no media type. (The members of each block are in the schema.)",
		Right:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"iVBORw==","mimeType":"image/png"}}}}`,
		Wrong:    `<- {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"data:image/png;base64,iVBORw==","mimeType":"image/png"}}}}`,
		on: on(
			requests(methodPrompt, methodPermission),
			updates("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "user_message", "agent_message", "agent_thought",
				"tool_call", "tool_call_update", "tool_call_content_chunk", "compaction_update", "compaction_summary_chunk"),
		),
		check: func(e *event) {
			switch e.method {
			case methodPrompt:
				e.blocks("/prompt", member(e.content, "prompt"))
			case methodPermission:
				e.blocks(e.callPointer()+"/content", member(e.toolCall(), "content"))
			default:
				e.blocks("/update/content", member(e.content, "update", "content"))
				e.blocks("/update/summary", member(e.content, "update", "summary"))
			}
		},
	},
}

// blocks looks at a content block, at what wraps one in a tool call, or at a list of these.
func (e *event) blocks(where string, v value) {
	if isArray(v) {
		for i, block := range items(v) {
			e.block(element(where, i), block)
		}
		return
	}
	e.block(where, v)
}

func (e *event) block(where string, v value) {
	switch text(v, "type") {
	case "content":
		if inner := member(v, "content"); text(inner, "type") != "content" {
			e.block(where+"/content", inner)
		}
	case "image", "audio":
		e.base64(where+"/data", member(v, "data"))
		if kind := member(v, "mimeType"); isText(kind) && !mediaType(text(kind)) {
			e.broken(where+"/mimeType", "%q is no media type", clip(text(kind)))
		}
	case "resource":
		e.base64(where+"/resource/blob", member(v, "resource", "blob"))
	}
}

// base64 reports a text that is not base64.
func (e *event) base64(pointer string, v value) {
	if isText(v) && !isBase64(text(v)) {
		e.broken(pointer, "not base64")
	}
}

// isBase64 reports whether a text is base64 with the usual alphabet. Line breaks and missing padding are let pass, as
// most decoders do.
func isBase64(s string) bool {
	digits, padding := 0, 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\r' || c == '\n':
		case c == '=':
			padding++
		case padding > 0:
			return false
		case c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/':
			digits++
		default:
			return false
		}
	}
	return digits%4 != 1 && (padding == 0 || padding <= 2 && (digits+padding)%4 == 0)
}

// mediaType reports whether a text has the form of a media type, such as "image/png".
func mediaType(s string) bool {
	kind, _, err := mime.ParseMediaType(s)
	return (err == nil || err == mime.ErrInvalidMediaParameter) && strings.Contains(kind, "/")
}
