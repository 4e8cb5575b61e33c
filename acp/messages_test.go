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
	"testing"

	"github.com/acpgo/sdk/gen/sample"
	"github.com/acpgo/sdk/internal/gentest"
)

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

func TestDocumentedMessages(t *testing.T) { generated().Documented(t, 1) }

func TestRecordedMessages(t *testing.T) {
	s := loadSchema(t)
	traces, err := filepath.Glob(filepath.Join(gentest.Shared(t, "traces"), "*", "*.jsonl"))
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
		repairs, err := generated().ComesOutTheSame(s, definition, data)
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
