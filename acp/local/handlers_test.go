//go:build unix

package local_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
)

// serve connects an agent to a client that has files and terminals in dir, with every message
// validated, and returns the agent's view of a session.
func serve(t *testing.T, dir string, files *local.FilesOptions, terminals *local.TerminalsOptions) *acp.AgentSession {
	t.Helper()
	roots, err := local.OpenRoots()
	if err != nil {
		t.Fatal(err)
	}
	commands := local.NewTerminals(roots, terminals)
	var handlers acp.ClientHandlers
	local.NewFiles(roots, files).Register(&handlers)
	commands.Register(&handlers)

	atClient, atAgent := acp.Pipe()
	agent, err := acp.StartAgent(t.Context(), atAgent, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s1"}, nil
		},
		Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	client, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, atClient, nil), handlers, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		agent.Close()
		if err := errors.Join(commands.Close(), roots.Close()); err != nil {
			t.Error(err)
		}
	})
	session, err := client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir, MCPServers: []acp.MCPServer{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := roots.SetSession(session.ID(), dir); err != nil {
		t.Fatal(err)
	}
	return agent.Session(session.ID())
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

func TestFilesOverTheWire(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := serve(t, dir, nil, nil)
	path := filepath.Join(dir, "new dir", "a.txt")

	const text = "one\r\ntwo 😀\nthree"
	if _, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: path, Content: text}); err != nil {
		t.Fatal(err)
	}
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
	if err := os.WriteFile(filepath.Join(dir, "latin1"), []byte("\xe9"), 0o666); err != nil {
		t.Fatal(err)
	}
	s := serve(t, dir, &local.FilesOptions{MaxSize: 5}, nil)
	at := func(name string) string { return filepath.Join(dir, name) }
	invalid := func(pointer, reason string) rpc.Error {
		return rpc.Error{
			Code:    rpc.ErrInvalidParams,
			Message: reason,
			Data:    []byte(`{"pointer":"` + pointer + `","reason":"` + reason + `"}`),
		}
	}
	// The connection refuses these before the handler.
	early := func(pointer, reason string) rpc.Error {
		e := invalid(pointer, reason)
		e.Message = "Invalid params: " + pointer + ": " + reason
		return e
	}
	for what, tt := range map[string]struct {
		path string
		line acp.Opt[uint32]
		want rpc.Error
	}{
		"missing": {path: at("no ü"), want: rpc.Error{
			Code:    rpc.ErrResourceNotFound,
			Message: "read " + at("no ü") + ": no such file or directory",
			Data:    []byte(`{"uri":"file://` + dir + `/no%20%C3%BC"}`),
		}},
		"below a file": {path: at("latin1/x"), want: rpc.Error{
			Code:    rpc.ErrResourceNotFound,
			Message: "read " + at("latin1/x") + ": not a directory",
			Data:    []byte(`{"uri":"file://` + dir + `/latin1/x"}`),
		}},
		"outside":   {path: "/etc/passwd", want: invalid("/path", "read /etc/passwd: outside the directories of the session")},
		"relative":  {path: "a.txt", want: early("/path", "not an absolute path")},
		"directory": {path: dir, want: invalid("/path", "read "+dir+": not a regular file")},
		"not text":  {path: at("latin1"), want: invalid("/path", "read "+at("latin1")+": not UTF-8 text")},
		"line 0":    {path: at("latin1"), line: acp.Some[uint32](0), want: early("/line", "lines count from 1")},
	} {
		_, err := s.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: tt.path, Line: tt.line})
		wantError(t, what, err, tt.want)
	}
	_, err := s.WriteTextFile(ctx, &acp.WriteTextFileRequest{Path: at("long"), Content: "123456"})
	wantError(t, "too large", err, invalid("/path", "write "+at("long")+": too large"))

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
	s := serve(t, dir, &local.FilesOptions{ReadOnly: true}, nil)
	req := &acp.WriteTextFileRequest{SessionID: s.ID(), Path: filepath.Join(dir, "a.txt"), Content: "x"}
	if _, err := s.WriteTextFile(t.Context(), req); !errors.Is(err, acp.ErrUnsupported) {
		t.Errorf("over the wire: got %v, want %v", err, acp.ErrUnsupported)
	}
	roots, err := local.OpenRoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	files := local.NewFiles(roots, &local.FilesOptions{ReadOnly: true})
	if _, err := files.WriteTextFile(t.Context(), nil, req); !errors.Is(err, rpc.ErrMethodNotFound) || !errors.Is(err, local.ErrReadOnly) {
		t.Errorf("called: got %v", err)
	}
}

