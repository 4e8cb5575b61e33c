//go:build unix

package local_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
)

// serve connects an agent to a client that has files and terminals in dir, with every message
// validated, and returns the agent's view of a session.
func serve(t *testing.T, dir string, files *local.FilesOptions, terminals *local.TerminalsOptions) *acp.AgentSession {
	t.Helper()
	roots, commands := open(t, terminals)
	var handlers acp.ClientHandlers
	local.NewFiles(roots, local.Trusted(), files).Register(&handlers)
	commands.Register(&handlers)
	client, agent := connect(t, handlers, dir)
	must.Do(t, roots.SetSession(client, dir))
	return agent
}

// open opens no directory for all, and what runs commands; it closes both at the end of the test.
func open(t *testing.T, options *local.TerminalsOptions) (*local.Roots, *local.Terminals) {
	t.Helper()
	roots := must.Get(local.OpenRoots())(t)
	terminals := local.NewTerminals(roots, local.Trusted(), options)
	t.Cleanup(func() {
		if err := errors.Join(terminals.Close(), roots.Close()); err != nil {
			t.Error(err)
		}
	})
	return roots, terminals
}

// unreleased is what tests break in which the agent leaves a running command behind, or asks for an unknown session.
var unreleased = map[string]string{"TRM-7": "the agent ends without releasing its terminals", "ADD-2": "some ask for a session that nobody has made"}

// connect connects a client to an agent, whose sessions are all called s1, and opens one.
func connect(t *testing.T, handlers acp.ClientHandlers, dir string) (*acp.ClientSession, *acp.AgentSession) {
	t.Helper()
	atClient, atAgent := acp.Pipe()
	agent := must.Get(acp.StartAgent(t.Context(), atAgent, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s1"}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil))(t)
	tap := &conformance.TapOptions{Accept: unreleased}
	client := must.Get(acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, atClient, tap), handlers, nil))(t)
	t.Cleanup(func() {
		client.Close()
		agent.Close()
	})
	session := must.Get(client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir, MCPServers: []acp.MCPServer{}}))(t)
	return session, agent.Session(session.ID())
}

// wantError checks what an agent gets to see of a failure.
func wantError(t *testing.T, what string, err error, want rpc.Error) {
	t.Helper()
	got, ok := errors.AsType[*rpc.Error](err)
	if !ok {
		t.Errorf("%s: got %v, want %v", what, err, &want)
		return
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("%s: (-want +got)\n%s", what, diff)
	}
}

// invalid is what an agent sees of invalid params, and early that of those which the connection refuses before the handler.
func invalid(pointer, reason string) rpc.Error {
	return rpc.Error{Code: rpc.ErrInvalidParams, Message: reason, Data: fmt.Appendf(nil, `{"pointer":%q,"reason":%q}`, pointer, reason)}
}

func early(pointer, reason string) rpc.Error {
	e := invalid(pointer, reason)
	e.Message = "Invalid params: " + pointer + ": " + reason
	return e
}

func TestFilesOverTheWire(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := serve(t, dir, nil, nil)
	path := filepath.Join(dir, "new dir", "a.txt")

	const text = "one\r\ntwo 😀\nthree"
	must.Get(s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: path, Content: text}))(t)
	if onDisk, err := os.ReadFile(path); err != nil || string(onDisk) != text {
		t.Errorf("on disk: %q, %v", onDisk, err)
	}
	for _, tt := range []struct {
		line, limit acp.Opt[uint32]
		want        string
	}{
		{want: text},
		{line: acp.Null[uint32](), limit: acp.Null[uint32](), want: text},
		{line: acp.Some[uint32](2), want: "two 😀\nthree"},
		{limit: acp.Some[uint32](1), want: "one\r\n"},
		{line: acp.Some[uint32](2), limit: acp.Some[uint32](1), want: "two 😀\n"},
		{line: acp.Some[uint32](4), limit: acp.Some[uint32](1<<32 - 1), want: ""},
		{line: acp.Some[uint32](1), limit: acp.Some[uint32](0), want: ""},
	} {
		res, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: path, Line: tt.line, Limit: tt.limit})
		if err != nil || res.Content != tt.want {
			t.Errorf("line %v, limit %v: got %v, %v, want %q", tt.line, tt.limit, res, err, tt.want)
		}
	}
}

