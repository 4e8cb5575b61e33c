package main

import (
	"context"
	"errors"
	"log/slog"

	coder "github.com/coder/acp-go-sdk"
)

// coderAgent embeds the interface for the methods that are never called.
type coderAgent struct {
	coder.Agent
	conn *coder.AgentSideConnection
}

func serveCoder(_ context.Context, l *link) error {
	a := &coderAgent{}
	a.conn = coder.NewAgentSideConnection(a, l.w, l.r)
	a.conn.SetLogger(slog.New(slog.DiscardHandler))
	<-a.conn.Done()
	return nil
}

func (*coderAgent) Initialize(context.Context, coder.InitializeRequest) (coder.InitializeResponse, error) {
	return coder.InitializeResponse{ProtocolVersion: coder.ProtocolVersionNumber}, nil
}

func (*coderAgent) NewSession(context.Context, coder.NewSessionRequest) (coder.NewSessionResponse, error) {
	return coder.NewSessionResponse{SessionId: coder.SessionId(newSessionID())}, nil
}

func (a *coderAgent) Prompt(ctx context.Context, req coder.PromptRequest) (coder.PromptResponse, error) {
	if err := play(ctx, req.Prompt[0].Text.Text, coderVoice{a.conn, req.SessionId}); err != nil {
		return coder.PromptResponse{}, err
	}
	return coder.PromptResponse{StopReason: coder.StopReasonEndTurn}, nil
}

type coderVoice struct {
	conn    *coder.AgentSideConnection
	session coder.SessionId
}

func (v coderVoice) Chunk(text string) any { return coder.UpdateAgentMessageText(text) }

func (v coderVoice) Send(ctx context.Context, chunk any) error {
	return v.conn.SessionUpdate(ctx, coder.SessionNotification{SessionId: v.session, Update: chunk.(coder.SessionUpdate)})
}

func (v coderVoice) Read(ctx context.Context) (string, error) {
	res, err := v.conn.ReadTextFile(ctx, coder.ReadTextFileRequest{SessionId: v.session, Path: filePath})
	return res.Content, err
}

func (v coderVoice) Ask(ctx context.Context) (string, error) {
	res, err := v.conn.RequestPermission(ctx, coder.RequestPermissionRequest{
		SessionId: v.session,
		ToolCall:  coder.ToolCallUpdate{ToolCallId: "call_1"},
		Options: []coder.PermissionOption{
			{OptionId: allowed, Name: "Allow", Kind: coder.PermissionOptionKindAllowOnce},
			{OptionId: "reject", Name: "Reject", Kind: coder.PermissionOptionKindRejectOnce},
		},
	})
	if err != nil || res.Outcome.Selected == nil {
		return "", err
	}
	return string(res.Outcome.Selected.OptionId), nil
}

// coderClient embeds the interface for the methods that are never called.
type coderClient struct {
	coder.Client
	consumer *consumer
	conn     *coder.ClientSideConnection
	link     *link
}

func connectCoder(ctx context.Context, l *link, consumer *consumer) (client, error) {
	if err := l.start(); err != nil {
		return nil, err
	}
	c := &coderClient{consumer: consumer, link: l}
	c.conn = coder.NewClientSideConnection(c, l.w, l.r)
	c.conn.SetLogger(slog.New(slog.DiscardHandler))
	_, err := c.conn.Initialize(ctx, coder.InitializeRequest{
		ProtocolVersion:    coder.ProtocolVersionNumber,
		ClientCapabilities: coder.ClientCapabilities{Fs: coder.FileSystemCapabilities{ReadTextFile: true}},
	})
	return c, err
}

func (c *coderClient) SessionUpdate(_ context.Context, n coder.SessionNotification) error {
	if n.Update.AgentMessageChunk == nil || n.Update.AgentMessageChunk.Content.Text == nil {
		return errors.New("not a chunk")
	}
	c.consumer.update(string(n.SessionId), n.Update.AgentMessageChunk.Content.Text.Text)
	return nil
}

func (*coderClient) ReadTextFile(context.Context, coder.ReadTextFileRequest) (coder.ReadTextFileResponse, error) {
	return coder.ReadTextFileResponse{Content: fileContent}, nil
}

func (*coderClient) RequestPermission(_ context.Context,
	req coder.RequestPermissionRequest) (coder.RequestPermissionResponse, error) {
	return coder.RequestPermissionResponse{Outcome: coder.NewRequestPermissionOutcomeSelected(req.Options[0].OptionId)},
		nil
}

func (c *coderClient) NewSession(ctx context.Context) (string, error) {
	res, err := c.conn.NewSession(ctx, coder.NewSessionRequest{Cwd: "/", McpServers: []coder.McpServer{}})
	return string(res.SessionId), err
}

func (c *coderClient) Prompt(ctx context.Context, session, text string) error {
	_, err := c.conn.Prompt(ctx, coder.PromptRequest{
		SessionId: coder.SessionId(session), Prompt: []coder.ContentBlock{coder.TextBlock(text)},
	})
	return err
}

func (c *coderClient) Close() error { return c.link.Close() }
