package gentest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/tier"
)

// What package codec promises for a text of more than a few KiB, in bytes of memory for each byte of text:
// the memory of the decoded value, and everything that was allocated while decoding.
const (
	keptFactor  = 20
	allocFactor = 64
)

// Cost is the memory that decoding a text took, in bytes for each byte of text.
type Cost struct {
	Name  string
	Kept  float64
	Alloc float64
}

// String shows the cost.
func (c Cost) String() string {
	return fmt.Sprintf("%5.1f kept, %5.1f allocated: %s", c.Kept, c.Alloc, c.Name)
}

// Excessive reports whether it is more than promised.
func (c Cost) Excessive() bool { return c.Kept > keptFactor || c.Alloc > allocFactor }

// Measure decodes a text into a new value and returns the cost, and the error of decoding. The memory of the
// value is measured only where it may be large, because measuring is slow.
func Measure(name string, value func() any, text []byte) (c Cost, err error) {
	var before, after, start runtime.MemStats
	read := func() (v any, repairs []codec.Repair) {
		d := codec.NewDecoder(text)
		v = value()
		codec.Decode(d, v)
		err = d.End()
		return v, d.Repairs()
	}
	runtime.ReadMemStats(&before)
	read()
	runtime.ReadMemStats(&after)
	size := float64(len(text))
	c = Cost{Name: name, Alloc: float64(after.TotalAlloc-before.TotalAlloc) / size}
	if c.Alloc < keptFactor/2 {
		return c, err
	}
	runtime.GC()
	runtime.ReadMemStats(&start)
	v, repairs := read()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(v)
	runtime.KeepAlive(repairs)
	c.Kept = max(0, float64(after.HeapAlloc)-float64(start.HeapAlloc)) / size
	return c, err
}

// memory decodes texts for each array, and each object without fixed members, of each definition: very many
// items of each shortest form, and very many values that are no valid items. None may take more memory than
// package codec promises. It logs the largest cost.
func (p *Package) memory(t *testing.T) {
	var doc struct {
		Defs map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(p.Schema), &doc); err != nil {
		t.Fatal(err)
	}
	s := smallest{defs: doc.Defs}
	var costs []Cost
	accepted, made := 0, 0
	step := tier.Pick(16, 12, 1, 1)
	for _, definition := range slices.Sorted(maps.Keys(p.Definitions)) {
		s.crowded(definition, 64<<10, func(name string, text func() string) {
			if made++; made%step != 0 {
				return
			}
			c, err := Measure(name, p.Definitions[definition], []byte(text()))
			if c.Excessive() {
				t.Errorf("%s", c)
			}
			costs = append(costs, c)
			if err == nil {
				accepted++
			}
		})
	}
	if accepted < len(costs)/4 {
		t.Errorf("only %d of %d texts were accepted", accepted, len(costs))
	}
	t.Logf("%d of %d texts, %d of them accepted; the most memory is", len(costs), made, accepted)
	for _, by := range []func(Cost) float64{func(c Cost) float64 { return c.Kept }, func(c Cost) float64 { return c.Alloc }} {
		slices.SortFunc(costs, func(a, b Cost) int { return cmp.Compare(by(b), by(a)) })
		for _, c := range costs[:min(3, len(costs))] {
			t.Log(c)
		}
	}
}

// smallest makes the smallest values of definitions, from the bare schema.
type smallest struct {
	defs map[string]any
	meta bool // _meta, which all definitions have, was crowded
}

// object is a JSON object and what is known of the members that it may have.
type object struct {
	value map[string]any
	props map[string]any
}

// node resolves references.
func (s *smallest) node(n any) map[string]any {
	m, _ := n.(map[string]any)
	if ref, ok := m["$ref"].(string); ok {
		return s.node(s.defs[strings.TrimPrefix(ref, "#/$defs/")])
	}
	return m
}

