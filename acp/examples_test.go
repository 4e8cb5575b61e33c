package acp

// This file owns real messages: those of the protocol's documents and those that real agents and clients
// have exchanged. They lie outside the repository, in the folder that ACP_SHARED names.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/gen/sample"
)

// shared returns the path of a shared folder; without it the test is skipped.
func shared(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("ACP_SHARED")
	if root == "" {
		root = "../shared"
	}
	if !filepath.IsAbs(root) {
		root = filepath.Join("..", root) // from the module's root
	}
	dir := filepath.Join(root, name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: no %s: set ACP_SHARED", dir)
	}
	return dir
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

// comesOutTheSame decodes and encodes a value of the definition, and compares but for what was repaired.
func comesOutTheSame(s *sample.Schema, definition string, data []byte) (repairs int, err error) {
	d := codec.NewDecoder(data)
	v := definitions[definition]()
	v.DecodeJSON(d)
	if err := d.End(); err != nil {
		return 0, err
	}
	want, err := sample.Parse(data)
	if err != nil {
		return 0, err
	}
	for _, r := range d.Repairs() {
		want = without(want, strings.Split(r.Pointer, "/")[1:])
	}
	out, err := codec.Append(nil, v)
	if err != nil {
		return 0, err
	}
	got, err := sample.Parse(out)
	if err != nil {
		return 0, err
	}
	return len(d.Repairs()), s.Same(definition, want, got)
}

// without removes the member or item at path.
func without(v any, path []string) any {
	switch v := v.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(v, path[0])
		} else {
			v[path[0]] = without(v[path[0]], path[1:])
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil {
			return v
		}
		if len(path) == 1 {
			return append(v[:i:i], v[i+1:]...)
		}
		v[i] = without(v[i], path[1:])
	}
	return v
}

func TestDocumentedMessages(t *testing.T) {
	s := loadSchema(t)
	dir := shared(t, "examples")
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct{ Name, Group, Kind, Definition, Valid string }
	if err := json.Unmarshal(index, &entries); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, e := range entries {
		if e.Group == "v2" || !strings.HasPrefix(e.Valid, "ok") || e.Definition == "" || e.Kind == "error" {
			continue
		}
		t.Run(e.Name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, e.Name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			var m message
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatal(err)
			}
			data := m.Params
			if e.Kind == "response" {
				data = m.Result
			}
			repairs, err := comesOutTheSame(s, e.Definition, data)
			if err != nil {
				t.Errorf("%s: %v", e.Definition, err)
			}
			if repairs > 0 {
				t.Errorf("%s: %d repairs in a valid message", e.Definition, repairs)
			}
		})
		ran++
	}
	t.Logf("ran %d of %d messages", ran, len(entries))
	if ran == 0 {
		t.Error("the folder holds no messages of version 1")
	}
}

func TestRecordedMessages(t *testing.T) {
	s := loadSchema(t)
	traces, err := filepath.Glob(filepath.Join(shared(t, "traces"), "*", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var total counts
	for _, path := range traces {
		name := filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
		t.Run(name, func(t *testing.T) { total.add(replay(t, s, path)) })
	}
	t.Logf("%d traces: %s", len(traces), total)
	if total.values == 0 {
		t.Error("the folder holds no messages")
	}
}

type counts struct{ lines, values, repaired, others int }

func (c *counts) add(o counts) {
	c.lines += o.lines
	c.values += o.values
	c.repaired += o.repaired
	c.others += o.others
}

func (c counts) String() string {
	return fmt.Sprintf("%d lines, %d parameters and results, %d of them repaired; %d lines outside the schema: errors, unknown methods, null results",
		c.lines, c.values, c.repaired, c.others)
}

// replay reads one trace.
func replay(t *testing.T, s *sample.Schema, path string) counts {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var c counts
	asked := map[string]string{} // the definition of the result, by side and id
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for number := 1; lines.Scan(); number++ {
		var line struct{ From, Raw string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		var m message
		if line.From == "" || json.Unmarshal([]byte(line.Raw), &m) != nil {
			continue // what is no message
		}
		c.lines++
		definition, data := "", m.Params
		if m.Method != "" {
			var result string
			definition, result = lookUp(line.From, m)
			asked[line.From+string(m.ID)] = result
		} else if data = m.Result; data != nil {
			other := map[string]string{"client": "agent", "agent": "client"}[line.From]
			definition = asked[other+string(m.ID)]
		}
		if definition == "" || bytes.Equal(data, []byte("null")) {
			c.others++
			continue
		}
		repairs, err := comesOutTheSame(s, definition, data)
		if err != nil {
			t.Errorf("line %d: %s: %v", number, definition, err)
		}
		c.values++
		if repairs > 0 {
			c.repaired++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

// lookUp returns the definitions of a method's parameters and result.
func lookUp(from string, m message) (params, result string) {
	for _, method := range methods {
		if method.name == m.Method && method.side != from && (method.result != "") == (m.ID != nil) {
			return method.params, method.result
		}
	}
	return "", ""
}