func TestFileErrors(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "latin1"), []byte("\xe9"), 0o666))
	s := serve(t, dir, &local.FilesOptions{MaxSize: 5}, nil)
	at := func(name string) string { return filepath.Join(dir, name) }
	for what, tt := range map[string]struct {
		path string
		line acp.Opt[uint32]
		want rpc.Error
	}{
		"missing": {path: at("no ü"), want: rpc.Error{
			Code:    rpc.ErrResourceNotFound,
			Message: `Resource not found: read "` + at("no ü") + `": No such file or directory`,
			Data:    []byte(`{"uri":"file://` + dir + `/no%20%C3%BC"}`),
		}},
		"below a file": {path: at("latin1/x"), want: rpc.Error{
			Code:    rpc.ErrResourceNotFound,
			Message: `Resource not found: read "` + at("latin1/x") + `": not a directory`,
			Data:    []byte(`{"uri":"file://` + dir + `/latin1/x"}`),
		}},
		"outside":   {path: "/etc/passwd", want: invalid("/path", `read "/etc/passwd": outside the directories of the session`)},
		"relative":  {path: "a.txt", want: early("/path", "not an absolute path")},
		"directory": {path: dir, want: invalid("/path", `read "`+dir+`": not a regular file`)},
		"not text":  {path: at("latin1"), want: invalid("/path", `read "`+at("latin1")+`": not UTF-8 text`)},
		"line 0":    {path: at("latin1"), line: acp.Some[uint32](0), want: early("/line", "lines count from 1")},
	} {
		_, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: tt.path, Line: tt.line})
		wantError(t, what, err, tt.want)
	}
	_, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: at("long"), Content: "123456"})
	wantError(t, "too large", err, invalid("/path", `write "`+at("long")+`": too large`))

	_, err = s.Conn().ReadTextFile(ctx, &acp.ReadTextFileRequest{SessionID: "nobody", Path: at("latin1")})
	wantError(t, "unknown session", err, rpc.Error{
		Code:    rpc.ErrResourceNotFound,
		Message: `unknown session "nobody"`,
		Data:    []byte(`{"sessionId":"nobody"}`),
	})
}

// Read-only files do not advertise what they refuse.
func TestReadOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	readOnly := must.Get(local.OpenRoots(dir))(t)
	defer readOnly.Close()
	var handlers acp.ClientHandlers
	local.NewFiles(readOnly, nil, nil).Register(&handlers)
	_, s := connect(t, handlers, dir)
	req := &acp.WriteTextFileRequest{SessionID: s.ID(), Path: filepath.Join(dir, "a.txt"), Content: "x"}
	if _, err := s.WriteTextFile(t.Context(), req); !errors.Is(err, acp.ErrUnsupported) {
		t.Errorf("over the wire: got %v, want %v", err, acp.ErrUnsupported)
	}
	roots, _ := open(t, nil)
	files := local.NewFiles(roots, nil, nil)
	client, _ := connect(t, acp.ClientHandlers{}, dir)
	if _, err := files.WriteTextFile(t.Context(), client, req); !errors.Is(err, rpc.ErrMethodNotFound) || !errors.Is(err, local.ErrReadOnly) {
		t.Errorf("called: got %v", err)
	}
}

