// Rules of the page content.

package rules

import (
	"mime"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/judge"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

var contentRules = []judge.Rule{
	{ID: "CON-3", On: anyOf(
		requests(judge.MethodPrompt, judge.MethodPermission),
		updates("user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "user_message", "agent_message",
			"agent_thought",
			"tool_call", "tool_call_update", "tool_call_content_chunk", "compaction_update", "compaction_summary_chunk"),
	),
		Check: func(e *judge.Event) {
			switch e.Method {
			case judge.MethodPrompt:
				checkBlocks(e, "/prompt", e.Content.Member("prompt"))
			case judge.MethodPermission:
				checkBlocks(e, callPointer(e)+"/content", toolCallOf(e).Member("content"))
			default:
				checkBlocks(e, "/update/content", e.Content.Member("update", "content"))
				checkBlocks(e, "/update/summary", e.Content.Member("update", "summary"))
			}
		}},
}

// checkBlocks checks a content block, the wrapper of one in a tool call, or a list of these.
func checkBlocks(e *judge.Event, where string, v *schema.Value) {
	if v.IsArray() {
		for i, block := range v.Items() {
			checkBlock(e, schema.Element(where, i), block)
		}
		return
	}
	checkBlock(e, where, v)
}

func checkBlock(e *judge.Event, where string, v *schema.Value) {
	switch v.Text("type") {
	case "content":
		if inner := v.Member("content"); inner.Text("type") != "content" {
			checkBlock(e, where+"/content", inner)
		}
	case "image", "audio":
		requireBase64(e, where+"/data", v.Member("data"))
		if kind := v.Member("mimeType"); kind.IsText() && !mediaType(kind.Text()) {
			e.Broken(where+"/mimeType", "%q is not a media type", finding.Clip(kind.Text()))
		}
	case "resource":
		requireBase64(e, where+"/resource/blob", v.Member("resource", "blob"))
	}
}

// mediaType reports whether a string has the form of a media type, such as "image/png".
func mediaType(s string) bool {
	kind, _, err := mime.ParseMediaType(s)
	return (err == nil || err == mime.ErrInvalidMediaParameter) && strings.Contains(kind, "/")
}
