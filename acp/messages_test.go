package acp

// Real messages, which agents and clients have exchanged: those of the repository, and more in the folder that
// ACP_SHARED names.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/acpgo/sdk"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/conformance/recording"
	"github.com/acpgo/sdk/internal/ledger"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
)

func TestRecordedMessages(t *testing.T) {
	t.Run("own", func(t *testing.T) { replayAll(t, "../conformance/testdata/clean/v1-*.jsonl") })
	t.Run("shared", func(t *testing.T) { replayAll(t, filepath.Join(gentest.Shared(t, "traces"), "*", "*.jsonl")) })
}

func replayAll(t *testing.T, pattern string) {
	s := loadSchema(t)
	traces := must.Get(filepath.Glob(pattern))(t)
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
func replay(t *testing.T, s *sample.Schema, path string) (c counts) {
	eachMessage(t, path, func(number int, definition string, data []byte) {
		c.lines++
		if definition == "" {
			c.others++
			return
		}
		repairs, err := generated().ComesOutTheSame(s, definition, data)
		if err != nil {
			t.Errorf("message %d: %s: %v", number, definition, err)
		}
		c.values++
		if repairs > 0 {
			c.repaired++
		}
	})
	return c
}

// eachMessage calls f with the parameters or the result of each message of a recording, and the definition of that: "" if
// it has none, or is null.
func eachMessage(t *testing.T, path string, f func(number int, definition string, data []byte)) {
	t.Helper()
	file := must.Get(os.Open(path))(t)
	defer file.Close()
	all := must.Get(recording.ReadAll(file))(t)
	var asked ledger.Ledger[string] // the definition of the result; the client's side
	for number, recorded := range all.Messages() {
		m, err := ledger.Read(recorded.Line)
		if err != nil {
			t.Errorf("message %d: %v", number, err)
			continue
		}
		byClient := recorded.Direction == conformance.ToAgent
		definition, data := "", m.Params
		switch {
		case m.Method != "":
			var result string
			definition, result = lookUp(recorded.Direction.Sender().String(), m)
			if m.IsRequest() {
				asked.Request(byClient, string(m.ID), result)
			}
		case m.Result != nil:
			data = m.Result
			definition, _ = asked.Answer(byClient, string(m.ID))
		}
		if bytes.Equal(data, []byte("null")) {
			definition = ""
		}
		f(number, definition, data)
	}
}

// lookUp returns the definitions of a method's parameters and result.
func lookUp(from string, m ledger.Message) (params, result string) {
	for name, d := range methodsOf().Defs {
		switch {
		case d.Method != m.Method || d.Side == from:
		case strings.HasSuffix(name, "Response"):
			result = name
		case strings.HasSuffix(name, "Request") == m.IsRequest():
			params = name
		}
	}
	if !m.IsRequest() {
		result = ""
	}
	return params, result
}

// methodsOf returns the methods of the schema: by the definitions of their parameters and results.
var methodsOf = sync.OnceValue(func() (schema struct {
	Defs map[string]struct {
		Method string `json:"x-method"`
		Side   string `json:"x-side"`
	} `json:"$defs"`
}) {
	if err := json.Unmarshal([]byte(sdk.SchemaV1Unstable()), &schema); err != nil {
		panic(err)
	}
	return schema
})
