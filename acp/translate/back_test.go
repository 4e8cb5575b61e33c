package translate_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/translate"
	"github.com/acpgo/sdk/internal/test/must"
)

// plain returns a message without its id, in one form, and what kind of message it is.
func plain(t testing.TB, line string) (text, kind string) {
	var m map[string]any
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatal(err, line)
	}
	delete(m, "id")
	if params, ok := m["params"].(map[string]any); ok {
		if update, ok := params["update"].(map[string]any); ok {
			delete(update, "messageId")
		}
	}
	kind, _ = m["method"].(string)
	if params, ok := m["params"].(map[string]any); ok {
		if update, ok := params["update"].(map[string]any); ok {
			kind, _ = update["sessionUpdate"].(string)
		}
	} else if kind == "" {
		kind = "answer"
	}
	b := must.Get(json.Marshal(m))(t)
	return string(b), kind
}

// compare returns how many of the messages that the ends of a chain have sent arrived as they were, and the kinds of the
// others.
func (c *chain) compare() (same int, others map[string]int) {
	others = map[string]int{}
	for side, sent := range c.sent {
		arrived := map[string]int{}
		for _, line := range c.got[(3-side)%3] {
			text, _ := plain(c.t, line)
			arrived[text]++
		}
		for _, line := range sent {
			if text, kind := plain(c.t, line); arrived[text] > 0 {
				arrived[text]--
				same++
			} else {
				others[kind]++
			}
		}
	}
	return same, others
}

// explained are the kinds of messages that do not return as they were, with the reason.
var explained = map[int]map[string]string{
	1: {
		"initialize": "has what version 2 requires", "answer": "to initialize has other capabilities, to session/new modes as an option",
		"fs/": "refused", "terminal/": "refused", "plan": "is a plan_update for a client that knows it",
		"available_commands_update": "without names with white space, and without null",
		"session/set_mode":          "sets the option that stands for it", "session/resume": "mcpServers is required",
		"session/request_permission": "null is left out, and the title is the question", "config_option_update": "booleans only for clients that know them",
		"tool_call": "null is left out, and a terminal is text", "tool_call_update": "null is left out, and the first one is a tool_call",
	},
	2: {
		"initialize": "has no version 1 for some", "answer": "to session/prompt has another messageId, to initialize other capabilities", "auth/logout": "is logout, if the agent has that",
		"user_message": "is chunks", "agent_message": "is chunks", "agent_thought": "is chunks", "state_update": "is the answer to the prompt",
		"plan_update": "has the planId plan", "session/new": "mcpServers is required", "session/resume": "mcpServers is required",
		"session/request_permission": "has a tool call with the question as its title", "terminal_": "is text of a tool call",
		"tool_call_content_chunk": "is a tool_call_update", "tool_call_update": "has a title, and what is null is left out",
	},
}

// TestThereAndBack translates recordings and examples to the other version and back. What does not return as it was is of
// a kind that the table says something about.
func TestThereAndBack(t *testing.T) {
	for _, source := range []struct {
		name  string
		least int
		play  func(count func(c *chain))
	}{
		{"recordings", 200, func(count func(c *chain)) {
			for _, messages := range seeds(t) {
				c := newChain(t, version(t, messages), nil)
				c.replay(messages)
				count(c)
			}
		}},
		{"examples", 0, func(count func(c *chain)) {
			for _, e := range examples(t) {
				c := newChain(t, int(e.Group[1]-'0'), nil)
				if e.Method != "initialize" {
					c.initialize()
				}
				c.play(e)
				count(c)
			}
		}},
	} {
		same, others := [3]int{}, [3]map[string]int{1: {}, 2: {}}
		source.play(func(c *chain) {
			n, kinds := c.compare()
			same[c.version] += n
			for kind, n := range kinds {
				others[c.version][kind] += n
			}
		})
		for v := 1; v <= 2; v++ {
			t.Logf("%s, version %d: %d messages return as they were, and not %v", source.name, v, same[v], others[v])
			for kind := range others[v] {
				if !slices.ContainsFunc(slices.Collect(maps.Keys(explained[v])), func(name string) bool {
					return kind == name || strings.HasSuffix(name, "/") && strings.HasPrefix(kind, name) || strings.HasSuffix(name, "_") && strings.HasPrefix(kind, name)
				}) {
					t.Errorf("%s, version %d: %s changes, and nothing explains it", source.name, v, kind)
				}
			}
			if same[v] < source.least {
				t.Errorf("only %d messages", same[v])
			}
		}
	}
}

