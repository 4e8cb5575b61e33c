package acp

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/acpgo/sdk/codec"
)

// flaw describes an error in a message, and its place in the parameters or the result; nil means none.
type flaw struct {
	pointer, reason string
}

// Error implements the error interface.
func (f *flaw) Error() string { return f.pointer + ": " + f.reason }

// invalidParams returns the error for parameters with this flaw, which names the member.
func (f *flaw) invalidParams() *Error {
	return ErrInvalidParams.WithMessagef("Invalid params: %v", f).
		WithData(map[string]string{"pointer": f.pointer, "reason": f.reason})
}

// wrongParams is a flaw in the parameters of this side's own call. It wraps the error with which a peer would have
// answered.
type wrongParams struct{ *flaw }

func (w wrongParams) Unwrap() error { return w.invalidParams() }

// asParams turns a check of parameters into one for routes.
func asParams(check func(params any) *flaw) func(params any) error {
	return func(params any) error {
		if wrong := check(params); wrong != nil {
			return wrong.invalidParams()
		}
		return nil
	}
}

// missing reports whether a variant is nil, or a nil pointer. Such a variant has nothing to check; encoding refuses it
// and reports its position.
func missing(variant any) bool {
	v := reflect.ValueOf(variant)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// checkIDs refuses ids that are empty.
func checkIDs(v any) *flaw {
	if pointer := codec.EmptyID(v); pointer != "" {
		return &flaw{pointer, "must not be empty"}
	}
	return nil
}

// checkID refuses an id that is empty.
func checkID[ID ~string](pointer string, id ID) *flaw {
	if id == "" {
		return &flaw{pointer, "must not be empty"}
	}
	return nil
}

// checkKnown refuses values that an enum does not define, unless a peer has sent them.
func checkKnown[E codec.Name](pointer string, value E) *flaw {
	if !value.Known() && !codec.WasRead(value) {
		return &flaw{pointer, fmt.Sprintf("%.64q is not one of the values of %T: %s", string(value), value, enumNames(value))}
	}
	return nil
}

// maxListed is how many values an error lists.
const maxListed = 20

// notOffered says that the peer does not offer a value, and which ones it offers.
func notOffered[T ~string](pointer string, value T, what string, offered []T) *flaw {
	var b strings.Builder
	fmt.Fprintf(&b, "%.64q is not %s", string(value), what)
	if len(offered) == 0 {
		b.WriteString(", which has none")
	}
	for i, v := range offered {
		switch i {
		case 0:
			b.WriteString(": ")
		case maxListed:
			fmt.Fprintf(&b, " and %d more", len(offered)-i)
			return &flaw{pointer, b.String()}
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%.64q", string(v))
	}
	return &flaw{pointer, b.String()}
}

// checkUnlessEmpty is checkKnown for a member that may be left out.
func checkUnlessEmpty[E codec.Name](pointer string, value E) *flaw {
	if value == "" {
		return nil
	}
	return checkKnown(pointer, value)
}

// checkLine refuses line 0; lines count from 1.
func checkLine(pointer string, line Opt[uint32]) *flaw {
	if n, ok := line.Get(); ok && n == 0 {
		return &flaw{pointer, "lines count from 1"}
	}
	return nil
}

// absolute reports whether a path is absolute on some operating system: the peer may run on another one.
func absolute[Path ~string](p Path) bool {
	path := string(p)
	if strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) {
		return true
	}
	if len(path) < 3 || path[1] != ':' || path[2] != '\\' && path[2] != '/' {
		return false
	}
	drive := path[0] | 0x20
	return 'a' <= drive && drive <= 'z'
}

// checkPath refuses paths that are not absolute.
func checkPath[Path ~string](pointer string, path Path) *flaw {
	if !absolute(path) {
		return &flaw{pointer, "not an absolute path"}
	}
	return nil
}

func checkOptPath[Path ~string](pointer string, path Opt[Path]) *flaw {
	if path, ok := path.Get(); ok {
		return checkPath(pointer, path)
	}
	return nil
}

// checkRoots refuses directories of a session that are not absolute.
func checkRoots[Path ~string](cwd Path, roots []Path) *flaw {
	return cmp.Or(checkPath("/cwd", cwd), checkPaths("/additionalDirectories", roots))
}

// checkPaths refuses paths that are not absolute.
func checkPaths[Path ~string](pointer string, paths []Path) *flaw {
	for i, path := range paths {
		if !absolute(path) {
			return &flaw{fmt.Sprintf("%s/%d", pointer, i), "not an absolute path"}
		}
	}
	return nil
}

// checkListed refuses sessions without an id, or with directories that are not absolute paths.
func checkListed(_ *ListSessionsRequest, res *ListSessionsResponse) *flaw {
	for i := range res.Sessions {
		s := &res.Sessions[i]
		if wrong := cmp.Or(checkID("/sessionId", s.SessionID), checkRoots(s.Cwd, s.AdditionalDirectories)); wrong != nil {
			return &flaw{fmt.Sprintf("/sessions/%d%s", i, wrong.pointer), wrong.reason}
		}
	}
	return nil
}

// checkSystemPrompt refuses a system prompt in an unknown mode, or with content that the protocol does not allow. An
// agent may have modes of its own, whose names begin with an underscore.
func checkSystemPrompt(prompt SystemPrompt) *flaw {
	const at = "/systemPrompt/content"
	if !strings.HasPrefix(string(prompt.Mode), "_") && !prompt.Mode.Known() {
		return &flaw{"/systemPrompt/mode", fmt.Sprintf("%.64q is not a mode", string(prompt.Mode))}
	}
	for i := range prompt.Content {
		if _, text := prompt.Content[i].Variant.(*ContentBlockText); !text {
			return &flaw{fmt.Sprintf("%s/%d/type", at, i), "a system prompt is text"}
		}
	}
	if len(prompt.Content) == 0 {
		return &flaw{at, "must not be empty"}
	}
	return nil
}

// checkCommands refuses MCP servers whose command is not an absolute path.
func checkCommands(servers []MCPServer) *flaw {
	for i := range servers {
		if stdio, ok := servers[i].Variant.(*MCPServerStdio); ok && stdio != nil && !absolute(stdio.Command) {
			return &flaw{fmt.Sprintf("/mcpServers/%d/command", i), "not an absolute path"}
		}
	}
	return nil
}

// checkLocations refuses locations whose path is not absolute or whose line is 0.
func checkLocations(pointer string, locations []ToolCallLocation) *flaw {
	for i := range locations {
		l := &locations[i]
		at := func() string { return fmt.Sprintf("%s/%d", pointer, i) }
		if !absolute(l.Path) {
			return &flaw{at() + "/path", "not an absolute path"}
		}
		if line, ok := l.Line.Get(); ok && line == 0 {
			return &flaw{at() + "/line", "lines count from 1"}
		}
	}
	return nil
}

// checkPermissionOptions refuses options with an empty or a duplicate id.
func checkPermissionOptions(pointer string, options []PermissionOption) *flaw {
	for i := range options {
		switch id := options[i].OptionID; {
		case id == "":
			return &flaw{fmt.Sprintf("%s/%d/optionId", pointer, i), "must not be empty"}
		case isOffered(options[:i], id):
			return &flaw{fmt.Sprintf("%s/%d/optionId", pointer, i), "another option has this id"}
		}
	}
	return nil
}

func isOffered(options []PermissionOption, id PermissionOptionID) bool {
	return slices.ContainsFunc(options, func(o PermissionOption) bool { return o.OptionID == id })
}

// checkElicitationIDs refuses an elicitation whose ids are empty.
func checkElicitationIDs(req *CreateElicitationRequest) *flaw {
	if missing(req.Variant) {
		return nil
	}
	switch v := req.Variant.(type) {
	case *CreateElicitationRequestForm:
		if s, ok := v.Variant.(*ElicitationFormModeSession); ok && s != nil {
			return checkID("/sessionId", s.SessionID)
		}
	case *CreateElicitationRequestURL:
		wrong := checkID("/elicitationId", v.ElicitationID)
		if s, ok := v.Variant.(*ElicitationURLModeSession); ok && s != nil {
			wrong = cmp.Or(wrong, checkID("/sessionId", s.SessionID))
		}
		return wrong
	default: // has no ids that are known
	}
	return nil
}
