// The library go-jsonschema parses the keywords of one schema object whose values are texts and lists of texts. It
// refuses values of other types, and knows that type is a name or a list. parse.go reads nested schemas, the order of
// members and exact values, because the library drops them.

package schema

import (
	"encoding/json"

	"github.com/atombender/go-jsonschema/pkg/schemas"
)

// read sets what the library reads, from the keywords that parse.go has left.
func (n *Node) read() error {
	texts := map[string]json.RawMessage{}
	for _, keyword := range []string{"$ref", "title", "description", "format", "required", "type"} {
		if value, ok := n.plain[keyword]; ok {
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
	n.ref, n.Title, n.Description, n.Format, n.Required, n.types = t.Ref, t.Title, t.Description, t.Format, t.Required, t.Type
	return nil
}