// example is a message from the protocol's documents.
type example struct {
	Name, Group, Kind, Method, Definition, Valid string
	line                                         string
}

func examples(t testing.TB) (all []example) {
	dir := filepath.Join(os.Getenv("ACP_SHARED"), "examples")
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Log("there are no examples")
		return nil
	}
	must.Do(t, json.Unmarshal(index, &all))
	all = slices.DeleteFunc(all, func(e example) bool { return e.Group != "v1" && e.Group != "v2" || e.Valid == "invalid" })
	for i := range all {
		text := must.Get(os.ReadFile(filepath.Join(dir, all[i].Name+".json")))(t)
		all[i].line = strings.ReplaceAll(string(text), "\n", " ")
	}
	return all
}

// initialize initializes the connection, and opens the session that most examples are about.
func (c *chain) initialize() {
	c.send(translate.ClientSide, map[int]string{
		1: `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"plan":{},"subagents":{},"session":{"notices":{},"compaction":{},"configOptions":{"boolean":{}}}}}}`,
		2: `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"},"capabilities":{}}}`,
	}[c.version])
	c.settle()
	c.send(translate.AgentSide, map[int]string{
		1: `{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{},"close":{},"resume":{}},"auth":{"logout":{}}}}}`,
		2: `{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":2,"info":{"name":"a","version":"1"},"capabilities":{"session":{}}}}`,
	}[c.version])
	c.settle()
	c.send(translate.ClientSide, `{"jsonrpc":"2.0","id":"n","method":"session/new","params":{"cwd":"/w","mcpServers":[]}}`)
	c.settle()
	c.send(translate.AgentSide, `{"jsonrpc":"2.0","id":"n","result":{"sessionId":"sess_abc123def456"}}`)
	c.settle()
	c.sent = [3][]string{}
}

// play sends an example: from the side that sends it, and an answer after a request.
func (c *chain) play(e example) {
	from := translate.ClientSide
	if slices.Contains([]string{"session/update", "session/request_permission", "elicitation/create", "elicitation/complete"}, e.Method) ||
		strings.HasPrefix(e.Method, "fs/") || strings.HasPrefix(e.Method, "terminal/") {
		from = translate.AgentSide
	}
	if e.Kind != "response" && e.Kind != "error" {
		c.send(from, e.line)
		c.settle()
		return
	}
	// A request with the members of all.
	params := `{"protocolVersion":` + e.Group[1:] + `,"sessionId":"sess_abc123def456","cwd":"/w","mcpServers":[],"prompt":[{"type":"text","text":"hi"}],"methodId":"m","modeId":"m","configId":"c","value":"v","type":"id","toolCall":{"toolCallId":"t"},"title":"t","options":[{"optionId":"allow-once","name":"a","kind":"allow_once"},{"optionId":"allow","name":"a","kind":"allow_once"}],"message":"m","requestedSchema":{"type":"object","properties":{}}}`
	var m map[string]any
	if err := json.Unmarshal([]byte(e.line), &m); err != nil {
		c.t.Fatal(err)
	}
	c.send(from, `{"jsonrpc":"2.0","id":"x","method":"`+e.Method+`","params":`+params+`}`)
	c.settle()
	c.sent = [3][]string{}
	to := translate.ClientSide + translate.AgentSide - from
	var arrived map[string]any
	if got := c.got[to]; len(got) == 0 || json.Unmarshal([]byte(got[len(got)-1]), &arrived) != nil {
		return // the request was refused
	}
	m["id"] = arrived["id"]
	line, err := json.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(to, string(line))
	c.settle()
}
