package show

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// Fold returns a JSON value on one line without long or deep parts, and without the named members.
func Fold(value json.RawMessage, without ...string) string {
	if len(value) == 0 {
		return ""
	}
	if len(value) > maxFolded {
		return fmt.Sprintf("%s… (%d bytes)", clip(string(value[:4*maxString]), maxString), len(value))
	}
	var b strings.Builder
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	token, err := d.Token()
	if err == nil {
		err = fold(&b, d, token, 0, without)
	}
	if err != nil {
		return clip(string(value), maxString)
	}
	return b.String()
}

func fold(b *strings.Builder, d *json.Decoder, token json.Token, depth int, without []string) error {
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return foldObject(b, d, depth, without)
		}
		return foldArray(b, d, depth)
	case string:
		b.WriteString(foldString(t))
	case json.Number:
		b.WriteString(clip(t.String(), maxString))
	case bool:
		b.WriteString(strconv.FormatBool(t))
	default:
		b.WriteString("null")
	}
	return nil
}

func foldObject(b *strings.Builder, d *json.Decoder, depth int, without []string) error {
	var parts []string
	hidden := 0
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if token, err = d.Token(); err != nil {
			return err
		}
		var value strings.Builder
		if err := fold(&value, d, token, depth+1, nil); err != nil {
			return err
		}
		switch {
		case slices.Contains(without, name):
		case depth >= maxDepth || len(parts) >= maxMembers:
			hidden++
		default:
			parts = append(parts, clip(name, maxString)+": "+value.String())
		}
	}
	writeParts(b, "{", "}", parts, hidden)
	_, err := d.Token()
	return err
}

func foldArray(b *strings.Builder, d *json.Decoder, depth int) error {
	var parts []string
	hidden := 0
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		var value strings.Builder
		if err := fold(&value, d, token, depth+1, nil); err != nil {
			return err
		}
		if depth >= maxDepth || len(parts) >= maxItems {
			hidden++
		} else {
			parts = append(parts, value.String())
		}
	}
	writeParts(b, "[", "]", parts, hidden)
	_, err := d.Token()
	return err
}

// writeParts writes members or items, and how many are hidden.
func writeParts(b *strings.Builder, opening, closing string, parts []string, hidden int) {
	if hidden > 0 {
		parts = append(parts, fmt.Sprintf("…%d", hidden))
	}
	b.WriteString(opening + strings.Join(parts, ", ") + closing)
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
