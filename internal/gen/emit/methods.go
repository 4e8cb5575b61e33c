package emit

import (
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// methods writes the names and the typed descriptors of all methods.
func (g *generator) methods(f *jen.File) {
	f.Comment("The names of the protocol's methods.")
	f.Const().DefsFunc(func(group *jen.Group) {
		for _, m := range g.pkg.Methods {
			lines := paragraph(m.Const+" names "+kind(m)+" that "+handledBy(m.Side)+".", 4)
			commentIn(group, experimental(lines, m.Experimental, m.Feature, 4))
			group.Id(m.Const).Op("=").Lit(m.Name)
		}
	})
	f.Line()
	if !g.Facade {
		commentIn(f.Group, paragraph("The methods with the types of their parameters and results: Call and Notify send "+
			"them, [rpc.HandleMethod] and [rpc.HandleNotificationMethod] serve them.", 0))
	} else {
		f.Comment("requestMethod is an engine.RequestMethod without methods, which the compiler would make for each.")
		f.Type().Id("requestMethod").Types(jen.Id("P").Op(",").Id("R").Id("any")).Struct(
			jen.Id("Name").String(), jen.Id("NullResult").Bool())
		f.Line()
	}
	f.Var().DefsFunc(func(group *jen.Group) {
		for _, m := range g.pkg.Methods {
			switch {
			case m.Side == model.Protocol || g.Facade && !m.Request():
			case g.Facade:
				group.Id(m.Desc).Op("=").Add(g.descriptor(m))
			default:
				text := m.Var + " is " + m.Name + ", " + kind(m) + " that " + handledBy(m.Side) + "."
				if m.Doc != "" {
					text += "\n\n" + stop(m.Doc)
				}
				commentIn(group, markdown(text, 4))
				group.Id(m.Var).Op("=").Add(g.descriptor(m))
			}
		}
	})
	f.Line()
}

// descriptor returns the typed descriptor of a method.
func (g *generator) descriptor(m *model.Method) *jen.Statement {
	params := jen.Id(m.Params.Base().Go)
	var values fields
	values.set("Name", jen.Id(m.Const))
	values.setIf("NullResult", m.NullResult)
	switch {
	case g.Facade:
		return jen.Id("requestMethod").
			Types(jen.Op("*").Add(params), jen.Op("*").Id(m.Result.Base().Go)).Values(values...)
	case !m.Request():
		return g.rpcName("NotificationMethod").Types(params).Values(values...)
	}
	return g.rpcName("RequestMethod").Types(params, jen.Id(m.Result.Base().Go)).Values(values...)
}

func kind(m *model.Method) string {
	if m.Request() {
		return "a request"
	}
	return "a notification"
}

func handledBy(s model.Side) string {
	switch s {
	case model.Agent:
		return "agents handle"
	case model.Client:
		return "clients handle"
	case model.Proxy:
		return "proxies and their conductors handle"
	case model.Protocol:
		return "connections handle"
	}
	return "both sides handle"
}

// role is one of the two sides in code. Its types are named after the side; the calls that it serves are methods of
// the types of the other one.
type role struct {
	side     model.Side
	article  string // the side in a sentence
	handlers string // the type of its handlers
	conn     string // the type of its connection
	session  string // the type of its sessions, or ""
	caller   string // the connection type of the other side, which calls it
	calls    string // the session type of the other side, or ""
}

var roles = []role{
	{model.Agent, "an agent", "AgentHandlers", "AgentConn", "AgentSession", "ClientConn", "ClientSession"},
	{model.Client, "a client", "ClientHandlers", "ClientConn", "ClientSession", "AgentConn", "AgentSession"},
	{model.Proxy, "a proxy, or its conductor,", "ProxyHandlers", "ProxyConn", "", "ProxyConn", ""},
}

// handled returns the methods that a side has handlers for.
func (g *generator) handled(side model.Side) []*model.Method {
	var out []*model.Method
	for _, m := range g.pkg.Methods {
		if (m.Side == side || m.Side == model.Both && side != model.Proxy) && !m.Derived {
			out = append(out, m)
		}
	}
	return out
}

// experimentalLast moves the experimental methods behind the others.
func experimentalLast(methods []*model.Method) {
	slices.SortStableFunc(methods, func(a, b *model.Method) int {
		switch {
		case a.Experimental == b.Experimental:
			return 0
		case a.Experimental:
			return 1
		}
		return -1
	})
}

// handlers writes the structs of handlers, and their conversion to routes.
func (g *generator) handlers(f *jen.File) {
	for _, r := range roles {
		g.handlersOf(f, r)
	}
}

func (g *generator) handlersOf(f *jen.File, r role) {
	methods := g.handled(r.side)
	if len(methods) == 0 {
		return
	}
	experimentalLast(methods)
	var body, routes []jen.Code
	for _, m := range methods {
		name, of := "conn", r.conn
		if m.Session != nil && r.session != "" {
			name, of = "session", r.session
		}
		params := jen.List(
			jen.Id("ctx").Qual("context", "Context"),
			jen.Id(name).Op("*").Id(of),
			jen.Id(paramName(m)).Op("*").Id(m.Params.Base().Go))
		body = append(body, comment(g.handlerDoc(m))...)
		body = append(body, jen.Id(m.Go).Func().Params(params).Add(results(m), fieldTag(codecTag(featureOption(m.Feature)))),
			jen.Line())

		route, method := "notification", m.Const
		if m.Request() {
			route, method = "request", m.Desc
		}
		give := jen.Func().Params(jen.Op("*").Id(m.Params.Base().Go)).Op("*").Id(of).
			Add(oneLine(jen.Return(jen.Id("conn"))))
		if name == "session" {
			give = jen.Func().Params(jen.Id("p").Op("*").Id(m.Params.Base().Go)).Op("*").Id(of).
				Add(oneLine(jen.Return(jen.Id("conn").Dot("Session").Call(jen.Id("p").Dot(m.Session.Go)))))
		}
		routes = append(routes, jen.Id(route).Call(jen.Id(method), give, jen.Id("h").Dot(m.Go)))
	}
	body = append(body,
		jen.Comment("// Extensions handle methods outside the protocol; nil means none."),
		jen.Id("Extensions").Op("*").Add(g.rpcName("Extensions")).Types(jen.Id(r.conn)))

	doc := r.handlers + " has the functions that handle the requests and notifications that " + r.article +
		" receives. If a handler is nil, its requests are answered with method not found, its notifications" +
		" are ignored, and the capabilities that depend on it are not advertised. Handlers run" +
		" concurrently, except that the notifications of one session are handled in order."
	if r.session != "" {
		doc += " A handler whose parameters name a session receives that session; the others receive the connection."
	}
	declare(f, paragraph(doc, 0), jen.Type().Id(r.handlers).Add(structOf(body...)))
	list := jen.Index().Add(g.engineName("Route"))
	add(f, jen.Func().Params(jen.Id("h").Op("*").Id(r.handlers)).Id("routes").
		Params(jen.Id("conn").Op("*").Id(r.conn)).Add(list).Block(
		jen.Return(list.Clone().Add(eachOnALine("{}", routes...)))))
}

func paramName(m *model.Method) string {
	if m.Request() {
		return "req"
	}
	return "n"
}

// results returns the results of a handler or a call.
func results(m *model.Method) *jen.Statement {
	if m.Request() {
		return jen.Params(jen.Op("*").Id(m.Result.Base().Go), jen.Error())
	}
	return jen.Error()
}

// sentence returns the schema's description of a method, to follow its name in Go.
func sentence(goName string, m *model.Method) string {
	if verb, rest, ok := strings.Cut(m.Doc, " "); ok && strings.HasSuffix(verb, "s") {
		first, more, _ := strings.Cut(stop(lowerFirst(verb)+" "+rest), "\n\n")
		return strings.TrimSpace(goName + " " + strings.TrimSuffix(first, ".") + " (" + m.Name + ").\n\n" + more)
	}
	return goName + " serves " + m.Name + "."
}

func (g *generator) handlerDoc(m *model.Method) []string {
	lines := markdown(sentence(m.Go, m), 4)
	if m.HandlerNote != "" {
		lines = beforeLinks(lines, paragraph(m.HandlerNote, 4)...)
	}
	if len(m.Capability) > 0 {
		lines = beforeLinks(lines, "Capability: "+model.DottedPath(m.Capability)+".")
	}
	return experimental(lines, m.Experimental, m.Feature, 4)
}

// conns writes the typed call of every method on the connection to the side that handles it.
func (g *generator) conns(f *jen.File) {
	for _, r := range roles {
		for _, m := range g.handled(r.side) {
			if !m.ConnByHand {
				g.connCall(f, r, m)
			}
		}
	}
}

func (g *generator) connCall(f *jen.File, r role, m *model.Method) {
	fail := func(err jen.Code) *jen.Statement {
		if m.Request() {
			return jen.Return(jen.Nil(), err)
		}
		return jen.Return(err)
	}
	body := []jen.Code{jen.Id(paramName(m)).Op("=").Id("orEmpty").Call(jen.Id(paramName(m)))}
	lines := markdown(sentence(m.Go, m), 0)
	capabilities := jen.Id("c").Dot("capabilities").Call()
	if r.session != "" {
		body = append(body, jen.If(
			jen.Err().Op(":=").Id("c").Dot("check").Call(jen.Id(m.Const), jen.Id(paramName(m))),
			jen.Err().Op("!=").Nil(),
		).Block(fail(jen.Err())))
	}
	without := ""
	switch {
	case len(m.Needs) > 0:
		body = append(body, jen.If(
			jen.Id("missing").Op(":=").Add(capabilities).Dot(lacksName(m)).Call(jen.Id(paramName(m))),
			jen.Id("missing").Op("!=").Lit(""),
		).Block(fail(jen.Id("unsupported").Call(jen.Id(m.Const), jen.Id("missing")))))
		without = "what the call needs"
	case len(m.Capability) > 0:
		body = append(body, jen.If(jen.Op("!").Add(isAdvertised(capabilities, m.Capability))).Block(
			fail(jen.Id("unsupported").Call(jen.Id(m.Const), jen.Lit(model.DottedPath(m.Capability))))))
		without = model.DottedPath(m.Capability)
	}
	if without != "" {
		lines = beforeLinks(lines, paragraph("It returns ErrUnsupported without sending anything if the peer does not "+
			"advertise "+without+".", 0)...)
	}
	if m.CallNote != "" {
		lines = beforeLinks(lines, paragraph(m.CallNote, 0)...)
	}
	lines = experimental(lines, m.Experimental, m.Feature, 0)
	name, call, method := m.Go, "notify", m.Const
	if m.Request() {
		call, method = "call", m.Desc
	}
	params := []jen.Code{jen.Id("ctx").Qual("context", "Context"), jen.Id(paramName(m)).Op("*").Id(m.Params.Base().Go)}
	send := jen.Id(call).Call(jen.Id("ctx"), jen.Id("c").Dot("rpc"), jen.Id(method), jen.Id(paramName(m)))
	if m.UsesAnswer {
		name = parameter(m.Go)
		params = append(params, jen.Id("then").Func().Params(jen.Op("*").Id(m.Result.Base().Go)))
		lines = paragraph(name+" calls "+m.Name+". The reader calls then with the answer before it handles the messages "+
			"that follow it.", 0)
		send = jen.Id("callThen").Call(
			jen.Id("ctx"), jen.Id("c").Dot("rpc"), jen.Id(m.Desc), jen.Id(paramName(m)), jen.Id("then"))
	}
	body = append(body, jen.Return(send))
	declare(f, lines,
		jen.Func().Params(jen.Id("c").Op("*").Id(r.caller)).Id(name).Params(params...).Add(results(m)).Block(body...))
}

// sessions writes the calls of one session.
func (g *generator) sessions(f *jen.File) {
	for _, r := range roles {
		for _, m := range g.handled(r.side) {
			if m.Session == nil || m.SessionByHand {
				continue
			}
			p := jen.Id(paramName(m))
			lines := beforeLinks(markdown(sentence(m.Go, m), 0),
				paragraph("It sets the session's id in a copy of "+paramName(m)+". See ["+r.caller+"."+m.Go+"].", 0)...)
			lines = experimental(lines, m.Experimental, m.Feature, 0)
			declare(f, lines,
				jen.Func().Params(jen.Id("s").Op("*").Id(r.calls)).Id(m.Go).Params(
					jen.Id("ctx").Qual("context", "Context"),
					p.Clone().Op("*").Id(m.Params.Base().Go),
				).Add(results(m)).Block(
					jen.Id("own").Op(":=").Op("*").Id("orEmpty").Call(p),
					jen.Id("own").Dot(m.Session.Go).Op("=").Id("s").Dot("id"),
					jen.Return(jen.Id("s").Dot("conn").Dot(m.Go).Call(jen.Id("ctx"), jen.Op("&").Id("own")))))
		}
	}
}
