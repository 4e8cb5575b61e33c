package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/plain"
)

// set is a set of words.
func set(words ...string) map[string]bool {
	all := map[string]bool{}
	for _, some := range words {
		for word := range strings.FieldsSeq(some) {
			all[word] = true
		}
	}
	return all
}

// The members of a tool's input that are read, at any depth. The names are those that agents use, in the form that
// memberName returns.
var (
	commandMembers = set("command cmd commandline cmdline shellcommand bashcommand")
	argsMembers    = set("args arguments argv")
	pathMembers    = set(
		"path paths file files filepath filepaths filename filenames fullpath",
		"notebook notebookpath targetnotebook targetfile targetfiles targetpath targetdirectory",
		"abspath absolutepath absolutefilepath relpath relativepath relativeworkspacepath",
		"oldpath newpath oldfile newfile sourcepath destinationpath srcpath destpath dstpath source destination src dest dst",
		"sourcefile destinationfile inputfile outputfile inputpath outputpath",
		"cwd workdir workingdir workingdirectory currentdirectory dir dirs dirname dirpath directory directories "+
			"directorypath",
		"folder folders folderpath root rootdir rootpath projectroot projectpath repopath fileuri",
	)
	// Beside a command, these change what it does.
	otherMembers = set(
		"env environ environment environmentvariables envvars variables stdin input shell executable interpreter "+
			"program binary",
		"script code entrypoint prefix setup preamble commands cmds host user",
	)
	// These hold text, which may look like a path.
	textMembers = set(
		"content contents text newtext oldtext newstring oldstring newstr oldstr newcode oldcode code patch diff edit insert",
		"regex regexp search replace replacement query prompt message description title explanation reason thought",
		"instructions question answer title justification summary comment comments purpose intent goal task note notes",
	)
)

// memberName returns the common form of a member's name: it is the same for filePath, file_path and File-Path.
func memberName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, plain.Fold(name))
}

// maxDepth, maxLines and maxText, in bytes of all lines, bound how much of an input is read.
const (
	maxDepth = 32
	maxLines = 100
	maxText  = 64 << 10
)

// object is a JSON object. Names may occur more than once.
type object []member

type member struct {
	name  string
	value any // object, []any, string, json.Number, bool or nil
}

// input reads a tool's input. Errors do not stop it, because a rule that rejects must see the rest too.
type input struct {
	facts *facts
	path  func(string)
	word  func(string) // called with words that may be paths
	text  int          // bytes of commands
	wrong error        // the first error
	// beside is an error if a member beside a command changes what the command does.
	beside error
}

// readInput reads the commands and paths of a tool's input. The error is the reason why no rule can allow it.
func (f *facts) readInput(raw json.RawMessage, path, word func(string)) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil
	}
	in := input{facts: f, path: path, word: word}
	if !utf8.Valid(raw) { // the decoder would stop there
		in.fail(errors.New("not UTF-8"))
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	d := codec.NewDecoder(raw)
	d.SetMaxDepth(10_000)
	value := in.parse(d, maxDepth)
	err := d.End()
	if _, ok := value.(object); !ok && value != nil && err == nil && f.kind == acp.ToolKindExecute {
		err = errors.New("not an object")
	}
	in.fail(err)
	if o, ok := value.(object); ok {
		paths := in.readObject(o)
		f.commanded = len(f.lines) > 0
		f.named = f.named || paths > 0 || f.commanded
	}
	in.readInside(value)
	if len(f.lines) > 0 {
		in.fail(in.beside)
	}
	return in.wrong
}

func (in *input) fail(err error) {
	if in.wrong == nil {
		in.wrong = err
	}
}

// parse reads a value with up to depth nested lists and objects. After an error, it returns the value before the error.
func (in *input) parse(d *codec.Decoder, depth int) any {
	switch kind := d.Kind(); {
	case kind == '"':
		return d.Str()
	case kind == '0':
		return json.Number(d.Raw())
	case kind == 't' || kind == 'f':
		return d.Bool()
	case kind != '{' && kind != '[':
		d.Skip()
		return nil
	case depth == 0:
		in.fail(fmt.Errorf("lists and objects nested deeper than %d levels", maxDepth))
		d.Skip()
		return nil
	case kind == '[':
		list := []any{}
		for a := d.Array(); a.Next(); {
			list = append(list, in.parse(d, depth-1))
		}
		return list
	}
	o, seen := object{}, map[string]bool{}
	for members := d.Object(); members.Next(); {
		name := string(members.Name())
		if seen[name] {
			in.fail(fmt.Errorf("duplicate member %q", name))
		}
		seen[name] = true
		o = append(o, member{name, in.parse(d, depth-1)})
	}
	return o
}

