package show

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits for showing a value.
const (
	maxString  = 60 // characters
	maxDepth   = 3
	maxItems   = 3
	maxMembers = 8
	maxFolded  = 1 << 20 // bytes; of longer values only the beginning is shown
)

// Fold returns a JSON value on one line without long or deep parts, and without the named members. Members are in the
// order of their names.
func Fold(value json.RawMessage, without ...string) string {
	if len(value) == 0 {
		return ""
	}
	if len(value) > maxFolded {
		return fmt.Sprintf("%s… (%d bytes)", clip(string(value[:4*maxString]), maxString), len(value))
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return clip(string(value), maxString)
	}
	if members, ok := v.(map[string]any); ok {
		for _, name := range without {
			delete(members, name)
		}
	}
	return fold(v, 0)
}

func fold(v any, depth int) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, clip(name, maxString)+": "+fold(v[name], depth+1))
		}
		return "{" + some(parts, maxMembers, depth) + "}"
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, fold(item, depth+1))
		}
		return "[" + some(parts, maxItems, depth) + "]"
	case string:
		return foldString(v)
	case nil:
		return "null"
	}
	return clip(fmt.Sprint(v), maxString)
}

// some joins the first parts, and says how many are hidden.
func some(parts []string, most, depth int) string {
	if depth >= maxDepth {
		most = 0
	}
	if hidden := len(parts) - most; hidden > 0 {
		parts = append(parts[:most], fmt.Sprintf("…%d", hidden))
	}
	return strings.Join(parts, ", ")
}

func foldString(s string) string {
	n := utf8.RuneCountInString(s)
	if n <= maxString {
		return strconv.Quote(s)
	}
	return fmt.Sprintf("%s… (%d)", strconv.Quote(clip(s, maxString)), n)
}

// clip returns the first n characters of a text.
func clip(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}
