package proxy

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/acpgo/sdk/codec"
)

// merge makes in raw the changes that lead from was to now. was is raw without what this library does not know, so that
// a member of raw that is in neither stays. Of arrays, the items at both ends that are the same stay as they are in
// raw.
func merge(raw, was, now []byte) json.RawMessage {
	if bytes.Equal(was, now) {
		return raw
	}
	switch r, w, n := open(raw), open(was), open(now); {
	case r.object && w.object && n.object:
		return mergeObjects(r, w, n)
	case r.array && w.array && n.array && len(r.values) == len(w.values):
		return mergeArrays(r.values, w.values, n.values)
	}
	return now
}

// opened is an object or an array, or neither.
type opened struct {
	object, array bool
	names         []string
	values        [][]byte
	at            map[string][]byte // the values of an object by name
}

func open(raw []byte) (o opened) {
	d := codec.NewDecoder(raw)
	next := func() {
		d.Kind() // moves on to the value
		start := d.Offset()
		d.Skip()
		o.values = append(o.values, d.Slice(start))
	}
	switch d.Kind() {
	case '{':
		o.object, o.at = true, map[string][]byte{}
		for members := d.Object(); members.Next(); {
			name := string(members.Name())
			next()
			o.names, o.at[name] = append(o.names, name), o.values[len(o.values)-1]
		}
	case '[':
		o.array = true
		for items := d.Array(); items.Next(); {
			next()
		}
	}
	if d.Err() != nil {
		return opened{}
	}
	return o
}

func mergeObjects(raw, was, now opened) []byte {
	out := []byte{'{'}
	add := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(codec.AppendString(out, name), ':'), value...)
	}
	for i, name := range raw.names {
		w, known := was.at[name]
		n, set := now.at[name]
		switch {
		case known && set:
			add(name, merge(raw.values[i], w, n))
		case set:
			add(name, n)
		case !known:
			add(name, raw.values[i])
		}
	}
	for i, name := range now.names {
		_, there := raw.at[name]
		w, written := was.at[name] // always, whether it was there or not
		if !there && !(written && bytes.Equal(w, now.values[i])) {
			add(name, now.values[i])
		}
	}
	return append(out, '}')
}

func mergeArrays(raw, was, now [][]byte) []byte {
	first, last := 0, 0
	for n := min(len(was), len(now)); first < n && bytes.Equal(was[first], now[first]); {
		first++
	}
	for n := min(len(was), len(now)) - first; last < n && bytes.Equal(was[len(was)-1-last], now[len(now)-1-last]); {
		last++
	}
	items := slices.Concat(raw[:first], now[first:len(now)-last], raw[len(raw)-last:])
	if len(was) == len(now) {
		for i := first; i < len(items)-last; i++ {
			items[i] = merge(raw[i], was[i], now[i])
		}
	}
	return append(append([]byte{'['}, bytes.Join(items, []byte{','})...), ']')
}
