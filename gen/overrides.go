// This file owns every human judgement about a schema: what cannot be derived from it. An entry that
// the schema has no use for is an error, so that a schema bump shows which judgements are stale.

package gen

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/acpgo/sdk/gen/model"
	"github.com/acpgo/sdk/gen/schema"
)

// Kind says what an Override decides.
type Kind int

// The kinds of Override.
const (
	// Name names the type of a definition, which is otherwise named after it. Of: the definition.
	Name Kind = iota
	// Handler names the handler of a method, which is otherwise named after the definition of its
	// parameters. Of: that definition.
	Handler
	// Constructor names the function that makes a variant, and makes it take the required members one
	// by one. Of: the union's definition, a slash, the tag or title.
	Constructor
	// Capabilities names the definition that holds the capabilities of a side. Of: the side.
	Capabilities
	// Capability is the path of the capability that gates a method: what calls need, what is served, and
	// what follows from which handlers are set. Of: the method.
	Capability
	// Needs is the path of a capability that a call needs for what it says. Of: the method, or the method
	// and, after a space, a member of its parameters, a dot, and the tag of a variant; either may be
	// missing.
	Needs
	// Derived says that the runtime deals with a method itself, and why. Of: the method.
	Derived
	// CallNote is what the documentation of the connection's call of a method says beyond the schema's. Of:
	// the method.
	CallNote
	// HandlerNote is the same for the handler of a method. Of: the method.
	HandlerNote
	// ConnByHand says that the connection's call of a method is written by hand, and why. Of: the method.
	ConnByHand
	// MakesSession says that the connection's call of a method makes a session of the answer. It is written
	// by hand round an unexported call. Of: the method.
	MakesSession
	// SessionByHand is the same for the call of a session. Of: the method.
	SessionByHand
	// Always says that a member is written even when it says no more than leaving it out, and why. Of:
	// the definition, a slash, the member.
	Always
)

func (k Kind) String() string {
	return [...]string{"Name", "Handler", "Constructor", "Capabilities", "Capability", "Needs", "Derived", "CallNote", "HandlerNote", "ConnByHand", "MakesSession", "SessionByHand", "Always"}[k]
}

// Override is one judgement.
type Override struct {
	Kind Kind
	Of   string
	Is   string
}

// Overrides holds the judgements about the schemas of this project, by protocol. What is said about a
// stable schema also holds for the unstable one.
var Overrides = map[string][]Override{
	"v1":          v1,
	"v1.unstable": slices.Concat(v1, v1Unstable),
	"v2":          v2,
	"v2.unstable": slices.Concat(v2, v2Unstable),
}

// What authors of agents must know about cancellation.
const (
	notePrompt = "When the client cancels the turn, or closes or deletes the session, ctx ends with the cause ErrTurnCancelled." +
		" The handler should then stop what it does, may still send updates, and returns: its error, or its result with" +
		" another stop reason, is answered as StopReasonCancelled, so that it can return ctx.Err() or any error that" +
		" follows from it. Calls that were made with ctx have ended too, open permission requests among them. When the" +
		" connection ends, ctx ends as well, with a cause that matches ErrClosed, and nobody reads the answer."
	noteCancel = "The runtime has then ended the context of the turn already: an agent whose handlers look at their context" +
		" needs no handler here. It is also called when no turn runs."
)

