package main

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/acpgo/sdk/acp/acpv2"
)

// peerV2 is an agent that speaks version 2.
type peerV2 struct {
	printer *printer
	conn    *v2draft.ClientConn
	session *v2draft.ClientSession
	playing atomic.Pointer[play]
}

func (v *peerV2) connect(ctx context.Context, transport v2draft.Transport) (err error) {
	v.conn, err = v2draft.Connect(ctx, transport, v2draft.ClientHandlers{
		RequestPermission: v.requestPermission, SessionUpdate: v.show,
	}, &v2draft.ClientOptions{Info: v2draft.Implementation{Name: "acp-dual-client", Version: "1.0.0"}})
	return err
}

func (v *peerV2) open(ctx context.Context, cwd string) (err error) {
	v.session, err = v.conn.NewSession(ctx, &v2draft.NewSessionRequest{Cwd: v2draft.AbsolutePath(cwd)})
	return err
}

func (v *peerV2) close(ctx context.Context) (err error) {
	if v.session != nil {
		err = v.session.Close(ctx)
	}
	return errors.Join(err, v.conn.Close())
}

func (v *peerV2) prompt(ctx context.Context, p play) (string, error) {
	v.playing.Store(&p)
	res, err := v.session.Prompt(ctx, v2draft.TextBlock(p.text)) // the handler prints the updates
	if err != nil {
		return "", err
	}
	return res.Idle.StopReason(), nil
}

func (v *peerV2) requestPermission(_ context.Context, _ *v2draft.ClientSession, req *v2draft.RequestPermissionRequest) (*v2draft.RequestPermissionResponse, error) {
	var options []option
	for _, o := range req.Options {
		options = append(options, option{string(o.OptionID), string(o.Kind)})
	}
	chosen := v.playing.Load().choose(options)
	v.printer.permission(req.Title, chosen)
	if chosen == "" {
		return &v2draft.RequestPermissionResponse{Outcome: v2draft.PermissionCancelled()}, nil
	}
	return &v2draft.RequestPermissionResponse{Outcome: v2draft.PermissionSelected(v2draft.PermissionOptionID(chosen))}, nil
}

// show prints an update. If the turn is to be cancelled once the agent sends text, it cancels the turn.
func (v *peerV2) show(ctx context.Context, session *v2draft.ClientSession, n *v2draft.UpdateSessionNotification) error {
	if _, said := n.Update.Variant.(*v2draft.SessionUpdateAgentMessageChunk); said {
		if p := v.playing.Load(); p != nil && p.cancel {
			if err := session.Cancel(ctx); err != nil {
				return err
			}
		}
	}
	switch u := n.Update.Variant.(type) {
	case *v2draft.SessionUpdateUserMessage:
		var text strings.Builder
		for _, block := range u.Content.Value() {
			part, _ := block.Text()
			text.WriteString(part)
		}
		v.printer.line("user: %s", text.String())
	case *v2draft.SessionUpdateStateUpdate:
		switch u.Variant.(type) {
		case *v2draft.StateUpdateRunning:
			v.printer.line("state: running")
		case *v2draft.StateUpdateRequiresAction:
			v.printer.line("state: requires action")
		default: // shown by what follows
		}
	case *v2draft.SessionUpdatePlanUpdate:
		if plan, ok := u.Plan.Variant.(*v2draft.PlanUpdateContentItems); ok {
			var statuses []string
			for _, entry := range plan.Entries {
				statuses = append(statuses, string(entry.Status))
			}
			v.printer.plan(statuses)
		}
	case *v2draft.SessionUpdateAgentMessageChunk:
		text, _ := u.Content.Text()
		v.printer.piece(string(u.MessageID), "agent", text)
	case *v2draft.SessionUpdateToolCallUpdate:
		if title, ok := u.Title.Get(); ok {
			v.printer.line("tool: %s: %s", title, u.Status.Or(v2draft.ToolCallStatusPending))
		} else if status, ok := u.Status.Get(); ok && status != v2draft.ToolCallStatusInProgress {
			v.printer.line("tool: %s", status)
		}
	case *v2draft.SessionUpdateTerminalUpdate:
		v.showTerminal(u)
	case *v2draft.SessionUpdateTerminalOutputChunk:
		if text, err := base64.StdEncoding.DecodeString(u.Data); err == nil {
			v.printer.piece("terminal "+string(u.TerminalID), "output", string(text))
		}
	default: // not shown by this example
	}
	return nil
}

// showTerminal prints an update about a terminal.
func (v *peerV2) showTerminal(u *v2draft.SessionUpdateTerminalUpdate) {
	if command, ok := u.Command.Get(); ok {
		v.printer.line("terminal: %s", command)
	}
	if status, ok := u.ExitStatus.Get(); ok {
		v.printer.line("terminal: exit status %d", status.ExitCode.Value())
	}
}
