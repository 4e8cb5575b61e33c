// This file owns every human judgement about a schema: what cannot be derived from it. An entry that
// the schema has no use for is an error, so that a schema bump shows which judgements are stale.

package gen

import (
	"errors"
	"fmt"
	"strings"

	"github.com/acpgo/sdk/gen/model"
	"github.com/acpgo/sdk/gen/schema"
)

// Kind says what an Override decides.
type Kind int

// The kinds of Override.
const (
	// Handler names the handler of a method, which is otherwise named after the definition of its
	// parameters. Of: that definition.
	Handler Kind = iota
	// Constructor names the function that makes a variant, and makes it take the required members one
	// by one. Of: the union's definition, a slash, the tag or title.
	Constructor
	// Capabilities names the definition that holds the capabilities of a side. Of: the side.
	Capabilities
	// Capability is the path of the capability that gates a method. Of: the method.
	Capability
	// Derived says that the runtime deals with a method itself, and why. Of: the method.
	Derived
	// Checked says that hand-written code decides whether a call may be sent, and by what. Of: the
	// method.
	Checked
	// PeerByHand says that the peer's call of a method is written by hand, and why. Of: the method.
	PeerByHand
	// SessionByHand is the same for the call of a session. Of: the method.
	SessionByHand
	// Always says that a member is written even when it says no more than leaving it out, and why. Of:
	// the definition, a slash, the member.
	Always
)

func (k Kind) String() string {
	return [...]string{"Handler", "Constructor", "Capabilities", "Capability", "Derived", "Checked", "PeerByHand", "SessionByHand", "Always"}[k]
}

// Override is one judgement.
type Override struct {
	Kind Kind
	Of   string
	Is   string
}

// Overrides holds the judgements about the schemas of this project, by protocol.
var Overrides = map[string][]Override{
	"v1": {
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

		{Checked, "session/update", "notices and compaction only to clients that show them"},
		{Checked, "elicitation/create", "by its mode"},
		{Checked, "elicitation/complete", "only URLs are completed"},
		{Checked, "authenticate", "only with a method that the agent offers"},
		{Checked, "session/new", "by the kinds of MCP servers and the directories"},
		{Checked, "session/load", "the same"},
		{Checked, "session/resume", "the same"},

		{PeerByHand, "session/prompt", "runs a turn"},
		{PeerByHand, "session/cancel", "acts on the turn"},

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
		{SessionByHand, "session/prompt", "takes the content alone"},
		{SessionByHand, "session/cancel", "needs no parameters"},

		{Always, "InitializeRequest/clientCapabilities", "the protocol wants them stated"},
		{Always, "InitializeResponse/agentCapabilities", "the protocol wants them stated"},
	},
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
		for _, f := range fieldsOf(d) {
			if f.Presence == model.Plain {
				_, f.Always = j.of(Always, d.Base().Schema+"/"+f.JSON)
			}
		}
	}
	for _, m := range pkg.Methods {
		_, m.Derived = j.of(Derived, m.Name)
		_, m.Checked = j.of(Checked, m.Name)
		_, m.PeerByHand = j.of(PeerByHand, m.Name)
		_, m.SessionByHand = j.of(SessionByHand, m.Name)
		path, ok := j.of(Capability, m.Name)
		if !ok {
			continue
		}
		root, _ := j.of(Capabilities, string(m.Side))
		fields, missing := resolve(declared(pkg, root), path)
		if missing != "" {
			problems = append(problems, &schema.Error{Pointer: m.Pointer, Msg: fmt.Sprintf("its capability %s is not there: %q has no %q", path, root, missing)})
		}
		m.Capability = fields
	}
	return errors.Join(problems...)
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
			for _, f := range fieldsOf(d) {
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