// Tools that call a handler see the cause of a failure, too.
func TestErrorsMatchTheirCause(t *testing.T) {
	dir := t.TempDir()
	roots, err := local.OpenRoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	files := local.NewFiles(roots, nil)
	for path, want := range map[string]error{filepath.Join(dir, "a.txt"): fs.ErrNotExist, "/etc/passwd": local.ErrOutside} {
		if _, err := files.ReadTextFile(t.Context(), nil, &acp.ReadTextFileRequest{Path: path}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
}

func TestTerminalOverTheWire(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := serve(t, dir, nil, nil)
	one, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{
		Command:         "sh",
		Args:            []string{"-c", `printf '%s' "$TEXT"; exit 3`},
		Env:             []acp.EnvVariable{{Name: "TEXT", Value: "a€€"}},
		Cwd:             acp.Some(dir),
		OutputByteLimit: acp.Some[uint64](5),
	})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := one.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&acp.WaitForTerminalExitResponse{ExitCode: acp.Some[uint32](3), Signal: acp.Null[string]()}); !cmp.Equal(exit, want) {
		t.Errorf("exit: %s", cmp.Diff(want, exit))
	}
	output, err := one.Output(ctx)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := two.Kill(ctx); err != nil {
		t.Error(err)
	}
	exit, err = two.Wait(ctx)
	if want := (&acp.WaitForTerminalExitResponse{ExitCode: acp.Null[uint32](), Signal: acp.Some("SIGTERM")}); err != nil || !cmp.Equal(exit, want) {
		t.Errorf("killed: %s, %v", cmp.Diff(want, exit), err)
	}

	for _, terminal := range []*acp.TerminalHandle{one, two} {
		if err := terminal.Close(ctx); err != nil {
			t.Error(err)
		}
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
	first, err := s.CreateTerminal(ctx, &acp.CreateTerminalRequest{Command: "true"})
	if err != nil {
		t.Fatal(err)
	}
	invalid := func(pointer, message, reason string) rpc.Error {
		return rpc.Error{
			Code:    rpc.ErrInvalidParams,
			Message: message,
			Data:    []byte(`{"pointer":"` + pointer + `","reason":"` + reason + `"}`),
		}
	}
	for what, tt := range map[string]struct {
		req  acp.CreateTerminalRequest
		want rpc.Error
	}{
		"too many": {acp.CreateTerminalRequest{Command: "true"}, rpc.Error{
			Code:    rpc.ErrInternal,
			Message: "too many terminals: there are 1, release one first",
		}},
		"command line": {acp.CreateTerminalRequest{Command: "ls -l"}, invalid("/command",
			`command: "ls -l": no such executable; arguments belong in args`,
			`command: \"ls -l\": no such executable; arguments belong in args`)},
		"empty cwd": {acp.CreateTerminalRequest{Command: "true", Cwd: acp.Some("")}, invalid("/cwd",
			"Invalid params: /cwd: not an absolute path", "not an absolute path")},
		"cwd outside": {acp.CreateTerminalRequest{Command: "true", Cwd: acp.Some("/")}, invalid("/cwd",
			"cwd: chdir /: outside the directories of the session", "cwd: chdir /: outside the directories of the session")},
		"missing cwd": {acp.CreateTerminalRequest{Command: "true", Cwd: acp.Some(dir + "/no")}, invalid("/cwd",
			"cwd: chdir "+dir+"/no: no such file or directory", "cwd: chdir "+dir+"/no: no such file or directory")},
	} {
		_, err := s.CreateTerminal(ctx, &tt.req)
		wantError(t, what, err, tt.want)
	}

	_, err = s.Conn().TerminalOutput(ctx, &acp.TerminalOutputRequest{SessionID: "s2", TerminalID: first.ID()})
	if !errors.Is(err, rpc.ErrResourceNotFound) {
		t.Errorf("of another session: got %v", err)
	}
}
