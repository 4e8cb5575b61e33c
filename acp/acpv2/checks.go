package acpv2

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
)

// checkParams refuses paths that are not absolute. It is used for the peer's requests.
func checkParams(params any) *flaw {
	switch p := params.(type) {
	case *NewSessionRequest:
		return checkRoots(p.Cwd, p.AdditionalDirectories)
	case *ResumeSessionRequest:
		return checkRoots(p.Cwd, p.AdditionalDirectories)
	case *ForkSessionRequest:
		return checkRoots(p.Cwd, p.AdditionalDirectories)
	case *ListSessionsRequest:
		return checkOptPath("/cwd", p.Cwd)
	default:
		return nil
	}
}

// checkSent is used for messages that this side sends, which are checked more strictly than the peer's requests: ids
// must not be empty, paths in tool calls and commands of MCP servers must be absolute, and no option may be offered
// twice.
func checkSent(params any) *flaw {
	if n, ok := params.(*UpdateSessionNotification); ok { // nearly all messages sent
		return cmp.Or(checkID("/sessionId", n.SessionID), checkUpdate(&n.Update))
	}
	if wrong := checkIDs(params); wrong != nil {
		return wrong
	}
	switch p := params.(type) {
	case *RequestPermissionRequest:
		if subject, ok := p.Subject.Get(); ok {
			if wrong := checkSubject(subject); wrong != nil {
				return wrong
			}
		}
		return checkPermissionOptions("/options", p.Options)
	case *CreateElicitationRequest:
		return cmp.Or(checkElicitationIDs(p), checkForm(p))
	}
	return cmp.Or(checkParams(params), checkCommands(serversOf(params)))
}

// checkForm refuses a form whose type the protocol does not define.
func checkForm(req *CreateElicitationRequest) *flaw {
	form, ok := req.Variant.(*CreateElicitationRequestForm)
	if !ok || form == nil || form.RequestedSchema.Type == "" {
		return nil
	}
	return checkKnown("/requestedSchema/type", form.RequestedSchema.Type)
}

// checkUpdate refuses invalid updates.
func checkUpdate(update *SessionUpdate) *flaw {
	if missing(update.Variant) {
		return nil
	}
	switch u := update.Variant.(type) {
	case *SessionUpdateAgentMessageChunk:
		return checkID("/update/messageId", u.MessageID)
	case *SessionUpdateAgentThoughtChunk:
		return checkID("/update/messageId", u.MessageID)
	case *SessionUpdateUserMessageChunk:
		return checkID("/update/messageId", u.MessageID)
	case *SessionUpdateAgentMessage:
		return checkID("/update/messageId", u.MessageID)
	case *SessionUpdateAgentThought:
		return checkID("/update/messageId", u.MessageID)
	case *SessionUpdateUserMessage:
		return checkID("/update/messageId", u.MessageID)
	case *SessionUpdateToolCallUpdate:
		return checkToolCall("/update", (*ToolCallUpdate)(u))
	case *SessionUpdateToolCallContentChunk:
		return cmp.Or(checkID("/update/toolCallId", u.ToolCallID), checkToolContent("/update/content", &u.Content))
	case *SessionUpdateTerminalUpdate:
		return cmp.Or(checkID("/update/terminalId", u.TerminalID), checkOptPath("/update/cwd", u.Cwd))
	case *SessionUpdateTerminalOutputChunk:
		return checkID("/update/terminalId", u.TerminalID)
	case *SessionUpdateConfigOptionUpdate:
		return checkConfigOptions("/update/configOptions", u.ConfigOptions)
	case *SessionUpdateAvailableCommandsUpdate:
		return checkCommandNames("/update/availableCommands", u.AvailableCommands)
	case *SessionUpdatePlanUpdate:
		return checkPlan(&u.Plan)
	case *SessionUpdateCompactionUpdate:
		return checkID("/update/compactionId", u.CompactionID)
	case *SessionUpdateCompactionSummaryChunk:
		return checkID("/update/compactionId", u.CompactionID)
	case *SessionUpdatePlanRemoved:
		return checkID("/update/planId", u.PlanID)
	case *SessionUpdateSubagentUpdate:
		return cmp.Or(checkID("/update/sessionId", u.SessionID), checkOptPath("/update/cwd", u.Cwd),
			checkPaths("/update/additionalDirectories", u.AdditionalDirectories.Value()))
	case *SessionUpdateSessionMessage:
		return checkID("/update/messageId", u.MessageID)
	case *SessionUpdateSessionMessageChunk:
		return checkID("/update/messageId", u.MessageID)
	default:
		return nil
	}
}

