// This file has the commands that the user can type in addition to prompts: lines that begin with a colon. The slash is
// for the agent's commands.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/acp"
)

// command is a command that the user can type.
type command struct {
	name, args, about string
	run               func(ctx context.Context, t *talk, args []string) error
}

// commands returns all commands.
func commands() []command {
	return []command{
		{"sessions", "", "list the sessions of this directory", listSessions},
		{"new", "", "begin another session",
			func(ctx context.Context, t *talk, _ []string) error { return t.newSession(ctx) }},
		{"load", "[ID]", "open a session, with what was said in it", loadSession},
		{"resume", "[ID]", "open a session, without that", resumeSession},
		{"close", "", "close the session", closeSession},
		{"delete", "[ID]", "delete a session", deleteSession},
		{"mode", "[MODE]", "show the modes, or switch", chooseMode},
		{"option", "[OPTION VALUE]", "show the options, or set one", setOption},
		{"attach", "FILE", "send a link to a file with the next prompt", attach},
		{"logout", "", "log out", logOut},
		{"help", "", "show this", help},
	}
}

// Errors in commands.
var (
	errUsage     = errors.New("no such command, or not with these words: see :help")
	errNoSession = errors.New("there is no session: see :new, :load and :resume")
	errNoMode    = errors.New("the session has no such mode")
	errNoOption  = errors.New("the session has no such option")
)

// command runs a line typed by the user, without its colon.
func (t *talk) command(ctx context.Context, line string) error {
	words := strings.Fields(line)
	if len(words) == 0 {
		return errUsage
	}
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == words[0] })
	if i < 0 || len(words)-1 > len(strings.Fields(all[i].args)) {
		return errUsage
	}
	return t.authenticated(ctx, func() error { return all[i].run(ctx, t, words[1:]) })
}

func help(_ context.Context, t *talk, _ []string) error {
	for _, c := range commands() {
		t.printer.line("  :%-24s %s", strings.TrimSpace(c.name+" "+c.args), c.about)
	}
	t.printer.line("  :%-24s %s", ":TEXT", "a prompt that begins with a colon")
	return nil
}

// workspace is what all sessions of this client share.
type workspace struct {
	root    string
	more    []string // additional directories
	servers []acp.MCPServer
}

// directories returns the additional directories, if the agent supports them (SES-19). They are sent each time:
// directories that are left out when a session is opened again are removed from it (SES-18).
func (t *talk) directories() []string {
	if len(t.workspace.more) > 0 && !t.agent.Capabilities().SessionCapabilities.AdditionalDirectories.Present() {
		t.printer.line("The agent takes no further directories.")
		return nil
	}
	return t.workspace.more
}

func (t *talk) newSession(ctx context.Context) error {
	session, err := t.agent.NewSession(ctx, &acp.NewSessionRequest{
		Cwd: t.workspace.root, MCPServers: t.workspace.servers, AdditionalDirectories: t.directories(),
	})
	return t.enter(ctx, session, err)
}

func loadSession(ctx context.Context, t *talk, args []string) error {
	id, err := t.sessionID(args)
	if err != nil {
		return err
	}
	session, err := t.agent.LoadSession(ctx, &acp.LoadSessionRequest{
		SessionID: id, Cwd: t.workspace.root, MCPServers: t.workspace.servers, AdditionalDirectories: t.directories(),
	})
	return t.enter(ctx, session, err)
}

func resumeSession(ctx context.Context, t *talk, args []string) error {
	id, err := t.sessionID(args)
	if err != nil {
		return err
	}
	session, err := t.agent.ResumeSession(ctx, &acp.ResumeSessionRequest{
		SessionID: id, Cwd: t.workspace.root, MCPServers: t.workspace.servers, AdditionalDirectories: t.directories(),
	})
	return t.enter(ctx, session, err)
}

// enter continues in a session that was opened, and closes the previous one.
func (t *talk) enter(ctx context.Context, session *acp.ClientSession, err error) error {
	if err != nil {
		return err
	}
	last := t.session
	t.session = session
	t.printer.line("session %s", session.ID())
	if last == nil || last.ID() == session.ID() {
		return nil
	}
	return t.leave(ctx, last)
}

// leave closes a session if the agent supports that and has not closed it yet (ERR-8).
func (t *talk) leave(ctx context.Context, session *acp.ClientSession) error {
	err := session.Close(ctx)
	if errors.Is(err, acp.ErrUnsupported) || errors.Is(err, acp.ErrResourceNotFound) {
		return nil
	}
	return err
}

