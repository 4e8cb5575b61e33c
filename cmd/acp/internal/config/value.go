package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value makes a setting a flag.
type value struct {
	row   *Setting
	field any
	given bool // by a flag; the next value is added to a list
}

func (v *value) String() string {
	if v.row == nil { // pflag makes one to compare
		return ""
	}
	return textOf(v.field)
}

// Type returns the name of the value in the help, if the usage does not have one.
func (v *value) Type() string {
	switch v.field.(type) {
	case *bool:
		return "bool"
	case *[]string:
		return "LIST"
	}
	return "VALUE"
}

func (v *value) Set(text string) error {
	list, isList := v.field.(*[]string)
	if !isList {
		return v.row.parse(v.field, text)
	}
	more := []string{text}
	if v.row.commas() {
		more = split(text, ",")
	}
	if err := v.row.allow(more); err != nil {
		return err
	}
	if !v.given {
		*list = nil
	}
	v.given = true
	*list = append(*list, more...)
	return nil
}

// commas reports whether a word of the list may be several, between commas. The values of others may contain commas, so
// their flags are repeated.
func (s *Setting) commas() bool { return s.Values != nil }

// split returns the parts of a list without empty ones.
func split(text, separator string) (list []string) {
	for one := range strings.SplitSeq(text, separator) {
		if one = strings.TrimSpace(one); one != "" {
			list = append(list, one)
		}
	}
	return list
}

// textOf returns a value in the form of a flag.
func textOf(field any) string {
	switch p := field.(type) {
	case *string:
		return *p
	case *bool:
		return strconv.FormatBool(*p)
	case *time.Duration:
		return shortDuration(*p)
	case *[]string:
		return strings.Join(*p, ",")
	}
	panic(fmt.Sprintf("a setting of type %T", field))
}

// shortDuration formats a duration without zeros at its end: "1h", not "1h0m0s".
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// parse sets a field to the value of a text, which comes from a flag or a variable. In a variable the values of a list
// are separated by commas, or as in PATH if they are paths.
func (s *Setting) parse(field any, text string) (err error) {
	switch p := field.(type) {
	case *string:
		if err = s.allows(text); err == nil {
			*p = text
		}
	case *bool:
		if *p, err = strconv.ParseBool(text); err != nil {
			err = errors.New("expected true or false")
		}
	case *time.Duration:
		if *p, err = time.ParseDuration(text); err != nil {
			err = errors.New("expected a time such as 30s, 10m or 1h30m")
		} else if *p < 0 {
			err = errors.New("expected a time that is not less than 0")
		}
	case *[]string:
		list := split(text, ",")
		if s.Path && !s.Commas {
			list = split(text, string(filepath.ListSeparator))
		}
		if err = s.allow(list); err == nil {
			*p = list
		}
	}
	return err
}

// allows checks a text.
func (s *Setting) allows(text string) error {
	if s.check != nil {
		return s.check(text)
	}
	if s.Values == nil || slices.Contains(s.Values, text) {
		return nil
	}
	return fmt.Errorf("%q: expected %s", text, OrList(s.Values))
}

// allow checks all values of a list.
func (s *Setting) allow(list []string) error {
	for _, one := range list {
		if err := s.allows(one); err != nil {
			return err
		}
	}
	return nil
}

// OrList returns "a, b or c".
func OrList(values []string) string {
	if last := len(values) - 1; last > 0 {
		return strings.Join(values[:last], ", ") + " or " + values[last]
	}
	return strings.Join(values, "")
}

// set sets a field to a value of the file.
func (s *Setting) set(field, v any) error {
	switch p := field.(type) {
	case *string:
		text, ok := v.(string)
		if !ok {
			return wrongType("a string", v)
		}
		if s.Path {
			text = expand(text)
		}
		return s.parse(p, text)
	case *bool:
		b, ok := v.(bool)
		if !ok {
			return wrongType("true or false", v)
		}
		*p = b
	case *time.Duration:
		text, ok := v.(string)
		if !ok {
			return wrongType(`a time as a string, such as "30s"`, v)
		}
		return s.parse(p, text)
	case *[]string:
		if text, ok := v.(string); ok { // a single text stands for a list of one
			v = []any{text}
		}
		list, err := stringsOf(v)
		if err != nil {
			return err
		}
		if err := s.allow(list); err != nil {
			return err
		}
		if s.Path {
			for i := range list {
				list[i] = expand(list[i])
			}
		}
		*p = list
	}
	return nil
}

// stringsOf converts an array of strings.
func stringsOf(v any) ([]string, error) {
	array, ok := v.([]any)
	if !ok {
		return nil, wrongType("an array of strings", v)
	}
	list := make([]string, len(array))
	for i, one := range array {
		if list[i], ok = one.(string); !ok {
			return nil, wrongType("an array of strings", one)
		}
	}
	return list, nil
}

// wrongType returns the error for a value of the file that has the wrong type.
func wrongType(want string, v any) error {
	is := "something else"
	switch v.(type) {
	case string:
		is = "a string"
	case bool:
		is = "true or false"
	case int64, float64:
		is = "a number"
	case []any:
		is = "an array"
	case map[string]any:
		is = "a table"
	}
	return fmt.Errorf("expected %s, not %s", want, is)
}

// expand replaces a leading "~/" with the user's home directory.
func expand(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok && path != "~" {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path // opening it then reports that it does not exist
	}
	return filepath.Join(home, rest)
}
