package acp

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// checkParams refuses paths that are not absolute, and line numbers of 0. It is used for the peer's requests.
func checkParams(params any) *flaw {
	switch p := params.(type) {
	case *NewSessionRequest:
		return checkRoots(p.Cwd, p.AdditionalDirectories)
	case *LoadSessionRequest:
		return checkRoots(p.Cwd, p.AdditionalDirectories)
	case *ResumeSessionRequest:
		return checkRoots(p.Cwd, p.AdditionalDirectories)
	case *ForkSessionRequest:
		return checkRoots(p.Cwd, p.AdditionalDirectories)
	case *ListSessionsRequest:
		return checkOptPath("/cwd", p.Cwd)
	case *ReadTextFileRequest:
		return cmp.Or(checkPath("/path", p.Path), checkLine("/line", p.Line))
	case *WriteTextFileRequest:
		return checkPath("/path", p.Path)
	case *CreateTerminalRequest:
		return checkOptPath("/cwd", p.Cwd)
	default:
		return nil
	}
}

// checkSent is used for messages that this side sends, which are checked more strictly than the peer's requests: ids
// must not be empty, enums must have known values, paths in tool calls and commands of MCP servers must be absolute,
// and no option may be offered twice.
func checkSent(params any) *flaw {
	if n, ok := params.(*SessionNotification); ok { // nearly all messages sent
		return cmp.Or(checkID("/sessionId", n.SessionID), checkUpdate(&n.Update))
	}
	if wrong := checkIDs(params); wrong != nil {
		return wrong
	}
	switch p := params.(type) {
	case *RequestPermissionRequest:
		if wrong := checkToolCall("/toolCall", &p.ToolCall); wrong != nil {
			return wrong
		}
		for i := range p.Options {
			if wrong := checkKnown("/options", p.Options[i].Kind); wrong != nil {
				return &flaw{fmt.Sprintf("/options/%d/kind", i), wrong.reason}
			}
		}
		return checkPermissionOptions("/options", p.Options)
	case *CreateElicitationRequest:
		return cmp.Or(checkElicitationIDs(p), checkForm(p))
	case *PromptRequest:
		return checkBlocks("/prompt", p.Prompt)
	}
	return cmp.Or(checkParams(params), checkCommands(serversOf(params)))
}