var v1 = []Override{
	{Handler, "SessionNotification", "SessionUpdate"},

	{Constructor, "ContentBlock/text", "TextBlock"},
	{Constructor, "ContentBlock/image", "ImageBlock"},
	{Constructor, "ContentBlock/audio", "AudioBlock"},
	{Constructor, "ContentBlock/resource_link", "ResourceLinkBlock"},
	{Constructor, "ContentBlock/resource", "ResourceBlock"},
	{Constructor, "EmbeddedResourceResource/TextResourceContents", "TextResource"},
	{Constructor, "EmbeddedResourceResource/BlobResourceContents", "BlobResource"},
	{Constructor, "RequestPermissionOutcome/cancelled", "PermissionCancelled"},
	{Constructor, "RequestPermissionOutcome/selected", "PermissionSelected"},
	{Constructor, "ToolCallContent/content", "ToolContent"},
	{Constructor, "ToolCallContent/diff", "ToolDiff"},
	{Constructor, "ToolCallContent/terminal", "ToolTerminal"},

	{Capabilities, "agent", "AgentCapabilities"},
	{Capabilities, "client", "ClientCapabilities"},
	{Capability, "logout", "auth.logout"},
	{Capability, "session/load", "loadSession"},
	{Capability, "session/list", "sessionCapabilities.list"},
	{Capability, "session/delete", "sessionCapabilities.delete"},
	{Capability, "session/resume", "sessionCapabilities.resume"},
	{Capability, "session/close", "sessionCapabilities.close"},
	{Capability, "fs/read_text_file", "fs.readTextFile"},
	{Capability, "fs/write_text_file", "fs.writeTextFile"},
	{Capability, "terminal/create", "terminal"},
	{Capability, "terminal/output", "terminal"},
	{Capability, "terminal/release", "terminal"},
	{Capability, "terminal/wait_for_exit", "terminal"},
	{Capability, "terminal/kill", "terminal"},

	{Derived, "initialize", "the handshake follows from the handlers and options"},

	{Needs, "session/prompt prompt.image", "promptCapabilities.image"},
	{Needs, "session/prompt prompt.audio", "promptCapabilities.audio"},
	{Needs, "session/prompt prompt.resource", "promptCapabilities.embeddedContext"},
	{Needs, "session/new additionalDirectories", "sessionCapabilities.additionalDirectories"},
	{Needs, "session/new mcpServers.http", "mcpCapabilities.http"},
	{Needs, "session/new mcpServers.sse", "mcpCapabilities.sse"},
	{Needs, "session/load additionalDirectories", "sessionCapabilities.additionalDirectories"},
	{Needs, "session/load mcpServers.http", "mcpCapabilities.http"},
	{Needs, "session/load mcpServers.sse", "mcpCapabilities.sse"},
	{Needs, "session/resume additionalDirectories", "sessionCapabilities.additionalDirectories"},
	{Needs, "session/resume mcpServers.http", "mcpCapabilities.http"},
	{Needs, "session/resume mcpServers.sse", "mcpCapabilities.sse"},
	{Needs, "session/update update.notice", "session.notices"},
	{Needs, "session/update update.compaction_update", "session.compaction"},
	{Needs, "session/update update.compaction_summary_chunk", "session.compaction"},
	{Needs, "elicitation/create .form", "elicitation.form"},
	{Needs, "elicitation/create .url", "elicitation.url"},
	{Needs, "elicitation/complete", "elicitation.url"},

	{CallNote, "authenticate", "It fails with ErrUnsupported, unsent, when the agent does not offer the method, or offers it to be run in a terminal."},
	{HandlerNote, "session/prompt", notePrompt},
	{HandlerNote, "session/cancel", noteCancel},

	{MakesSession, "session/new", "with its modes and config options"},
	{MakesSession, "session/load", "the same"},
	{MakesSession, "session/resume", "the same"},

	{ConnByHand, "session/set_mode", "keeps the mode"},
	{ConnByHand, "session/set_config_option", "keeps the answer"},
	{ConnByHand, "session/prompt", "runs a turn"},
	{ConnByHand, "session/cancel", "acts on the turn"},

	{SessionByHand, "session/update", "takes the update alone"},
	{SessionByHand, "session/request_permission", "takes the call and the options"},
	{SessionByHand, "terminal/create", "returns a terminal"},
	{SessionByHand, "terminal/output", "belongs to the terminal"},
	{SessionByHand, "terminal/release", "belongs to the terminal"},
	{SessionByHand, "terminal/wait_for_exit", "belongs to the terminal"},
	{SessionByHand, "terminal/kill", "belongs to the terminal"},
	{SessionByHand, "session/load", "makes the session"},
	{SessionByHand, "session/resume", "makes the session"},
	{SessionByHand, "session/close", "needs no parameters"},
	{SessionByHand, "session/delete", "needs no parameters"},
	{SessionByHand, "session/set_mode", "takes the mode alone"},
	{SessionByHand, "session/set_config_option", "takes the value alone"},
	{SessionByHand, "session/prompt", "takes the content alone"},
	{SessionByHand, "session/cancel", "needs no parameters"},

	{Always, "InitializeRequest/clientCapabilities", "the protocol wants them stated"},
	{Always, "InitializeResponse/agentCapabilities", "the protocol wants them stated"},
}

