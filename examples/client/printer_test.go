package main

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/plain"
	"github.com/acpgo/sdk/internal/test/tier"
)

// hostile is what a terminal would obey, and what looks like a question of the client's.
const hostile = "hello\x1b[2J\x1b]0;x\a\u009b1A\u202e\u2066\r\n? Read a file\n  1. (allow_once) Allow\n  number: \u2028\n"

// checkPlain checks that nothing of hostile passed as it is.
func checkPlain(t *testing.T, got string) {
	t.Helper()
	for line := range strings.Lines(got) {
		line = strings.TrimSuffix(line, "\n")
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q is printed", line)
		}
		if strings.HasPrefix(line, "? Read") || strings.HasPrefix(line, "  1. (allow_once)") || strings.HasPrefix(line, "  number") {
			t.Errorf("%q looks like a question", line)
		}
	}
}

func TestPrinterHostileText(t *testing.T) {
	content := acp.ContentChunk{Content: acp.TextBlock(hostile)}
	blocks := []acp.ContentBlock{
		acp.ImageBlock("", hostile), acp.AudioBlock("", hostile), acp.ResourceLinkBlock(hostile, hostile),
		acp.ResourceBlock(acp.TextResource(hostile, hostile)), acp.ResourceBlock(acp.BlobResource("", hostile)),
	}
	updates := []acp.SessionUpdate{
		acp.NewSessionUpdateUserMessageChunk(content), acp.NewSessionUpdateAgentThoughtChunk(content), acp.NewSessionUpdateAgentMessageChunk(content),
		{Variant: &acp.SessionUpdateToolCall{ToolCallID: hostile, Title: hostile, Kind: hostile, Status: hostile, Locations: []acp.ToolCallLocation{{Path: hostile}}}},
		acp.UpdateToolCall(hostile, acp.WithStatus("other"), acp.WithContent(acp.ToolText(hostile), acp.ToolEdit(hostile, hostile, "x"+hostile))),
		acp.UpdateToolCall("t"+hostile, acp.WithStatus(hostile)),
		acp.UpdatePlan(acp.PlanEntry{Content: hostile, Status: hostile}),
		acp.CommandsUpdate(acp.AvailableCommand{Name: hostile}),
		acp.ModeUpdate(hostile),
		acp.ConfigUpdate(acp.SelectOption(hostile, hostile, hostile), acp.BooleanOption(hostile, hostile, true)),
		acp.TitleUpdate(hostile),
		acp.NewSessionUpdateNotice(acp.Notice{Severity: hostile, Title: hostile, Description: acp.Some(hostile)}),
		{Variant: &acp.SessionUpdateUnknown{Tag: hostile}},
	}
	for _, b := range blocks {
		updates = append(updates, acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: b}))
	}
	for i, u := range updates {
		var b strings.Builder
		p := &printer{w: &b}
		p.update(u)
		if !strings.Contains(b.String(), `hello\x1b[2J`) {
			t.Errorf("update %d prints %q", i, b.String())
		}
		checkPlain(t, b.String())
	}
	for name, show := range map[string]func(*printer){
		"permission": func(p *printer) {
			req := acp.RequestPermissionRequest{ToolCall: acp.ToolCallRef(hostile, acp.WithContent(acp.ToolText(hostile)))}
			req.Options = []acp.PermissionOption{{Name: hostile, Kind: hostile}}
			p.permission(&req)
		},
		"cancelled": func(p *printer) {
			p.update(acp.StartToolCall(hostile, hostile))
			p.cancelled()
		},
		"terminal": func(p *printer) { p.terminal(nil, hostile, []byte(hostile)) },
		"findings": func(p *printer) {
			p.findings([]conformance.Finding{{Method: hostile, Message: hostile}})
		},
		"error": func(p *printer) { p.line("error: %v", &rpc.Error{Message: hostile}) },
	} {
		var b strings.Builder
		p := &printer{w: &b}
		show(p)
		if !strings.Contains(b.String(), `hello\x1b[2J`) {
			t.Errorf("%s prints %q", name, b.String())
		}
		checkPlain(t, b.String())
	}
}

