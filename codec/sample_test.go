package codec_test

// Types as the generator writes them, one of each kind of construct. Tests and benchmarks use them.

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
	SessionID sessionID
	Update    update
	Meta      map[string]json.RawMessage
}

func (x *notification) EncodeJSON(e *codec.Encoder) {
	e.BeginObject()
	e.Name("sessionId")
	e.Str(string(x.SessionID))
	e.Name("update")
	x.Update.EncodeJSON(e)
	if x.Meta != nil {
		e.Name("_meta")
		codec.EncodeRawMap(e, x.Meta)
	}
	e.EndObject()
}

func (x *notification) DecodeJSON(d *codec.Decoder) {
	*x = notification{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "sessionId":
			o.Once(0)
			x.SessionID = sessionID(d.Intern())
		case "update":
			o.Once(1)
			x.Update.DecodeJSON(d)
		case "_meta":
			o.Once(2)
			if !d.Null() {
				m := d.Mark()
				x.Meta = codec.DecodeRawMap(d)
				if d.Recover(m) {
					x.Meta = nil
				}
			}
		default:
			d.Skip()
		}
	}
	o.Require("sessionId", "update")
}

// update is a tagged union.
type update struct{ Variant any }

type (
	messageChunk  chunk
	toolCall      tool
	updateUnknown struct {
		Tag string
		Raw json.RawMessage
	}
)

func (x *update) EncodeJSON(e *codec.Encoder) {
	switch v := x.Variant.(type) {
	case *messageChunk:
		codec.EncodeVariant(e, "sessionUpdate", "agent_message_chunk", (*chunk)(v))
	case *toolCall:
		codec.EncodeVariant(e, "sessionUpdate", "tool_call", (*tool)(v))
	case *updateUnknown:
		e.Raw(v.Raw)
	default:
		e.Failf("update without variant")
	}
}

// chunkRoom is a chunk together with its commonest content, for one allocation of both.
type chunkRoom struct {
	chunk messageChunk
	text  contentText
}

func (x *update) DecodeJSON(d *codec.Decoder) {
	*x = update{}
	tag, ok := d.Tag("sessionUpdate")
	if !ok {
		d.NoTag("sessionUpdate")
		return
	}
	switch string(tag) {
	case "agent_message_chunk":
		v := new(chunkRoom)
		x.Variant = &v.chunk
		(*chunk)(&v.chunk).decode(d, &v.text)
	case "tool_call":
		v := new(toolCall)
		x.Variant = v
		(*tool)(v).DecodeJSON(d)
	default:
		x.Variant = &updateUnknown{Tag: string(tag), Raw: d.Raw()}
	}
}

type chunk struct {
	Content   content
	MessageID *string
}

func (x *chunk) EncodeJSON(e *codec.Encoder) {
	e.BeginObject()
	e.Name("content")
	x.Content.EncodeJSON(e)
	if x.MessageID != nil {
		e.Name("messageId")
		e.Str(*x.MessageID)
	}
	e.EndObject()
}

func (x *chunk) decode(d *codec.Decoder, room *contentText) {
	*x = chunk{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "content":
			o.Once(0)
			x.Content.decode(d, room)
		case "messageId": // default on error
			o.Once(1)
			m := d.Mark()
			if !d.Null() {
				id := d.Intern()
				x.MessageID = &id
			}
			if d.Recover(m) {
				x.MessageID = nil
			}
		default:
			d.Skip()
		}
	}
	o.Require("content")
}

// content is a union inside of a union.
type content struct{ Variant any }

type (
	contentText struct {
		Text     string
		Audience []string
		Priority float64
	}
	contentImage struct {
		Data string
		Size uint32
	}
	contentUnknown struct {
		Tag string
		Raw json.RawMessage
	}
)

func (x *content) EncodeJSON(e *codec.Encoder) {
	switch v := x.Variant.(type) {
	case *contentText:
		e.BeginObject()
		e.Name("type")
		e.Str("text")
		e.Name("text")
		e.Str(v.Text)
		if v.Audience != nil {
			e.Name("audience")
			codec.Encode(e, &v.Audience)
		}
		if v.Priority != 0 {
			e.Name("priority")
			e.Float(v.Priority)
		}
		e.EndObject()
	case *contentImage:
		e.BeginObject()
		e.Name("type")
		e.Str("image")
		e.Name("data")
		e.Str(v.Data)
		e.Name("size")
		e.Uint(uint64(v.Size))
		e.EndObject()
	case *contentUnknown:
		e.Raw(v.Raw)
	default:
		e.Failf("content without variant")
	}
}

func (x *content) DecodeJSON(d *codec.Decoder) { x.decode(d, nil) }

func (x *content) decode(d *codec.Decoder, text *contentText) {
	*x = content{}
	tag, ok := d.Tag("type")
	if !ok {
		d.NoTag("type")
		return
	}
	switch string(tag) {
	case "text":
		if text == nil {
			text = new(contentText)
		}
		x.Variant = text
		text.DecodeJSON(d)
	case "image":
		v := new(contentImage)
		x.Variant = v
		v.DecodeJSON(d)
	default:
		x.Variant = &contentUnknown{Tag: string(tag), Raw: d.Raw()}
	}
}

