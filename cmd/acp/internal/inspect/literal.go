package inspect

import (
	"encoding/json"
	"fmt"
	"go/format"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/cmd/acp/internal/show"
	"github.com/acpgo/sdk/conformance"
)

// literal returns the params or the result in a message as a Go literal of package acp, and other lines as a literal of
// JSON. method is that of the message, or of its request.
func literal(line []byte, method string) (string, error) {
	m := &show.Message{Number: 1, Direction: conformance.ToAgent, Text: line}
	show.NewJoiner().Join(m, time.Time{})
	text := ""
	for _, known := range methods() {
		name := known.Params
		if m.Kind == conformance.Response {
			name = known.Result
		}
		t := typesOf()[strings.ToLower(name)]
		if known.Version != 1 || known.Method != method || t == nil {
			continue
		}
		value := reflect.New(t)
		if json.Unmarshal(m.Content, value.Interface()) == nil {
			text = goValue(value)
			break
		}
	}
	if text == "" {
		text = "json.RawMessage(" + goString(string(line)) + ")"
	}
	formatted, err := format.Source([]byte(text))
	return string(formatted), err
}

// typesOf returns the types of params and results by their names in lower case: Go writes initialisms differently than
// the schema.
var typesOf = sync.OnceValue(func() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	add := func(t reflect.Type) {
		if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
			types[strings.ToLower(t.Elem().Name())] = t.Elem()
		}
	}
	add(reflect.TypeFor[*acp.InitializeRequest]())
	add(reflect.TypeFor[*acp.InitializeResponse]())
	for _, handlers := range []reflect.Type{reflect.TypeFor[acp.AgentHandlers](), reflect.TypeFor[acp.ClientHandlers]()} {
		for _, field := range reflect.VisibleFields(handlers) {
			if field.Type.Kind() != reflect.Func {
				continue
			}
			for in := range field.Type.Ins() {
				add(in)
			}
			for out := range field.Type.Outs() {
				add(out)
			}
		}
	}
	return types
})

// goValue returns a value as a Go expression.
func goValue(v reflect.Value) string {
	t := v.Type()
	switch t.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "nil"
		}
		return "&" + goValue(v.Elem())
	case reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
		return goValue(v.Elem())
	case reflect.Struct:
		if some, ok := goOption(v); ok {
			return some
		}
		var b strings.Builder
		b.WriteString(typeName(t) + "{")
		for i := range t.NumField() {
			field := v.Field(i)
			if !t.Field(i).IsExported() || field.IsZero() {
				continue
			}
			fmt.Fprintf(&b, "\n%s: %s,", t.Field(i).Name, goValue(field))
		}
		b.WriteString("\n}")
		return strings.Replace(b.String(), "{\n}", "{}", 1)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return typeName(t) + "(" + goString(string(v.Bytes())) + ")"
		}
		var b strings.Builder
		b.WriteString(typeName(t) + "{")
		for i := range v.Len() {
			b.WriteString("\n" + goValue(v.Index(i)) + ",")
		}
		return b.String() + closing(v.Len())
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		var b strings.Builder
		b.WriteString(typeName(t) + "{")
		for _, key := range keys {
			fmt.Fprintf(&b, "\n%s: %s,", goValue(key), goValue(v.MapIndex(key)))
		}
		return b.String() + closing(len(keys))
	case reflect.String:
		return goString(v.String())
	}
	return fmt.Sprint(v.Interface())
}

func closing(n int) string {
	if n == 0 {
		return "}"
	}
	return "\n}"
}

// goOption returns an optional member.
func goOption(v reflect.Value) (string, bool) {
	if !strings.HasPrefix(v.Type().Name(), "Opt[") {
		return "", false
	}
	value := v.MethodByName("Value").Call(nil)[0]
	of := typeName(value.Type())
	if v.MethodByName("IsNull").Call(nil)[0].Bool() {
		return "acp.Null[" + of + "]()", true
	}
	return "acp.Some[" + of + "](" + goValue(value) + ")", true
}

// typeName returns a type as a program that imports package acp writes it.
func typeName(t reflect.Type) string {
	return strings.NewReplacer("codec.", "acp.", "uint8", "byte").Replace(t.String())
}

// goString returns a string as a literal, in backquotes if that is easier to read.
func goString(s string) string {
	if strconv.CanBackquote(s) && strings.ContainsAny(s, `"\`) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}