// A question shows what it is about, also if that was shown before, however long ago and under another title.
func TestQuestionsShowTheirContent(t *testing.T) {
	var b strings.Builder
	p := &printer{w: &b}
	content := acp.WithContent(acp.ToolText("rm -rf /"))
	p.update(acp.StartToolCall("c", "List files", content))
	b.Reset()
	p.permission(&acp.RequestPermissionRequest{ToolCall: acp.ToolCallUpdate{
		ToolCallID: "c", Title: acp.Some("Tidy up"), Content: acp.Some([]acp.ToolCallContent{acp.ToolText("rm -rf /")}),
	}})
	if got, want := b.String(), "? Tidy up\n    rm -rf /\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// However many tool calls there are, and whatever is in them, little of it is kept.
func TestPrinterIsBounded(t *testing.T) {
	tier.Need(t, tier.Normal)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	p := &printer{w: io.Discard}
	before := heap()
	large := tier.Pick(32<<10, 32<<10, 32<<10, 100<<10)
	for i := range maxTools + tier.Pick(20, 20, 20, 2*maxTools) {
		id := acp.ToolCallID(fmt.Sprint(strings.Repeat("i", large), i))
		text := strings.Repeat("t", large)
		p.update(acp.StartToolCall(id, text, acp.WithStatus(acp.ToolCallStatus(text)), acp.WithContent(acp.ToolText(text))))
		p.update(acp.UpdateToolCall(id, acp.WithTitle(text), acp.WithStatus(acp.ToolCallStatus("x"+text))))
	}
	if kept := int64(heap()) - int64(before); kept > 4<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
	runtime.KeepAlive(p)
	if len(p.tools) != maxTools {
		t.Errorf("%d tool calls are known, want %d", len(p.tools), maxTools)
	}
}

// What was typed before a question of the agent's came is not an answer to it.
func TestTypedAhead(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			in := &input{r: r, terminal: terminal}
			write := func(text string) {
				time.Sleep(time.Second)
				if _, err := io.WriteString(w, text); err != nil {
					t.Error(err)
				}
			}
			var got []string
			ask := func(fresh bool) {
				line, err := in.line(t.Context(), fresh)
				if err != nil {
					t.Error(err)
				}
				got = append(got, line)
			}
			go write("prompt\n")
			ask(false)
			synctest.Wait()
			write("1\n")
			synctest.Wait()
			go write("2\n")
			ask(true)
			time.Sleep(2 * time.Second) // "2" has come, whether it was waited for or not
			write("next prompt\n")
			if !terminal {
				ask(false)
			}
			ask(false)
			want := []string{"prompt\n", "2\n", "next prompt\n"}
			if !terminal {
				want = []string{"prompt\n", "1\n", "2\n", "next prompt\n"}
			}
			if !slices.Equal(got, want) {
				t.Errorf("terminal %t: got %q, want %q", terminal, got, want)
			}
			w.Close()
			synctest.Wait()
		})
	}
}

func chunk(id acp.MessageID, text string) acp.SessionUpdate {
	return acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.TextBlock(text), MessageID: acp.Some(id)})
}

