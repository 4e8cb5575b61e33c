package view_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
)

// An option says what it does, according to its kind, and whether its name says otherwise.
func TestChoices(t *testing.T) {
	const once, always, no, never = acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways, acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways
	for _, o := range []struct {
		kind acp.PermissionOptionKind
		name string
		want string
	}{
		{always, "Reject", "allow always (its name says otherwise): Reject"},
		{once, "No, and tell the agent why", "allow once (its name says otherwise): No, and tell the agent why"},
		{once, "Yes, for this session", "allow once (its name says otherwise): Yes, for this session"},
		{no, "Allow", "reject once (its name says otherwise): Allow"},
		{never, "Yes", "reject always (its name says otherwise): Yes"},
		{always, "Allow once", "allow always (its name says otherwise): Allow once"},
		{always, "Always reject", "allow always (its name says otherwise): Always reject"},
		{once, "Yes, proceed", "allow once: Yes, proceed"},
		{always, "Yes, and don’t ask again for commit --no-verify", "allow always: Yes, and don’t ask again for commit --no-verify"},
		{always, "Always Allow", "allow always: Always Allow"},
		{no, "No, and tell Claude what to do differently", "reject once: No, and tell Claude what to do differently"},
		{never, "Never allow", "reject always: Never allow"},
		{once, "許可", "allow once: 許可"},
		{once, "", "allow once: the id"},
		{"allow_all", "Reject", `kind "allow_all", which may allow anything: Reject`},
		{once, "a\n2: once: b" + strings.Repeat("x", 200), "allow once: a\\n2: once: b" + strings.Repeat("x", 86) + "…"},
	} {
		c := view.NewChoice(acp.PermissionOption{Kind: o.kind, Name: o.name, OptionID: "the id"})
		if c.Text != o.want || c.Contradicts != strings.Contains(o.want, "otherwise") {
			t.Errorf("got %s, %v\nwant %s", c.Text, c.Contradicts, o.want)
		}
	}
}

func facts(q *view.Question) string {
	var all []string
	for _, f := range q.Facts {
		all = append(all, f.Name+" "+f.Text)
	}
	return strings.Join(all, "|")
}

