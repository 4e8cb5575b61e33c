package translate

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/acpgo/sdk/internal/plain"
)

// initialize handles the request that chooses the version.
func (s *State) initialize(m *message) *fault {
	var asked int
	if s.mode != undecided || s.asked != nil {
		return &fault{-32600, "Invalid request: initialize comes once", nil}
	}
	if m.id == nil || m.params == nil || json.Unmarshal(m.params.get("protocolVersion"), &asked) != nil || asked < 1 ||
		asked > math.MaxUint16 {
		return s.forward(m) // the agent refuses it
	}
	s.spoken = min(asked, 2)
	both := s.spoken == 2 && m.params.has("clientCapabilities") // the client speaks version 1, too
	s.either = both && s.version == 0
	switch {
	case s.program == AgentSide && s.spoken == s.version:
		s.emit(AgentSide, m.line)
		s.choose(pass)
		return nil
	case s.program == AgentSide && both: // nothing is lost in version 1
		params := slices.Clone(m.params)
		params.set("protocolVersion", number(s.version))
		if !params.has("clientInfo") {
			params.set("clientInfo", params.get("info"))
		}
		params.drop("info", "capabilities")
		s.emit(AgentSide, m.with(m.method, params))
		s.spoken = s.version
		s.choose(pass)
		return nil
	case s.program == AgentSide:
		s.order = []int{s.version}
	case s.version != 0 && s.spoken != s.version:
		return s.forward(m)
	case s.only != 0:
		s.order = []int{s.only}
	case s.either:
		s.order = []int{2}
	case s.version == 0:
		s.order = []int{s.spoken, 3 - s.spoken}
	default:
		s.order = []int{2, 1}
	}
	return s.askVersion(m)
}

// askVersion asks the agent for the next version. A client that could also speak the other one sends the members of
// both.
func (s *State) askVersion(m *message) *fault {
	version, params := s.order[0], slices.Clone(m.params)
	s.order, s.last = s.order[1:], version
	if s.client = (abilities{}); s.spoken == 1 {
		s.readClient1(m.params.sub("clientCapabilities"))
	}
	s.asked = m
	if err := s.expect(AgentSide, m.id, len(m.line), s.initialized); err != nil {
		s.asked = nil
		return err
	}
	switch {
	case s.spoken == 1 && version == 1: // as it is, even in its formatting
		s.emit(AgentSide, m.line)
		return nil
	case s.spoken == 1:
		if !params.has("clientCapabilities") {
			params.set("clientCapabilities", emptyObj)
		}
		addClient2(&params)
	case !s.either:
		s.addClient1(&params)
	}
	only := s.only != 0 || s.program == AgentSide || s.spoken == 2 && version == 1
	if only && version == 1 {
		params.drop("info", "capabilities")
	} else if only {
		params.drop("clientInfo", "clientCapabilities")
	}
	params.set("protocolVersion", number(version))
	s.emit(AgentSide, m.with(m.method, params))
	return nil
}

// choose is called once, when the versions are known.
func (s *State) choose(m mode) {
	if s.mode = m; m == pass {
		s.calls = nil
	}
	if s.chosen != nil {
		s.chosen(s.Version())
	}
}

// addClient1 adds what an agent of version 1 reads. What version 2 always has and version 1 only on request is
// advertised; files and terminals are only those of the host.
func (s *State) addClient1(params *object) {
	capabilities := params.sub("capabilities")
	auth, had := capabilities.sub("auth"), capabilities.get("auth") != nil
	if auth.index("terminal") >= 0 {
		auth.set("terminal", boolean(marker(auth.get("terminal"))))
	}
	caps := append(object{}, capabilities...)
	if had {
		caps.set("auth", auth.text())
	}
	s.host.advertise(&caps)
	meta := append(object{}, caps.sub("_meta")...)
	meta.set(plain.TerminalKey, yes)
	meta.set(plain.CancelKey, yes)
	meta.set(MetaIdempotencyKey, yes)
	caps.set("_meta", meta.text())
	caps.set("session", obj("compaction", emptyObj, "configOptions", obj("boolean", emptyObj), "notices", emptyObj).text())
	params.set("clientCapabilities", caps.text())
	params.set("clientInfo", params.get("info"))
}

// addClient2 adds what an agent of version 2 reads.
func addClient2(params *object) {
	caps := append(object{}, params.sub("clientCapabilities")...)
	caps.drop("fs", "terminal", "session", "subagents", "plan")
	if auth := caps.sub("auth"); auth != nil {
		auth.set("terminal", markerOf(auth.get("terminal")))
		caps.set("auth", auth.text())
	} else {
		caps.drop("auth")
	}
	params.set("capabilities", caps.text())
	params.set("info", info(params.get("clientInfo"), "client"))
}

