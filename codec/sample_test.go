package codec_test

// Types as the generator writes them. Tests and benchmarks use them.

import (
	"encoding/json"

	"github.com/acpgo/sdk/codec"
)

// read and write read and write values of types without methods.
func read[T any](d *codec.Decoder) T { return readAs[T](d, "") }

func readAs[T any](d *codec.Decoder, options string) (v T) {
	codec.DecodeAs(d, &v, options)
	return v
}

func write[T any](e *codec.Encoder, v T) { codec.Encode(e, &v) }

type sessionID string

type notification struct {
	SessionID sessionID                  `json:"sessionId" codec:"required"`
	Update    update                     `json:"update" codec:"required"`
	Meta      map[string]json.RawMessage `json:"_meta,omitzero" codec:"null,lenient"`
}

// update is a tagged union.
type update struct{ Variant any }

type (
	messageChunk  chunk
	toolCall      tool
	updateUnknown codec.Unknown
)

var updates = codec.Variants{Of: "update", Tag: "sessionUpdate", Unknown: (*updateUnknown)(nil), List: []codec.Variant{
	{Tag: "agent_message_chunk", As: (*messageChunk)(nil), By: (*chunk)(nil), Room: (*codec.With[chunk, contentText])(nil)},
	{Tag: "tool_call", As: (*toolCall)(nil), By: (*tool)(nil)},
}}

func (x *update) EncodeJSON(e *codec.Encoder) { updates.Encode(e, x, x.Variant) }
func (x *update) DecodeJSON(d *codec.Decoder) { x.Variant = updates.Decode(d, x) }

type chunk struct {
	Content   content           `json:"content" codec:"required"`
	MessageID codec.Opt[string] `json:"messageId,omitzero" codec:"null,lenient"`
}

// content is a union inside of a union.
type content struct{ Variant any }

type (
	contentText struct {
		Text     string   `json:"text" codec:"required"`
		Audience []string `json:"audience,omitzero" codec:"lenient,items"`
		Priority float64  `json:"priority,omitzero"`
	}
	contentImage struct {
		Data string `json:"data" codec:"required"`
		Size uint32 `json:"size" codec:"required"`
	}
	contentUnknown codec.Unknown
)

var contents = codec.Variants{Of: "content", Tag: "type", Unknown: (*contentUnknown)(nil), List: []codec.Variant{
	{Tag: "text", As: (*contentText)(nil), By: (*contentText)(nil)},
	{Tag: "image", As: (*contentImage)(nil)},
}}

func (x *content) EncodeJSON(e *codec.Encoder) { contents.Encode(e, x, x.Variant) }
func (x *content) DecodeJSON(d *codec.Decoder) { x.Variant = contents.Decode(d, x) }

type status string

func (x status) Known() bool { return x == "new" || x == "done" }

type tool struct {
	ID        string              `json:"toolCallId" codec:"required"`
	Title     string              `json:"title" codec:"required"`
	Status    status              `json:"status" codec:"required"`
	Args      []string            `json:"args" codec:"required,empty"`
	Content   []content           `json:"content,omitzero"`
	Locations []location          `json:"locations,omitzero" codec:"lenient,items"`
	RawInput  json.RawMessage     `json:"rawInput,omitzero"`
	Limits    map[string]location `json:"limits,omitzero"`
}

// location has code for the member that is always there, as the structs of the commonest messages have.
type location struct {
	Path string            `json:"path" codec:"required"`
	Line codec.Opt[uint32] `json:"line,omitzero"`
}

func (x *location) EncodeJSON(e *codec.Encoder) {
	e.BeginObject()
	e.Name("path")
	e.Str(x.Path)
	if !x.Line.IsZero() {
		codec.EncodeMember(e, x, 1)
	}
	e.EndObject()
}

func (x *location) DecodeJSON(d *codec.Decoder) {
	*x = location{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "path":
			o.Once(0)
			x.Path = d.Str()
		default:
			codec.DecodeMember(&o, x)
		}
	}
	codec.Require(&o, 0b1, x)
}
