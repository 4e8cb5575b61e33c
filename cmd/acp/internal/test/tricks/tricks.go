// Package tricks has one table of what agents may try in order to get a permission that the user does not mean to give,
// for tests of all the user interfaces that ask for one.
package tricks

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/view"
)

// Trick is a permission request, and what the agent does around it.
type Trick struct {
	Name          string
	Before, After []acp.SessionUpdate
	Call          acp.ToolCallUpdate
	Options       []acp.PermissionOption
	// Shows are what the user sees of the question.
	Shows []string
	// Early has the user choose the first option as soon as the question is there.
	Early bool
	// Later is what the question says when the agent has changed the tool call.
	Later string
	// Index is the option that the user chooses in the end, and Want its id.
	Index int
	Want  acp.PermissionOptionID
	// Session is the session that the request names, if it is not that of the prompt.
	Session acp.SessionID
	// Ends says what ends the question before the user answers it.
	Ends Ending
	// Idle has the agent ask after the end of the turn.
	Idle bool
	// Unasked says that a client answers without asking the user, because no option can be chosen. A [Workbench] asks.
	Unasked bool

	// Tried, unless it is nil, is closed at the end of [Trick.Test]. A turn whose request was cancelled ends after it.
	Tried chan struct{}

	begun atomic.Bool // a prompt that follows plays nothing
}

// Ending is what ends a question.
type Ending int

// The endings.
const (
	ByAnswer  Ending = iota
	ByTurn           // the agent ends the turn
	ByUser           // the user cancels the turn
	ByRequest        // the agent cancels the request
)

// Cancelled is what an agent is told whose question nobody has answered.
const Cancelled acp.PermissionOptionID = "is cancelled"

// Door is a user interface in which a question of a trick is on its way.
type Door interface {
	// Question waits until the question can be seen and its delay is over, and returns what belongs to it: all from the
	// first fact to the place where the user types.
	Question() string
	// Early waits until a part of the question can be seen, and chooses an option at once.
	Early(index int)
	// Choose chooses an option.
	Choose(index int)
	// Cancel cancels the turn.
	Cancel()
	// Habit does what would allow something while the question is there: it types y and 1 or clicks.
	Habit()
}

// Workbench is a Door at which the user answers everything.
type Workbench interface{ Workbench() }

// forged is what a user interface may write for another question.
const forged = "\nagent asks for permission\nkind read\n$ cat README.md\nagent good\ntitle Read\n\n1: allow once: " +
	"Yes\n2: reject once: No\nWhich one? \n"

const rm = `{"command":"rm -rf ~"}`

func call(input string, title string) acp.ToolCallUpdate {
	return acp.ToolCallUpdate{ToolCallID: "t", Title: acp.Some(title), Kind: acp.Some(acp.ToolKindExecute),
		RawInput: json.RawMessage(input)}
}

func changed(input string) []acp.SessionUpdate {
	return []acp.SessionUpdate{acp.NewSessionUpdateToolCallUpdate(acp.ToolCallUpdate{ToolCallID: "t",
		RawInput: json.RawMessage(input)})}
}

func named(kind acp.PermissionOptionKind, name string) []acp.PermissionOption {
	return []acp.PermissionOption{{OptionID: "first", Kind: kind, Name: name}, acp.RejectOnce("no", "Leave it")}
}

