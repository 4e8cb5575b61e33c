package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/acpgo/sdk/acp/rpc"
)

// Guard keeps an agent that is not a process of this machine away from the client's files and terminals. Clients trust
// the agents that they start as commands, and acp connect and acp conduct make an agent at a URL look like one.
type Guard struct {
	// Files and Terminals let the agent's requests for them pass. Without Terminals, the client is not offered logins in
	// a terminal either: they run the command that the client has, with arguments and variables that the agent chooses.
	Files, Terminals bool
	// Logger gets a warning for the first request of each method that is refused.
	Logger *slog.Logger
}

// Transport returns a transport whose streams refuse the agent's requests, and hide the client's capabilities for them.
func (g *Guard) Transport(toAgent rpc.Transport) rpc.Transport {
	if g.Files && g.Terminals {
		return toAgent
	}
	return &guarded{g, toAgent}
}

type guarded struct {
	*Guard
	inner rpc.Transport
}

func (g *guarded) Connect(ctx context.Context) (rpc.Stream, error) {
	stream, err := g.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &guardedStream{Stream: stream, guard: g.Guard, refused: map[string]bool{}}, nil
}

// guardedStream is the stream of an agent.
type guardedStream struct {
	rpc.Stream
	guard   *Guard
	refused map[string]bool // the methods that have been refused

	mu sync.Mutex // held while writing
}

// Read implements rpc.Stream. What may be refused by one reader and understood by another is refused: a batch, a line
// that is not JSON, and an envelope that is not one of a request, a notification or a response.
func (s *guardedStream) Read() ([]byte, error) {
	for {
		line, err := s.Stream.Read()
		if err != nil {
			return line, err
		}
		if bytes.ContainsAny(line, "\r\n") { // between tokens; some clients take both for the end of a line
			line = bytes.Map(func(r rune) rune {
				if r == '\r' || r == '\n' {
					return ' '
				}
				return r
			}, line)
		}
		id, method, err := envelope(line)
		var answer string
		switch {
		case err != nil:
			answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":%q}}`, "acp passes on one JSON-RPC 2.0 message at a time")
			s.guard.Logger.Warn("acp: the agent sent something that is not a message", "error", err)
		case s.guard.refuses(method):
			if id != nil {
				answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":%q}}`, id, "acp lets no agent at a URL use this")
			}
			if !s.refused[method] && len(s.refused) < maxRefused {
				s.refused[method] = true
				s.guard.Logger.Warn("acp: refused what the agent asked for; see --remote-files and --remote-terminals", "method",
					method)
			}
		case method == "" && !s.guard.Terminals:
			return withoutTerminalLogins(line), nil
		default:
			return line, nil
		}
		if answer != "" {
			if err := s.write([]byte(answer)); err != nil {
				return nil, err
			}
		}
	}
}

// maxRefused is how many methods are logged.
const maxRefused = 16

// refuses reports whether the agent may not call a method.
func (g *Guard) refuses(method string) bool {
	return !g.Files && strings.HasPrefix(method, "fs/") || !g.Terminals && strings.HasPrefix(method, "terminal/")
}

// envelope returns the id and the method of a message; those that it does not have are nil and "". Readers differ in
// what they take an envelope for that has a member twice or in another spelling, a method that is not a word, or a
// method beside a result. Those are errors.
func envelope(line []byte) (id json.RawMessage, method string, err error) {
	d := json.NewDecoder(bytes.NewReader(line))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return nil, "", errors.Join(errors.New("not a JSON object"), err)
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, "", err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, "", err
		}
		name := token.(string) // the decoder guarantees this
		if i := slices.IndexFunc(envelopeMembers, func(known string) bool { return strings.EqualFold(known, name) }); i >= 0 {
			if name != envelopeMembers[i] || members[name] != nil {
				return nil, "", fmt.Errorf("the member %q occurs twice or in another spelling", envelopeMembers[i])
			}
			members[name] = value
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, "", err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, "", errors.New("more than one JSON value")
	}
	// some write null for absent
	has := func(name string) bool { return members[name] != nil && string(members[name]) != "null" }
	if has("method") {
		if err := json.Unmarshal(members["method"], &method); err != nil || method == "" || has("result") || has("error") {
			return nil, "", errors.New("the method is not a word, or beside a result or an error")
		}
	}
	return members["id"], method, nil
}

var envelopeMembers = []string{"jsonrpc", "id", "method", "params", "result", "error"}

// withoutTerminalLogins removes the logins in a terminal from a response to initialize.
func withoutTerminalLogins(line []byte) []byte {
	var response, result map[string]json.RawMessage
	if json.Unmarshal(line, &response) != nil || json.Unmarshal(response["result"], &result) != nil {
		return line
	}
	found := false
	for name, value := range result {
		if !strings.EqualFold(name, "authMethods") {
			continue
		}
		found = true
		var methods []map[string]json.RawMessage
		if json.Unmarshal(value, &methods) != nil || name != "authMethods" {
			delete(result, name)
			continue
		}
		methods = slices.DeleteFunc(methods, func(method map[string]json.RawMessage) bool {
			for name, value := range method {
				var kind string
				var meta map[string]json.RawMessage
				if strings.EqualFold(name, "type") && (json.Unmarshal(value, &kind) != nil || kind == "terminal") ||
					strings.EqualFold(name, "_meta") && json.Unmarshal(value, &meta) == nil &&
						slices.ContainsFunc(slices.Collect(maps.Keys(meta)),
							func(name string) bool { return strings.EqualFold(name, "terminal-auth") }) {
					return true
				}
			}
			return false
		})
		result[name] = marshal(methods)
	}
	if !found {
		return line
	}
	response["result"] = marshal(result)
	return marshal(response)
}

// marshal returns the JSON of what was decoded from JSON.
func marshal(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was JSON before
	}
	return text
}

func (s *guardedStream) Write(message []byte) error { return s.write(s.guard.hide(message)) }

func (s *guardedStream) write(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Stream.Write(message)
}

func (s *guardedStream) CloseWrite() error {
	if half, ok := s.Stream.(rpc.HalfCloser); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// hide removes capabilities from a request initialize, so that the agent does not ask for what is refused. A message
// that is not understood passes unchanged.
func (g *Guard) hide(message []byte) []byte {
	var request, params map[string]json.RawMessage
	if !bytes.Contains(message, []byte(`apabilities"`)) || json.Unmarshal(message, &request) != nil ||
		string(request["method"]) != `"initialize"` || json.Unmarshal(request["params"], &params) != nil {
		return message
	}
	hidden := false
	hide := func(in map[string]json.RawMessage, name string) {
		hidden = hidden || in[name] != nil
		delete(in, name)
	}
	for _, name := range []string{"clientCapabilities", "capabilities"} { // of versions 1 and 2
		var capabilities, meta map[string]json.RawMessage
		if params[name] == nil || json.Unmarshal(params[name], &capabilities) != nil {
			continue
		}
		if !g.Files {
			hide(capabilities, "fs")
		}
		if !g.Terminals {
			hide(capabilities, "terminal")
			hide(capabilities, "auth")
			if json.Unmarshal(capabilities["_meta"], &meta) == nil && meta["terminal-auth"] != nil {
				hide(meta, "terminal-auth")
				capabilities["_meta"] = marshal(meta)
			}
		}
		params[name] = marshal(capabilities)
	}
	if !hidden {
		return message
	}
	request["params"] = marshal(params)
	return marshal(request)
}
