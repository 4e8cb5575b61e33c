package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

var (
	reader = jsontext.NewDecoder(bytes.NewReader(nil))
	writer = jsontext.NewEncoder(new(bytes.Buffer))
)

func decodeTokens(data []byte) (any, error) {
	reader.Reset(bytes.NewBuffer(data))
	v := new(notification)
	return v, members(reader, func(name string) error {
		switch name {
		case "sessionId":
			return text(reader, &v.SessionID)
		case "update":
			return readUpdate(reader, &v.Update)
		}
		return reader.SkipValue()
	})
}

// members reads an object; read reads each member's value.
func members(d *jsontext.Decoder, read func(name string) error) error {
	if t, err := d.ReadToken(); err != nil {
		return err
	} else if t.Kind() != '{' {
		return errors.New("want an object")
	}
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return err
		}
		if err := read(t.String()); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func items(d *jsontext.Decoder, read func() error) error {
	if t, err := d.ReadToken(); err != nil {
		return err
	} else if t.Kind() != '[' {
		return errors.New("want an array")
	}
	for d.PeekKind() != ']' {
		if err := read(); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func text(d *jsontext.Decoder, s *string) error {
	t, err := d.ReadToken()
	if err != nil {
		return err
	}
	if t.Kind() != '"' {
		return errors.New("want a string")
	}
	*s = t.String()
	return nil
}

// The variants are written with their tags first, which is all that this reader knows.
func tagged(d *jsontext.Decoder, tag string, choose func(value string) (func(name string) error, error)) error {
	var read func(name string) error
	return members(d, func(name string) error {
		if read != nil {
			return read(name)
		}
		if name != tag {
			return fmt.Errorf("want %s first", tag)
		}
		var value string
		if err := text(d, &value); err != nil {
			return err
		}
		var err error
		read, err = choose(value)
		return err
	})
}

func readUpdate(d *jsontext.Decoder, x *update) error {
	return tagged(d, "sessionUpdate", func(value string) (func(string) error, error) {
		switch value {
		case "agent_message_chunk":
			v := &messageChunk{SessionUpdate: value}
			x.variant = v
			return func(name string) error {
				if name == "content" {
					return readContent(d, &v.Content)
				}
				return d.SkipValue()
			}, nil
		case "tool_call":
			v := &toolCall{SessionUpdate: value}
			x.variant = v
			return func(name string) error { return readToolCall(d, v, name) }, nil
		}
		return nil, fmt.Errorf("unknown variant %q", value)
	})
}

func readToolCall(d *jsontext.Decoder, v *toolCall, name string) error {
	switch name {
	case "toolCallId":
		return text(d, &v.ToolCallID)
	case "title":
		return text(d, &v.Title)
	case "kind":
		return text(d, &v.Kind)
	case "status":
		return text(d, &v.Status)
	case "content":
		return items(d, func() error {
			v.Content = append(v.Content, toolContent{})
			return readToolContent(d, &v.Content[len(v.Content)-1])
		})
	case "locations":
		return items(d, func() error {
			v.Locations = append(v.Locations, location{})
			return readLocation(d, &v.Locations[len(v.Locations)-1])
		})
	case "rawInput":
		raw, err := d.ReadValue()
		v.RawInput = json.RawMessage(bytes.Clone(raw))
		return err
	}
	return d.SkipValue()
}

func readToolContent(d *jsontext.Decoder, x *toolContent) error {
	return tagged(d, "type", func(value string) (func(string) error, error) {
		switch value {
		case "content":
			v := &contentItem{Type: value}
			x.variant = v
			return func(name string) error {
				if name == "content" {
					return readContent(d, &v.Content)
				}
				return d.SkipValue()
			}, nil
		case "diff":
			v := &diffItem{Type: value}
			x.variant = v
			return func(name string) error {
				switch name {
				case "path":
					return text(d, &v.Path)
				case "oldText":
					v.OldText = new(string)
					return text(d, v.OldText)
				case "newText":
					return text(d, &v.NewText)
				}
				return d.SkipValue()
			}, nil
		}
		return nil, fmt.Errorf("unknown variant %q", value)
	})
}

func readContent(d *jsontext.Decoder, x *content) error {
	return tagged(d, "type", func(value string) (func(string) error, error) {
		if value != "text" {
			return nil, fmt.Errorf("unknown variant %q", value)
		}
		v := &textContent{Type: value}
		x.variant = v
		return func(name string) error {
			if name == "text" {
				return text(d, &v.Text)
			}
			return d.SkipValue()
		}, nil
	})
}

func readLocation(d *jsontext.Decoder, v *location) error {
	return members(d, func(name string) error {
		switch name {
		case "path":
			return text(d, &v.Path)
		case "line":
			t, err := d.ReadToken()
			if err != nil {
				return err
			}
			n, err := t.Uint()
			line := uint32(n)
			v.Line = &line
			return err
		}
		return d.SkipValue()
	})
}

// tokens writes tokens until one fails.
type tokens struct {
	e   *jsontext.Encoder
	err error
}

func (w *tokens) write(t jsontext.Token) {
	if w.err == nil {
		w.err = w.e.WriteToken(t)
	}
}

func (w *tokens) member(name, value string) {
	w.write(jsontext.String(name))
	w.write(jsontext.String(value))
}

func encodeTokens(buf []byte, value any) ([]byte, error) {
	out := bytes.NewBuffer(buf[:0])
	writer.Reset(out)
	w := &tokens{e: writer}
	v := value.(*notification)
	w.write(jsontext.BeginObject)
	w.member("sessionId", v.SessionID)
	w.write(jsontext.String("update"))
	switch u := v.Update.variant.(type) {
	case *messageChunk:
		w.write(jsontext.BeginObject)
		w.member("sessionUpdate", u.SessionUpdate)
		w.write(jsontext.String("content"))
		w.content(u.Content)
		w.write(jsontext.EndObject)
	case *toolCall:
		w.toolCall(u)
	}
	w.write(jsontext.EndObject)
	return out.Bytes(), w.err
}

func (w *tokens) content(x content) {
	v := x.variant.(*textContent)
	w.write(jsontext.BeginObject)
	w.member("type", v.Type)
	w.member("text", v.Text)
	w.write(jsontext.EndObject)
}

func (w *tokens) toolCall(v *toolCall) {
	w.write(jsontext.BeginObject)
	w.member("sessionUpdate", v.SessionUpdate)
	w.member("toolCallId", v.ToolCallID)
	w.member("title", v.Title)
	w.member("kind", v.Kind)
	w.member("status", v.Status)
	w.write(jsontext.String("content"))
	w.write(jsontext.BeginArray)
	for _, c := range v.Content {
		w.write(jsontext.BeginObject)
		switch c := c.variant.(type) {
		case *contentItem:
			w.member("type", c.Type)
			w.write(jsontext.String("content"))
			w.content(c.Content)
		case *diffItem:
			w.member("type", c.Type)
			w.member("path", c.Path)
			if c.OldText != nil {
				w.member("oldText", *c.OldText)
			}
			w.member("newText", c.NewText)
		}
		w.write(jsontext.EndObject)
	}
	w.write(jsontext.EndArray)
	w.write(jsontext.String("locations"))
	w.write(jsontext.BeginArray)
	for _, l := range v.Locations {
		w.write(jsontext.BeginObject)
		w.member("path", l.Path)
		if l.Line != nil {
			w.write(jsontext.String("line"))
			w.write(jsontext.Uint(uint64(*l.Line)))
		}
		w.write(jsontext.EndObject)
	}
	w.write(jsontext.EndArray)
	if v.RawInput != nil && w.err == nil {
		w.write(jsontext.String("rawInput"))
		w.err = w.e.WriteValue(jsontext.Value(v.RawInput))
	}
	w.write(jsontext.EndObject)
}
