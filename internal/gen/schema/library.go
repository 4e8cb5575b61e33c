// The library go-jsonschema parses the keywords of one schema object whose values are strings and lists of strings. It
// refuses values of other types, and accepts a name or a list for type. parse.go reads nested schemas, the order of
// members and exact values, because the library drops them.

package schema

import (
	"encoding/json"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// read sets the fields that the library parses, from the keywords that parse.go left.
func (n *Node) read() error {
	texts := map[string]json.RawMessage{}
	for _, keyword := range []string{"$ref", "title", "description", "format", "required", "type"} {
		if value := n.Value(keyword); value != nil {
			texts[keyword] = value
		}
	}
	data, err := json.Marshal(texts)
	if err != nil {
		return err
	}
	var t schemas.Type
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	n.ref, n.Title, n.Description, n.Format, n.Required, n.types = t.Ref, t.Title, t.Description, t.Format, t.Required,
		t.Type
	return nil
}