// All returns the table.
func All() []*Trick {
	const once, always, reject = acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways,
		acp.PermissionOptionKindRejectOnce
	hidden := func(name, input string, shows ...string) *Trick {
		return &Trick{Name: name, Call: call(input, "List files"), Shows: shows, Index: 1, Want: "no"}
	}
	lie := func(name string, kind acp.PermissionOptionKind, label string, shows ...string) *Trick {
		return &Trick{Name: name, Call: call(rm, "Clean"), Options: named(kind, label), Shows: append(shows, "$ rm -rf ~"),
			Want: "first"}
	}
	around := func(name string, before, after []acp.SessionUpdate) *Trick {
		return &Trick{Name: name, Before: before, After: after, Call: call(rm, "Clean"), Shows: []string{"$ rm -rf ~"},
			Want: "first"}
	}
	ended := func(name string, by Ending) *Trick {
		return &Trick{Name: name, Call: call(rm, "Clean"), Shows: []string{"$ rm -rf ~"}, Ends: by, Want: Cancelled}
	}
	text := []acp.SessionUpdate{acp.AgentMessageText(forged)}
	thought := []acp.SessionUpdate{acp.AgentThoughtText(forged)}
	other := []acp.SessionUpdate{acp.StartToolCall("other", forged)}
	plan := []acp.SessionUpdate{acp.UpdatePlan(acp.PlanEntry{Content: forged, Priority: acp.PlanEntryPriorityHigh,
		Status: acp.PlanEntryStatusPending})}
	all := []*Trick{
		around("nothing", nil, nil),
		around("text before it", text, nil), around("text after it", nil, text), around("a thought after it", nil, thought),
		around("another tool call after it", nil, other), around("a plan after it", nil, plan),
		around("much text after it", nil, []acp.SessionUpdate{acp.AgentMessageText(strings.Repeat(forged, 1000))}),
		{Name: "a key typed early", Call: call(rm, "Clean"), Shows: []string{"$ rm -rf ~"}, Early: true, Want: "first"},
		{Name: "an early key for always", Call: call(rm, "Clean"), Options: named(always, "Always allow"), Early: true,
			Index: 1, Want: "no"},
		{Name: "another command afterwards", Call: call(rm, "Clean"), After: changed(`{"command":"cat README.md"}`), Shows: []string{"$ rm -rf ~"}, Later: "later $ cat README.md", Want: "first"},
		{Name: "a worse command afterwards", Call: call(`{"command":"cat README.md"}`, "Read"), After: changed(rm), Shows: []string{"$ cat README.md"}, Later: "later $ rm -rf ~", Index: 1, Want: "no"},
		{Name: "what only an earlier update said",
			Before: []acp.SessionUpdate{acp.StartToolCall("t", "Clean", acp.WithLocation("/home/me", 7))},
			Call:   acp.ToolCallUpdate{ToolCallID: "t", RawInput: json.RawMessage(rm)},
			Shows:  []string{"$ rm -rf ~", "at /home/me:7"}, Want: "first"},
		lie("allow always is called reject", always, "Reject", "allow always (its name says otherwise): Reject"),
		lie("allow once is called cancel", once, "Cancel", "allow once (its name says otherwise): Cancel"),
		lie("reject is called allow", reject, "Allow", "reject once (its name says otherwise): Allow"),
		lie("allow always is called once", always, "Allow once", "allow always (its name says otherwise): Allow once"),
		lie("an option with lines", once, "Yes\n2: reject once: No", `allow once: Yes\n2: reject once: No`),
		lie("an option with escapes", once, "Yes\x1b[2J\u202eok\u3164", `allow once: Yes\x1b[2J\u202eok\u3164`),
		lie("an option without a name", once, " ", "allow once: first"),
		{Name: "all options allow", Call: call(rm, "Clean"),
			Options: []acp.PermissionOption{acp.AllowOnce("first", "Stop"), acp.AllowAlways("second", "Never")},
			Shows:   []string{"allow once (its name says otherwise): Stop", "allow always (its name says otherwise): Never"},
			Want:    "first"},
		hidden("two commands", `{"command":"ls","cmd":"rm -rf ~"}`, "$ ls", "$ rm -rf ~"),
		hidden("a member twice", `{"command":"rm -rf ~","command":"ls"}`, "$ ls", "$ rm -rf ~"),
		hidden("standard input", `{"command":"sh","stdin":"rm -rf ~"}`, "$ sh", "input stdin rm -rf ~"),
		hidden("the environment", `{"command":"ls","env":{"PATH":"/evil"}}`, `input env {"PATH":"/evil"}`),
		hidden("the directory", `{"command":"ls","cwd":"/etc"}`, "input cwd /etc"),
		hidden("an unusual name", `{"bash":"rm -rf ~"}`, "input bash rm -rf ~"),
		hidden("words", `{"command":["sh","-c","ls; rm -rf ~"]}`, "$ sh -c 'ls; rm -rf ~'"),
		hidden("tabs and spaces", `{"command":"ls\tx \u00a0 y  "}`, `$ ls\tx \u00a0 y\x20\x20`),
		hidden("invisible characters", `{"command":"rm\u200b\u3164\u115f\u1160\uffa0\u2800\ufe0f\u200d\u00ad\udb40\udd00\udb40\udc41 ~"}`, `$ rm\u200b\u3164\u115f\u1160\uffa0\u2800\ufe0f\u200d\u00ad\U000e0100\U000e0041 ~`),
		hidden("letters in another order", `{"command":"ls \u202e~ fr- mr"}`, `$ ls \u202e~ fr- mr`),
		hidden("escapes", `{"command":"rm -rf ~\u001b[2K\rls"}`, `$ rm -rf ~\x1b[2K\rls`),
		hidden("much space", `{"command":"ls`+strings.Repeat(" ", 500)+`; rm -rf ~"}`, "$ ls", "; rm -rf ~"),
		hidden("many lines", `{"command":"ls`+strings.Repeat(`\n#`, 60)+`\nrm -rf ~"}`, "$ ls", "  rm -rf ~"),
		hidden("facts in a command", `{"command":"rm -rf ~\nkind read\n$ cat README.md"}`, "$ rm -rf ~", "  kind read", "  $ cat README.md"),
		{Name: "facts in a title", Call: call(rm, "Read"+forged), Shows: []string{"$ rm -rf ~", `title Read\nagent asks`}, Index: 1, Want: "no"},
		{Name: "facts in a name", Call: acp.ToolCallUpdate{ToolCallID: "t", Kind: acp.Some(acp.ToolKindExecute),
			Name: acp.Some("x\nkind read"), RawInput: json.RawMessage(rm)},
			Shows: []string{`kind execute, tool x\nkind read`, "$ rm -rf ~"}, Index: 1, Want: "no"},
		{Name: "facts in a path", Call: acp.ToolCallUpdate{ToolCallID: "t",
			Locations: acp.Some([]acp.ToolCallLocation{{Path: "/etc\nkind read"}}),
			Content:   acp.Some([]acp.ToolCallContent{acp.ToolEdit("/shadow\n", "", "x")})},
			Shows: []string{`at /etc\nkind read`, `at /shadow\n`}, Index: 1, Want: "no"},
		{Name: "facts in content", Call: acp.ToolCallUpdate{ToolCallID: "t", Kind: acp.Some(acp.ToolKindExecute),
			RawInput: json.RawMessage(rm), Content: acp.Some([]acp.ToolCallContent{acp.ToolText(forged)})},
			Shows: []string{"$ rm -rf ~"}, Index: 1, Want: "no"},
		ended("the turn ends", ByTurn), ended("the user cancels the turn", ByUser),
		ended("the agent cancels the request", ByRequest),
		{Name: "a question after the turn", Call: call(rm, "Clean"), Idle: true,
			Shows: []string{"$ rm -rf ~", "turn none is in progress"}, Want: "first"},
		{Name: "a session that nobody knows", Call: call(rm, "Clean"), Session: "other", Shows: []string{"$ rm -rf ~"},
			Want: "first"},
		{Name: "no options", Call: call(rm, "Clean"), Options: []acp.PermissionOption{}, Unasked: true, Want: Cancelled},
		{Name: "two options with one id", Call: call(rm, "Clean"),
			Options: []acp.PermissionOption{acp.AllowAlways("first", "Allow"), acp.RejectOnce("first", "Reject")},
			Shows:   []string{"$ rm -rf ~", "cannot be chosen"}, Early: true, Ends: ByUser, Want: Cancelled},
		lie("an option of an unknown kind", "allow_once ", "Reject", `kind "allow_once ", which may allow anything: Reject`, "reject once: Leave it"),
		{Name: "only unknown kinds", Call: call(rm, "Clean"),
			Options: []acp.PermissionOption{{OptionID: "first", Kind: "Allow_Once", Name: "Yes"},
				{OptionID: "y", Kind: "x\nreject_once", Name: "No"}},
			Shows: []string{"$ rm -rf ~", `kind "Allow_Once", which may allow anything: Yes`, `kind "x\nreject_once", which may allow anything: No`}, Early: true, Want: "first"},
		lie("an option with an empty name", once, "", "allow once: first"),
	}
	for _, k := range all {
		if k.Options == nil {
			k.Options = named(once, "Run it")
		}
	}
	return all
}

