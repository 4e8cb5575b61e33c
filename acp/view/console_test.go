package view_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
)

// What a piece of a message costs depends neither on the message nor on the commands.
func TestConsoleCost(t *testing.T) {
	c := view.NewConsole(strings.NewReader(""), io.Discard)
	var commands []acp.AvailableCommand
	for i := range 1000 {
		commands = append(commands, acp.SlashCommand(fmt.Sprint(i), "d", ""))
	}
	state := c.Sessions.Of("s")
	state.Update(acp.CommandsUpdate(commands...))
	state.Update(acp.AgentMessageText(strings.Repeat("x", 1<<20)))
	c.Show("s")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		state.Update(acp.AgentMessageText("y"))
		c.Show("s")
	}
	runtime.ReadMemStats(&after)
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 32<<20 {
		t.Errorf("1000 pieces took %d bytes", bytes)
	}
}

// changed is a diff of a file.
func changed(old, new string) acp.ToolCallContent {
	return acp.ToolCallContent{Variant: &acp.ToolCallContentDiff{Path: "/f", OldText: acp.Some(old), NewText: new}}
}

// The difference of texts, whatever changed, also if they are too long to be compared line by line.
func TestDiffs(t *testing.T) {
	long := func(word string) string { return strings.Repeat(word+"\n", 1100) }
	for _, test := range []struct{ old, new, want string }{
		{"", "", ""},
		{"a\n", "a\n", ""},
		{"", "a\nb", "+a|+b"},
		{"a\nb\n", "", "-a|-b"},
		{"a\nb\nc\nd\n", "a\nc\nB\nd\n", " a|-b| c|+B| d"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\nx\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\ny\n", "+0| 1| 2| 3|@@ line 8 @@| 7| 8| 9|-x|+y"},
		{long("a"), long("b"), strings.Repeat("-a|", 1100) + strings.TrimSuffix(strings.Repeat("+b|", 1100), "|")},
	} {
		s := view.New(nil)
		s.Update(acp.StartToolCall("c", "Edit", acp.WithContent(changed(test.old, test.new))))
		_, got, _ := strings.Cut(s.Snapshot().Item(0).String(), "--- /f")
		if got := strings.TrimPrefix(strings.ReplaceAll(got, "\n  ", "|"), "|"); got != test.want {
			t.Errorf("%.20q to %.20q: got %.200q, want %.200q", test.old, test.new, got, test.want)
		}
	}
}

// Run hands on one line at a time. With ReadAhead it reads lines during a turn: ":cancel" cancels it, also while a
// question waits, and others follow.
func TestConsoleRun(t *testing.T) {
	in, typed := io.Pipe()
	out := make(printed, 100)
	c := view.NewConsole(in, out)
	c.ReadAhead = true
	var got []string
	turns := make(chan string)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Run(t.Context(), func(ctx context.Context, line string) error {
			got = append(got, line)
			turns <- line
			switch line {
			case "wait":
				<-ctx.Done()
				return errors.New("cancelled")
			case "ask":
				_, err := c.Ask(ctx, "Well?")
				return err
			}
			return nil
		})
	}()
	say := func(lines string) {
		if _, err := io.WriteString(typed, lines); err != nil {
			t.Error(err)
		}
	}
	say("\n:cancel\nwait\n")
	<-turns
	say("next\n")
	out.wait(t, "[after this turn: next]")
	say(":cancel\n")
	out.wait(t, "error: cancelled")
	<-turns
	say("ask\n")
	<-turns
	out.wait(t, "Well?")
	say(":cancel\n")
	out.wait(t, "error: context canceled")
	go func() {
		for range out { //nolint:revive // what is printed at the end
		}
	}()
	if err := errors.Join(typed.Close(), <-ended); err != nil || strings.Join(got, " ") != "wait next ask" {
		t.Errorf("got %q, %v", got, err)
	}
	close(out)
	c = view.NewConsole(strings.NewReader("a\n:cancel\nb"), io.Discard) // a script: nothing is read ahead
	got = nil
	err := c.Run(t.Context(), func(ctx context.Context, line string) error {
		got = append(got, line)
		return nil
	})
	if err != nil || strings.Join(got, " ") != "a b" {
		t.Errorf("got %q, %v", got, err)
	}
}