// values returns a smallest value of each form that a node has: scalars, []any or object.
func (s *smallest) values(n any, depth int) []any {
	m := s.node(n)
	if c, ok := m["const"]; ok {
		return []any{c}
	}
	if enum, ok := m["enum"].([]any); ok {
		return enum[:1]
	}
	if depth == 0 {
		return nil
	}
	out := []any{s.own(m, depth)}
	for _, keyword := range []string{"allOf", "oneOf", "anyOf"} {
		parts, _ := m[keyword].([]any)
		var branches []any
		for _, part := range parts {
			of := s.values(part, depth-1)
			if keyword == "allOf" {
				out = combine(out, of)
			} else {
				branches = append(branches, of...)
			}
		}
		if len(branches) > 0 {
			out = combine(out, branches)
		}
	}
	return out
}

// own returns the smallest values by the node's own keywords, without those it refers to.
func (s *smallest) own(m map[string]any, depth int) any {
	kind, _ := m["type"].(string)
	if kinds, ok := m["type"].([]any); ok {
		kind, _ = kinds[0].(string)
	}
	props, hasProps := m["properties"].(map[string]any)
	switch {
	case kind == "object" || hasProps:
		o := object{map[string]any{}, props}
		required, _ := m["required"].([]any)
		for _, name := range required {
			if of := s.values(props[name.(string)], depth-1); len(of) > 0 {
				o.value[name.(string)] = of[len(of)-1]
			}
		}
		return o
	case kind == "array":
		return []any{}
	case kind == "string":
		return ""
	case kind == "boolean":
		return true
	case kind == "null" || kind == "":
		return nil
	default:
		return 0
	}
}

// combine merges every pair, where both are objects; of others the second counts.
func combine(all, more []any) (out []any) {
	for _, a := range all {
		for _, b := range more {
			x, isX := a.(object)
			y, isY := b.(object)
			if isX && isY {
				b = object{merged(x.value, y.value), merged(x.props, y.props)}
			}
			out = append(out, b)
		}
	}
	return out
}

func merged(a, b map[string]any) map[string]any {
	m := maps.Clone(a)
	if m == nil {
		m = map[string]any{}
	}
	maps.Copy(m, b)
	return m
}

func (o object) MarshalJSON() ([]byte, error) { return json.Marshal(o.value) }

// Many repeats item until there are about so many bytes.
func Many(item string, size int) string {
	return strings.Repeat(item+",", max(2, size/(len(item)+1))-1) + item
}

// ManyMembers is Many for an object.
func ManyMembers(item string, size int) string {
	var b strings.Builder
	for i := int64(0); b.Len() < size; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", strconv.FormatInt(i, 36), item)
	}
	return b.String()
}

// crowded yields texts of a definition in which one array or object has very many items: of each variant of
// the item, and of values that are no valid items.
func (s *smallest) crowded(definition string, size int, yield func(name string, text func() string)) {
	for _, v := range s.values(s.defs[definition], 6) {
		o, ok := v.(object)
		if !ok {
			continue
		}
		for _, member := range slices.Sorted(maps.Keys(o.props)) {
			if member == "_meta" && s.meta {
				continue
			}
			s.meta = s.meta || member == "_meta"
			node := s.node(o.props[member])
			items := []any{0, "", []any{}, object{}}
			fill := func(item string) string { return "[" + Many(item, size) + "]" }
			if more, isMap := node["additionalProperties"]; isMap && node["properties"] == nil {
				items = append(items, s.values(more, 6)...)
				fill = func(item string) string { return "{" + ManyMembers(item, size) + "}" }
			} else if node["items"] != nil {
				items = append(items, s.values(node["items"], 6)...)
			} else {
				continue
			}
			for _, item := range items {
				yield(fmt.Sprintf("%s.%s of %.80s", definition, member, marshal(item)), func() string {
					text := json.RawMessage(fill(string(marshal(item))))
					return string(marshal(merged(o.value, map[string]any{member: text})))
				})
			}
		}
	}
}