// sessionID returns the session that the user names, or the open one.
func (t *talk) sessionID(args []string) (acp.SessionID, error) {
	switch {
	case len(args) > 0:
		return acp.SessionID(args[0]), nil
	case t.session == nil:
		return "", errNoSession
	}
	return t.session.ID(), nil
}

func listSessions(ctx context.Context, t *talk, _ []string) error {
	for s, err := range t.agent.Sessions(ctx, t.workspace.root) {
		if err != nil {
			return err
		}
		t.printer.line("session %s: %s %s", s.SessionID, cmp.Or(s.Title.Value(), "(no title)"), s.UpdatedAt.Value())
	}
	return nil
}

func closeSession(ctx context.Context, t *talk, _ []string) error {
	if t.session == nil {
		return errNoSession
	}
	err := t.session.Close(ctx)
	if err == nil || errors.Is(err, acp.ErrResourceNotFound) {
		t.session = nil
		return nil
	}
	return err
}

func deleteSession(ctx context.Context, t *talk, args []string) error {
	id, err := t.sessionID(args)
	if err != nil {
		return err
	}
	_, err = t.agent.DeleteSession(ctx, &acp.DeleteSessionRequest{SessionID: id})
	if err != nil && !errors.Is(err, acp.ErrResourceNotFound) {
		return err
	}
	if t.session != nil && t.session.ID() == id {
		t.session = nil
	}
	return nil
}

func chooseMode(ctx context.Context, t *talk, args []string) error {
	if t.session == nil {
		return errNoSession
	}
	modes := t.session.Modes().Value()
	if len(args) > 0 {
		mode := acp.SessionModeID(args[0])
		if !slices.ContainsFunc(modes.AvailableModes, func(m acp.SessionMode) bool { return m.ID == mode }) {
			return errNoMode
		}
		return t.session.SetMode(ctx, mode)
	}
	for _, m := range modes.AvailableModes {
		current := ""
		if m.ID == modes.CurrentModeID {
			current = " (current)"
		}
		t.printer.line("mode %s: %s%s", m.ID, m.Name, current)
	}
	return nil
}

func setOption(ctx context.Context, t *talk, args []string) error {
	if t.session == nil {
		return errNoSession
	}
	options := t.session.ConfigOptions().Value()
	switch len(args) {
	case 0:
		t.printer.update(acp.ConfigUpdate(options...))
		return nil
	case 1:
		return errUsage
	}
	id := acp.SessionConfigID(args[0])
	i := slices.IndexFunc(options, func(o acp.SessionConfigOption) bool { return o.ID == id })
	if i < 0 {
		return errNoOption
	}
	if _, boolean := options[i].Variant.(*acp.SessionConfigOptionBoolean); boolean {
		on, err := strconv.ParseBool(args[1])
		if err != nil {
			return errUsage
		}
		return t.session.SetBooleanConfigOption(ctx, id, on)
	}
	return t.session.SetConfigOption(ctx, id, acp.SessionConfigValueID(args[1]))
}

func attach(_ context.Context, t *talk, args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	path := args[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.workspace.root, path)
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	t.attached = append(t.attached, acp.ResourceLinkBlock(filepath.Base(path), fileURL(path)))
	return nil
}

// fileURL returns the URL of a file.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a Windows drive
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

func logOut(ctx context.Context, t *talk, _ []string) error {
	_, err := t.agent.Logout(ctx, &acp.LogoutRequest{})
	return err
}

// parseServer reads an MCP server: NAME=COMMAND with its arguments, or NAME=URL.
func parseServer(text string) (acp.MCPServer, error) {
	name, rest, _ := strings.Cut(text, "=")
	words := strings.Fields(rest)
	if name == "" || len(words) == 0 {
		return acp.MCPServer{}, fmt.Errorf("%q: expected NAME=COMMAND or NAME=URL", text)
	}
	if strings.HasPrefix(rest, "http://") || strings.HasPrefix(rest, "https://") {
		return acp.NewMCPServerHTTP(acp.MCPServerHTTP{Name: name, URL: rest, Headers: []acp.HTTPHeader{}}), nil
	}
	program, err := exec.LookPath(words[0])
	if err == nil {
		program, err = filepath.Abs(program) // must be absolute (SES-29)
	}
	if err != nil {
		return acp.MCPServer{}, err
	}
	return acp.NewMCPServerStdio(acp.MCPServerStdio{Name: name, Command: program, Args: words[1:],
		Env: []acp.EnvVariable{}}), nil
}