// readClient1 remembers what a client of version 1 understands.
func (s *State) readClient1(caps object) {
	session := caps.sub("session")
	s.client = abilities{
		plan: marker(caps.get("plan")), subagents: marker(caps.get("subagents")),
		booleans: marker(session.sub("configOptions").get("boolean")),
		notices:  marker(session.get("notices")), compaction: marker(session.get("compaction")),
	}
}

// initialized handles the answer to initialize. An error leaves the version open, so that the client can ask again.
func (s *State) initialized(m *message) {
	request := s.asked
	s.asked = nil
	if m.all.has("error") {
		if len(s.order) > 0 && refuses(m.all.sub("error"), s.order[0]) && s.askVersion(request) == nil {
			return
		}
		s.emit(ClientSide, m.line)
		return
	}
	result := s.result(m)
	if result == nil {
		return
	}
	version := string(result.get("protocolVersion"))
	if version == "2" && !result.has("capabilities") && !result.has("info") {
		version = "1" // an agent of version 1 that echoes any version
	}
	if s.spoken == 1 && s.last == 1 && version == "2" && len(s.order) > 0 && s.askVersion(request) == nil {
		return // it has only version 2, for which the request had no members
	}
	switch {
	case s.program == AgentSide && version != string(number(s.version)):
		s.emit(ClientSide, failure(m.id, &fault{-32603, "Internal error: the agent chose a version that it was not asked for",
			nil}))
	case version != "1" && version != "2":
		s.emit(ClientSide, m.line) // the client refuses it
	case s.either, version == string(number(s.spoken)):
		s.spoken = int(version[0] - '0')
		s.choose(pass)
		result.set("protocolVersion", raw(version))
		s.reply(m, result)
	case version == "1":
		s.choose(agent1)
		s.agentTo2(&result)
		s.reply(m, result)
	default:
		s.choose(agent2)
		if s.shared && result.sub("capabilities").get("session") != nil {
			meta := append(object{}, result.sub("_meta")...)
			meta.set(MetaIdempotencyKey, obj("replay", yes).text())
			result.set("_meta", meta.text())
		}
		agentTo1(&result)
		s.reply(m, result)
	}
}

// canAskAgain reports whether the agent's end would be the answer to initialize, and another connection may help.
func (s *State) canAskAgain() bool { return s.asked != nil && s.program == ClientSide && !s.again }

// askAgain asks on another connection: for the next version, or, if that is the one that the agent did not answer any
// more, for this one.
func (s *State) askAgain() []Message {
	s.out, s.again, s.calls, s.pending = s.out[:0], true, map[callID]pending{}, 0
	if len(s.order) == 0 {
		s.order = []int{s.last}
	}
	if err := s.askVersion(s.asked); err != nil {
		s.emit(ClientSide, failure(s.asked.id, err))
	}
	return s.out
}

// refuses reports whether an error may be about the version that was asked for, and does not say that the other one is
// not supported either.
func refuses(err object, other int) bool {
	switch string(err.get("code")) {
	case "-32600", "-32602":
		return true
	case "-32022": // unsupported protocol version
		supported := err.sub("data").list("supported")
		return len(supported) == 0 ||
			slices.ContainsFunc(supported, func(v raw) bool { return string(v) == string(number(other)) })
	}
	return false
}

// agentTo2 translates an agent's answer from version 1.
func (s *State) agentTo2(result *object) {
	caps := append(object{}, result.sub("agentCapabilities")...)
	session, auth := append(object{}, caps.sub("sessionCapabilities")...), caps.sub("auth")
	s.agent = abilities{
		load: isTrue(caps.get("loadSession")), resume: marker(session.get("resume")), list: marker(session.get("list")),
		close: marker(session.get("close")), logout: marker(auth.get("logout")),
		steering: isTrue(result.sub("_meta").sub(plain.SteerKey).get("supported")),
		cancels:  isTrue(result.sub("_meta").sub(plain.CancelKey).get("supported")),
		keys:     marker(result.sub("_meta").get(MetaIdempotencyKey)),
	}
	prompt, mcp := caps.sub("promptCapabilities"), caps.sub("mcpCapabilities")
	markers(&prompt)
	markers(&mcp)
	mcp.drop("sse")
	mcp = obj("stdio", emptyObj).and(mcp)
	session.drop("list", "resume", "close")
	session = obj("prompt", prompt, "mcp", mcp).and(session)
	caps.drop("loadSession", "promptCapabilities", "mcpCapabilities", "sessionCapabilities")
	if auth != nil {
		auth.drop("logout")
		caps.set("auth", auth.text())
	}
	caps.set("session", session.text())
	name := result.get("agentInfo")
	methods := result.index("authMethods") >= 0
	list := editObjects(result.list("authMethods"), func(method *object) bool {
		method.rename("id", "methodId")
		if method.str("type") == "" {
			method.set("type", quote("agent"))
		}
		if env := method.get("env"); len(env) > 0 && env[0] == '{' {
			method.set("env", variables(env))
		}
		return true
	})
	result.drop("agentCapabilities", "agentInfo", "authMethods", "capabilities", "info")
	result.set("protocolVersion", number(2))
	result.set("info", info(name, "agent"))
	result.set("capabilities", caps.text())
	if methods {
		result.set("authMethods", list)
	}
}