// v1Unstable are the judgements about what the unstable version 1 has beyond the stable one.
var v1Unstable = []Override{
	{Capability, "auth/status", "auth.status"},
	{Capability, "providers/list", "providers"},
	{Capability, "providers/set", "providers"},
	{Capability, "providers/disable", "providers"},
	{Capability, "session/fork", "sessionCapabilities.fork"},
	{Capability, "session/archive", "sessionCapabilities.archive"},
	{Capability, "session/unarchive", "sessionCapabilities.archive"},
	{Capability, "session/status", "sessionCapabilities.status"},
	{Capability, "session/set_title", "sessionCapabilities.title"},

	{Needs, "session/new systemPrompt", "sessionCapabilities.systemPrompt"},
	{Needs, "session/new mcpServers.acp", "mcpCapabilities.acp"},
	{Needs, "session/load systemPrompt", "sessionCapabilities.systemPrompt"},
	{Needs, "session/load mcpServers.acp", "mcpCapabilities.acp"},
	{Needs, "session/resume systemPrompt", "sessionCapabilities.systemPrompt"},
	{Needs, "session/resume mcpServers.acp", "mcpCapabilities.acp"},
	{Needs, "session/fork systemPrompt", "sessionCapabilities.systemPrompt"},
	{Needs, "session/fork additionalDirectories", "sessionCapabilities.additionalDirectories"},
	{Needs, "session/fork mcpServers.http", "mcpCapabilities.http"},
	{Needs, "session/fork mcpServers.sse", "mcpCapabilities.sse"},
	{Needs, "session/fork mcpServers.acp", "mcpCapabilities.acp"},
	{Needs, "session/list archived", "sessionCapabilities.archive"},
	{Needs, "session/update update.plan_update", "plan"},
	{Needs, "session/update update.plan_removed", "plan"},
	{Needs, "session/update update.subagent_update", "subagents"},
	{Needs, "session/update update.session_message", "subagents"},
	{Needs, "session/update update.session_message_chunk", "subagents"},

	{MakesSession, "session/fork", "with its modes and config options"},

	{SessionByHand, "session/fork", "makes the session"},
	{SessionByHand, "session/archive", "needs no parameters"},
	{SessionByHand, "session/unarchive", "needs no parameters"},
	{SessionByHand, "session/status", "needs no parameters"},
	{SessionByHand, "session/set_title", "takes the title alone"},
}