// readInside reads the objects inside a value.
func (in *input) readInside(value any) {
	inside := func(value any) {
		if o, ok := value.(object); ok {
			in.readObject(o)
		}
		in.readInside(value)
	}
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			inside(element)
		}
	case object:
		for _, m := range value {
			inside(m.value)
		}
	}
}

// readObject reads the members of an object, and returns the number of paths in them.
func (in *input) readObject(o object) (paths int) {
	var more []string
	var wrongArgs error
	for _, m := range o {
		switch name := memberName(m.name); {
		case pathMembers[name]:
			texts, err := textsOf(m)
			in.fail(err)
			for _, text := range texts {
				in.path(text)
			}
			paths += len(texts)
		case otherMembers[name]:
			if !empty(m.value) {
				in.beside = fmt.Errorf("%s changes what the command does", m.name)
			}
		case argsMembers[name]:
			if len(more) > 0 || wrongArgs != nil {
				in.fail(fmt.Errorf("%s: more than one list of args", m.name))
			}
			texts, err := textsOf(m)
			more, wrongArgs = append(more, texts...), cmp.Or(wrongArgs, err)
		case !textMembers[name] && !commandMembers[name]:
			texts, _ := textsOf(m) // a value that is not text is not a path
			for _, text := range texts {
				in.unknown(text)
			}
		}
	}
	commands := 0
	for _, m := range o {
		if commandMembers[memberName(m.name)] && m.value != nil {
			commands++
			in.fail(in.command(m, more, wrongArgs))
		}
	}
	if commands == 0 && (len(more) > 0 || wrongArgs != nil) {
		in.beside = errors.New("args without a command in the same object")
	}
	return paths
}

// unknown reads text in an unknown member. Text that looks like a path must be covered, but is not enough.
func (in *input) unknown(text string) {
	switch {
	case len(text) > maxPath || strings.ContainsAny(text, "\n\x00"):
	case looksLikePath(text):
		in.path(text)
	default:
		in.word(text)
	}
}

// maxPath is the greatest length of text that is treated as a path where it may be something else.
const maxPath = 4096

// looksLikePath reports whether a text is very likely a path.
func looksLikePath(text string) bool {
	text = bare(text)
	name := strings.ReplaceAll(text, `\`, "/")
	switch {
	case strings.HasPrefix(name, "//"):
		return strings.HasPrefix(text, `\\`)
	case rooted(name):
		return !strings.HasPrefix(name, "/*")
	}
	return strings.HasPrefix(name, "~/") || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "./") ||
		strings.Contains(name, "/../") || strings.HasPrefix(plain.Fold(name), "file:")
}

// command reads a command, with the args beside it.
func (in *input) command(m member, more []string, wrongArgs error) error {
	f := in.facts
	if len(f.lines) >= maxLines {
		return fmt.Errorf("more than %d commands", maxLines)
	}
	texts, err := textsOf(m)
	if err != nil {
		return err
	}
	for _, text := range slices.Concat(texts, more) {
		in.text += len(text)
	}
	if in.text > maxText {
		return fmt.Errorf("commands longer than %d bytes", maxText)
	}
	if _, ok := m.value.([]any); ok {
		f.lines = append(f.lines, invocation(texts))
		if len(more) > 0 || wrongArgs != nil {
			return fmt.Errorf("%s: both a list of arguments and args", m.name)
		}
		return nil
	}
	switch text := texts[0]; {
	case wrongArgs != nil:
		return wrongArgs
	case len(more) == 0:
		f.lines = append(f.lines, parseLine(text))
	case strings.ContainsFunc(text, func(r rune) bool { return !plainName(r) }):
		return fmt.Errorf("%s: both a command line and args", m.name)
	default:
		f.lines = append(f.lines, invocation(append([]string{text}, more...)))
	}
	return nil
}

// plainName reports whether a character has no special meaning in any shell.
func plainName(r rune) bool { return alphanumeric(r) || strings.ContainsRune("/._-+", r) }

// invocation returns what a command with arguments does. If it is a shell that is given a line, that is what the line
// does.
func invocation(args []string) line {
	outer := argv(args)
	if len(args) == 3 && (args[1] == "-c" || args[1] == "-lc") &&
		slices.Contains([]string{"sh", "bash", "/bin/sh", "/bin/bash"}, args[0]) {
		l := parseLine(args[2])
		l.all = append(l.all, outer.all...)
		return l
	}
	return outer
}

// textsOf returns the strings of a member, which may be one string or a list. With an error, it returns those that it
// found.
func textsOf(m member) (texts []string, err error) {
	list, ok := m.value.([]any)
	if !ok && m.value != nil {
		list = []any{m.value}
	}
	for _, value := range list {
		if text, ok := value.(string); ok {
			texts = append(texts, text)
		} else {
			err = fmt.Errorf("%s: neither a string nor a list of strings", m.name)
		}
	}
	return texts, err
}

// empty reports whether a value has no content.
func empty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case object:
		return len(value) == 0
	}
	return false
}