// agentTo1 translates an agent's answer from version 2.
func agentTo1(result *object) {
	caps := append(object{}, result.sub("capabilities")...)
	methods := editObjects(result.list("authMethods"), func(method *object) bool {
		method.rename("methodId", "id")
		switch kind := method.str("type"); kind {
		case "agent":
			method.drop("type")
		case "terminal":
			if method.has("env") {
				method.set("env", environment(method.list("env")))
			}
		default:
			return false
		}
		return true
	})
	if session := caps.sub("session"); session != nil {
		prompt, mcp := session.sub("prompt"), session.sub("mcp")
		mcp.drop("stdio")
		flags(&prompt)
		flags(&mcp)
		session.drop("prompt", "mcp")
		session = obj("list", emptyObj, "resume", emptyObj, "close", emptyObj).and(session)
		caps.drop("session")
		caps = obj("loadSession", yes, "promptCapabilities", prompt, "mcpCapabilities", mcp, "sessionCapabilities",
			session).and(caps)
	}
	if auth := caps.sub("auth"); auth != nil || len(list(methods)) > 0 {
		if len(list(methods)) > 0 {
			auth.set("logout", emptyObj)
		}
		caps.set("auth", auth.text())
	} else {
		caps.drop("auth")
	}
	name := result.get("info")
	had := result.has("authMethods")
	result.drop("info", "capabilities", "authMethods", "agentInfo", "agentCapabilities")
	result.set("protocolVersion", number(1))
	result.set("agentInfo", name)
	result.set("agentCapabilities", caps.text())
	if had {
		result.set("authMethods", methods)
	}
}

// logout1 is auth/logout, which agents of version 1 need not have.
func (s *State) logout1(m *message) *fault {
	if !s.agent.logout {
		return errNoMethod("auth/logout")
	}
	return s.send(m, "logout", m.params, nil)
}

// info returns a name and version, which version 2 requires.
func info(given raw, role string) raw {
	if i, ok := parse(orNull(given)); ok {
		if i.get("name") == nil {
			i.set("name", quote(role))
		}
		if i.get("version") == nil {
			i.set("version", quote(""))
		}
		return i.text()
	}
	return obj("name", role, "version", "").text()
}

// markerOf returns the capability of version 2 for one of version 1.
func markerOf(flag raw) raw {
	switch {
	case isTrue(flag):
		return emptyObj
	case marker(flag):
		return flag
	}
	return nil
}

// markers turns flags into capabilities of version 2, and flags the reverse. Members that are neither stay.
func markers(o *object) {
	*o = slices.DeleteFunc(slices.Clone(*o), func(m member) bool { return string(m.value) == "false" || isNull(m.value) })
	for i, m := range *o {
		if isTrue(m.value) {
			(*o)[i].value = emptyObj
		}
	}
}

func flags(o *object) {
	*o = append(object{}, *o...)
	for i, m := range *o {
		if m.name != "_meta" && (marker(m.value) || isNull(m.value)) {
			(*o)[i].value = boolean(marker(m.value))
		}
	}
}

// variables turns the environment of a login in a terminal into a list, and environment the reverse.
func variables(env raw) raw {
	members, _ := parse(env)
	var all []raw
	for _, m := range members {
		all = append(all, obj("name", m.name, "value", m.value).text())
	}
	return array(all...)
}

func environment(vars []raw) raw {
	var all object
	names := map[string]bool{}
	for _, v := range vars {
		if o, ok := parse(v); ok && o.str("name") != "" && o.get("value") != nil && !names[o.str("name")] {
			names[o.str("name")] = true
			all = append(all, member{o.str("name"), o.get("value")})
		}
	}
	return all.text()
}