// checkUpdate refuses an invalid update.
func checkUpdate(update *SessionUpdate) *flaw {
	if u, ok := update.Variant.(*SessionUpdateAgentMessageChunk); ok && u != nil { // nearly all updates
		return checkBlock("/update/content", &u.Content)
	}
	if missing(update.Variant) {
		return nil
	}
	switch u := update.Variant.(type) {
	case *SessionUpdateUserMessageChunk:
		return checkBlock("/update/content", &u.Content)
	case *SessionUpdateAgentThoughtChunk:
		return checkBlock("/update/content", &u.Content)
	case *SessionUpdateToolCall:
		const at = "/update"
		return cmp.Or(checkUnlessEmpty(at+"/kind", u.Kind), checkUnlessEmpty(at+"/status", u.Status),
			checkID(at+"/toolCallId", u.ToolCallID),
			checkToolContent(at+"/content", u.Content), checkLocations(at+"/locations", u.Locations),
			checkRaw(at+"/rawInput", u.RawInput), checkRaw(at+"/rawOutput", u.RawOutput))
	case *SessionUpdateToolCallUpdate:
		return checkToolCall("/update", (*ToolCallUpdate)(u))
	case *SessionUpdatePlan:
		return checkEntries("/update/entries", u.Entries)
	case *SessionUpdateCurrentModeUpdate:
		return checkID("/update/currentModeId", u.CurrentModeID)
	case *SessionUpdateCompactionUpdate:
		return cmp.Or(checkID("/update/compactionId", u.CompactionID), checkBlocks("/update/summary", u.Summary.Value()))
	case *SessionUpdateCompactionSummaryChunk:
		return cmp.Or(checkID("/update/compactionId", u.CompactionID), checkBlock("/update/content", &u.Content))
	case *SessionUpdatePlanUpdate:
		return checkPlan(&u.Plan)
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

// checkPlan refuses a plan without an id or with invalid entries.
func checkPlan(plan *PlanUpdateContent) *flaw {
	const at = "/update/plan/planId"
	if missing(plan.Variant) {
		return nil
	}
	switch p := plan.Variant.(type) {
	case *PlanUpdateContentItems:
		return cmp.Or(checkID(at, p.PlanID), checkEntries("/update/plan/entries", p.Entries))
	case *PlanUpdateContentFile:
		return checkID(at, p.PlanID)
	case *PlanUpdateContentMarkdown:
		return checkID(at, p.PlanID)
	default:
		return nil
	}
}

// checkEntries refuses plan entries with a priority or a status that the protocol does not define.
func checkEntries(at string, entries []PlanEntry) *flaw {
	for i := range entries {
		e := &entries[i]
		if wrong := cmp.Or(checkKnown("priority", e.Priority), checkKnown("status", e.Status)); wrong != nil {
			return &flaw{fmt.Sprintf("%s/%d/%s", at, i, wrong.pointer), wrong.reason}
		}
	}
	return nil
}

// checkModes refuses modes without an id.
func checkModes(modes Opt[SessionModeState]) *flaw {
	state, ok := modes.Get()
	if !ok {
		return nil
	}
	for i := range state.AvailableModes {
		if state.AvailableModes[i].ID == "" {
			return &flaw{fmt.Sprintf("/modes/availableModes/%d/id", i), "must not be empty"}
		}
	}
	return checkID("/modes/currentModeId", state.CurrentModeID)
}

// checkToolCall refuses an invalid description of a tool call.
func checkToolCall(at string, u *ToolCallUpdate) *flaw {
	if u.ToolCallID == "" {
		return &flaw{at + "/toolCallId", "must not be empty"}
	}
	if wrong := cmp.Or(checkUnlessEmpty(at+"/kind", u.Kind.Value()),
		checkUnlessEmpty(at+"/status", u.Status.Value())); wrong != nil {
		return wrong
	}
	if content, ok := u.Content.Get(); ok {
		if wrong := checkToolContent(at+"/content", content); wrong != nil {
			return wrong
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

// checkToolContent refuses diffs whose path is not absolute, terminals without an id, and invalid content blocks.
func checkToolContent(at string, content []ToolCallContent) *flaw {
	for i := range content {
		if missing(content[i].Variant) {
			continue
		}
		switch c := content[i].Variant.(type) {
		case *ToolCallContentContent:
			if wrong := checkBlock("/content", &c.Content); wrong != nil {
				return &flaw{fmt.Sprintf("%s/%d%s", at, i, wrong.pointer), wrong.reason}
			}
		case *ToolCallContentDiff:
			if !absolute(c.Path) {
				return &flaw{fmt.Sprintf("%s/%d/path", at, i), "not an absolute path"}
			}
		case *ToolCallContentTerminal:
			if c.TerminalID == "" {
				return &flaw{fmt.Sprintf("%s/%d/terminalId", at, i), "must not be empty"}
			}
		default: // has nothing to check
		}
	}
	return nil
}

// checkBlocks refuses annotations with roles that the protocol does not define, unless this process has read them.
func checkBlocks(at string, blocks []ContentBlock) *flaw {
	for i := range blocks {
		if wrong := checkBlock("", &blocks[i]); wrong != nil {
			return &flaw{fmt.Sprintf("%s/%d%s", at, i, wrong.pointer), wrong.reason}
		}
	}
	return nil
}

// checkBlock is checkBlocks for one block.
func checkBlock(at string, block *ContentBlock) *flaw {
	annotations := annotationsOf(block)
	if annotations == nil || !annotations.Present() {
		return nil
	}
	for i, role := range annotations.Value().Audience.Value() {
		if wrong := checkKnown("", role); wrong != nil {
			return &flaw{fmt.Sprintf("%s/annotations/audience/%d", at, i), wrong.reason}
		}
	}
	return nil
}

// annotationsOf returns the annotations of a block, or nil if the block has none or is of an unknown kind.
func annotationsOf(block *ContentBlock) *Opt[Annotations] {
	if text, ok := block.Variant.(*ContentBlockText); ok && text != nil { // nearly all blocks
		return &text.Annotations
	}
	if missing(block.Variant) {
		return nil
	}
	switch c := block.Variant.(type) {
	case *ContentBlockImage:
		return &c.Annotations
	case *ContentBlockAudio:
		return &c.Annotations
	case *ContentBlockResourceLink:
		return &c.Annotations
	case *ContentBlockResource:
		return &c.Annotations
	default:
		return nil
	}
}

// checkForm refuses a form whose type, or one of whose formats, the protocol does not define, unless this process has
// read it.
func checkForm(req *CreateElicitationRequest) *flaw {
	form, ok := req.Variant.(*CreateElicitationRequestForm)
	if !ok || form == nil {
		return nil
	}
	const at = "/requestedSchema"
	schema := &form.RequestedSchema
	if schema.Type != "" {
		if wrong := checkKnown(at+"/type", schema.Type); wrong != nil {
			return wrong
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) { // in order, so that the result is deterministic
		text, ok := schema.Properties[name].Variant.(*ElicitationPropertySchemaString)
		if !ok || text == nil {
			continue
		}
		if format, ok := text.Format.Get(); ok {
			if wrong := checkKnown(at+"/properties/"+pointerEscapes.Replace(name)+"/format", format); wrong != nil {
				return wrong
			}
		}
	}
	return nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// check refuses messages that an agent must not send.
func (c *AgentConn) check(method string, params any) error {
	if c.handshake.Load() == nil {
		return unsent(method, errNotInitialized)
	}
	if !isTextChunk(params) {
		if err := c.enabled.lacks("AgentOptions", params); err != nil {
			return unsent(method, err)
		}
	}
	wrong := checkSent(params)
	if n, ok := params.(*SessionNotification); ok && wrong == nil {
		if u, ok := n.Update.Variant.(*SessionUpdateConfigOptionUpdate); ok && u != nil {
			wrong = c.checkConfigOptions("/update/configOptions", u.ConfigOptions)
		}
	}
	if wrong != nil {
		return unsent(method, wrongParams{wrong})
	}
	return nil
}

// isTextChunk reports whether params is an update with a piece of the agent's message that is text, as nearly all are.
// Such an update cannot use experimental features, and looking for them takes 3 % of the time of a small update.
func isTextChunk(params any) bool {
	n, ok := params.(*SessionNotification)
	if !ok {
		return false
	}
	chunk, ok := n.Update.Variant.(*SessionUpdateAgentMessageChunk)
	if !ok || chunk == nil {
		return false
	}
	_, ok = chunk.Content.Variant.(*ContentBlockText)
	return ok
}

// checkConfigOptions refuses options with the same id, and boolean options for a client that did not advertise support
// for them (CFG-3).
func (c *AgentConn) checkConfigOptions(pointer string, options []SessionConfigOption) *flaw {
	if wrong := checkConfigIDs(pointer, options); wrong != nil {
		return wrong
	}
	if c.SupportsBooleanConfig() {
		return nil
	}
	for i := range options {
		if _, boolean := options[i].Variant.(*SessionConfigOptionBoolean); boolean {
			return &flaw{fmt.Sprintf("%s/%d/type", pointer, i), "the client does not know boolean options"}
		}
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
		case *AuthenticateRequest:
			if err := checkOffered(handshake.AuthMethods, p.MethodID); err != nil {
				return unsent(method, err)
			}
		case *SetSessionModeRequest:
			wrong = c.checkMode(p)
		case *SetSessionConfigOptionRequest:
			wrong = c.checkConfigOption(p)
		}
	}
	if wrong != nil {
		return unsent(method, wrongParams{wrong})
	}
	return nil
}

// checkMode refuses modes that the session does not have, as far as this connection knows them.
func (c *ClientConn) checkMode(req *SetSessionModeRequest) *flaw {
	s := c.sessions.get(req.SessionID)
	if s == nil {
		return nil
	}
	modes, ok := s.Modes().Get()
	if !ok && !s.current().created {
		return nil
	}
	ids := make([]SessionModeID, len(modes.AvailableModes))
	for i := range ids {
		ids[i] = modes.AvailableModes[i].ID
	}
	if slices.Contains(ids, req.ModeID) {
		return nil
	}
	return notOffered("/modeId", req.ModeID, "a mode of the session", ids)
}

// Names that let code shared by both protocol versions compile in this one.
type (
	loginRequest       = AuthenticateRequest
	configValue        = SetSessionConfigOptionRequestValueID
	updateNotification = SessionNotification
	cancelNotification = CancelNotification
)

const methodLogin = MethodAuthenticate

// configID returns the id of a config option.
func configID(x *SessionConfigOption) SessionConfigID { return x.ID }

// authID returns the id of an authentication method, or "" if it has none.
func authID(method *AuthMethod) AuthMethodID {
	if missing(method.Variant) {
		return ""
	}
	switch m := method.Variant.(type) {
	case *AuthMethodTerminal:
		return m.ID
	case *AuthMethodAgent:
		return m.ID
	default:
		raw, _ := method.MarshalJSON() // a method without JSON has no id either
		return AuthMethodID(rawID(raw, "id"))
	}
}

// serversOf returns the MCP servers of a request.
func serversOf(params any) []MCPServer {
	switch p := params.(type) {
	case *NewSessionRequest:
		return p.MCPServers
	case *LoadSessionRequest:
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
	case *LoadSessionRequest:
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
	advertised, ok := x.SessionCapabilities.SystemPrompt.Get()
	switch {
	case !ok:
		return "sessionCapabilities.systemPrompt"
	case prompt.Mode == SystemPromptModeOverride && !advertised.Mode.Value().Override.Present():
		return "sessionCapabilities.systemPrompt.mode.override"
	}
	return ""
}
