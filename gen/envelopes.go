// Definitions that the runtime declares are distinguished from those that become Go types by structure alone, because
// names have changed between releases. The root of a schema lists the envelopes, which are messages with an id, a
// method, a result or an error, or plain choices between payloads.

package gen

import (
	"slices"

	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/gen/schema"
)

// envelopes has the information about messages in the root of a schema.
type envelopes struct {
	kept    map[string]bool   // definitions that become Go types
	runtime map[string]string // definitions that payloads use but the runtime declares, with their names in the runtime

	doc      *schema.Document
	seen     map[*schema.Node]bool
	payloads map[string]bool   // definitions of parameters and results
	docs     map[string]string // the envelope's description of a method, by the definition of the parameters
	touched  map[string]bool   // definitions that can be reached from the root
}

func findEnvelopes(doc *schema.Document) *envelopes {
	e := &envelopes{
		kept: map[string]bool{}, runtime: map[string]string{},
		doc: doc, seen: map[*schema.Node]bool{}, payloads: map[string]bool{}, docs: map[string]string{},
		touched: map[string]bool{},
	}
	e.message(doc.Root)
	e.reach(doc.Root)
	for _, def := range doc.Defs {
		if def.Method != "" || e.payloads[def.Name] || !e.touched[def.Name] {
			e.keep(def.Name)
		}
	}
	return e
}

// message reads a schema that describes whole messages.
func (e *envelopes) message(n *schema.Node) {
	if n == nil || e.seen[n] {
		return
	}
	e.seen[n] = true
	for _, p := range n.Properties {
		switch p.Name {
		case "params", "result":
			e.payload(p.Node, p.Description)
		case "id":
			e.owned(p.Node, model.RuntimeID)
		case "error":
			e.owned(p.Node, model.RuntimeError)
		}
	}
	if ref := n.Ref(); ref != "" {
		if def := e.doc.Def(ref); isEnvelope(def) {
			e.message(def)
		} else {
			e.payload(n, n.Description)
		}
	}
	for _, list := range [][]*schema.Node{n.AllOf, n.OneOf, n.AnyOf, n.PrefixItems, {n.Items}} {
		for _, m := range list {
			e.message(m)
		}
	}
}

// isEnvelope reports whether a definition for a whole message describes its frame, not only its payload.
func isEnvelope(def *schema.Node) bool {
	if isFrame(def) {
		return true
	}
	branches := def.Branches()
	return len(branches) > 0 && len(def.Properties) == 0 && !slices.ContainsFunc(branches, func(br *schema.Node) bool {
		bare := len(br.Properties) == 0 && (br.Ref() != "" || len(br.AllOf) == 1)
		return !bare && !isFrame(br) && !isNull(br) && !br.Any()
	})
}

// isFrame reports whether n describes a JSON-RPC message.
func isFrame(n *schema.Node) bool {
	has := func(name string) bool {
		return n.Property(name) != nil || slices.ContainsFunc(n.Branches(), func(br *schema.Node) bool {
			return br.Property(name) != nil
		})
	}
	return has("jsonrpc") || has("method") || has("id") && (has("result") || has("error"))
}

// payload reads the schema of parameters or a result; doc is the description of its envelope.
func (e *envelopes) payload(n *schema.Node, doc string) {
	if n.Description != "" {
		doc = n.Description
	}
	if ref := n.Ref(); ref != "" {
		def := e.doc.Def(ref)
		switch {
		case def.Any():
		case def.Method == "" && isEnvelope(def):
			e.message(def)
		default:
			e.payloads[ref] = true
			if doc != def.Description && e.docs[ref] == "" {
				e.docs[ref] = doc
			}
		}
		return
	}
	for _, list := range [][]*schema.Node{n.AllOf, n.OneOf, n.AnyOf} {
		for _, m := range list {
			e.payload(m, doc)
		}
	}
}

// owned records that the runtime declares the definition that n refers to.
func (e *envelopes) owned(n *schema.Node, name string) {
	if len(n.AllOf) == 1 {
		n = n.AllOf[0]
	}
	if ref := n.Ref(); ref != "" {
		e.runtime[ref] = name
	}
}

// reach records every definition that n uses.
func (e *envelopes) reach(n *schema.Node) {
	refs(n, func(ref string) {
		if !e.touched[ref] {
			e.touched[ref] = true
			e.reach(e.doc.Def(ref))
		}
	})
}

// keep records that a definition and those that it uses become Go types.
func (e *envelopes) keep(name string) {
	if _, owned := e.runtime[name]; owned || e.kept[name] {
		return
	}
	e.kept[name] = true
	refs(e.doc.Def(name), e.keep)
}

// refs calls f for every reference in n.
func refs(n *schema.Node, f func(string)) {
	n.Walk(func(n *schema.Node) {
		if ref := n.Ref(); ref != "" {
			f(ref)
		}
	})
}
