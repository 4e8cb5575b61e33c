package translate

import (
	"cmp"
	"encoding/json"
	"slices"
)

// abilities is what one side has advertised, as far as the translation needs it.
type abilities struct {
	// of an agent of version 1
	load, resume, list, close, logout bool
	// of a client of version 1
	plan, booleans, notices, compaction, subagents bool
}

// initialize handles the request that chooses the version.
func (s *State) initialize(m *message) *fault {
	var asked int
	if s.mode != undecided || s.asked != nil {
		return &fault{-32600, "Invalid request: initialize comes once", nil}
	}
	if m.id == nil || json.Unmarshal(m.params.get("protocolVersion"), &asked) != nil || asked < 1 || m.params == nil {
		s.forward(m) // the agent refuses it
		return nil
	}
	asked = min(asked, 2)
	both := asked == 2 && m.params.has("clientCapabilities") // the client speaks version 1, too
	if s.version == 0 && !both {
		s.version = asked
		s.first = cmp.Or(s.first, s.version)
	}
	switch {
	case s.program == AgentSide && asked == s.version:
		s.choose(pass)
		s.forward(m)
		return nil
	case s.program == AgentSide && both: // nothing is lost in version 1
		s.choose(pass)
		params := append(object{}, m.params...)
		params.set("protocolVersion", number(s.version))
		if !params.has("clientInfo") {
			params.set("clientInfo", params.get("info"))
		}
		params.drop("info", "capabilities")
		return s.send(m, "initialize", params, nil)
	case s.program == ClientSide && s.version != 0 && asked != s.version:
		s.forward(m)
		return nil
	}
	version := cmp.Or(s.first, 2)
	if s.program == AgentSide {
		version = s.version
	}
	s.asked = m.line
	if err := s.request(m, asked, version); err != nil {
		s.asked = nil
		return err
	}
	return nil
}

// request sends a client's request to an agent, which is asked for a version. A client that could also speak the other
// one sends the members of both.
func (s *State) request(m *message, client, version int) *fault {
	params := append(object{}, m.params...)
	if client == 1 {
		s.readClient1(m.params.sub("clientCapabilities"))
	}
	only := s.only || s.program == AgentSide || client == 2 && version == 1
	switch {
	case client == 1 && version == 1: // as it is, even in its formatting
		if err := s.expect(AgentSide, m.id, len(m.line), s.initialized); err != nil {
			return err
		}
		s.forward(m)
		return nil
	case client == 1:
		if !params.has("clientCapabilities") {
			params.set("clientCapabilities", emptyObj)
		}
		addClient2(&params)
	case s.version != 0:
		s.addClient1(&params)
	}
	if only && version == 1 {
		params.drop("info", "capabilities")
	} else if only {
		params.drop("clientInfo", "clientCapabilities")
	}
	params.set("protocolVersion", number(version))
	return s.send(m, "initialize", params, s.initialized)
}

func (s *State) choose(m mode) {
	s.mode = m
	if s.chosen != nil {
		s.chosen(s.Version())
	}
}

// addClient1 adds what an agent of version 1 reads. What version 2 always has and version 1 only on request is
// advertised; files and terminals of the client are not.
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
	first := s.asked
	s.asked = nil
	if m.all.has("error") {
		other := 3 - cmp.Or(s.first, 2)
		if s.program == ClientSide && s.version != 0 && !s.again && !s.only && refuses(m.all.sub("error"), other) {
			s.askAgain(first, other)
			return
		}
		s.forward(m)
		return
	}
	result := s.result(m)
	if result == nil {
		return
	}
	version := string(result.get("protocolVersion"))
	if version == "2" && !result.has("capabilities") && !result.has("info") && (result.has("agentCapabilities") || result.has("agentInfo")) {
		version = "1" // an agent that echoes any version
	}
	switch {
	case version != "1" && version != "2" && s.program == ClientSide:
		s.forward(m) // the client refuses it
	case s.version == 0:
		s.version = int(version[0] - '0')
		s.choose(pass)
		result.set("protocolVersion", raw(version))
		s.reply(m, result)
	case s.program == ClientSide && version == string(number(s.version)):
		s.choose(pass)
		result.set("protocolVersion", raw(version))
		s.reply(m, result)
	case version == "1" && (s.program == ClientSide || s.version == 1):
		s.choose(agent1)
		s.agentTo2(&result)
		s.reply(m, result)
	case version == "2" && (s.program == ClientSide || s.version == 2):
		s.choose(agent2)
		agentTo1(&result)
		s.reply(m, result)
	default:
		s.emit(m.from.other(), failure(m.id, &fault{-32603, "Internal error: the agent chose a version that it was not asked for", nil}))
	}
}

// refuses reports whether an error may be about the version that was asked for, and does not say that the other one is
// not supported either.
func refuses(err object, other int) bool {
	switch string(err.get("code")) {
	case "-32600", "-32602":
		return true
	case "-32022": // unsupported protocol version
		supported := err.sub("data").list("supported")
		return len(supported) == 0 || slices.ContainsFunc(supported, func(v raw) bool { return string(v) == string(number(other)) })
	}
	return false
}

// askAgain sends the request for the other version to an agent that has refused the first one.
func (s *State) askAgain(first []byte, version int) {
	again, err := read(ClientSide, first)
	if err != nil || again == nil {
		return // cannot happen: it was read before
	}
	s.again, s.asked = true, first
	_ = s.request(again, s.version, version) // its id was accepted before
}

// agentTo2 translates an agent's answer from version 1.
func (s *State) agentTo2(result *object) {
	caps := append(object{}, result.sub("agentCapabilities")...)
	session, auth := append(object{}, caps.sub("sessionCapabilities")...), caps.sub("auth")
	s.agent = abilities{
		load: isTrue(caps.get("loadSession")), resume: marker(session.get("resume")), list: marker(session.get("list")),
		close: marker(session.get("close")), logout: marker(auth.get("logout")),
	}
	prompt, mcp := caps.sub("promptCapabilities"), caps.sub("mcpCapabilities")
	markers(&prompt)
	markers(&mcp)
	mcp.drop("sse")
	mcp = append(obj("stdio", emptyObj), mcp...)
	session.drop("list", "resume", "close")
	session = append(obj("prompt", prompt, "mcp", mcp), session...)
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
		session = append(obj("list", emptyObj, "resume", emptyObj, "close", emptyObj), session...)
		caps.drop("session")
		caps = append(obj("loadSession", yes, "promptCapabilities", prompt, "mcpCapabilities", mcp, "sessionCapabilities", session), caps...)
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

func orNull(text raw) raw {
	if text == nil {
		return null
	}
	return text
}

func boolean(b bool) raw {
	if b {
		return yes
	}
	return no
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
	*o = append(object{}, *o...)
	for _, m := range append(object{}, *o...) {
		if isTrue(m.value) || string(m.value) == "false" || isNull(m.value) && m.name != "_meta" {
			o.set(m.name, markerOf(m.value))
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
	for _, v := range vars {
		if o, ok := parse(v); ok && o.str("name") != "" && o.get("value") != nil {
			all.set(o.str("name"), o.get("value"))
		}
	}
	return all.text()
}
