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

	"github.com/acpgo/sdk/internal/filelock"
	"github.com/acpgo/sdk/internal/wholefile"
)

// ErrByHand says that a change cannot be made without changing something else.
var ErrByHand = errors.New("this cannot be changed on its own: edit the file")

// ErrNoFile says that the file has no path.
var ErrNoFile = errors.New("the user has no configuration directory: name a file with --config")

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
		err = fmt.Errorf("%w; did you mean %s?", err, OrList(near))
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

// valueOf converts words to a value for the file, whose content is checked later.
func valueOf(key string, words []string) (any, error) {
	row, own := Find(key), ""
	if parts := partsOfAgent(key); parts != nil {
		own = parts[1]
		row = Find(own)
	} else if row == nil {
		return nil, UnknownKey(key)
	}
	var field any
	if row != nil {
		field = row.field(&Settings{})
	}
	_, isList := field.(*[]string)
	_, isBool := field.(*bool)
	switch {
	case own == "env":
		variables := map[string]any{}
		for _, text := range words {
			name, value, ok := strings.Cut(text, "=")
			if !ok || name == "" {
				return nil, fmt.Errorf("%s: expected NAME=VALUE, not %q", key, text)
			}
			variables[name] = value
		}
		return variables, nil
	case isList || own == "command":
		if row != nil && row.commas() {
			words = split(strings.Join(words, ","), ",")
		}
		return array(words), nil
	case len(words) != 1:
		return nil, fmt.Errorf("%s: expected one value", key)
	case isBool:
		b, err := strconv.ParseBool(words[0])
		if err != nil {
			err = fmt.Errorf("%s: expected true or false", key)
		}
		return b, err
	}
	return words[0], nil
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

// A line of the text, with the table that it belongs to and what it means on its own; nothing if it is part of a value.
type line struct {
	text, table string
	keys        map[string]any
	header      bool
}

// lines splits the text. Comments directly above the header of a table belong to the table.
func (f *File) lines() (all []line) {
	table := ""
	for text := range strings.Lines(string(f.text)) {
		l := line{text: text, header: strings.HasPrefix(strings.TrimSpace(text), "[")}
		if toml.Unmarshal([]byte(text), &l.keys) != nil {
			l.keys, l.header = nil, false
		}
		if l.header {
			table = ""
			for inner := l.keys; len(inner) > 0; {
				for name, v := range inner {
					table = joinKey(table, name)
					inner, _ = v.(map[string]any)
				}
			}
		}
		l.table = table
		all = append(all, l)
	}
	begins := false // the next line belongs to the beginning of a table
	for i := len(all) - 1; i >= 0; i-- {
		if begins = all[i].header || begins && strings.HasPrefix(all[i].text, "#"); begins && !all[i].header {
			all[i].table = all[i+1].table
		}
	}
	return all
}

// set returns the text with a key set: its line is replaced, or one is added to its table, or the table to the end.
func (f *File) set(parts []string, v any) ([]byte, error) {
	name, table := parts[len(parts)-1], pathOf(parts[:len(parts)-1])
	assigned, err := assignment(name, v)
	if err != nil {
		return nil, err
	}
	newline := "\n"
	if bytes.Contains(f.text, []byte("\r\n")) { // Windows line endings
		newline = "\r\n"
	}
	assigned += newline
	all := f.lines()
	at := 0 // where a line is added
	for i, l := range all {
		if l.table != table {
			continue
		}
		if _, is := l.keys[name]; is && !l.header {
			all[i].text = strings.TrimSuffix(assigned, newline) + comment(l.text)
			return join(all), nil
		}
		if strings.TrimSpace(l.text) != "" {
			at = i + 1
		}
	}
	if at == 0 && table != "" {
		text := bytes.TrimRight(f.text, "\r\n")
		if len(text) > 0 {
			text = slices.Concat(text, []byte(newline+newline))
		}
		return append(text, "["+table+"]"+newline+assigned...), nil
	}
	if at > 0 && !strings.HasSuffix(all[at-1].text, "\n") {
		all[at-1].text += newline
	}
	return join(slices.Insert(all, at, line{text: assigned})), nil
}

// comment returns the end of a line after its value: space, a comment and the line break.
func comment(text string) string {
	end := len(text)
	for i := strings.Index(text, "#"); i >= 0 && i < len(text); i++ {
		if text[i] == '#' && toml.Unmarshal([]byte(text[:i]), &map[string]any{}) == nil {
			end = i
			break
		}
	}
	return text[len(strings.TrimRight(text[:end], " \t\r\n")):]
}

func join(all []line) []byte {
	var text []byte
	for _, l := range all {
		text = append(text, l.text...)
	}
	return text
}

// unset returns the text without the line of a key, or without a table and the comments above it.
func (f *File) unset(parts []string) []byte {
	name, table, path := parts[len(parts)-1], pathOf(parts[:len(parts)-1]), pathOf(parts)
	return join(slices.DeleteFunc(f.lines(), func(l line) bool {
		_, is := l.keys[name]
		return is && !l.header && l.table == table || l.table == path || strings.HasPrefix(l.table, path+".")
	}))
}

// change sets a key of a file, or removes it if v is nil. It holds a lock, so that of several processes each sees the
// changes of the previous one. A file that is a symbolic link stays one.
func change(ctx context.Context, path string, parts []string, v any) (err error) {
	if path == "" {
		return ErrNoFile
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		// It is no file that another process has just written.
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
	return wholefile.Replace(path, text, mode)
}

// changed returns the text of the file with a key set, or removed if v is nil. It checks that this is the only effect.
func (f *File) changed(parts []string, v any) (text []byte, err error) {
	want, err := meaning(f.text)
	if err != nil {
		return nil, err
	}
	if v == nil {
		text = f.unset(parts)
	} else if text, err = f.set(parts, v); err != nil {
		return nil, err
	}
	put(want, parts, v)
	if got, err := meaning(text); err != nil || !reflect.DeepEqual(got, want) {
		return nil, ErrByHand
	}
	if _, err := Parse(f.Path, text); err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			err = e.Err // the position is in a text that the user does not have
		}
		return nil, err
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
