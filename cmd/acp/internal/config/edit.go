package config

// Changes of the file. Comments, order and everything else in it stay: only the text of one key is replaced, added or
// removed, and a change that would have another effect is refused.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/acpgo/sdk/internal/filelock"
)

// ErrByHand says that a change cannot be made without changing something else.
var ErrByHand = errors.New("this cannot be changed on its own: edit the file")

// section is the top of the file, or a table with its header, up to the next header.
type section struct {
	parts  []string // the name of the table
	start  int      // where the line of the header begins
	end    int      // after the line of its last key, or of the header
	dotted []string // tables defined by its dotted keys
}

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

// tomlOf returns a value in TOML.
func tomlOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return "", errors.New("the value is not valid UTF-8")
		}
		return quoted(v), nil
	case bool:
		return strconv.FormatBool(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case []any:
		var words []string
		for _, one := range v {
			word, err := tomlOf(one)
			if err != nil {
				return "", err
			}
			words = append(words, word)
		}
		return "[" + strings.Join(words, ", ") + "]", nil
	case map[string]any:
		var pairs []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			word, err := tomlOf(v[name])
			if err != nil {
				return "", err
			}
			pairs = append(pairs, quoted(name)+" = "+word)
		}
		return "{" + strings.Join(pairs, ", ") + "}", nil
	}
	return "", fmt.Errorf("a value of type %T", v)
}

// quoted returns a text as a TOML string.
func quoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
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

// bare returns parts as a dotted key or the header of a table.
func bare(parts []string) string {
	words := slices.Clone(parts)
	for i, word := range words {
		if strings.Contains(word, ".") {
			words[i] = quoted(word)
		}
	}
	return strings.Join(words, ".")
}

// set returns the text with a key set.
func (f *File) set(parts []string, v any) ([]byte, error) {
	value, err := tomlOf(v)
	if err != nil {
		return nil, err
	}
	if at := f.places[pathOf(parts)]; at.end > 0 {
		return f.replace(at.value, at.end, value), nil
	}
	last := len(parts) - 1
	table := pathOf(parts[:last])
	if f.places[table].end > 0 {
		return nil, ErrByHand // an inline table
	}
	i := slices.IndexFunc(f.sections, func(s section) bool { return pathOf(s.parts) == table })
	if i < 0 {
		i = slices.IndexFunc(f.sections, func(s section) bool { return slices.Contains(s.dotted, table) })
	}
	newline := "\n"
	if bytes.Contains(f.text, []byte("\r\n")) { // Windows line endings
		newline = "\r\n"
	}
	if i < 0 {
		text := string(f.text)
		if text != "" {
			text = strings.TrimRight(text, "\r\n") + newline + newline
		}
		return []byte(text + "[" + bare(parts[:last]) + "]" + newline + bare(parts[last:]) + " = " + value + newline), nil
	}
	s := &f.sections[i]
	line := bare(parts[len(s.parts):]) + " = " + value + newline
	if s.end > 0 && f.text[s.end-1] != '\n' {
		line = newline + line
	}
	if i == 0 && s.end < len(f.text) && !bytes.HasPrefix(f.text[s.end:], []byte(newline)) {
		line += newline // a header or its comments follow
	}
	return f.replace(s.end, s.end, line), nil
}

// replace returns the text with a part replaced.
func (f *File) replace(from, to int, text string) []byte {
	return slices.Concat(f.text[:from], []byte(text), f.text[to:])
}

// unset returns the text without a key and everything below it.
func (f *File) unset(parts []string) []byte {
	path := pathOf(parts)
	under := func(other string) bool { return other == path || strings.HasPrefix(other, path+".") }
	var cuts [][2]int
	for i, s := range f.sections {
		if i > 0 && under(pathOf(s.parts)) {
			// Remove the comments above it too; otherwise they would seem to be about another table.
			cuts = append(cuts, [2]int{f.aboutNext(f.sections[i-1].end, s.start), f.aboutNext(s.end, f.next(i))})
		}
	}
	for other, at := range f.places {
		within := slices.ContainsFunc(cuts, func(cut [2]int) bool { return at.key >= cut[0] && at.key < cut[1] })
		if at.end == 0 || within || !under(other) {
			continue
		}
		from := strings.LastIndexByte(string(f.text[:at.key]), '\n') + 1
		if strings.TrimSpace(string(f.text[from:at.key])) == "" { // otherwise it is in an inline table
			cuts = append(cuts, [2]int{from, f.lineEnd(at.end)})
		}
	}
	slices.SortFunc(cuts, func(a, b [2]int) int { return a[0] - b[0] })
	var text []byte
	at := 0
	for _, cut := range cuts {
		if cut[0] > at {
			text = append(text, f.text[at:cut[0]]...)
		}
		at = max(at, cut[1])
	}
	return append(text, f.text[at:]...)
}

// next returns where the section after section i begins.
func (f *File) next(i int) int {
	if i+1 < len(f.sections) {
		return f.sections[i+1].start
	}
	return len(f.text)
}

// aboutNext returns where the comments directly before a header begin, between the end of the previous section and the
// header's line.
func (f *File) aboutNext(from, to int) int {
	if from > to || to == len(f.text) {
		return to
	}
	lines := strings.SplitAfter(string(f.text[from:to]), "\n")
	at := to
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		if line == "" && lines[i] != "" || line != "" && !strings.HasPrefix(line, "#") {
			break
		}
		at -= len(lines[i])
	}
	return at
}

// lineEnd returns the offset after the line that contains at.
func (f *File) lineEnd(at int) int {
	if i := strings.IndexByte(string(f.text[at:]), '\n'); i >= 0 {
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
	path = behindLinks(path)
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
	return replaceFile(path, text)
}

// maxLinks is the maximum number of symbolic links that are followed.
const maxLinks = 40

// behindLinks returns the target of a path that is a symbolic link, even if the target does not exist yet.
func behindLinks(path string) string {
	for range maxLinks {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
		link, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(link) {
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				break
			}
			link = filepath.Join(dir, link)
		}
		path = link
	}
	return path
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

// replaceFile replaces a file atomically: others see either the old or the new text. It keeps the permissions.
func replaceFile(path string, text []byte) (err error) {
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Chmod(mode), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
