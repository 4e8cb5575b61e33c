package config

// Changes of the file. Comments, order and everything else in it stay: a line is replaced, added or removed, and a
// change that would need more than that is refused.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/internal/filelock"
)

// ErrByHand says that a change cannot be made without changing something else.
var ErrByHand = errors.New("this cannot be changed on its own: edit the file")

// Set sets a key of the file. For a list, the values may be several or separated by commas.
func Set(ctx context.Context, path, key string, values []string) error {
	v, err := valueOf(key, values)
	if err != nil {
		return err
	}
	return change(ctx, path, keyPath(key), v)
}

// Unset removes a key of the file, or an agent with all its keys and the comments above them. Removing a missing key is
// not an error.
func Unset(ctx context.Context, path, key string) error {
	if Find(key) == nil && partsOfAgent(key) == nil {
		if name, is := strings.CutPrefix(key, "agents."); !is || !namePattern.MatchString(name) {
			return UnknownKey(key)
		}
	}
	return change(ctx, path, keyPath(key), nil)
}

// UnknownKey returns the error for a key that belongs to no setting.
func UnknownKey(key string) error {
	var known []string
	for i := range Table {
		known = append(known, Table[i].Key)
	}
	err := fmt.Errorf("there is no key %q", key)
	if near := Nearest(key, known); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, orList(near))
	}
	return err
}

// partsOfAgent returns the name and the last part of a key of an agent that can be set, as in agents.NAME.url; nil for
// other keys.
func partsOfAgent(key string) []string {
	parts := strings.Split(key, ".")
	if len(parts) < 3 || parts[0] != "agents" {
		return nil
	}
	name, last := strings.Join(parts[1:len(parts)-1], "."), parts[len(parts)-1]
	for _, k := range agentKeys {
		if k.key == last && namePattern.MatchString(name) {
			return []string{name, last}
		}
	}
	return nil
}

// valueOf converts words to a value for the file.
func valueOf(key string, values []string) (any, error) {
	one := func() (string, error) {
		if len(values) != 1 {
			return "", fmt.Errorf("%s: expected one value", key)
		}
		return values[0], nil
	}
	if row := Find(key); row != nil {
		var scratch Settings
		field := row.field(&scratch)
		if list, is := field.(*[]string); is {
			flag := &value{row: row, field: list}
			for _, text := range values {
				if err := flag.Set(text); err != nil {
					return nil, fmt.Errorf("%s: %w", key, err)
				}
			}
			return array(*list), nil
		}
		text, err := one()
		if err == nil {
			if err = row.parse(field, text); err != nil {
				err = fmt.Errorf("%s: %w", key, err)
			}
		}
		switch p := field.(type) {
		case *bool:
			return *p, err
		case *int:
			return int64(*p), err
		}
		return text, err
	}
	parts := partsOfAgent(key)
	if parts == nil {
		return nil, UnknownKey(key)
	}
	if row := Find(parts[1]); row != nil && row.Each {
		return valueOf(row.Key, values)
	}
	switch parts[1] {
	case "command", "header-env":
		return array(values), nil
	case "env":
		variables := map[string]any{}
		for _, text := range values {
			name, value, ok := strings.Cut(text, "=")
			if !ok || name == "" {
				return nil, fmt.Errorf("%s: expected NAME=VALUE, not %q", key, text)
			}
			variables[name] = value
		}
		return variables, nil
	case "allow-insecure":
		text, err := one()
		if err != nil {
			return nil, err
		}
		b, err := strconv.ParseBool(text)
		if err != nil {
			err = fmt.Errorf("%s: expected true or false", key)
		}
		return b, err
	}
	return one()
}

func array(list []string) []any {
	all := make([]any, len(list))
	for i, text := range list {
		all[i] = text
	}
	return all
}

// keyPath splits a key into its parts.
func keyPath(key string) []string {
	if parts := partsOfAgent(key); parts != nil {
		return append([]string{"agents"}, parts...)
	}
	if name, is := strings.CutPrefix(key, "agents."); is {
		return []string{"agents", name}
	}
	return strings.Split(key, ".")
}

// pathOf joins parts to a path as used in places.
func pathOf(parts []string) (path string) {
	for _, part := range parts {
		path = joinKey(path, part)
	}
	return path
}

// assignment returns a line that sets a key, without a newline.
func assignment(key string, v any) (string, error) {
	var out strings.Builder
	err := toml.NewEncoder(&out).SetTablesInline(true).Encode(map[string]any{key: v})
	return strings.TrimSuffix(out.String(), "\n"), err
}

