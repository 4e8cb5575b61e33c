package emit

import (
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// methods writes the names and the typed descriptors of all methods.
func (g *generator) methods(f *jen.File) {
	var names, descriptors []jen.Code
	for _, m := range g.pkg.Methods {
		lines := paragraph(m.Const+" names "+kind(m)+" that "+handledBy(m.Side)+".", 4)
		names = append(names, comment(experimental(lines, m.Experimental, m.Feature, 4))...)
		names = append(names, source("% = %", m.Const, jen.Lit(m.Name)))
		switch {
		case m.Side == model.Protocol || g.Facade && !m.Request():
		case g.Facade:
			descriptors = append(descriptors, source("% = %", m.Desc, g.descriptor(m)))
		default:
			text := m.Var + " is " + m.Name + ", " + kind(m) + " that " + handledBy(m.Side) + "."
			if m.Doc != "" {
				text += "\n\n" + stop(m.Doc)
			}
			descriptors = append(descriptors, comment(markdown(text, 4))...)
			descriptors = append(descriptors, source("% = %", m.Var, g.descriptor(m)))
		}
	}
	add(f, source("// The names of the protocol's methods.\nconst (\n%\n)\n", names))
	if g.Facade {
		add(f, source(`// requestMethod is an engine.RequestMethod without methods, which the compiler would make for each.
type requestMethod[P, R any] struct {
	Name       string
	NullResult bool
}

var (
	%
)`, descriptors))
		return
	}
	add(f, source(`// The methods with the types of their parameters and results: Call and Notify send them, [rpc.HandleMethod] and
// [rpc.HandleNotificationMethod] serve them.
var (
	%
)`, descriptors))
}

// descriptor returns the typed descriptor of a method.
func (g *generator) descriptor(m *model.Method) *jen.Statement {
	var values fields
	values.set("Name", jen.Id(m.Const))
	values.setIf("NullResult", m.NullResult)
	params, all := m.Params.Base().Go, jen.Values(values...)
	switch {
	case g.Facade:
		return source("requestMethod[*%, *%] %", params, m.Result.Base().Go, all)
	case !m.Request():
		return source("%[%] %", g.rpcName("NotificationMethod"), params, all)
	}
	return source("%[%, %] %", g.rpcName("RequestMethod"), params, m.Result.Base().Go, all)
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
		params := m.Params.Base().Go
		name, of, give := "conn", r.conn, source("func(*%) *% { return conn }", params, r.conn)
		if m.Session != nil && r.session != "" {
			name, of = "session", r.session
			give = source("func(p *%) *% { return conn.Session(p.%) }", params, of, m.Session.Go)
		}
		body = append(body, comment(g.handlerDoc(m))...)
		tag := fieldTag(codecTag(featureOption(m.Feature)))
		body = append(body, source("% func(ctx %, % *%, % *%) % %\n",
			m.Go, context, name, of, paramName(m), params, results(m), tag))
		route, method := "notification", m.Const
		if m.Request() {
			route, method = "request", m.Desc
		}
		routes = append(routes, source("%(%, %, h.%)", route, method, give, m.Go))
	}
	doc := r.handlers + " has the functions that handle the requests and notifications that " + r.article +
		" receives. If a handler is nil, its requests are answered with method not found, its notifications" +
		" are ignored, and the capabilities that depend on it are not advertised. Handlers run" +
		" concurrently, except that the notifications of one session are handled in order."
	if r.session != "" {
		doc += " A handler whose parameters name a session receives that session; the others receive the connection."
	}
	declare(f, paragraph(doc, 0), source(`type % struct {
	%
	// Extensions handle methods outside the protocol; nil means none.
	Extensions *%[%]
}

func (h *%) routes(conn *%) []% {
	return []% %
}`, r.handlers, body, g.rpcName("Extensions"), r.conn, r.handlers, r.conn, g.engineName("Route"), g.engineName("Route"),
		eachOnALine("{}", routes...)))
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
		return source("(*%, error)", m.Result.Base().Go)
	}
	return source("error")
}

var context = jen.Qual("context", "Context")

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
			return source("return nil, %", err)
		}
		return source("return %", err)
	}
	p := paramName(m)
	body := []jen.Code{source("% = orEmpty(%)", p, p)}
	lines := markdown(sentence(m.Go, m), 0)
	if r.session != "" {
		body = append(body, source("if err := c.check(%, %); err != nil {\n%\n}", m.Const, p, fail(jen.Err())))
	}
	without := ""
	switch {
	case len(m.Needs) > 0:
		body = append(body, source("if missing := c.capabilities().%(%); missing != \"\" {\n%\n}", lacksName(m), p,
			fail(source("unsupported(%, missing)", m.Const))))
		without = "what the call needs"
	case len(m.Capability) > 0:
		body = append(body, source("if !% {\n%\n}", isAdvertised(source("c.capabilities()"), m.Capability),
			fail(source("unsupported(%, %)", m.Const, jen.Lit(model.DottedPath(m.Capability))))))
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
	name, send := m.Go, source("notify(ctx, c.rpc, %, %)", m.Const, p)
	if m.Request() {
		send = source("call(ctx, c.rpc, %, %)", m.Desc, p)
	}
	params := source("ctx %, % *%", context, p, m.Params.Base().Go)
	if m.UsesAnswer {
		name = parameter(m.Go)
		params = source("%, then func(*%)", params, m.Result.Base().Go)
		lines = paragraph(name+" calls "+m.Name+". The reader calls then with the answer before it handles the messages "+
			"that follow it.", 0)
		send = source("callThen(ctx, c.rpc, %, %, then)", m.Desc, p)
	}
	declare(f, lines, source("func (c *%) %(%) % {\n%\nreturn %\n}", r.caller, name, params, results(m), body, send))
}

// sessions writes the calls of one session.
func (g *generator) sessions(f *jen.File) {
	for _, r := range roles {
		for _, m := range g.handled(r.side) {
			if m.Session == nil || m.SessionByHand {
				continue
			}
			p := paramName(m)
			lines := beforeLinks(markdown(sentence(m.Go, m), 0),
				paragraph("It sets the session's id in a copy of "+p+". See ["+r.caller+"."+m.Go+"].", 0)...)
			lines = experimental(lines, m.Experimental, m.Feature, 0)
			declare(f, lines, source(`func (s *%) %(ctx %, % *%) % {
	own := *orEmpty(%)
	own.% = s.id
	return s.conn.%(ctx, &own)
}`, r.calls, m.Go, context, p, m.Params.Base().Go, results(m), p, m.Session.Go, m.Go))
		}
	}
}