var v2 = []Override{
	{Name, "Command", "SlashCommand"}, // Command is what starts an agent

	{Handler, "CancelSessionNotification", "Cancel"},
	{Handler, "UpdateSessionNotification", "SessionUpdate"},

	{Constructor, "ContentBlock/text", "TextBlock"},
	{Constructor, "ContentBlock/image", "ImageBlock"},
	{Constructor, "ContentBlock/audio", "AudioBlock"},
	{Constructor, "ContentBlock/resource_link", "ResourceLinkBlock"},
	{Constructor, "ContentBlock/resource", "ResourceBlock"},
	{Constructor, "EmbeddedResourceResource/TextResourceContents", "TextResource"},
	{Constructor, "EmbeddedResourceResource/BlobResourceContents", "BlobResource"},
	{Constructor, "RequestPermissionOutcome/cancelled", "PermissionCancelled"},
	{Constructor, "RequestPermissionOutcome/selected", "PermissionSelected"},
	{Constructor, "RequestPermissionSubject/tool_call", "PermissionForToolCall"},
	{Constructor, "RequestPermissionSubject/command", "PermissionForCommand"},
	{Constructor, "ToolCallContent/content", "ToolContent"},
	{Constructor, "ToolCallContent/diff", "ToolDiff"},
	{Constructor, "ToolCallContent/terminal", "ToolTerminal"},
	{Constructor, "IdleStateUpdate/end_turn", "EndTurn"},
	{Constructor, "IdleStateUpdate/max_tokens", "MaxTokens"},
	{Constructor, "IdleStateUpdate/max_turn_requests", "MaxTurnRequests"},
	{Constructor, "IdleStateUpdate/refusal", "Refusal"},
	{Constructor, "IdleStateUpdate/cancelled", "Cancelled"},

	{Capabilities, "agent", "AgentCapabilities"},
	{Capabilities, "client", "ClientCapabilities"},
	{Capability, "session/new", "session"},
	{Capability, "session/list", "session"},
	{Capability, "session/resume", "session"},
	{Capability, "session/close", "session"},
	{Capability, "session/prompt", "session"},
	{Capability, "session/delete", "session.delete"},

	{Derived, "initialize", "the handshake follows from the handlers and options"},

	{Needs, "session/prompt prompt.image", "session.prompt.image"},
	{Needs, "session/prompt prompt.audio", "session.prompt.audio"},
	{Needs, "session/prompt prompt.resource", "session.prompt.embeddedContext"},
	{Needs, "session/new additionalDirectories", "session.additionalDirectories"},
	{Needs, "session/new mcpServers.http", "session.mcp.http"},
	{Needs, "session/new mcpServers.stdio", "session.mcp.stdio"},
	{Needs, "session/resume additionalDirectories", "session.additionalDirectories"},
	{Needs, "session/resume mcpServers.http", "session.mcp.http"},
	{Needs, "session/resume mcpServers.stdio", "session.mcp.stdio"},
	{Needs, "elicitation/create .form", "elicitation.form"},
	{Needs, "elicitation/create .url", "elicitation.url"},
	{Needs, "elicitation/complete", "elicitation.url"},

	{CallNote, "auth/login", "It fails with ErrUnsupported, unsent, when the agent does not offer the method, or offers it to be run in a terminal."},
	{CallNote, "auth/logout", "It fails with ErrUnsupported, unsent, when the agent offers no method to log in."},
	{HandlerNote, "session/prompt", "The handler calls AgentSession.StartTurn, which answers the prompt and runs the work, and returns what that returns."},
	{HandlerNote, "session/cancel", noteCancel},

	{MakesSession, "session/new", "with its config options and commands"},
	{MakesSession, "session/resume", "the same"},

	{ConnByHand, "session/set_config_option", "keeps the answer"},
	{ConnByHand, "session/cancel", "acts on the turn"},

	{SessionByHand, "session/set_config_option", "takes the value alone"},
	{SessionByHand, "session/update", "takes the update alone"},
	{SessionByHand, "session/request_permission", "tells that user action is required"},
	{SessionByHand, "session/resume", "makes the session"},
	{SessionByHand, "session/close", "needs no parameters"},
	{SessionByHand, "session/delete", "needs no parameters"},
	{SessionByHand, "session/prompt", "takes the content alone"},
	{SessionByHand, "session/cancel", "needs no parameters"},
	{SessionByHand, "tool_call/cancel", "takes the id alone"},
	{SessionByHand, "terminal/cancel", "takes the id alone"},

	{Always, "InitializeRequest/capabilities", "the protocol wants them stated"},
	{Always, "InitializeResponse/capabilities", "the protocol wants them stated"},
}

// v2Unstable are the judgements about what the unstable version 2 has beyond the stable one.
var v2Unstable = []Override{
	{Capability, "auth/status", "auth.status"},
	{Capability, "providers/list", "providers"},
	{Capability, "providers/set", "providers"},
	{Capability, "providers/disable", "providers"},
	{Capability, "session/fork", "session.fork"},
	{Capability, "session/archive", "session.archive"},
	{Capability, "session/unarchive", "session.archive"},
	{Capability, "session/status", "session.status"},
	{Capability, "session/set_title", "session.title"},

	{Needs, "session/new systemPrompt", "session.systemPrompt"},
	{Needs, "session/new mcpServers.acp", "session.mcp.acp"},
	{Needs, "session/resume systemPrompt", "session.systemPrompt"},
	{Needs, "session/resume mcpServers.acp", "session.mcp.acp"},
	{Needs, "session/fork systemPrompt", "session.systemPrompt"},
	{Needs, "session/fork additionalDirectories", "session.additionalDirectories"},
	{Needs, "session/fork mcpServers.stdio", "session.mcp.stdio"},
	{Needs, "session/fork mcpServers.http", "session.mcp.http"},
	{Needs, "session/fork mcpServers.acp", "session.mcp.acp"},
	{Needs, "session/list archived", "session.archive"},

	{MakesSession, "session/fork", "with its modes and config options"},

	{SessionByHand, "session/fork", "makes the session"},
	{SessionByHand, "session/archive", "needs no parameters"},
	{SessionByHand, "session/unarchive", "needs no parameters"},
	{SessionByHand, "session/status", "needs no parameters"},
	{SessionByHand, "session/set_title", "takes the title alone"},
}

// judgements is a list of overrides that knows which were used.
type judgements struct {
	list []Override
	used []bool
}

func newJudgements(list []Override) *judgements {
	return &judgements{list: list, used: make([]bool, len(list))}
}