func TestPrinter(t *testing.T) {
	for name, test := range map[string]struct {
		updates []acp.SessionUpdate
		want    string
	}{
		"PRM-3: chunks of one message": {
			[]acp.SessionUpdate{chunk("1", "Hel"), chunk("1", "lo.\nNew "), chunk("1", "line"), chunk("2", "Next")},
			"< Hello.\n< New line\n< Next\n",
		},
		"thoughts and the user's words have marks": {
			[]acp.SessionUpdate{acp.UserMessageText("Why?"), acp.AgentThoughtText("Hm.\nHm"), acp.AgentThoughtText("m."), acp.AgentMessageText("So.")},
			"> Why?\n~ Hm.\n~ Hmm.\n< So.\n",
		},
		"no control of the terminal": {
			[]acp.SessionUpdate{acp.AgentMessageText("a\x1b[2Jb\x07c\u009bd\te")},
			`< a\x1b[2Jb\ac\u009bd` + "\te\n",
		},
		"PLN-4: plans": {
			[]acp.SessionUpdate{acp.UpdatePlan(
				acp.PlanEntry{Content: "one", Status: acp.PlanEntryStatusCompleted},
				acp.PlanEntry{Content: "two", Status: acp.PlanEntryStatusInProgress},
				acp.PlanEntry{Content: "three", Status: "later"},
			)},
			"plan:\n  [x] one\n  [>] two\n  [ ] three\n",
		},
		"TOL-3: what is absent has not changed": {
			[]acp.SessionUpdate{
				acp.StartToolCall("t", "Look", acp.WithLocation("/a", 0), acp.WithLocation("/b", 7)),
				acp.UpdateToolCall("t", acp.WithStatus(acp.ToolCallStatusInProgress)),
				acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{ToolCallID: "t", Title: acp.Some("Look here"), Status: acp.Null[acp.ToolCallStatus]()}),
				acp.UpdateToolCall("t", acp.WithContent(acp.ToolText("found"))),
				acp.UpdateToolCall("t", acp.WithStatus(acp.ToolCallStatusCompleted), acp.WithContent(acp.ToolText("found"))),
			},
			"* Look (other): pending\n  at /a\n  at /b:7\n* Look: in_progress\n    found\n* Look here: completed\n",
		},
		"diffs": {
			[]acp.SessionUpdate{acp.UpdateToolCall("t", acp.WithContent(acp.ToolEdit("/a", "same\nold\nsame", "same\nnew\nnewer\nsame")))},
			"    - old\n    + new\n    + newer\n",
		},
		"updates of a tool call that was not announced": {
			[]acp.SessionUpdate{acp.UpdateToolCall("t", acp.WithStatus(acp.ToolCallStatusFailed))},
			"* t: failed\n",
		},
		"CFG-15: options of an unknown type": {
			[]acp.SessionUpdate{acp.ConfigUpdate(
				acp.SelectOption("m", "Mode", "ask"),
				acp.SessionConfigOption{ID: "x", Name: "X", Variant: &acp.SessionConfigOptionUnknown{Tag: "slider"}},
				acp.BooleanOption("b", "Bold", true),
			)},
			"option Mode: ask\noption Bold: true\n",
		},
		"LST-13: a title that is left out": {
			[]acp.SessionUpdate{
				acp.NewSessionUpdateSessionInfoUpdate(acp.SessionInfoUpdate{UpdatedAt: acp.Some("2026-01-01T00:00:00Z")}),
				acp.TitleUpdate("T"),
			},
			"title: T\n",
		},
		"the rest": {
			[]acp.SessionUpdate{
				acp.CommandsUpdate(acp.AvailableCommand{Name: "a"}, acp.AvailableCommand{Name: "b"}),
				acp.ModeUpdate("ask"),
				acp.NewSessionUpdateUsageUpdate(acp.UsageUpdate{Used: 1, Size: 2}),
				acp.NewSessionUpdateNotice(acp.Notice{Severity: acp.NoticeSeverityWarning, Title: "Careful", Description: acp.Some("it is hot")}),
				{Variant: &acp.SessionUpdateUnknown{Tag: "_new"}},
			},
			"commands: /a /b\nmode: ask\nusage: 1 of 2 tokens\nwarning: Careful it is hot\nupdate of the unknown kind _new\n",
		},
		"content that is not text": {
			[]acp.SessionUpdate{
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ImageBlock("", "image/png")}),
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.AudioBlock("", "audio/wav")}),
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ResourceLinkBlock("n", "file:///n")}),
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ResourceBlock(acp.TextResource("text", "file:///t"))}),
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ResourceBlock(acp.BlobResource("", "file:///b"))}),
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ContentBlock{Variant: &acp.ContentBlockUnknown{Tag: "x"}}}),
			},
			"< [image, image/png][audio, audio/wav][n: file:///n][file:///t]\n< text[file:///b][content of an unknown kind]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			p := &printer{w: &b}
			for _, u := range test.updates {
				p.update(u)
			}
			p.line("end")
			if got := strings.TrimSuffix(b.String(), "end\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestPrinterTerminals(t *testing.T) {
	var b strings.Builder
	p := &printer{w: &b}
	p.terminal(nil, "1", []byte("one\ntw"))
	p.terminal(nil, "1", []byte("o\n"))
	p.terminal(nil, "2", []byte("other"))
	p.ask("? ")
	p.answered(true)
	p.line("end")
	const want = "  | one\n  | two\n  | other\n? end\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A question that waits for its answer is asked again after what comes in between.
func TestPrinterQuestions(t *testing.T) {
	var b strings.Builder
	p := &printer{w: &b}
	p.update(chunk("1", "Hello"))
	p.ask("> ")
	p.update(chunk("2", "Wait, "))
	p.update(chunk("2", "what?\n"))
	p.line("title: T")
	p.answered(true)
	p.line("(the answer has ended the line)")
	p.ask("number: ")
	p.answered(false)
	p.line("cancelled")
	const want = "< Hello\n> \n< Wait, \n> \n< what?\n> \ntitle: T\n> (the answer has ended the line)\nnumber: \ncancelled\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What the agent writes to standard error in the middle of a line does not let it begin a line without a mark.
func TestStandardErrorWithinALine(t *testing.T) {
	var screen bytes.Buffer
	p := &printer{w: &screen}
	stderr := plain.NewWriter(besides{p, &screen}, "agent: ")
	p.update(acp.AgentMessageText("one "))
	if _, err := stderr.Write([]byte("warning\n")); err != nil {
		t.Fatal(err)
	}
	p.update(acp.AgentMessageText("two\n"))
	if got, want := screen.String(), "< one \nagent: warning\n< two\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
