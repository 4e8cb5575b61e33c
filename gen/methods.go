// The protocol's methods are found by x-method and x-side. A name can be both a request and a notification, so methods
// are identified by side, name and kind.

package gen

import (
	"slices"
	"strings"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
)

// The kinds of definition that have x-method, recognized by the last word of their names.
const (
	request      = "Request"
	response     = "Response"
	notification = "Notification"
)

func (b *builder) methods() {
	type key struct{ side, name string }
	results := map[key]schema.Property{}
	for _, def := range b.doc.Defs {
		if def.Method != "" && strings.HasSuffix(def.Name, response) {
			k := key{def.Side, def.Method}
			if other, ok := results[k]; ok {
				b.problem(def.Pointer, "a second response of %s, after %s", def.Method, other.Pointer)
			}
			results[k] = def
		}
	}
	handled := map[key]schema.Property{} // requests by the side that handles them, notifications after a space
	for _, def := range b.doc.Defs {
		if def.Method == "" || strings.HasSuffix(def.Name, response) {
			continue
		}
		for _, side := range handlers(model.Side(def.Side)) {
			k := key{string(side), def.Method}
			if strings.HasSuffix(def.Name, notification) {
				k.side += " "
			}
			if other, ok := handled[k]; ok {
				b.problem(def.Pointer, "nothing tells a message of %s from one by %s, which the same side handles", def.Method,
					other.Pointer)
				break
			}
			handled[k] = def
		}
		m := &model.Method{Pointer: def.Pointer, Name: def.Method, Doc: b.env.docs[def.Name], Side: model.Side(def.Side),
			Params: b.decls[def.Name]}
		switch m.Side {
		case model.Agent, model.Client, model.Both, model.Protocol, model.Proxy:
		default:
			b.problem(def.Pointer, "unknown x-side %q", def.Side)
		}
		switch k := (key{def.Side, def.Method}); {
		case strings.HasSuffix(def.Name, notification):
		case !strings.HasSuffix(def.Name, request):
			b.problem(def.Pointer, "x-method on what is neither a request nor a response nor a notification by its name")
		default:
			if result, ok := results[k]; ok {
				delete(results, k)
				m.Result = b.decls[result.Name]
			} else {
				m.Result = b.unmarkedResponse(def)
			}
			s, isStruct := m.Result.(*model.Struct)
			m.NullResult = isStruct && len(s.Fixed) == 0 && !slices.ContainsFunc(s.Fields, (*model.Field).Required)
		}
		for _, f := range model.Fields(m.Params) {
			if _, named := f.Type.(model.Named); named && f.JSON == "sessionId" && f.Presence == model.Required {
				m.Session = f
			}
		}
		b.pkg.Methods = append(b.pkg.Methods, m)
	}
	for _, def := range b.doc.Defs {
		if _, left := results[key{def.Side, def.Method}]; left && strings.HasSuffix(def.Name, response) {
			b.problem(def.Pointer, "the response of %s has no request", def.Method)
		}
	}
}

// handlers returns the sides that handle the methods of an x-side.
func handlers(side model.Side) []model.Side {
	if side == model.Both {
		return []model.Side{model.Agent, model.Client}
	}
	return []model.Side{side}
}

// unmarkedResponse returns the response of a request if no response has its x-method: the definition with the request's
// name, or a substitute for the null that older schemas have as the result.
func (b *builder) unmarkedResponse(req schema.Property) model.Decl {
	name := strings.TrimSuffix(req.Name, request) + response
	if d := b.decls[name]; d != nil {
		return d
	}
	s := &model.Struct{Common: model.Common{Pointer: req.Pointer, Part: name}}
	b.pkg.Decls = append(b.pkg.Decls, s)
	return s
}