// The output of a terminal is printed once, when the agent has waited for it or releases it.
func TestConsoleTerminals(t *testing.T) {
	var out strings.Builder
	c := view.NewConsole(strings.NewReader(""), &out)
	long := strings.Repeat("x", 100_000)
	var h acp.ClientHandlers
	c.ShowTerminals(&h)
	if h.ReleaseTerminal != nil {
		t.Error("a client without terminals offers them")
	}
	h.TerminalOutput = func(_ context.Context, _ *acp.ClientSession, req *acp.TerminalOutputRequest) (*acp.TerminalOutputResponse, error) {
		switch req.TerminalID {
		case "unknown":
			return nil, acp.ErrResourceNotFound
		case "long":
			return &acp.TerminalOutputResponse{Output: long}, nil
		}
		exit := acp.TerminalExitStatus{ExitCode: acp.Some[uint32](3)}
		return &acp.TerminalOutputResponse{Output: "a\x1b\nb\n", ExitStatus: acp.Some(exit)}, nil
	}
	h.WaitForTerminalExit = func(context.Context, *acp.ClientSession, *acp.WaitForTerminalExitRequest) (*acp.WaitForTerminalExitResponse, error) {
		return &acp.WaitForTerminalExitResponse{}, nil
	}
	h.ReleaseTerminal = func(context.Context, *acp.ClientSession, *acp.ReleaseTerminalRequest) (*acp.ReleaseTerminalResponse, error) {
		return &acp.ReleaseTerminalResponse{}, nil
	}
	c.ShowTerminals(&h)
	s := (&acp.ClientConn{}).Session("s")
	for _, id := range []acp.TerminalID{"t", "long", "unknown"} {
		for range 2 {
			if _, err := h.WaitForTerminalExit(t.Context(), s, &acp.WaitForTerminalExitRequest{TerminalID: id}); err != nil && id == "t" {
				t.Error(err)
			}
		}
		must.Get(h.ReleaseTerminal(t.Context(), s, &acp.ReleaseTerminalRequest{TerminalID: id}))(t)
	}
	want := "\nterminal t: exit status 3\n  a\\x1b\n  b\nterminal long: running\n  …" + long[:8<<10]
	if out.String() != want {
		t.Errorf("printed %.200q", &out)
	}
}

