package translate

import "encoding/json"

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
	if asked = min(asked, 2); s.program == AgentSide && asked == s.version {
		s.choose(pass)
		s.forward(m)
		return nil
	} else if s.program == ClientSide && asked != s.version {
		s.forward(m)
		return nil
	}
	params := append(object{}, m.params...)
	if asked == 2 {
		s.addClient1(&params)
		if s.program == AgentSide {
			params.drop("info", "capabilities")
		}
	} else {
		s.readClient1(params.sub("clientCapabilities"))
		addClient2(&params)
		if s.program == AgentSide {
			params.drop("clientInfo", "clientCapabilities")
		}
	}
	version := 2
	if s.program == AgentSide {
		version = s.version
	}
	params.set("protocolVersion", number(version))
	s.asked = m.line
	if err := s.send(m, "initialize", params, s.initialized); err != nil {
		s.asked = nil
		return err
	}
	return nil
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
		if s.program == ClientSide && !s.again && !supportsOnly2(m.all.sub("error")) {
			s.askAgain(first)
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
	case s.program == ClientSide && version != "1" && version != "2":
		s.forward(m) // the client refuses it
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

// supportsOnly2 reports whether an error says that version 1 is not supported.
func supportsOnly2(err object) bool {
	supported := err.sub("data").list("supported")
	for _, version := range supported {
		if string(version) == "1" {
			return false
		}
	}
	return string(err.get("code")) == "-32022" && len(supported) > 0
}

// askAgain sends the request for version 1 to an agent that has refused version 2.
func (s *State) askAgain(first []byte) {
	again, err := read(ClientSide, first)
	if err != nil || again == nil {
		return // cannot happen: it was read before
	}
	s.again, s.asked = true, first
	params := append(object{}, again.params...)
	if s.version == 2 {
		params.drop("info", "capabilities")
		s.addClient1(&params)
		params.drop("info", "capabilities")
	}
	params.set("protocolVersion", number(1))
	_ = s.send(again, "initialize", params, s.initialized) // its id was accepted before
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