// The facts are all commands and everything that may change what they do, and nothing in them is invisible.
func TestFacts(t *testing.T) {
	for input, want := range map[string]string{
		`{"command":"ls","cmd":"rm -rf ~"}`:                                       "$ ls|$ rm -rf ~",
		`{"command":"ls","command":"rm -rf ~"}`:                                   "$ ls|$ rm -rf ~",
		`{"cmd":["sh","-c","a b"],"script":"x"}`:                                  "$ sh -c 'a b'|$ x",
		`{"command":"sh","args":["-c","a b"]}`:                                    "$ sh -c 'a b'",
		`{"command":"sh","args":["-c"],"args":["-x",""]}`:                         "$ sh -x ''|input args -c",
		`{"command":"sh","stdin":"rm -rf ~\n","cwd":"/","env":{"PATH": "/evil"}}`: `$ sh|input stdin rm -rf ~` + "\n" + `|input cwd /|input env {"PATH":"/evil"}`,
		`{"shell_command":"rm -rf ~","n":1,"x":null,"y":""}`:                      `input shell_command rm -rf ~|input n 1|input y ""`,
		`["rm","-rf","~"]`: `input ["rm","-rf","~"]`,
		`"rm -rf ~"`:       `input rm -rf ~`,
		`{"command":"a\tb  c ","$ ls\nkind":"x"}`:                                     `$ a\tb  c\x20|input $ ls\nkind x`,
		`{"command":"rm\u200b \u3164\u2800\ufe0f\u115f\uffa0\u200d\u202e~\u001b[2J"}`: `$ rm\u200b \u3164\u2800\ufe0f\u115f\uffa0\u200d\u202e~\x1b[2J`,
		`{"command":{"x":1},"cmd":["a",1]}`:                                           `input command {"x":1}|input cmd ["a",1]`,
	} {
		q := view.NewQuestion(&acp.ToolCall{Kind: acp.ToolKindExecute, RawInput: json.RawMessage(input)}, nil, nil)
		if got := facts(q); got != "kind execute|"+want {
			t.Errorf("%s:\ngot  %s\nwant kind execute|%s", input, got, want)
		}
	}
	call := acp.ToolCall{Kind: "a\nb", Name: acp.Some("x\ty"), Title: "a\nkind read", RawInput: json.RawMessage(`{"path":"/p"}`),
		Locations: []acp.ToolCallLocation{{Path: "/p\nkind read"}, {Path: "/q ", Line: acp.Some(uint32(3))}}, Content: []acp.ToolCallContent{acp.ToolEdit("/q ", "", ""), acp.ToolEdit("/r", "", "")}}
	q := view.NewQuestion(&call, nil, &view.QuestionOptions{Agent: "me\nkind", Session: "s", Reason: "r", Found: []view.Fact{{Name: "path", Text: "/r"}, {Name: "path", Text: "/s"}}})
	if got, want := facts(q), `kind a\nb, tool x\ty|at /p\nkind read|at /q :3|at /r|names path /s`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := fmt.Sprint(q.Notes), `[{agent me\nkind, in s true} {title a\nkind read true} {reason r false}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// An option can be chosen when what it needs was visible, and not at once; none by which the agent could understand another.
func TestChoose(t *testing.T) {
	options := []acp.PermissionOption{
		acp.AllowOnce("a", "A"), acp.AllowAlways("b", "B"), acp.RejectOnce("c", "C"), {OptionID: "d", Kind: "allow_all", Name: "D"}, acp.RejectAlways("e", "E"),
		acp.AllowOnce("f", "F"), acp.RejectOnce("f", "F"),
	}
	call := acp.ToolCall{RawInput: json.RawMessage(`{"command":"rm -rf ~"}`)}
	latest, known := call, false
	q := view.NewQuestion(&call, options, &view.QuestionOptions{Latest: func() (acp.ToolCall, bool) { return latest, known }})
	now := time.Now()
	want := func(when string, at time.Time, want ...error) {
		t.Helper()
		for i := range options {
			if i >= 5 {
				want = append(want, view.ErrNoChoice)
			}
			option, err := q.Choose(i, at)
			if !errors.Is(err, want[i]) || err == nil && option.OptionID != options[i].OptionID {
				t.Errorf("%s: option %d: %v, want %v", when, i, err, want[i])
			}
		}
	}
	unseen, note, early := view.ErrUnseen, view.ErrUnseenNote, view.ErrTooEarly
	later := now.Add(view.Delay)
	want("nothing is visible", later, unseen, unseen, unseen, unseen, unseen)
	q.Shown(view.Begun, now)
	want("it is visible in part", later, unseen, unseen, nil, unseen, unseen)
	q.Shown(view.AllFacts, now)
	want("the facts are visible", later, nil, note, nil, note, note)
	q.Shown(view.Whole, now)
	want("just now", later.Add(-1), early, early, nil, early, early)
	want("before", now.Add(-1), early, early, early, early, early)
	want("all is visible", later, nil, nil, nil, nil, nil)
	q.Shown(view.Begun, now)
	want("it is drawn anew", later, unseen, unseen, nil, unseen, unseen)
	q.Shown(view.Whole, now)
	latest.RawInput = nil
	if q.Update() || view.NewQuestion(&call, options, nil).Update() {
		t.Error("nothing is known")
	}
	latest, known = call, true
	latest.Title, latest.Content = "t", []acp.ToolCallContent{acp.ToolText("x")}
	if q.Update() {
		t.Error("other members are not what it does")
	}
	latest.RawInput = json.RawMessage(`{"command":"cat README.md"}`)
	if !q.Update() || q.Update() || !strings.HasPrefix(facts(q), "kind other|$ rm -rf ~|changed ") || !strings.HasSuffix(facts(q), "|later $ cat README.md") {
		t.Errorf("the facts are %s", facts(q))
	}
	want("it has changed", later, unseen, unseen, unseen, unseen, unseen)
	latest = call
	if !q.Update() || facts(q) != "kind other|$ rm -rf ~" {
		t.Errorf("the facts are %s", facts(q))
	}
	if c := q.Choices[6]; !c.Contradicts || !strings.Contains(c.Text, "the same id") {
		t.Errorf("%+v", c)
	}
}

// A long question is shown in pages, so that all of it can be read before it can be answered. What a user interface draws
// instead has a title, and content after which the facts are repeated if it is long.
func TestConsoleAskPermission(t *testing.T) {
	call := acp.ToolCall{RawInput: json.RawMessage(`{"command":"rm -rf ~` + strings.Repeat(`\n#`, 50) + `"}`)}
	ask := func(call *acp.ToolCall, typed string, draw func(q *view.Question) ([]string, int, []string)) string {
		t.Helper()
		var out strings.Builder
		c := view.NewConsole(strings.NewReader(typed), &out)
		options := append(slices.Repeat([]acp.PermissionOption{acp.RejectOnce("r", "R")}, 9), acp.AllowOnce("a", "A"))
		q := view.NewQuestion(call, options, nil)
		if draw != nil {
			q.Title, c.DrawQuestion = "Well?", draw
		}
		if option, err := c.AskPermission(t.Context(), "s", q); err != nil || option.OptionID != "a" {
			t.Errorf("chosen %v, %v", option, err)
		}
		if _, err := c.AskPermission(t.Context(), "s", q); err != io.EOF {
			t.Errorf("at the end: %v", err)
		}
		return out.String()
	}
	comments := strings.Repeat("\n  #", 18)
	var lines []string
	for i := range 9 {
		lines = append(lines, fmt.Sprintf("\n%d: reject once: R", i+1))
	}
	options := strings.Join(lines, "") + "\n10: allow once: A\nWhich one? "
	again := "\nWhich one, 1 to 10? "
	want := "\nkind other\n$ rm -rf ~" + comments + strings.Repeat("\nEnter shows the rest, 32 lines: ", 2) +
		comments + "\n  #\n  #\nEnter shows the rest, 12 lines: " + strings.Repeat("\n  #", 12) + options
	got := ask(&call, "10\n\n\nx\n0\n11\n 10 \n", nil)
	if want += again + again + again; !strings.HasPrefix(got, want) {
		t.Errorf("asked %q\nwant  %q", got, want)
	}
	body := strings.Split(strings.Repeat("body\n", 11), "\n")
	got = ask(&acp.ToolCall{}, "10\n", func(*view.Question) ([]string, int, []string) { return []string{"fact", "note"}, 1, body })
	if want := "\nWell?\nfact\nnote\n\n" + strings.Join(body, "\n") + "\n\nfact" + options; !strings.HasPrefix(got, want) {
		t.Errorf("asked %q\nwant  %q", got, want)
	}
}
