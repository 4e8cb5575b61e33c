package main

import (
	"context"
	"errors"

	"github.com/acpgo/sdk/acp"
)

func (l *link) transport() acp.Transport {
	if l.command != nil {
		return acp.Command(l.command)
	}
	return acp.Stdio()
}

func serveACP(ctx context.Context, l *link) error {
	return acp.ServeAgent(ctx, l.transport(), acp.AgentHandlers{
		NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
			return &acp.NewSessionResponse{SessionID: acp.SessionID(newSessionID())}, nil
		},
		Prompt: func(ctx context.Context, session *acp.AgentSession, req *acp.PromptRequest) (*acp.PromptResponse, error) {
			text := req.Prompt[0].Text()
			if err := play(ctx, text, acpVoice{session}); err != nil {
				return nil, acp.Public(err)
			}
			return &acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
		},
	}, nil)
}

type acpVoice struct{ session *acp.AgentSession }

func (v acpVoice) Chunk(text string) any { return acp.AgentMessageText(text) }

func (v acpVoice) Send(ctx context.Context, chunk any) error {
	return v.session.Update(ctx, chunk.(acp.SessionUpdate))
}

func (v acpVoice) Read(ctx context.Context) (string, error) {
	res, err := v.session.ReadTextFile(ctx, &acp.ReadTextFileRequest{Path: filePath})
	if err != nil {
		return "", err
	}
	return res.Content, nil
}

func (v acpVoice) Ask(ctx context.Context) (string, error) {
	outcome, err := v.session.RequestPermission(ctx, acp.ToolCallRef("call_1"),
		acp.AllowOnce(allowed, "Allow"), acp.RejectOnce("reject", "Reject"))
	option, _ := outcome.Selected()
	return string(option), err
}

type acpClient struct{ agent *acp.ClientConn }

func connectACP(ctx context.Context, l *link, c *consumer) (client, error) {
	agent, err := acp.Connect(ctx, l.transport(), acp.ClientHandlers{
		SessionUpdate: func(_ context.Context, _ *acp.ClientSession, n *acp.SessionNotification) error {
			chunk, ok := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk)
			if !ok {
				return errors.New("not a chunk")
			}
			text := chunk.Content.Text()
			c.update(string(n.SessionID), text)
			return nil
		},
		ReadTextFile: func(context.Context, *acp.ClientSession, *acp.ReadTextFileRequest) (*acp.ReadTextFileResponse, error) {
			return &acp.ReadTextFileResponse{Content: fileContent}, nil
		},
		RequestPermission: func(_ context.Context, _ *acp.ClientSession,
			req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(req.Options[0].OptionID)}, nil
		},
	}, nil)
	if err != nil {
		return nil, err
	}
	return &acpClient{agent}, nil
}

func (c *acpClient) NewSession(ctx context.Context) (string, error) {
	session, err := c.agent.NewSession(ctx, &acp.NewSessionRequest{Cwd: "/"})
	if err != nil {
		return "", err
	}
	return string(session.ID()), nil
}

func (c *acpClient) Prompt(ctx context.Context, session, text string) error {
	_, err := c.agent.Session(acp.SessionID(session)).Prompt(ctx, acp.TextBlock(text))
	return err
}

func (c *acpClient) Close() error { return c.agent.Close() }
