package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp"
)

func (p *process) say(t *testing.T, lines ...string) {
	t.Helper()
	if _, err := io.WriteString(p.stdin, strings.Join(lines, "\n")+"\n"); err != nil {
		t.Fatal(err)
	}
}

var sessionLine = regexp.MustCompile(`(?m)^(?:> )?session (\S+)$`)

// TestCommands: everything that the user can do with sessions, in two runs.
func TestCommands(t *testing.T) {
	t.Parallel()
	agent := reference(t)
	root := t.TempDir()
	p := start(t, nil, append([]string{"-root", root, "-check", "-warnings", "-add", t.TempDir()}, agent...)...)
	p.say(t, ":mode", ":mode auto", ":mode none", ":option", ":option usage false", ":option usage perhaps", ":option colour red",
		":attach .", "remember this", "::what", ":sessions", ":bad", ":mode auto ask", ":")
	p.await(t, "You said: :what")
	got, status := p.finish(t)
	inOrder(t, got, "mode ask: Ask (current)\nmode auto: Auto\n", "error: the session has no such mode", "option Mode: auto", "option Report usage: true",
		"error: no such command", "error: the session has no such option",
		"You said: remember this", "You attached a link to "+filepath.Base(root), "You said: :what", ": remember this ",
		"no such command", "no such command", "no such command", "\n")
	if status != 0 || !strings.HasSuffix(got, " 0 findings\n") {
		t.Errorf("ended with status %d", status)
	}
	id := sessionLine.FindStringSubmatch(got)[1]

	p = start(t, nil, append([]string{"-root", root, "-check", "-warnings", "-load", id}, agent...)...)
	p.say(t, ":mode", ":resume", ":new", "another", ":load "+id, ":close", "hello", ":close", ":mode auto", ":option", ":resume", ":resume no-such-session", ":delete "+id, ":sessions", ":delete "+id, ":logout", ":help")
	got, status = p.finish(t)
	inOrder(t, got, "> remember this", "You said: remember this", "mode auto: Auto (current)", "session "+id, "You said: another", "You said: remember this", "session "+id,
		"error: there is no session", "error: there is no session", "error: there is no session", "error: there is no session", "error: there is no session",
		"error: session/resume: Session not found", ": another ", "show this")
	if _, after, _ := strings.Cut(got, ": another "); status != 0 || !strings.HasSuffix(got, " 0 findings\n") || strings.Contains(after, "error: ") {
		t.Errorf("ended with status %d", status)
	}
	if strings.Count(got, "session "+id+": ") != 0 {
		t.Error("the session that was deleted is listed")
	}
}

// TestForms: a form is filled in until it is right, and sent or declined.
func TestForms(t *testing.T) {
	t.Parallel()
	p := start(t, nil, append([]string{"-check", "-warnings"}, reference(t)...)...)
	p.say(t, "form", "1", "name=", "colour=pink", "colour=blue", "name = Ann", "nonsense=1", "1", "form", "2", "link", "x", "1", "link", "2", "form")
	got, status := p.finish(t) // the end of the input dismisses the last one
	inOrder(t, got, "colour (Your favourite colour) red green blue: red", "missing: name", "name: expected at least", "colour: expected one of the values", "Hello Ann, who likes blue.",
		"go on without an answer", "https://example.com/welcome", "stopReason: end_turn", "go on without an answer", "go on without an answer")
	if status != 0 || !strings.HasSuffix(got, " 0 findings\n") {
		t.Errorf("ended with status %d", status)
	}
	p = start(t, nil, append([]string{"-check", "-reject", "-p", "form link"}, reference(t)...)...)
	got, _ = p.finish(t)
	inOrder(t, got, "go on without an answer", "go on without an answer")
}

// loginAgent is an agent whose users log in in a terminal: their name goes into a file.
func loginAgent() {
	const file = "logged-in"
	if slices.Contains(os.Args, "-login") {
		name, err := io.ReadAll(io.LimitReader(os.Stdin, int64(len("Ann\n"))))
		if err != nil || string(name) != "Ann\n" || os.Getenv("LOGIN") != "1" {
			os.Exit(1)
		}
		if err := os.WriteFile(file, name, 0o600); err != nil {
			panic(err)
		}
		return
	}
	runFake(&acp.AgentOptions{AuthMethods: []acp.AuthMethod{acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{
		ID: "t", Name: "Terminal", Args: []string{"-login"}, Env: map[string]string{"LOGIN": "1"},
	})}}, acp.AgentHandlers{
		NewSession: func(ctx context.Context, conn *acp.AgentConn, req *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			if _, err := os.Stat(file); err != nil {
				return nil, acp.ErrAuthRequired
			}
			return newSession(ctx, conn, req)
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	})
}

// AUT-6: after a login in a terminal that succeeded the agent is started again, and only then.
func TestAUT6_LoginInATerminal(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"Ann": 0, "Bob": 1} {
		p := start(t, nil, append([]string{"-check"}, with(t, "login")...)...)
		p.say(t, name, "hello")
		got, ended := p.finish(t)
		if ended != status || strings.Contains(got, "stopReason: end_turn") != (status == 0) {
			t.Errorf("%s: ended with status %d and\n%s%s", name, ended, got, p.stderr.String())
		}
	}
	p := start(t, nil, append([]string{"-p", "hello"}, with(t, "login")...)...)
	if _, ended := p.finish(t); ended != 1 {
		t.Errorf("ended with status %d", ended)
	}
	inOrder(t, p.stderr.String(), "client: ", "(-32000)")
}

func TestServers(t *testing.T) {
	for text, want := range map[string]string{
		"a=go run .": "stdio", "a=https://example.com/": "http", "go": "", "=go": "", "a=": "", "a=no-such-program-anywhere": "",
	} {
		server, err := parseServer(text)
		kind := ""
		switch s := server.Variant.(type) {
		case *acp.MCPServerStdio:
			if kind = "stdio"; !filepath.IsAbs(s.Command) || len(s.Args) != 2 {
				t.Errorf("%q: got %+v", text, s)
			}
		case *acp.MCPServerHTTP:
			kind = "http"
		}
		if kind != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", text, kind, err)
		}
	}
}