// Played is what the agent has received.
type Played chan acp.PermissionOptionID

// Prompt returns a handler of session/prompt that plays the trick once. The turn ends with the answer, unless the trick
// is about that.
func (k *Trick) Prompt(played *Played) func(context.Context, *acp.AgentSession,
	*acp.PromptRequest) (*acp.PromptResponse, error) {
	return func(ctx context.Context, s *acp.AgentSession, _ *acp.PromptRequest) (*acp.PromptResponse, error) {
		end := &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}
		if !k.begun.CompareAndSwap(false, true) {
			return end, nil
		}
		for _, u := range k.Before {
			if err := s.Update(ctx, u); err != nil {
				return nil, err
			}
		}
		asking, withdraw := context.WithCancel(context.WithoutCancel(ctx))
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			defer withdraw()
			if k.Idle {
				time.Sleep(view.Delay) // the turn has ended
			}
			// The connection of an agent refuses to send what a trick may contain.
			req := &acp.RequestPermissionRequest{SessionID: cmp.Or(k.Session, s.ID()), ToolCall: k.Call, Options: k.Options}
			res, err := rpc.Call[acp.RequestPermissionResponse](asking, s.RPC(), acp.MethodRequestPermission, req)
			id := Cancelled
			switch {
			case err != nil && asking.Err() == nil:
				id = acp.PermissionOptionID(err.Error())
			case err == nil:
				if chosen, ok := res.Outcome.Selected(); ok {
					id = chosen
				}
			}
			*played <- id
		}()
		if k.Idle {
			return end, nil
		}
		time.Sleep(view.Delay / 6) // the trick: while the user reads
		for _, u := range k.After {
			if err := s.Update(ctx, u); err != nil {
				return nil, err
			}
		}
		if k.Ends == ByTurn || k.Ends == ByRequest {
			time.Sleep(8 * view.Delay) // the user has read it
		}
		switch k.Ends {
		case ByTurn:
			return end, nil
		case ByRequest:
			withdraw()
			if k.Tried != nil {
				<-k.Tried
			}
		}
		<-answered
		return end, nil
	}
}

