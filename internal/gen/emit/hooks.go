package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/acpgo/sdk/internal/gen/model"
)

// Hooks returns the file of a package proxy, which has a hook for every method that agents and clients handle. types is
// the import path of the package of the other generated files.
func Hooks(pkg *model.Package, c Config, types string) ([]byte, error) {
	f := newFile("proxy", c.Source)
	f.ImportName(types, c.Package)
	var fields, list []jen.Code
	methods := slices.Clone(pkg.Methods)
	experimentalLast(methods)
	for _, m := range methods {
		if m.Side == model.Protocol || m.Side == model.Proxy {
			continue
		}
		params, route := jen.Qual(types, m.Params.Base().Go), "notification"
		hook := source("% Notification[%]", m.Go, params)
		if m.Request() {
			hook = source("% Request[%, %]", m.Go, params, jen.Qual(types, m.Result.Base().Go))
			route = "request"
		}
		lines := paragraph(m.Go+" runs for "+m.Name+", "+kind(m)+" of "+sender(m.Side)+".", 4)
		fields = append(fields, comment(experimental(lines, m.Experimental, nil, 4))...)
		fields = append(fields, hook)
		// The side that sends a message is not the one that handles it.
		if m.Side != model.Client {
			list = append(list, source("%(Client, %, h.%)", route, jen.Qual(types, m.Const), m.Go))
		}
		if m.Side != model.Agent {
			list = append(list, source("%(Agent, %, h.%)", route, jen.Qual(types, m.Const), m.Go))
		}
	}
	add(f, source(`// Hooks are functions that run for the messages of a method instead of passing them on. The hook of a method gets its
// requests, or its notifications, from the side that sends them. Messages of methods whose hooks are nil are passed on.
type Hooks struct {
	%
	// Raw holds the hooks of other methods by name: extensions, and methods of other versions.
	Raw map[string]Raw
}

// typed returns the hooks that are set, and nil for others.
func (h *Hooks) typed() []*hook {
	return []*hook %
}`, fields, eachOnALine("{}", list...)))
	return render(f)
}

// sender returns the side that sends the messages that a side handles.
func sender(s model.Side) string {
	switch s {
	case model.Agent:
		return "the client"
	case model.Client:
		return "the agent"
	}
	return "either side"
}
