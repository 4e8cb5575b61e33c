package main

import (
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
)

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
			"Hello.\nNew line\nNext\n",
		},
		"thoughts and the user's words have marks": {
			[]acp.SessionUpdate{acp.UserMessageText("Why?"), acp.AgentThoughtText("Hm.\nHm"), acp.AgentThoughtText("m."), acp.AgentMessageText("So.")},
			"> Why?\n~ Hm.\n~ Hmm.\nSo.\n",
		},
		"no control of the terminal": {
			[]acp.SessionUpdate{acp.AgentMessageText("a\x1b[2Jb\x07c\u009bd\te")},
			"a[2Jbcd\te\n",
		},
		"PLN-4: plans": {
			[]acp.SessionUpdate{acp.WholePlan(
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
		"content that is no text": {
			[]acp.SessionUpdate{
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ImageBlock("", "image/png")}),
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.AudioBlock("", "audio/wav")}),
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ResourceLinkBlock("n", "file:///n")}),
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ResourceBlock(acp.TextResource("text", "file:///t"))}),
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ResourceBlock(acp.BlobResource("", "file:///b"))}),
				acp.NewSessionUpdateAgentMessageChunk(acp.ContentChunk{Content: acp.ContentBlock{Variant: &acp.ContentBlockUnknown{Tag: "x"}}}),
			},
			"[image, image/png][audio, audio/wav][n: file:///n][file:///t]\ntext[file:///b][content of an unknown kind]\n",
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
	const want = "Hello\n> \nWait, \n> \nwhat?\n> \ntitle: T\n> (the answer has ended the line)\nnumber: \ncancelled\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
