package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/acpgo/sdk/acp"
)

// peerV1 is an agent that speaks version 1.
type peerV1 struct {
	printer *printer
	conn    *acp.ClientConn
	session *acp.ClientSession
	playing atomic.Pointer[play]
	shown   outputs
}

func (v *peerV1) connect(ctx context.Context, transport acp.Transport) (err error) {
	v.conn, err = acp.Connect(ctx, transport, acp.ClientHandlers{
		RequestPermission: v.requestPermission, SessionUpdate: v.show,
	}, &acp.ClientOptions{Info: acp.Implementation{Name: "acp-dual-client", Version: "1.0.0"}})
	return err
}

func (v *peerV1) open(ctx context.Context, cwd string) (err error) {
	v.session, err = v.conn.NewSession(ctx, &acp.NewSessionRequest{Cwd: cwd})
	return err
}

func (v *peerV1) close(ctx context.Context) (err error) {
	if v.session != nil {
		if err = v.session.Close(ctx); errors.Is(err, acp.ErrUnsupported) {
			err = nil // the session ends with the connection
		}
	}
	return errors.Join(err, v.conn.Close())
}

func (v *peerV1) prompt(ctx context.Context, p play) (string, error) {
	v.playing.Store(&p)
	res, err := v.session.Prompt(ctx, acp.TextBlock(p.text)) // the handler prints the updates
	if err != nil {
		return "", err
	}
	return string(res.StopReason), nil
}

func (v *peerV1) requestPermission(_ context.Context, _ *acp.ClientSession, req *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
	var options []option
	for _, o := range req.Options {
		options = append(options, option{string(o.OptionID), string(o.Kind)})
	}
	chosen := v.playing.Load().choose(options)
	v.printer.permission(req.ToolCall.Title.Or("something"), chosen)
	if chosen == "" {
		return &acp.RequestPermissionResponse{Outcome: acp.PermissionCancelled()}, nil
	}
	return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected(acp.PermissionOptionID(chosen))}, nil
}

// show prints an update. If the turn is to be cancelled once the agent sends text, it cancels the turn.
func (v *peerV1) show(ctx context.Context, session *acp.ClientSession, n *acp.SessionNotification) error {
	if _, said := n.Update.Variant.(*acp.SessionUpdateAgentMessageChunk); said {
		if p := v.playing.Load(); p != nil && p.cancel {
			if err := session.Cancel(ctx); err != nil {
				return err
			}
		}
	}
	switch u := n.Update.Variant.(type) {
	case *acp.SessionUpdatePlan:
		var statuses []string
		for _, entry := range u.Entries {
			statuses = append(statuses, string(entry.Status))
		}
		v.printer.plan(statuses)
	case *acp.SessionUpdateAgentMessageChunk:
		text, _ := u.Content.Text()
		v.printer.piece(string(u.MessageID.Value()), "agent", text)
	case *acp.SessionUpdateToolCall:
		v.printer.line("tool: %s: %s", u.Title, u.Status)
	case *acp.SessionUpdateToolCallUpdate:
		v.showOutput(u)
		if status, ok := u.Status.Get(); ok && status != acp.ToolCallStatusInProgress {
			v.printer.line("tool: %s", status)
		}
	default: // not shown by this example
	}
	return nil
}

// showOutput prints the new part of a call's output.
func (v *peerV1) showOutput(u *acp.SessionUpdateToolCallUpdate) {
	var text strings.Builder
	for _, content := range u.Content.Value() {
		part, _ := content.Text()
		text.WriteString(part)
	}
	if text.Len() == 0 {
		return
	}
	if added := v.shown.added(string(u.ToolCallID), text.String()); added != "" {
		v.printer.piece(string(u.ToolCallID), "output", added)
	}
}