// checkConfigOptions refuses options with an empty or repeated id, and selects that list a value twice or do not list
// their current value.
func checkConfigOptions(pointer string, options []SessionConfigOption) *flaw {
	if wrong := checkConfigIDs(pointer, options); wrong != nil {
		return wrong
	}
	for i := range options {
		if o, ok := options[i].Variant.(*SessionConfigOptionSelect); ok && o != nil {
			if wrong := checkSelect(o.CurrentValue, o.Options); wrong != nil {
				return &flaw{fmt.Sprintf("%s/%d%s", pointer, i, wrong.pointer), wrong.reason}
			}
		}
	}
	return nil
}

// checkSelect is checkConfigOptions for the values of a select, in all of its groups.
func checkSelect(current SessionConfigValueID, options SessionConfigSelectOptions) *flaw {
	seen := map[SessionConfigValueID]bool{}
	look := func(at string, list []SessionConfigSelectOption) *flaw {
		for i := range list {
			if seen[list[i].Value] {
				return &flaw{fmt.Sprintf("%s/%d/value", at, i), "another value of the option is the same"}
			}
			seen[list[i].Value] = true
		}
		return nil
	}
	switch o := options.Variant.(type) {
	case SessionConfigSelectOptionsUngrouped:
		if wrong := look("/options", o); wrong != nil {
			return wrong
		}
	case SessionConfigSelectOptionsGrouped:
		for i := range o {
			if wrong := look(fmt.Sprintf("/options/%d/options", i), o[i].Options); wrong != nil {
				return wrong
			}
		}
	default:
		return nil // encoding refuses it
	}
	if !seen[current] {
		return &flaw{"/currentValue", "not one of the values"}
	}
	return nil
}

// checkCommandNames refuses commands whose name is repeated or contains white space.
func checkCommandNames(pointer string, commands []AvailableCommand) *flaw {
	seen := map[string]bool{}
	for i := range commands {
		name := ""
		switch c := commands[i].Variant.(type) {
		case *AvailableCommandCommand:
			if c != nil {
				name = c.Name
			}
		default:
			raw, _ := commands[i].MarshalJSON()
			name = rawID(raw, "name")
		}
		switch {
		case name == "":
			continue
		case strings.ContainsFunc(name, unicode.IsSpace):
			return &flaw{fmt.Sprintf("%s/%d/name", pointer, i), "must not contain white space"}
		case seen[name]:
			return &flaw{fmt.Sprintf("%s/%d/name", pointer, i), "another command has this name"}
		}
		seen[name] = true
	}
	return nil
}

// checkLogins refuses terminal logins that set a variable twice.
func checkLogins(methods []AuthMethod) error {
	for i := range methods {
		login, ok := methods[i].Variant.(*AuthMethodTerminal)
		if !ok || login == nil {
			continue
		}
		seen := map[string]bool{}
		for _, variable := range login.Env {
			if seen[variable.Name] {
				return fmt.Errorf("acp: AuthMethods: method %q sets the variable %q twice", login.MethodID, variable.Name)
			}
			seen[variable.Name] = true
		}
	}
	return nil
}

// checkPlan refuses a plan without an id.
func checkPlan(plan *PlanUpdateContent) *flaw {
	const at = "/update/plan/planId"
	if missing(plan.Variant) {
		return nil
	}
	switch p := plan.Variant.(type) {
	case *PlanUpdateContentItems:
		return checkID(at, p.PlanID)
	case *PlanUpdateContentFile:
		return checkID(at, p.PlanID)
	case *PlanUpdateContentMarkdown:
		return checkID(at, p.PlanID)
	default:
		return nil
	}
}

// checkSubject refuses invalid subjects of permission requests.
func checkSubject(subject RequestPermissionSubject) *flaw {
	if missing(subject.Variant) {
		return nil
	}
	switch s := subject.Variant.(type) {
	case *RequestPermissionSubjectToolCall:
		return checkToolCall("/subject/toolCall", &s.ToolCall)
	case *RequestPermissionSubjectCommand:
		return checkPath("/subject/cwd", s.Cwd)
	default:
		return nil
	}
}

// checkToolCall refuses invalid tool calls.
func checkToolCall(at string, u *ToolCallUpdate) *flaw {
	if u.ToolCallID == "" {
		return &flaw{at + "/toolCallId", "must not be empty"}
	}
	if content, ok := u.Content.Get(); ok {
		for i := range content {
			if wrong := checkToolContent("", &content[i]); wrong != nil {
				return &flaw{fmt.Sprintf("%s/content/%d%s", at, i, wrong.pointer), wrong.reason}
			}
		}
	}
	if locations, ok := u.Locations.Get(); ok {
		if wrong := checkLocations(at+"/locations", locations); wrong != nil {
			return wrong
		}
	}
	if u.RawInput == nil && u.RawOutput == nil {
		return nil
	}
	return cmp.Or(checkRaw(at+"/rawInput", u.RawInput), checkRaw(at+"/rawOutput", u.RawOutput))
}

