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
	conn    *acpv2.ClientConn
	session *acpv2.ClientSession
	playing atomic.Pointer[play]
}

func (v *peerV2) connect(ctx context.Context, transport acpv2.Transport) (err error) {
	v.conn, err = acpv2.Connect(ctx, transport, acpv2.ClientHandlers{
		RequestPermission: v.requestPermission, SessionUpdate: v.show,
	}, &acpv2.ClientOptions{Info: acpv2.Implementation{Name: "acp-dual-client", Version: "1.0.0"}})
	return err
}

func (v *peerV2) open(ctx context.Context, cwd string) (err error) {
	v.session, err = v.conn.NewSession(ctx, &acpv2.NewSessionRequest{Cwd: acpv2.AbsolutePath(cwd)})
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
	res, err := v.session.Prompt(ctx, acpv2.TextBlock(p.text)) // the handler prints the updates
	if err != nil {
		return "", err
	}
	return res.Idle.StopReason(), nil
}

func (v *peerV2) requestPermission(_ context.Context, _ *acpv2.ClientSession, req *acpv2.RequestPermissionRequest) (*acpv2.RequestPermissionResponse, error) {
	var options []option
	for _, o := range req.Options {
		options = append(options, option{string(o.OptionID), string(o.Kind)})
	}
	chosen := v.playing.Load().choose(options)
	v.printer.permission(req.Title, chosen)
	if chosen == "" {
		return &acpv2.RequestPermissionResponse{Outcome: acpv2.PermissionCancelled()}, nil
	}
	return &acpv2.RequestPermissionResponse{Outcome: acpv2.PermissionSelected(acpv2.PermissionOptionID(chosen))}, nil
}

// show prints an update. If the turn is to be cancelled once the agent sends text, it cancels the turn.
func (v *peerV2) show(ctx context.Context, session *acpv2.ClientSession, n *acpv2.UpdateSessionNotification) error {
	if _, said := n.Update.Variant.(*acpv2.SessionUpdateAgentMessageChunk); said {
		if p := v.playing.Load(); p != nil && p.cancel {
			if err := session.Cancel(ctx); err != nil {
				return err
			}
		}
	}
	switch u := n.Update.Variant.(type) {
	case *acpv2.SessionUpdateUserMessage:
		var text strings.Builder
		for _, block := range u.Content.Value() {
			part, _ := block.Text()
			text.WriteString(part)
		}
		v.printer.line("user: %s", text.String())
	case *acpv2.SessionUpdateStateUpdate:
		switch u.Variant.(type) {
		case *acpv2.StateUpdateRunning:
			v.printer.line("state: running")
		case *acpv2.StateUpdateRequiresAction:
			v.printer.line("state: requires action")
		default: // shown by what follows
		}
	case *acpv2.SessionUpdatePlanUpdate:
		if plan, ok := u.Plan.Variant.(*acpv2.PlanUpdateContentItems); ok {
			var statuses []string
			for _, entry := range plan.Entries {
				statuses = append(statuses, string(entry.Status))
			}
			v.printer.plan(statuses)
		}
	case *acpv2.SessionUpdateAgentMessageChunk:
		text, _ := u.Content.Text()
		v.printer.piece(string(u.MessageID), "agent", text)
	case *acpv2.SessionUpdateToolCallUpdate:
		if title, ok := u.Title.Get(); ok {
			v.printer.line("tool: %s: %s", title, u.Status.Or(acpv2.ToolCallStatusPending))
		} else if status, ok := u.Status.Get(); ok && status != acpv2.ToolCallStatusInProgress {
			v.printer.line("tool: %s", status)
		}
	case *acpv2.SessionUpdateTerminalUpdate:
		v.showTerminal(u)
	case *acpv2.SessionUpdateTerminalOutputChunk:
		if text, err := base64.StdEncoding.DecodeString(u.Data); err == nil {
			v.printer.piece("terminal "+string(u.TerminalID), "output", string(text))
		}
	default: // not shown by this example
	}
	return nil
}

// showTerminal prints an update about a terminal.
func (v *peerV2) showTerminal(u *acpv2.SessionUpdateTerminalUpdate) {
	if command, ok := u.Command.Get(); ok {
		v.printer.line("terminal: %s", command)
	}
	if status, ok := u.ExitStatus.Get(); ok {
		v.printer.line("terminal: exit status %d", status.ExitCode.Value())
	}
}