// Tools that call a handler see the cause of a failure, too.
func TestErrorsMatchTheirCause(t *testing.T) {
	dir := t.TempDir()
	roots, _ := open(t, nil)
	files := local.NewFiles(roots, local.Trusted(), nil)
	client, _ := connect(t, acp.ClientHandlers{}, dir)
	must.Do(t, roots.SetSession(client, dir))
	for path, want := range map[string]error{filepath.Join(dir, "a.txt"): fs.ErrNotExist, "/etc/passwd": local.ErrOutside} {
		if _, err := files.ReadTextFile(t.Context(), client, &acp.ReadTextFileRequest{Path: path}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
}

func TestTerminalOverTheWire(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := serve(t, dir, nil, nil)
	one := must.Get(s.CreateTerminal(ctx, &acp.CreateTerminalRequest{
		Command:         "sh",
		Args:            []string{"-c", `printf '%s' "$TEXT"; exit 3`},
		Env:             []acp.EnvVariable{{Name: "TEXT", Value: "a€€"}},
		Cwd:             acp.Some(dir),
		OutputByteLimit: acp.Some[uint64](5),
	}))(t)
	exit := must.Get(one.Wait(ctx))(t)
	if want := (&acp.WaitForTerminalExitResponse{ExitCode: acp.Some[uint32](3), Signal: acp.Null[string]()}); !cmp.Equal(exit, want) {
		t.Errorf("exit: %s", cmp.Diff(want, exit))
	}
	output := must.Get(one.Output(ctx))(t)
	want := &acp.TerminalOutputResponse{
		Output:     "€",
		Truncated:  true,
		ExitStatus: acp.Some(acp.TerminalExitStatus{ExitCode: acp.Some[uint32](3), Signal: acp.Null[string]()}),
	}
	if !cmp.Equal(output, want) {
		t.Errorf("output: %s", cmp.Diff(want, output))
	}

	two, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{
		Command:         "sleep",
		Args:            []string{"1000"},
		Cwd:             acp.Null[string](),
		OutputByteLimit: acp.Some[uint64](1<<64 - 1),
	})
	if err != nil {
		t.Fatal(err)
	}
	if output, err := two.Output(ctx); err != nil || !cmp.Equal(output, &acp.TerminalOutputResponse{}) {
		t.Errorf("running: got %v, %v", output, err)
	}
	must.Do(t, two.Kill(ctx))
	exit, err = two.Wait(ctx)
	if want := (&acp.WaitForTerminalExitResponse{ExitCode: acp.Null[uint32](), Signal: acp.Some("SIGTERM")}); err != nil || !cmp.Equal(exit, want) {
		t.Errorf("killed: %s, %v", cmp.Diff(want, exit), err)
	}

	for _, terminal := range []*acp.TerminalHandle{one, two} {
		must.Do(t, terminal.Close(ctx))
		_, err := terminal.Output(ctx)
		wantError(t, "released", err, rpc.Error{
			Code:    rpc.ErrResourceNotFound,
			Message: `unknown terminal "` + string(terminal.ID()) + `"`,
			Data:    []byte(`{"terminalId":"` + string(terminal.ID()) + `"}`),
		})
	}
}

func TestTerminalErrors(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := serve(t, dir, nil, &local.TerminalsOptions{MaxTerminals: 1})
	for what, tt := range map[string]struct {
		req  acp.CreateTerminalRequest
		want rpc.Error
	}{
		"command line": {acp.CreateTerminalRequest{Command: "ls -l"},
			invalid("/command", `command: "ls -l": no such executable; arguments belong in args`)},
		"empty cwd": {acp.CreateTerminalRequest{Command: "true", Cwd: acp.Some("")}, early("/cwd", "not an absolute path")},
		"cwd outside": {acp.CreateTerminalRequest{Command: "true", Cwd: acp.Some("/")},
			invalid("/cwd", `cwd: chdir "/": outside the directories of the session`)},
		"missing cwd": {acp.CreateTerminalRequest{Command: "true", Cwd: acp.Some(dir + "/no")},
			invalid("/cwd", `cwd: chdir "`+dir+`/no": No such file or directory`)},
	} {
		_, err := s.CreateTerminal(ctx, &tt.req)
		wantError(t, what, err, tt.want)
	}
	first, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "true"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "true"})
	wantError(t, "too many", err, rpc.Error{
		Code:    rpc.ErrInternal,
		Message: "too many terminals: there are 1, release one first",
	})

	_, err = s.Conn().TerminalOutput(ctx, &acp.TerminalOutputRequest{SessionID: "s2", TerminalID: first.ID()})
	if !errors.Is(err, rpc.ErrResourceNotFound) {
		t.Errorf("of another session: got %v", err)
	}
}