// checkToolContent refuses diffs whose paths are not absolute, and terminals without an id.
func checkToolContent(at string, content *ToolCallContent) *flaw {
	if missing(content.Variant) {
		return nil
	}
	switch c := content.Variant.(type) {
	case *ToolCallContentTerminal:
		return checkID(at+"/terminalId", c.TerminalID)
	case *ToolCallContentDiff:
		for i := range c.Changes {
			if wrong := checkChange(&c.Changes[i]); wrong != nil {
				return &flaw{fmt.Sprintf("%s/changes/%d%s", at, i, wrong.pointer), wrong.reason}
			}
		}
	default: // has nothing to check
	}
	return nil
}

// checkChange refuses changes whose paths are not absolute.
func checkChange(change *DiffChange) *flaw {
	if missing(change.Variant) {
		return nil
	}
	pair := func(from, to AbsolutePath) *flaw { return cmp.Or(checkPath("/oldPath", from), checkPath("/path", to)) }
	switch c := change.Variant.(type) {
	case *DiffChangeAdd:
		return checkPath("/path", c.Path)
	case *DiffChangeDelete:
		return checkPath("/path", c.Path)
	case *DiffChangeModify:
		return checkPath("/path", c.Path)
	case *DiffChangeMove:
		return pair(c.OldPath, c.Path)
	case *DiffChangeCopy:
		return pair(c.OldPath, c.Path)
	default:
		return nil
	}
}

// check refuses messages that an agent must not send.
func (c *AgentConn) check(method string, params any) error {
	if c.handshake.Load() == nil {
		return unsent(method, errNotInitialized)
	}
	if err := c.enabled.lacks("AgentOptions", params); err != nil {
		return unsent(method, err)
	}
	if wrong := checkSent(params); wrong != nil {
		return unsent(method, wrongParams{wrong})
	}
	return nil
}

// check refuses messages that a client must not send.
func (c *ClientConn) check(method string, params any) error {
	handshake := c.handshake.Load()
	if handshake == nil {
		return unsent(method, errNotInitialized)
	}
	if err := c.enabled.lacks("ClientOptions", params); err != nil {
		return unsent(method, err)
	}
	wrong := checkSent(params)
	if prompt, ok := systemPromptOf(params).Get(); ok && wrong == nil {
		if missing := handshake.capabilities().lacksForSystemPrompt(prompt); missing != "" {
			return unsupported(method, missing)
		}
		wrong = checkSystemPrompt(prompt)
	}
	if wrong == nil {
		switch p := params.(type) {
		case *LoginAuthRequest:
			if err := checkOffered(handshake.AuthMethods, p.MethodID); err != nil {
				return unsent(method, err)
			}
		case *LogoutAuthRequest:
			if len(handshake.AuthMethods) == 0 {
				return unsupported(method, "authMethods")
			}
		case *SetSessionConfigOptionRequest:
			wrong = c.checkConfigOption(p)
		}
	}
	if wrong != nil {
		return unsent(method, wrongParams{wrong})
	}
	return nil
}

// Names that let code shared by both protocol versions compile in this one.
type (
	loginRequest       = LoginAuthRequest
	configValue        = SetSessionConfigOptionRequestID
	updateNotification = UpdateSessionNotification
	cancelNotification = CancelSessionNotification
)

const methodLogin = MethodLoginAuth

// configID returns the id of a config option.
func configID(x *SessionConfigOption) SessionConfigID { return x.ConfigID }

// authID returns the id of an authentication method, or "" if it has none.
func authID(method *AuthMethod) AuthMethodID {
	if missing(method.Variant) {
		return ""
	}
	switch m := method.Variant.(type) {
	case *AuthMethodTerminal:
		return m.MethodID
	case *AuthMethodAgent:
		return m.MethodID
	default:
		raw, _ := method.MarshalJSON() // a method without JSON has no id either
		return AuthMethodID(rawID(raw, "methodId"))
	}
}

// serversOf returns the MCP servers of a request.
func serversOf(params any) []MCPServer {
	switch p := params.(type) {
	case *NewSessionRequest:
		return p.MCPServers
	case *ResumeSessionRequest:
		return p.MCPServers
	case *ForkSessionRequest:
		return p.MCPServers
	default:
		return nil
	}
}

// systemPromptOf returns the system prompt of a request.
func systemPromptOf(params any) (none Opt[SystemPrompt]) {
	switch p := params.(type) {
	case *NewSessionRequest:
		return p.SystemPrompt
	case *ResumeSessionRequest:
		return p.SystemPrompt
	case *ForkSessionRequest:
		return p.SystemPrompt
	}
	return none
}

// lacksForSystemPrompt returns the capability that a system prompt needs and x does not have, or "".
func (x *AgentCapabilities) lacksForSystemPrompt(prompt SystemPrompt) string {
	advertised, ok := x.Session.Value().SystemPrompt.Get()
	switch {
	case !ok:
		return "session.systemPrompt"
	case prompt.Mode == SystemPromptModeOverride && !advertised.Mode.Value().Override.Present():
		return "session.systemPrompt.mode.override"
	}
	return ""
}
