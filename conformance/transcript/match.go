package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/acpgo/sdk/conformance/internal/finding"
	"github.com/acpgo/sdk/conformance/internal/schema"
)

// rest is the member of a pattern that allows an object to have more members than the pattern lists.
const rest = "..."

// anything is the name that matches any value, possibly a different one each time.
const anything = "any"

var variable = regexp.MustCompile(`^\$([A-Za-z][A-Za-z0-9]*)$`)

// variableName returns the name that a pattern consists of.
func variableName(pattern any) (string, bool) {
	s, _ := pattern.(string)
	m := variable.FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// names has the values of the names in patterns.
type names struct {
	values map[string]any
	bound  []string // the names, in the order in which they were bound
}

func newNames() *names { return &names{values: map[string]any{}} }

// bindOrCompare compares a value with that of a name, or binds the name to it if it has none.
func (n *names) bindOrCompare(name string, got any, at string) error {
	value, bound := n.values[name]
	if !bound {
		n.bind(name, got)
		return nil
	}
	if !schema.Equal(value, got) {
		return fmt.Errorf("%s: got %s, want %s (the value of $%s)", place(at), text(got), text(value), name)
	}
	return nil
}

func (n *names) bind(name string, value any) {
	n.values[name] = value
	n.bound = append(n.bound, name)
}

// undo removes all but the given number of first bindings.
func (n *names) undo(first int) {
	for _, name := range n.bound[first:] {
		delete(n.values, name)
	}
	n.bound = n.bound[:first]
}

// match compares a value with a pattern. A name that the pattern uses for the first time is bound, even if the
// comparison fails later. The error says where the two differ.
func match(pattern, got any, names *names, at string) error {
	if name, ok := variableName(pattern); ok {
		if name == anything {
			return nil
		}
		return names.bindOrCompare(name, got, at)
	}
	switch want := pattern.(type) {
	case volatile:
		return want.match(got, names, at)
	case map[string]any:
		if members, ok := got.(map[string]any); ok {
			return matchObject(want, members, names, at)
		}
	case []any:
		if items, ok := got.([]any); ok && len(items) == len(want) {
			for i := range want {
				if err := match(want[i], items[i], names, at+"/"+strconv.Itoa(i)); err != nil {
					return err
				}
			}
			return nil
		}
	default:
		if schema.Equal(want, got) {
			return nil
		}
	}
	return fmt.Errorf("%s: got %s, want %s", place(at), text(got), text(pattern))
}

func matchObject(want, got map[string]any, names *names, at string) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if name == rest {
			continue
		}
		value, ok := got[name]
		if !ok {
			return fmt.Errorf("%s: missing %q", place(at), name)
		}
		if err := match(want[name], value, names, at+"/"+escape.Replace(name)); err != nil {
			return err
		}
	}
	if _, open := want[rest]; open {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			return fmt.Errorf("%s: unexpected %q", place(at), name)
		}
	}
	return nil
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

func place(at string) string {
	if at == "" {
		return "the message"
	}
	return at
}

// fill returns a pattern with its names replaced by the values that they are bound to.
func fill(pattern any, names *names, values map[string]any) (any, error) {
	if name, ok := variableName(pattern); ok {
		if name == anything {
			return anything, nil
		}
		value, bound := names.values[name]
		if !bound {
			if value, bound = values[name]; !bound {
				return nil, fmt.Errorf("$%s has no value yet, and none in the file \"values\"", name)
			}
			names.bind(name, value)
		}
		return value, nil
	}
	var err error
	switch pattern := pattern.(type) {
	case map[string]any:
		out := make(map[string]any, len(pattern))
		for name, member := range pattern {
			if name == rest {
				continue
			}
			if out[name], err = fill(member, names, values); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(pattern))
		for i, item := range pattern {
			if out[i], err = fill(item, names, values); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return pattern, nil
}

// text returns a value as JSON on one line, truncated if it is long.
func text(v any) string {
	line, err := encode(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return finding.ClipTo(string(line), 400)
}

// encode writes a value as one line of JSON, without the newline.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