func TestConsoleChoose(t *testing.T) {
	var out strings.Builder
	c := view.NewConsole(strings.NewReader("x\n3\n2\n"), &out)
	if i, err := c.Choose(t.Context(), "How?", "a\n2: b", "c"); i != 1 || err != nil || strings.Count(out.String(), `1: a\n2: b`) != 3 {
		t.Errorf("got %d, %v, printed %s", i, err, &out)
	}
	if _, err := c.Choose(t.Context(), "How?", "a"); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

// Names cannot contain a line that looks like one of the console's own.
func TestConsoleNames(t *testing.T) {
	var out strings.Builder
	c := view.NewConsole(strings.NewReader(""), &out)
	const name = "x\n1: Reject"
	line := func(id string) acp.SessionID { return acp.SessionID(id + name) }
	c.Sessions.Of("s").Update(acp.AgentMessageText("text"))
	c.Show("s")
	state := c.Sessions.Of(line("s"))
	for _, u := range []acp.SessionUpdate{
		acp.StartToolCall("c", name, acp.WithLocation("/"+name, 1)),
		acp.UpdatePlan(acp.PlanEntry{Content: name, Status: name}), acp.ModeUpdate(name), acp.TitleUpdate(name),
		acp.ConfigUpdate(acp.SelectOption(name, name, name, acp.SelectValue(name, name))), acp.CommandsUpdate(acp.SlashCommand(name, name, "")),
	} {
		state.Update(u)
	}
	req := &acp.RequestPermissionRequest{Options: []acp.PermissionOption{{OptionID: "o", Name: name, Kind: name}}}
	must.Get(c.RequestPermission(t.Context(), (&acp.ClientConn{}).Session(line("s")), req))(t)
	form := elicit(t, `{"mode":"form","message":"m","sessionId":"s","requestedSchema":{"type":"object","properties":{
		"a":{"type":"string","title":"x\n1: Reject","description":"x\n1: Reject","default":"x\n1: Reject","enum":["x\n1: Reject"]}}}}`)
	must.Get(c.CreateElicitation(t.Context(), nil, form))(t)
	if strings.Contains(out.String(), "\n1: Reject") || strings.Count(out.String(), `\n1: Reject`) != 16 {
		t.Errorf("printed %s", &out)
	}
}

// A session that was removed and is opened again is shown as a new one.
func TestConsoleRemoved(t *testing.T) {
	var out strings.Builder
	c := view.NewConsole(strings.NewReader(""), &out)
	for i := range 40 { // more than one node of a vector holds
		c.Sessions.Of("s").Update(acp.StartToolCall(acp.ToolCallID(strconv.Itoa(i)), "old"))
	}
	c.Show("s")
	old := c.Sessions.Of("s").Snapshot()
	c.Sessions.Remove("s")
	c.Sessions.Of("s").Update(acp.AgentMessageText("new"))
	if now := c.Sessions.Of("s").Snapshot(); now.SameHistory(old) {
		t.Error("two States have the same history")
	}
	out.Reset()
	if c.Show("s"); out.String() != "\nagent: new" {
		t.Errorf("printed %q", &out)
	}
}

// An agent cannot make the console keep more sessions than a client can have.
func TestConsoleManySessions(t *testing.T) {
	c := view.NewConsole(strings.NewReader(""), io.Discard)
	update := func(id string) error {
		return c.SessionUpdate(t.Context(), nil, &acp.SessionNotification{SessionID: acp.SessionID(id), Update: acp.AgentMessageText("x")})
	}
	for i := range 10_000 {
		must.Do(t, update(strconv.Itoa(i)))
	}
	for range 2 { // a State that the first one left would let the second one in
		if err := update("more"); !errors.Is(err, view.ErrSessions) {
			t.Errorf("got %v", err)
		}
	}
	must.Get(c.RequestPermission(t.Context(), (&acp.ClientConn{}).Session("more"), &acp.RequestPermissionRequest{}))(t)
	if err := update("more"); !errors.Is(err, view.ErrSessions) {
		t.Errorf("after a question: %v", err)
	}
	c.Sessions.Remove("1")
	must.Do(t, update("more"))
	if c.Sessions.Of("more").Snapshot().End() != 1 {
		t.Error("the update is not there")
	}
	if _, ok := c.Sessions.ToolCall("none", "1"); ok {
		t.Error("a tool call of a session that is not there")
	}
}

func elicit(t *testing.T, text string) *acp.CreateElicitationRequest {
	t.Helper()
	var req acp.CreateElicitationRequest
	must.Do(t, json.Unmarshal([]byte(text), &req))
	return &req
}

// The user answers questions in lines, and is asked again when a line is no answer.
func TestConsoleAsks(t *testing.T) {
	typed := []string{"", "Ada", "0", "x", "3", "maybe", "TRUE", "z", "", "", "p,r", "1, q", "1", "", ":decline", "", ":decline", "0", "3", "2", "next"}
	var out strings.Builder
	c := view.NewConsole(strings.NewReader(strings.Join(typed, "\n")), &out)
	form := elicit(t, `{"mode":"form","message":"Well?","sessionId":"s","requestedSchema":{"type":"object","properties":{
		"a":{"type":"string","title":"Name","description":"Yours"},
		"b":{"type":"string","enum":["x","y"],"default":"y"},
		"c":{"type":"integer","minimum":1,"maximum":9},
		"d":{"type":"number","default":0.5},
		"e":{"type":"boolean"},
		"f":{"type":"array","items":{"type":"string","enum":["p","q"]}},
		"g":{"type":"string","oneOf":[{"const":"m","title":"M"}]},
		"h":{"type":"string"}},"required":["a","c","e"]}}`)
	answers := func(req *acp.CreateElicitationRequest, want string) {
		t.Helper()
		res, err := c.CreateElicitation(t.Context(), nil, req)
		text, _ := json.Marshal(res)
		if err != nil || string(text) != want {
			t.Errorf("got %s, %v, want %s", text, err, want)
		}
	}
	answers(form, `{"action":"accept","content":{"a":"Ada","b":"y","c":3,"d":0.5,"e":true,"f":["p","q"],"g":"m"}}`)
	const want = "\nWell?\nName (required): Yours\nthis field is required. Name (required): Yours\nc (required) (whole number, at least 1, at most 9)\n" +
		"expected at least 1. c (required) (whole number, at least 1, at most 9)\nexpected a whole number. c (required) (whole number, at least 1, at most 9)\n" +
		"e (required) (true or false)\nexpected true or false. e (required) (true or false)\nb [y]\n1: x\n2: y\nexpected one of the values. b [y]\n1: x\n2: y\n" +
		"d (number) [0.5]\nf\n1: p\n2: q\nexpected one of the values. f\n1: p\n2: q\ng\n1: m: M\n"
	if got := strings.ReplaceAll(out.String(), "\nAnswer: ", ""); !strings.HasPrefix(got, want) {
		t.Errorf("asked %q", got)
	}
	answers(form, `{"action":"decline"}`)
	none := elicit(t, `{"mode":"form","message":"Agree?","sessionId":"s","requestedSchema":{"type":"object","properties":{}}}`)
	answers(none, `{"action":"accept","content":{}}`)
	answers(none, `{"action":"decline"}`)
	answers(elicit(t, `{"mode":"url","message":"m","sessionId":"s","elicitationId":"e","url":"https://example.com"}`), `{"action":"decline"}`)

	c.Sessions.Of("s").Update(acp.StartToolCall("c", "Edit a"))
	out.Reset()
	permit := func(ctx context.Context) (acp.PermissionOptionID, error) {
		res, err := c.RequestPermission(ctx, (&acp.ClientConn{}).Session("s"), &acp.RequestPermissionRequest{
			Options: []acp.PermissionOption{acp.AllowOnce("a", "Allow"), acp.RejectOnce("r", "Reject")},
		})
		if err != nil {
			return "", err
		}
		chosen, _ := res.Outcome.Selected()
		return chosen, nil
	}
	if chosen, err := permit(t.Context()); chosen != "r" || err != nil || !strings.Contains(out.String(), "Edit a (other): pending\nkind other\n1: allow once: Allow\n2: reject once: Reject\nWhich one?") {
		t.Errorf("chosen %q, %v, after %q", chosen, err, &out)
	}
	if line, err := c.Line(t.Context()); line != "next" || err != nil {
		t.Errorf("the next line is %q, %v", line, err)
	}
	unasked, err := c.RequestPermission(t.Context(), (&acp.ClientConn{}).Session("s"), &acp.RequestPermissionRequest{})
	if _, cancelled := unasked.Outcome.Variant.(*acp.RequestPermissionOutcomeCancelled); err != nil || !cancelled {
		t.Errorf("without options: %+v, %v", unasked, err)
	}
	// At the end of the input nothing is decided.
	if line, err := c.Line(t.Context()); err != io.EOF {
		t.Errorf("after the end: %q, %v", line, err)
	}
	if chosen, err := permit(t.Context()); chosen != "" || err != nil {
		t.Errorf("after the end: %q, %v", chosen, err)
	}
	answers(form, `{"action":"cancel"}`)
}

// Texts that the form does not allow are asked for again.
func TestConsoleChecksText(t *testing.T) {
	form := elicit(t, `{"mode":"form","message":"m","sessionId":"s","requestedSchema":{"type":"object","properties":{
		"a":{"type":"string","minLength":2,"maxLength":3},
		"b":{"type":"string","format":"email"},
		"c":{"type":"string","format":"uri"},
		"d":{"type":"string","format":"date"},
		"e":{"type":"string","format":"date-time"}}}}`)
	typed := "x\nü\nlong\nüxy\nAda <a@example.com>\na@example.com\nexample.com\nhttps://example.com\n1.2.2026\n2026-02-01\n" +
		"2026-02-01\n2026-02-01T10:00:00Z\n"
	res, err := view.NewConsole(strings.NewReader(typed), io.Discard).CreateElicitation(t.Context(), nil, form)
	text, _ := json.Marshal(res)
	const want = `{"action":"accept","content":{"a":"üxy","b":"a@example.com","c":"https://example.com","d":"2026-02-01","e":"2026-02-01T10:00:00Z"}}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
}

// printed sends what is written.
type printed chan string

func (p printed) Write(b []byte) (int, error) {
	p <- string(b)
	return len(b), nil
}

// wait waits until a text is written.
func (p printed) wait(t *testing.T, text string) {
	t.Helper()
	for got := ""; !strings.Contains(got, text); {
		select {
		case s := <-p:
			got += s
		case <-time.After(time.Minute):
			t.Fatalf("%q is not printed, but %q", text, got)
		}
	}
}

// A question that arrives while the program waits for a line gets the next lines before the program, and only one
// question at a time waits.
func TestConsoleAsksDuringLine(t *testing.T) {
	in, typed := io.Pipe()
	out := make(printed, 100)
	c := view.NewConsole(in, out)
	say := func(lines string) {
		t.Helper()
		must.Get(io.WriteString(typed, lines))(t)
	}
	next := make(chan string, 1)
	prompt := func() {
		line, err := c.Line(t.Context())
		if err != nil {
			line = err.Error()
		}
		next <- line
	}
	go prompt()
	say("sec") // once this is read, the program waits
	answer := make(chan string, 1)
	go func() {
		res, err := c.CreateElicitation(t.Context(), nil, elicit(t, `{"mode":"form","message":"Well?","sessionId":"s",
			"requestedSchema":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}`))
		text, _ := json.Marshal(res)
		answer <- fmt.Sprint(string(text), err)
	}()
	out.wait(t, "\na")
	ended, end := context.WithCancelCause(t.Context())
	end(acp.ErrTurnCancelled)
	if _, err := c.Ask(ended, "Who?"); !errors.Is(err, acp.ErrTurnCancelled) {
		t.Errorf("got %v", err)
	}
	say("ret\n2\nprompt\n")
	if got, want := <-answer, `{"action":"accept","content":{"a":"secret","b":"2"}}<nil>`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := <-next; got != "prompt" {
		t.Errorf("the program got %q", got)
	}
}

// A line that is read before a question does not answer it.
func TestConsoleEarlyLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, typed := io.Pipe()
		c := view.NewConsole(in, io.Discard)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			synctest.Wait() // Line reads
			cancel()
		}()
		if _, err := c.Line(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		go io.WriteString(typed, "1\n")
		synctest.Wait()
		go func() {
			synctest.Wait() // the question waits
			io.WriteString(typed, "2\n")
		}()
		res := must.Get(c.RequestPermission(t.Context(), (&acp.ClientConn{}).Session("s"), &acp.RequestPermissionRequest{
			Options: []acp.PermissionOption{acp.AllowOnce("a", "Allow"), acp.RejectOnce("r", "Reject")},
		}))(t)
		if chosen, _ := res.Outcome.Selected(); chosen != "r" {
			t.Errorf("chosen: %s", chosen)
		}
		if line, err := c.Line(t.Context()); line != "1" || err != nil {
			t.Errorf("the next line is %q, %v", line, err)
		}
	})
}

// A question ends with its context, and says so.
func TestConsoleCancelled(t *testing.T) {
	in, typed := io.Pipe()
	out := make(printed, 100)
	c := view.NewConsole(in, out)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(acp.ErrTurnCancelled)
	_, err := c.RequestPermission(ctx, (&acp.ClientConn{}).Session("s"), &acp.RequestPermissionRequest{Options: []acp.PermissionOption{acp.AllowOnce("a", "A")}})
	if !errors.Is(err, acp.ErrTurnCancelled) {
		t.Errorf("got %v", err)
	}
	asking, end := context.WithCancelCause(t.Context())
	go func() {
		out.wait(t, "Which one?")
		end(acp.ErrTurnCancelled)
	}()
	_, err = c.RequestPermission(asking, (&acp.ClientConn{}).Session("s"), &acp.RequestPermissionRequest{Options: []acp.PermissionOption{acp.AllowOnce("a", "A")}})
	if !errors.Is(err, acp.ErrTurnCancelled) {
		t.Errorf("got %v", err)
	}
	out.wait(t, "has ended without an answer.")
	must.Do(t, typed.Close())
	if _, err := c.Line(t.Context()); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

// A line that arrives when a question has just ended is not lost.
func TestConsoleLineAfterQuestion(t *testing.T) {
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		reads := 0
		in := reading(func(b []byte) int {
			cancel()
			reads++
			return copy(b, fmt.Sprintf("line %d\n", reads))
		})
		c := view.NewConsole(in, io.Discard)
		if line, err := c.Ask(ctx, "Well?"); !errors.Is(err, context.Canceled) {
			t.Errorf("the answer is %q, %v", line, err)
		}
		if line, err := c.Line(t.Context()); line != "line 1" || err != nil {
			t.Errorf("the next line is %q, %v", line, err)
		}
	}
}

// reading is an input that calls the function for each read.
type reading func([]byte) int

func (r reading) Read(b []byte) (int, error) { return r(b), nil }