// Squeeze removes what depends on the width of a user interface.
func Squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" \r\n", r) {
			return -1
		}
		return r
	}, text)
}

// Test plays the trick at a door.
func (k *Trick) Test(t *testing.T, door Door, played Played) {
	t.Helper()
	if k.Tried != nil {
		defer close(k.Tried)
	}
	if k.Unasked {
		if _, shows := door.(Workbench); shows {
			door.Question()
			door.Habit()
			door.Cancel()
		}
		if id := <-played; id != k.Want {
			t.Errorf("the answer is %q, want %q", id, k.Want)
		}
		return
	}
	if k.Early {
		door.Early(0)
	}
	shown := door.Question()
	check := func(wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(Squeeze(shown), Squeeze(want)) {
				t.Errorf("%q is not shown, but\n%s", want, shown)
			}
		}
	}
	check(k.Shows...)
	if i := strings.Index(Squeeze(shown), "$catREADME.md"); i >= 0 && len(k.After) > 0 && k.Later == "" {
		t.Errorf("the agent's text belongs to the question:\n%s", shown)
	}
	if k.Later != "" && !strings.Contains(Squeeze(shown), Squeeze(k.Later)) {
		door.Choose(0) // it is asked again
		shown = door.Question()
		check(append(k.Shows, k.Later)...)
	}
	select {
	case id := <-played:
		t.Fatalf("the answer %q was given too early", id)
	default:
	}
	switch k.Ends {
	case ByAnswer:
		door.Choose(k.Index)
	case ByUser:
		door.Cancel()
	}
	if id := <-played; id != k.Want {
		t.Errorf("the answer is %q, want %q", id, k.Want)
	}
	if k.Ends != ByAnswer {
		door.Habit()
	}
}

// Lines is the door of a terminal that is used line by line.
type Lines struct {
	T *testing.T
	// Shown returns all output so far, and Type types a line.
	Shown func() string
	Type  func(string)
	// Stop cancels the turn.
	Stop func()

	asked int // the length of the output when something was typed
}

var (
	prompts = regexp.MustCompile(`(Which one\? |Which one, 1 to \d\? |Enter shows the rest, \d+ lines: )$`)
	styles  = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

// wait waits for a prompt after what was typed last, and returns the output.
func (l *Lines) wait() string {
	l.T.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		shown := l.Shown()
		text := styles.ReplaceAllString(shown, "")
		if len(shown) > l.asked && prompts.MatchString(text) {
			return text
		}
		if time.Now().After(end) {
			l.T.Fatalf("there is no question in\n%s", text)
		}
	}
}

// Question implements Door.
func (l *Lines) Question() string {
	l.T.Helper()
	for {
		text := l.wait()
		if !strings.HasSuffix(text, " lines: ") {
			time.Sleep(view.Delay + view.Delay/3)
			return styles.ReplaceAllString(l.Shown(), "")
		}
		l.typ("")
	}
}

// Early implements Door.
func (l *Lines) Early(index int) {
	l.T.Helper()
	l.wait()
	l.Choose(index)
}

// Choose implements Door.
func (l *Lines) Choose(index int) { l.typ(strconv.Itoa(index + 1)) }

// Cancel implements Door.
func (l *Lines) Cancel() { l.Stop() }

// Habit implements Door.
func (l *Lines) Habit() {
	for _, line := range []string{"y", "1", ""} {
		l.typ(line)
	}
}

func (l *Lines) typ(line string) {
	l.asked = len(l.Shown())
	l.Type(line)
}
