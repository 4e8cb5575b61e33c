package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"unicode"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/acpv2"
	"github.com/acpgo/sdk/conformance"
)

// Handlers of one connection run at the same time: agents name sessions as they like.
func TestConcurrentUpdates(t *testing.T) {
	v := &peerV1{printer: &printer{w: io.Discard}}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 2000 {
				id := acp.ToolCallID(fmt.Sprintf("call-%d-%d", i, j))
				u := acp.UpdateToolCall(id, acp.WithContent(acp.ToolText("text")))
				if err := v.show(t.Context(), nil, &acp.SessionNotification{Update: u}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(v.shown.known); n > maxOutputs {
		t.Errorf("the output of %d calls is known, want %d at most", n, maxOutputs)
	}
}

// An output that comes again with more is printed once.
func TestOutputs(t *testing.T) {
	var o outputs
	for _, step := range []struct{ call, text, want string }{
		{"a", "one ", "one "},
		{"b", "other", "other"},
		{"a", "one two", "two"},
		{"a", "one two", ""},
		{"a", "new", "new"},
		{"a", "old, longer", "old, longer"},
		{"b", "other", ""},
	} {
		if got := o.added(step.call, step.text); got != step.want {
			t.Errorf("%s shows %q: got %q, want %q", step.call, step.text, got, step.want)
		}
	}
}

// An agent may ask before it was asked anything.
func TestPermissionBeforeThePrompt(t *testing.T) {
	v1, v2 := &peerV1{printer: &printer{w: io.Discard}}, &peerV2{printer: &printer{w: io.Discard}}
	res1, err := v1.requestPermission(t.Context(), nil, &acp.RequestPermissionRequest{
		Options: []acp.PermissionOption{acp.AllowOnce("yes", "Yes"), acp.RejectOnce("no", "No")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := res1.Outcome.Selected(); got != "no" {
		t.Errorf("version 1: chosen was %q", got)
	}
	res2, err := v2.requestPermission(t.Context(), nil, &acpv2.RequestPermissionRequest{
		Options: []acpv2.PermissionOption{acpv2.AllowOnce("yes", "Yes"), acpv2.RejectOnce("no", "No")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := res2.Outcome.Selected(); got != "no" {
		t.Errorf("version 2: chosen was %q", got)
	}
}

// Nothing of the agent's reaches the terminal as it is, and each thing has one line.
func TestHostileText(t *testing.T) {
	const hostile = "hello\x1b[2J\x1b]0;x\a\u009b1A\u202e\u2066\r\npermission: all: allow\u2028"
	v1 := func(u acp.SessionUpdate) func(*printer) error {
		return func(p *printer) error {
			return (&peerV1{printer: p}).show(t.Context(), nil, &acp.SessionNotification{Update: u})
		}
	}
	v2 := func(u acpv2.SessionUpdate) func(*printer) error {
		return func(p *printer) error {
			return (&peerV2{printer: p}).show(t.Context(), nil, &acpv2.UpdateSessionNotification{Update: u})
		}
	}
	for i, show := range []func(*printer) error{
		v1(acp.AgentMessageText(hostile)),
		v1(acp.StartToolCall(hostile, hostile, acp.WithStatus(hostile))),
		v1(acp.UpdateToolCall(hostile, acp.WithStatus(hostile))),
		v1(acp.UpdateToolCall(hostile, acp.WithContent(acp.ToolText(hostile)))),
		v2(acpv2.NewSessionUpdateUserMessage(acpv2.UserMessage{MessageID: "1", Content: acpv2.Some([]acpv2.ContentBlock{acpv2.TextBlock(hostile)})})),
		v2(acpv2.AgentMessageText("1", hostile)),
		v2(acpv2.StartToolCall(hostile, hostile)),
		v2(acpv2.UpdateToolCall(hostile, acpv2.WithStatus(hostile))),
		v2(acpv2.NewSessionUpdateTerminalUpdate(acpv2.TerminalUpdate{TerminalID: hostile, Command: acpv2.Some(hostile)})),
		v2(acpv2.NewSessionUpdateTerminalOutputChunk(acpv2.TerminalOutputChunk{Data: base64.StdEncoding.EncodeToString([]byte(hostile))})),
		func(p *printer) error {
			p.permission(hostile, hostile)
			p.findings([]conformance.Finding{{Method: hostile}})
			p.line("stopped: %s", hostile)
			return nil
		},
	} {
		var b strings.Builder
		p := &printer{w: &b}
		if err := show(p); err != nil {
			t.Error(err)
		}
		p.line("end")
		got := b.String()
		if !strings.Contains(got, `hello\x1b[2J`) {
			t.Errorf("%d prints %q", i, got)
		}
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.HasPrefix(line, "permission: all") {
				t.Errorf("%d prints %q", i, line)
			}
		}
	}
}