func (x *contentText) DecodeJSON(d *codec.Decoder) {
	*x = contentText{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "text":
			o.Once(0)
			x.Text = d.Str()
		case "audience": // skip invalid items, default on error
			o.Once(1)
			m := d.Mark()
			x.Audience = readAs[[]string](d, "items")
			if d.Recover(m) {
				x.Audience = nil
			}
		case "priority":
			o.Once(2)
			x.Priority = d.Float()
		default:
			d.Skip()
		}
	}
	o.Require("text")
}

func (x *contentImage) DecodeJSON(d *codec.Decoder) {
	*x = contentImage{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "data":
			o.Once(0)
			x.Data = d.Str()
		case "size":
			o.Once(1)
			x.Size = uint32(d.Uint(32))
		default:
			d.Skip()
		}
	}
	o.Require("data", "size")
}

type status string

func (x status) Known() bool { return x == "new" || x == "done" }

type tool struct {
	ID        string
	Title     string
	Status    status
	Content   []content
	Locations []location
	Args      []string
	RawInput  json.RawMessage
	Limits    map[string]location
}

func (x *tool) EncodeJSON(e *codec.Encoder) {
	e.BeginObject()
	e.Name("toolCallId")
	e.Str(x.ID)
	e.Name("title")
	e.Str(x.Title)
	e.Name("status")
	codec.Encode(e, &x.Status)
	e.Name("args")
	codec.Encode(e, &x.Args)
	if x.Content != nil {
		e.Name("content")
		codec.Encode(e, &x.Content)
	}
	if x.Locations != nil {
		e.Name("locations")
		codec.Encode(e, &x.Locations)
	}
	if x.RawInput != nil {
		e.Name("rawInput")
		e.Raw(x.RawInput)
	}
	if x.Limits != nil {
		e.Name("limits")
		codec.Encode(e, &x.Limits)
	}
	e.EndObject()
}

func (x *tool) DecodeJSON(d *codec.Decoder) {
	*x = tool{}
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "toolCallId":
			o.Once(0)
			x.ID = d.Intern()
		case "title":
			o.Once(1)
			x.Title = d.Str()
		case "status":
			o.Once(2)
			x.Status = status(d.Intern())
		case "args": // default on null
			o.Once(3)
			if d.NullAs("[]") {
				x.Args = []string{}
			} else {
				x.Args = read[[]string](d)
			}
		case "content":
			o.Once(4)
			x.Content = read[[]content](d)
		case "locations": // skip invalid items, default on error
			o.Once(5)
			m := d.Mark()
			x.Locations = readAs[[]location](d, "items")
			if d.Recover(m) {
				x.Locations = nil
			}
		case "rawInput":
			o.Once(6)
			x.RawInput = d.Raw()
		case "limits":
			o.Once(7)
			x.Limits = read[map[string]location](d)
		default:
			d.Skip()
		}
	}
	o.Require("toolCallId", "title", "status", "args")
}

type location struct {
	Path string
	Line *uint32
}

func (x *location) EncodeJSON(e *codec.Encoder) {
	e.BeginObject()
	e.Name("path")
	e.Str(x.Path)
	if x.Line != nil {
		e.Name("line")
		e.Uint(uint64(*x.Line))
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
		case "line":
			o.Once(1)
			line := uint32(d.Uint(32))
			x.Line = &line
		default:
			d.Skip()
		}
	}
	o.Require("path")
}

// option is a union merged with members of its own.
type option struct {
	ID      string
	Variant any
}

type (
	optionFlag   struct{ Value bool }
	optionSelect struct{ Choices []string }
	optionOther  struct {
		Tag string
		Raw json.RawMessage
	}
)

func (x *option) EncodeJSON(e *codec.Encoder) {
	e.BeginObject()
	e.Name("id")
	e.Str(x.ID)
	switch v := x.Variant.(type) {
	case *optionFlag:
		e.Name("type")
		e.Str("flag")
		e.Name("value")
		e.Bool(v.Value)
	case *optionSelect:
		e.Name("type")
		e.Str("select")
		e.Name("choices")
		codec.Encode(e, &v.Choices)
	case *optionOther:
		e.Members(v.Raw, "id")
	default:
		e.Failf("option without variant")
	}
	e.EndObject()
}

func (x *option) DecodeJSON(d *codec.Decoder) {
	*x = option{}
	m := d.Mark()
	o := d.Object()
	for o.Next() {
		switch string(o.Name()) {
		case "id":
			o.Once(0)
			x.ID = d.Str()
		default:
			d.Skip()
		}
	}
	o.Require("id")
	d.Rewind(m)
	tag, ok := d.Tag("type")
	if !ok {
		d.NoTag("type")
		return
	}
	switch string(tag) {
	case "flag":
		v := new(optionFlag)
		x.Variant = v
		o := d.Object()
		for o.Next() {
			switch string(o.Name()) {
			case "value":
				o.Once(0)
				v.Value = d.Bool()
			default:
				d.Skip()
			}
		}
		o.Require("value")
	case "select":
		v := new(optionSelect)
		x.Variant = v
		o := d.Object()
		for o.Next() {
			switch string(o.Name()) {
			case "choices":
				o.Once(0)
				v.Choices = read[[]string](d)
			default:
				d.Skip()
			}
		}
		o.Require("choices")
	default:
		x.Variant = &optionOther{Tag: string(tag), Raw: d.Raw()}
	}
}
