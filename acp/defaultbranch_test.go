package acp_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
)

func TestDefaultBranch(t *testing.T) {
	const stdio = `"name":"n","command":"/c","args":[],"env":[]`
	const set = `{"sessionId":"s","configId":"c",`
	server := func() any { return new(acp.MCPServer) }
	auth := func() any { return new(acp.AuthMethod) }
	option := func() any { return new(acp.SetSessionConfigOptionRequest) }
	for _, test := range []struct {
		make          func() any
		text, variant string
		out           string // what is written again, if not the text
	}{
		{server, `{` + stdio + `}`, "*acp.MCPServerStdio", ""},
		{server, `{"type":"stdio",` + stdio + `}`, "*acp.MCPServerStdio", ""},
		{server, `{"type":"",` + stdio + `}`, "*acp.MCPServerStdio", ""},
		{server, `{"type":"a \"b\"\n",` + stdio + `}`, "*acp.MCPServerStdio", ""},
		{server, `{` + stdio + `,"type":"stdio"}`, "*acp.MCPServerStdio", `{"type":"stdio",` + stdio + `}`},
		{server, `{"type":null,` + stdio + `}`, "*acp.MCPServerStdio", `{` + stdio + `}`},
		{server, `{"type":{"a":1},` + stdio + `}`, "*acp.MCPServerStdio", `{` + stdio + `}`},
		{server, `{"type":"http",` + stdio + `}`, "*acp.MCPServerStdio", ""},
		{server, `{"type":"http",` + stdio + `,"url":"u","headers":[]}`, "*acp.MCPServerHTTP", `{"type":"http","name":"n","url":"u","headers":[]}`},
		{server, `{"type":"stdio","name":"n","command":1,"args":[],"env":[]}`, "*acp.MCPServerUnknown", ""},
		{server, `{"type":"stdio","name":"n","command":"/c","args":[]}`, "*acp.MCPServerUnknown", ""},
		{auth, `{"type":"agent","id":"i","name":"n"}`, "*acp.AuthMethodAgent", ""},
		{auth, `{"type":"env_var","id":"i","name":"n"}`, "*acp.AuthMethodAgent", ""},
		{auth, `{"type":"terminal","id":"i","name":"n"}`, "*acp.AuthMethodTerminal", ""},
		{auth, `{"type":"env_var","id":"i"}`, "*acp.AuthMethodUnknown", ""},
		{option, set + `"type":"select","value":"v"}`, "*acp.SetSessionConfigOptionRequestValueID", ""},
		{option, set + `"type":"boolean","value":"v"}`, "*acp.SetSessionConfigOptionRequestValueID", ""},
		{option, set + `"type":"boolean","value":true}`, "*acp.SetSessionConfigOptionRequestBoolean", ""},
		{option, set + `"type":"select","value":true}`, "*acp.SetSessionConfigOptionRequestUnknown", ""},
	} {
		v := test.make()
		d := codec.NewDecoder([]byte(test.text))
		codec.Decode(d, v)
		dropped := strings.Contains(test.text, `{"a":1}`) // a tag that is no string
		if err := d.End(); err != nil || len(d.Repairs()) > 0 != dropped {
			t.Errorf("%s: %v, repairs %v", test.text, err, d.Repairs())
			continue
		}
		var variant any
		switch v := v.(type) {
		case *acp.MCPServer:
			variant = v.Variant
		case *acp.AuthMethod:
			variant = v.Variant
		case *acp.SetSessionConfigOptionRequest:
			variant = v.Variant
		}
		if got := fmt.Sprintf("%T", variant); got != test.variant {
			t.Errorf("%s: got %s, want %s", test.text, got, test.variant)
		}
		want := test.out
		if want == "" {
			want = test.text
		}
		if out, err := codec.Append(nil, v); err != nil || string(out) != want {
			t.Errorf("%s: written as %s, %v, want %s", test.text, out, err, want)
		}
	}

	// What fits neither its variant nor the one without a tag is refused as the former, and so is what has the
	// variant's tag and required members, and a mistake elsewhere.
	for _, test := range []struct {
		make          func() any
		text, pointer string
	}{
		{server, `{"type":"http","name":"n","url":1,"headers":[]}`, "/url"},
		{server, `{"type":"http","name":"n","command":"/c"}`, ""},
		{server, `{"type":7,"name":"n"}`, "/type"},
		{server, `{"type":"stdio","type":"stdio",` + stdio + `}`, "/type"},
		{auth, `{"type":"terminal","id":"i","name":"n","args":true}`, "/args"},
		{auth, `{"id":"i","name":"n","env":{"A":1},"type":"terminal"}`, "/env/A"},
		{option, set + `"type":"boolean","value":5}`, "/value"},
		{option, set + `"value":true}`, "/value"},
	} {
		err := codec.Unmarshal([]byte(test.text), test.make())
		if failure, ok := errors.AsType[*codec.Error](err); !ok || failure.Pointer != test.pointer {
			t.Errorf("%s: got %v, want an error at %q", test.text, err, test.pointer)
		}
	}
}
