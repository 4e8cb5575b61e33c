package local

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
)

// An Approval decides about each write and each command before it happens. A nil *Approval refuses them all.
type Approval struct {
	// nil: trusted
	ask func(context.Context, Session, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error)
	// has room for maxAsked questions
	asked chan struct{}
}

// maxAsked is how many questions of one Approval may wait for answers; further requests wait. It bounds the memory for
// old texts, each of at most maxShown bytes.
const (
	maxAsked = 16
	maxShown = 256 << 10
)

// Trusted approves everything without asking. It is for agents that run on this machine as the user of the client, such
// as its child processes, because those can do the same without the client.
func Trusted() *Approval { return &Approval{} }

// Asking asks for each write and each command. It is for all other agents: without it, they would get the rights of the
// client's user. The question has the form of session/request_permission, so that ask can be the client's handler of
// that, with the same rules and dialogs. It is a tool call of the kind edit, with the path and the change, or of the
// kind execute, whose raw input has the members command, args, cwd and env. Its options are allow_once and reject_once;
// whatever does not select the former rejects, and the agent's request fails with [ErrRejected]. S is the type of the
// sessions that the handlers get. Calls are concurrent; their contexts end with the agent's request.
func Asking[S Session](ask func(context.Context, S, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse,
	error)) *Approval {
	return &Approval{asked: make(chan struct{}, maxAsked), ask: func(
		ctx context.Context, session Session, req *acp.RequestPermissionRequest,
	) (*acp.RequestPermissionResponse, error) {
		of, ok := session.(S)
		if !ok {
			return nil, fmt.Errorf("local: asking about a session of the type %T", session)
		}
		return ask(ctx, of, req)
	}}
}

// The options of a question.
const (
	optionAllow  acp.PermissionOptionID = "allow"
	optionReject acp.PermissionOptionID = "reject"
)

// decide asks about a tool call, and returns an error that matches ErrRejected unless it is allowed.
func (a *Approval) decide(ctx context.Context, session Session, describe func() (acp.ToolCallUpdate, error)) error {
	if a.ask == nil {
		return nil
	}
	select {
	case a.asked <- struct{}{}:
		defer func() { <-a.asked }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	call, err := describe()
	if err != nil {
		return err
	}
	call.ToolCallID, call.Status = acp.ToolCallID("local_"+rand.Text()), acp.Some(acp.ToolCallStatusPending)
	res, err := a.ask(ctx, session,
		&acp.RequestPermissionRequest{SessionID: session.ID(), ToolCall: call, Options: []acp.PermissionOption{
			{OptionID: optionAllow, Name: "Allow once", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionID: optionReject, Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce},
		}})
	if ctx.Err() != nil { // the agent no longer waits
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	if res != nil {
		if chosen, ok := res.Outcome.Selected(); ok && chosen == optionAllow {
			return nil
		}
	}
	return ErrRejected
}

// approveWrite asks about a write.
func (a *Approval) approveWrite(ctx context.Context, session Session, at place, content string) error {
	return a.decide(ctx, session, func() (acp.ToolCallUpdate, error) {
		old, verb := acp.Null[string](), "Create"
		switch text, err := at.shown(); {
		case err == nil:
			old, verb = acp.Some(text), "Change"
		case !errors.Is(err, fs.ErrNotExist):
			verb = "Replace"
		}
		paths := []acp.ToolCallLocation{{Path: at.path}}
		if real := at.leads(); real != "" {
			paths = append(paths, acp.ToolCallLocation{Path: real})
		}
		return acp.ToolCallUpdate{
			Title: acp.Some(verb + " " + at.path), Kind: acp.Some(acp.ToolKindEdit),
			Locations: acp.Some(paths),
			Content: acp.Some([]acp.ToolCallContent{{Variant: &acp.ToolCallContentDiff{Path: at.path, OldText: old,
				NewText: content}}}),
		}, nil
	})
}

// maxLinks is how many links to nothing are followed.
const maxLinks = 40

// leads returns where links lead, also to a file that does not exist yet; "" if there are none on the way, or on error,
// which the write will have too.
func (p place) leads() string {
	name := filepath.Join(p.root.names[len(p.root.names)-1], p.rel)
	at, rest := name, ""
	for range maxLinks {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			if real = filepath.Join(real, rest); real != name {
				return real
			}
			return ""
		}
		if to, err := os.Readlink(at); err == nil {
			dir, err := filepath.EvalSymlinks(filepath.Dir(at))
			if err != nil {
				return ""
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(dir, to)
			}
			at = to
			continue
		}
		at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest)
	}
	return ""
}

// shown returns the text of a file for a question.
func (p place) shown() (string, error) {
	file, err := p.open(os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxShown+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxShown:
		return "", ErrTooLarge
	case !utf8.Valid(text):
		return "", ErrNotText
	}
	return string(text), nil
}

// approveCommand asks about a command, which starts in dir unless it says otherwise.
func (a *Approval) approveCommand(ctx context.Context, session Session, c command, dir string) error {
	return a.decide(ctx, session, func() (acp.ToolCallUpdate, error) {
		env := map[string]string{}
		for _, v := range c.env {
			env[v.Name] = v.Value
		}
		input, err := json.Marshal(struct {
			Command string            `json:"command"`
			Args    []string          `json:"args,omitempty"`
			Cwd     string            `json:"cwd"`
			Env     map[string]string `json:"env,omitempty"`
		}{c.name, c.args, c.cwd.Or(dir), env})
		return acp.ToolCallUpdate{
			Title:    acp.Some("Run " + strings.Join(append([]string{c.name}, c.args...), " ")),
			Kind:     acp.Some(acp.ToolKindExecute),
			RawInput: input,
		}, err
	})
}