// Two agents whose sessions have the same id reach neither each other's files nor each other's terminals.
func TestConnectionsAreApart(t *testing.T) {
	ctx := t.Context()
	roots, terminals := open(t, nil)
	var handlers acp.ClientHandlers
	local.NewFiles(roots, local.Trusted(), nil).Register(&handlers)
	terminals.Register(&handlers)
	mine, theirs := t.TempDir(), t.TempDir()
	secret := filepath.Join(theirs, "secret.txt")
	must.Do(t, os.WriteFile(secret, []byte("secret"), 0o666))
	client, agent := connect(t, handlers, mine)
	otherClient, other := connect(t, handlers, theirs)
	must.Do(t, errors.Join(roots.SetSession(client, mine), roots.SetSession(otherClient, theirs)))
	if res, err := other.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: secret}); err != nil || res.Content != "secret" {
		t.Errorf("the other's file, read by the other: %v, %v", res, err)
	}
	if res, err := agent.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: secret}); !errors.Is(err, rpc.ErrInvalidParams) {
		t.Errorf("the other's file: %v, %v", res, err)
	}
	terminal, err := other.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "sleep", Args: []string{"1000"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = agent.Conn().TerminalOutput(ctx, &acp.TerminalOutputRequest{SessionID: other.ID(), TerminalID: terminal.ID()})
	if !errors.Is(err, rpc.ErrResourceNotFound) {
		t.Errorf("the other's terminal: %v", err)
	}
	must.Do(t, terminals.CloseSession(client))
	roots.RemoveSession(client)
	if output, err := terminal.Output(ctx); err != nil || output.ExitStatus.Present() {
		t.Errorf("the other's terminal, after the end of mine: %v, %v", output, err)
	}
	if _, err := other.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: secret}); err != nil {
		t.Errorf("the other's file, after the end of mine: %v", err)
	}
}

// What belongs to a connection ends with it, and nothing is begun for one that is over.
func TestConnectionEnds(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	ends := map[string]func(*acp.ClientSession, *acp.AgentSession) error{
		"by the agent":  func(_ *acp.ClientSession, agent *acp.AgentSession) error { return agent.Conn().Close() },
		"by the client": func(client *acp.ClientSession, _ *acp.AgentSession) error { return client.Conn().Close() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			roots, terminals := open(t, nil)
			var handlers acp.ClientHandlers
			terminals.Register(&handlers)
			client, agent := connect(t, handlers, dir)
			_, stays := connect(t, handlers, dir)
			must.Do(t, roots.SetSession(client, dir))
			line := filepath.Join(dir, name)
			must.Do(t, syscall.Mkfifo(line, 0o666))
			must.Get(agent.CreateTerminal(ctx, &acp.CreateTerminalRequest{
				Command: "sh", Args: []string{"-c", `exec 3>"$0"; echo started >&3; sleep 1000 & sleep 1000`, line},
			}))(t)
			commands, err := os.Open(line)
			if err != nil {
				t.Fatal(err)
			}
			defer commands.Close()
			must.Get(io.ReadFull(commands, make([]byte, len("started\n"))))(t)
			must.Do(t, end(client, agent))
			// The end of the FIFO is the end of all that has it open.
			must.Get(io.Copy(io.Discard, commands))(t)
			must.Do(t, client.Conn().Wait())
			if err := roots.SetSession(client, dir); !errors.Is(err, local.ErrClosed) {
				t.Errorf("directories for a connection that is over: %v", err)
			}
			if _, err := terminals.CreateTerminal(ctx, client, &acp.CreateTerminalRequest{Command: "true"}); err == nil {
				t.Error("a terminal for a connection that is over")
			}
			// The directories of one connection are not those of another.
			_, err = stays.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "true"})
			if !errors.Is(err, rpc.ErrResourceNotFound) {
				t.Errorf("for a session without directories: %v", err)
			}
		})
	}
}

// The short form serves files and terminals in the directories given, to every session.
func TestServe(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	var handlers acp.ClientHandlers
	machine := must.Get(local.Serve(&handlers, local.Trusted(), dir))(t)
	_, agent := connect(t, handlers, dir)
	path := filepath.Join(dir, "a.txt")
	must.Get(agent.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: path, Content: "text"}))(t)
	terminal := must.Get(agent.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "cat", Args: []string{"a.txt"}}))(t)
	must.Get(terminal.Wait(ctx))(t)
	if res, err := terminal.Output(ctx); err != nil || res.Output != "text" {
		t.Errorf("got %v, %v", res, err)
	}
	must.Do(t, machine.Close())
	if _, err := agent.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: path}); err == nil {
		t.Error("served after Close")
	}
	if _, err := local.Serve(&handlers, local.Trusted(), path); err == nil {
		t.Error("a file was opened as a directory")
	}
}