// set returns the text with a key set: its value is replaced, or a line is added to its table, or the table to the end.
func (f *File) set(parts []string, v any) ([]byte, error) {
	last := len(parts) - 1
	line, err := assignment(parts[last], v)
	if err != nil {
		return nil, err
	}
	newline := "\n"
	if bytes.Contains(f.text, []byte("\r\n")) { // Windows line endings
		newline = "\r\n"
	}
	if at := f.places[pathOf(parts)]; at.end > 0 {
		_, value, _ := strings.Cut(line, " = ")
		return f.replace(at.value, at.end, value), nil
	}
	table := pathOf(parts[:last])
	i := slices.IndexFunc(f.headers, func(h header) bool { return h.path == table })
	if i < 0 {
		if _, known := f.places[table]; known {
			return nil, ErrByHand // a table without a header
		}
		text := bytes.TrimRight(f.text, "\r\n")
		if len(text) > 0 {
			text = slices.Concat(text, []byte(newline+newline))
		}
		return append(text, "["+table+"]"+newline+line+newline...), nil
	}
	at, next := f.headers[i].end, len(f.text)
	if i+1 < len(f.headers) {
		next = f.headers[i+1].start
	}
	for _, key := range f.places {
		if key.end > at && key.end <= next {
			at = f.lineEnd(key.end) // after the last key of the table
		}
	}
	if at > 0 && f.text[at-1] != '\n' {
		line = newline + line
	}
	return f.replace(at, at, line+newline), nil
}

// replace returns the text with a part replaced.
func (f *File) replace(from, to int, text string) []byte {
	return slices.Concat(f.text[:from], []byte(text), f.text[to:])
}

// unset returns the text without the lines of a key, or of a table with the comments above it.
func (f *File) unset(path string) []byte {
	if at := f.places[path]; at.end > 0 {
		return f.replace(f.lineStart(at.key), f.lineEnd(at.end), "")
	}
	var text []byte
	from, keep := 0, true
	for _, h := range append(f.headers[1:], header{start: len(f.text)}) {
		at := f.comments(h.start)
		if keep {
			text = append(text, f.text[from:at]...)
		}
		from, keep = at, h.path != path && !strings.HasPrefix(h.path, path+".")
	}
	return text
}

// comments returns where the comments directly above the line at begin.
func (f *File) comments(at int) int {
	for at > 0 && at < len(f.text) {
		above := f.lineStart(at - 1)
		if !bytes.HasPrefix(bytes.TrimSpace(f.text[above:at]), []byte("#")) {
			break
		}
		at = above
	}
	return at
}

// lineStart returns where the line that contains at begins.
func (f *File) lineStart(at int) int { return bytes.LastIndexByte(f.text[:at], '\n') + 1 }

// lineEnd returns the offset after the line that contains at.
func (f *File) lineEnd(at int) int {
	if i := bytes.IndexByte(f.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(f.text)
}

// change sets a key of a file, or removes it if v is nil. It holds a lock, so that of several processes each sees the
// changes of the previous one. A file that is a symbolic link stays one.
func change(ctx context.Context, path string, parts []string, v any) (err error) {
	if path == "" {
		return errors.New("the user has no configuration directory: name a file with --config")
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s is a symbolic link to a file that does not exist", path)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := filelock.Wait(ctx, filepath.Join(dir, "."+filepath.Base(path)+".lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	f, err := Read(path, false)
	if err != nil {
		return err
	}
	text, err := f.changed(parts, v)
	if err != nil || string(text) == string(f.text) {
		return err
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return input.Replace(path, text, mode)
}

// changed returns the text of the file with a key set, or removed if v is nil. It checks that this is the only effect.
func (f *File) changed(parts []string, v any) (text []byte, err error) {
	want, err := meaning(f.text)
	if err != nil {
		return nil, err
	}
	if v == nil {
		text = f.unset(pathOf(parts))
	} else if text, err = f.set(parts, v); err != nil {
		return nil, err
	}
	if _, err := Parse(f.Path, text); err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			err = e.Err // the position is in a text that the user does not have
		}
		return nil, fmt.Errorf("the file would become invalid: %w", err)
	}
	got, err := meaning(text)
	if err != nil {
		return nil, err
	}
	put(want, parts, v)
	if !reflect.DeepEqual(got, want) {
		return nil, ErrByHand
	}
	return text, nil
}

// meaning decodes a text, without empty tables.
func meaning(text []byte) (map[string]any, error) {
	all := map[string]any{}
	err := toml.Unmarshal(text, &all)
	prune(all)
	return all, err
}

// prune removes empty tables.
func prune(table map[string]any) {
	for key, v := range table {
		if inner, is := v.(map[string]any); is {
			if prune(inner); len(inner) == 0 {
				delete(table, key)
			}
		}
	}
}

// put sets a key in decoded tables, or removes it if v is nil.
func put(all map[string]any, parts []string, v any) {
	table := all
	for _, part := range parts[:len(parts)-1] {
		inner, is := table[part].(map[string]any)
		if !is {
			inner = map[string]any{}
			table[part] = inner
		}
		table = inner
	}
	if table[parts[len(parts)-1]] = v; v == nil {
		delete(table, parts[len(parts)-1])
	}
	prune(all)
}