// of returns the override of that kind for that subject.
func (j *judgements) of(kind Kind, subject string) (is string, ok bool) {
	for i, o := range j.list {
		if o.Kind == kind && o.Of == subject {
			j.used[i] = true
			return o.Is, true
		}
	}
	return "", false
}

// unused returns an error for each override that was never asked for.
func (j *judgements) unused() error {
	var problems []error
	for i, o := range j.list {
		if !j.used[i] {
			problems = append(problems, &schema.Error{Msg: fmt.Sprintf("the override {%v, %q, %q} is not used: the schema has no such thing", o.Kind, o.Of, o.Is)})
		}
	}
	return errors.Join(problems...)
}

// judge applies what is decided about members and methods.
func judge(pkg *model.Package, j *judgements) error {
	var problems []error
	for _, d := range pkg.Decls {
		for _, f := range model.Fields(d) {
			if f.Presence == model.Plain {
				_, f.Always = j.of(Always, d.Base().Schema+"/"+f.JSON)
			}
		}
	}
	pkg.Capabilities = map[model.Side]model.Decl{}
	for _, side := range []model.Side{model.Agent, model.Client} {
		if definition, ok := j.of(Capabilities, string(side)); ok {
			pkg.Capabilities[side] = declared(pkg, definition)
		}
	}
	for _, m := range pkg.Methods {
		_, m.Derived = j.of(Derived, m.Name)
		m.CallNote, _ = j.of(CallNote, m.Name)
		m.HandlerNote, _ = j.of(HandlerNote, m.Name)
		_, m.ConnByHand = j.of(ConnByHand, m.Name)
		_, m.MakesSession = j.of(MakesSession, m.Name)
		_, m.SessionByHand = j.of(SessionByHand, m.Name)
		if path, ok := j.of(Capability, m.Name); ok {
			fields, err := capability(pkg, j, m, path)
			problems = append(problems, err)
			m.Capability = fields
		}
		for _, need := range needs(m) {
			path, ok := j.of(Needs, strings.TrimRight(m.Name+" "+need.of, " "))
			if !ok {
				continue
			}
			fields, err := capability(pkg, j, m, path)
			problems = append(problems, err)
			need.Capability = fields
			m.Needs = append(m.Needs, need.Need)
		}
	}
	return errors.Join(problems...)
}

// capability returns the fields of a path in the capabilities of the side that handles a method.
func capability(pkg *model.Package, j *judgements, m *model.Method, path string) ([]*model.Field, error) {
	root, _ := j.of(Capabilities, string(m.Side))
	fields, missing := resolve(declared(pkg, root), path)
	if missing != "" {
		return nil, &schema.Error{Pointer: m.Pointer, Msg: fmt.Sprintf("its capability %s is not there: %q has no %q", path, root, missing)}
	}
	return fields, nil
}

// need is something of a method that may need a capability, and how an override names it.
type need struct {
	model.Need
	of string
}

// needs returns all that may need a capability: the method, the members of its parameters, and the variants
// of these.
func needs(m *model.Method) []need {
	all := []need{{}}
	variants := func(f *model.Field, d model.Decl, of string) {
		if u, ok := d.(*model.Union); ok {
			for _, v := range u.Variants {
				all = append(all, need{model.Need{Field: f, Variant: v}, of + "." + v.Tag})
			}
		}
	}
	variants(nil, m.Params, "")
	for _, f := range model.Fields(m.Params) {
		all = append(all, need{model.Need{Field: f}, f.JSON})
		t := f.Type
		if s, ok := t.(model.Slice); ok {
			t = s.Elem
		}
		if named, ok := t.(model.Named); ok {
			variants(f, named.Decl, f.JSON)
		}
	}
	return all
}

// declared returns the declaration of a definition, or nil.
func declared(pkg *model.Package, definition string) model.Decl {
	for _, d := range pkg.Decls {
		if definition != "" && d.Base().Schema == definition {
			return d
		}
	}
	return nil
}

// resolve follows a path of member names and returns the fields, or the name that is missing.
func resolve(d model.Decl, path string) (fields []*model.Field, missing string) {
	for name := range strings.SplitSeq(path, ".") {
		var found *model.Field
		if d != nil {
			for _, f := range model.Fields(d) {
				if f.JSON == name {
					found = f
				}
			}
		}
		if found == nil {
			return nil, name
		}
		fields = append(fields, found)
		d = nil
		if named, ok := found.Type.(model.Named); ok {
			d = named.Decl
		}
	}
	return fields, ""
}
