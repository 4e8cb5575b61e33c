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
	const size = 64 << 10
	s := p.schema(t)
	var costs []Cost
	accepted, made, meta := 0, 0, false
	step := tier.Pick(16, 12, 1, 1)
	for _, definition := range slices.Sorted(maps.Keys(p.Definitions)) {
		for _, list := range s.Lists(definition) {
			if list.Member == "_meta" && meta { // which all definitions have
				continue
			}
			meta = meta || list.Member == "_meta"
			for _, item := range append(list.Items, 0, "", []any{}, map[string]any{}) {
				if made++; made%step != 0 {
					continue
				}
				text := "[" + Many(string(marshal(item)), size) + "]"
				if list.Map {
					text = "{" + ManyMembers(string(marshal(item)), size) + "}"
				}
				list.Owner[list.Member] = json.RawMessage(text)
				name := fmt.Sprintf("%s.%s of %.80s", definition, list.Member, marshal(item))
				c, err := Measure(name, p.Definitions[definition], marshal(list.Owner))
				if c.Excessive() {
					t.Errorf("%s", c)
				}
				costs = append(costs, c)
				if err == nil {
					accepted++
				}
			}
		}
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
