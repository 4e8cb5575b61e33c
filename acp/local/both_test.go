//go:build unix

package local_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/acp/unstable"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

// An asker prompts the agent of a session.
type asker func(ctx context.Context, prompt ...acp.ContentBlock) error

func TestBothPackages(t *testing.T) {
	tier.Need(t, tier.Normal)
	roots, terminals := open(t, nil)
	files := local.NewFiles(roots, nil)
	type client struct {
		session local.Session
		ask     asker
		file    string
	}
	clients := map[string]client{}
	for name, connect := range map[string]func(*testing.T, *local.Files, *local.Terminals) (local.Session, asker){
		"acp": connectStable, "acp/unstable": connectUnstable,
	} {
		dir := t.TempDir()
		c := client{file: filepath.Join(dir, "a.txt")}
		if err := os.WriteFile(c.file, []byte("of "+name), 0o666); err != nil {
			t.Fatal(err)
		}
		c.session, c.ask = connect(t, files, terminals)
		if err := roots.SetSession(c.session, dir); err != nil {
			t.Fatal(err)
		}
		clients[name] = c
	}
	for name, c := range clients {
		for of, other := range clients {
			err := c.ask(t.Context(), acp.TextBlock("Show me"), unstable.ResourceLinkBlock("a.txt", other.file))
			if name == of && err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if name != of && !errors.Is(err, acp.ErrInvalidParams) {
				t.Errorf("%s reads the file of %s: %v", name, of, err)
			}
		}
	}
}

// show is the turn of an agent of either package: it reads the file that the prompt links to, and has a command show it.
func show(ctx context.Context, agent interface {
	RPC() *rpc.Conn
	ReadTextFile(context.Context, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error)
	CreateTerminal(context.Context, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error)
	WaitForTerminalExit(context.Context, *acp.WaitForTerminalExitRequest) (*acp.WaitForTerminalExitResponse, error)
	TerminalOutput(context.Context, *acp.TerminalOutputRequest) (*acp.TerminalOutputResponse, error)
}, req *unstable.PromptRequest) error {
	link, ok := req.Prompt[1].Variant.(*acp.ContentBlockResourceLink)
	if !ok {
		return errors.New("no link")
	}
	read, err := agent.ReadTextFile(ctx, &unstable.ReadTextFileRequest{SessionID: req.SessionID, Path: link.URI})
	if err != nil {
		return err
	}
	terminal, err := agent.CreateTerminal(ctx, &acp.CreateTerminalRequest{
		SessionID: req.SessionID, Command: "cat", Args: []string{link.URI}, Env: []unstable.EnvVariable{{Name: "LANG", Value: "C"}},
	})
	if err != nil {
		return err
	}
	if _, err := agent.WaitForTerminalExit(ctx, &acp.WaitForTerminalExitRequest{SessionID: req.SessionID, TerminalID: terminal.TerminalID}); err != nil {
		return err
	}
	shown, err := agent.TerminalOutput(ctx, &acp.TerminalOutputRequest{SessionID: req.SessionID, TerminalID: terminal.TerminalID})
	if err == nil && shown.Output != read.Content {
		err = errors.New("read " + read.Content + ", shown " + shown.Output)
	}
	return err
}

// refusal passes on to the client what it has answered.
func refusal(err error) error {
	if e, ok := errors.AsType[*acp.Error](err); ok {
		return e
	}
	return err
}

func connectStable(t *testing.T, files *local.Files, terminals *local.Terminals) (local.Session, asker) {
	t.Helper()
	atClient, atAgent := acp.Pipe()
	agent, err := acp.StartAgent(t.Context(), atAgent, acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: "s1"}, nil
		},
		Prompt: func(ctx context.Context, s *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			return &acp.PromptResponse{StopReason: unstable.StopReasonEndTurn}, refusal(show(ctx, s.Conn(), req))
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var handlers acp.ClientHandlers
	files.Register(&handlers)
	terminals.Register(&handlers)
	client, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, atClient, nil), handlers, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		agent.Close()
	})
	session, err := client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return session, func(ctx context.Context, prompt ...acp.ContentBlock) error {
		_, err := session.Prompt(ctx, prompt...)
		return err
	}
}

func connectUnstable(t *testing.T, files *local.Files, terminals *local.Terminals) (local.Session, asker) {
	t.Helper()
	atClient, atAgent := unstable.Pipe()
	agent, err := unstable.StartAgent(t.Context(), atAgent, unstable.AgentHandlers{
		NewSession: func(context.Context, *unstable.AgentConn, *unstable.NewSessionRequest) (*unstable.NewSessionResponse, error) {
			return &unstable.NewSessionResponse{SessionID: "s1"}, nil
		},
		Prompt: func(ctx context.Context, s *unstable.AgentSession, req *unstable.PromptRequest) (*unstable.PromptResponse, error) {
			return &unstable.PromptResponse{StopReason: acp.StopReasonEndTurn}, refusal(show(ctx, s.Conn(), req))
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var h unstable.ClientHandlers
	local.RegisterFiles(files, &h.ReadTextFile, &h.WriteTextFile)
	local.RegisterTerminals(terminals, &h.CreateTerminal, &h.TerminalOutput, &h.WaitForTerminalExit, &h.KillTerminal, &h.ReleaseTerminal)
	client, err := unstable.Connect(t.Context(),
		conformance.Tap(t, conformance.Client, atClient, &conformance.TapOptions{Schema: conformance.V1Unstable()}), h, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		agent.Close()
	})
	session, err := client.NewSession(t.Context(), &unstable.NewSessionRequest{Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return session, func(ctx context.Context, prompt ...acp.ContentBlock) error {
		_, err := session.Prompt(ctx, prompt...)
		return err
	}
}
