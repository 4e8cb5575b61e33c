// This file owns which values are the same: up to members that hold the schema's default, _meta that is
// null, and members of known objects that the schema does not know.

package sample

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Same returns an error that shows the first difference, as a JSON pointer, between two values of a
// definition.
func (s *Schema) Same(definition string, want, got any) error {
	n := s.defs[definition]
	return difference("", s.reduce(n, want), s.reduce(n, got))
}

// reduce returns v without what bindings may add or drop, and with numbers in one form.
func (s *Schema) reduce(n *node, v any) any {
	look := s.look(n, v)
	switch v := v.(type) {
	case map[string]any:
		if len(look.objects) > 0 {
			return s.reduceObject(look, v)
		}
		var values *node
		if look.leaf != nil {
			values = look.leaf.values
		}
		out := map[string]any{}
		for name, value := range v {
			out[name] = s.reduce(values, value)
		}
		return out
	case []any:
		var items *node
		if look.leaf != nil {
			items = look.leaf.items
		}
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = s.reduce(items, item)
		}
		return out
	case json.Number:
		if look.leaf != nil && slices.Contains(look.leaf.types, "number") {
			f, _ := exact(v).Float64()
			return f
		}
		return exact(v).RatString()
	}
	return v
}

func (s *Schema) reduceObject(look view, v map[string]any) any {
	out := map[string]any{}
	for name, value := range v {
		p, ok := look.member(name)
		switch {
		case !ok && slices.Contains(look.kept, name):
			if _, text := value.(string); text {
				out[name] = value
			}
		case !ok && look.opaque:
			out[name] = s.reduce(nil, value)
		case !ok, name == "_meta" && value == nil:
		default:
			reduced := s.reduce(p, value)
			if p.hasDef && reflect.DeepEqual(reduced, s.reduce(p, p.def)) {
				continue
			}
			out[name] = reduced
		}
	}
	return out
}

// difference finds where two reduced values differ.
func difference(at string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			break
		}
		names := slices.Sorted(maps.Keys(want))
		for name := range got {
			if _, ok := want[name]; !ok {
				names = append(names, name)
			}
		}
		for _, name := range names {
			w, inWant := want[name]
			g, inGot := got[name]
			switch {
			case !inGot:
				return fmt.Errorf("%s/%s: got nothing, want %s", at, name, show(w))
			case !inWant:
				return fmt.Errorf("%s/%s: got %s, want nothing", at, name, show(g))
			}
			if err := difference(at+"/"+name, w, g); err != nil {
				return err
			}
		}
		return nil
	case []any:
		got, ok := got.([]any)
		if !ok || len(got) != len(want) {
			break
		}
		for i := range want {
			if err := difference(fmt.Sprintf("%s/%d", at, i), want[i], got[i]); err != nil {
				return err
			}
		}
		return nil
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Errorf("%s: got %s, want %s", at, show(got), show(want))
	}
	return nil
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
