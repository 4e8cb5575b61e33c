package acp

// Real messages, which agents and clients have exchanged: those of the repository, and more in the folder that
// ACP_SHARED names.

import (
	"bytes"
	"encoding/json"
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
)

func TestRecordedMessages(t *testing.T) {
	t.Run("own", func(t *testing.T) { replayAll(t, "../conformance/testdata/clean/v1-*.jsonl") })
	t.Run("shared", func(t *testing.T) { replayAll(t, filepath.Join(gentest.Shared(t, "traces"), "*", "*.jsonl")) })
}

// replayAll compares the parameters and results in recordings with what is written of them.
func replayAll(t *testing.T, pattern string) {
	s := loadSchema(t)
	values, repaired, others := 0, 0, 0
	for _, path := range must.Get(filepath.Glob(pattern))(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			file := must.Get(os.Open(path))(t)
			defer file.Close()
			all := must.Get(recording.ReadAll(file))(t)
			var asked ledger.Ledger[string] // the definition of the result; the client's side
			for number, recorded := range all.Messages() {
				m := must.Get(ledger.Read(recorded.Line))(t)
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
				if definition == "" || bytes.Equal(data, []byte("null")) {
					others++
					continue
				}
				repairs, err := generated().ComesOutTheSame(s, definition, data)
				if err != nil {
					t.Errorf("message %d: %s: %v", number, definition, err)
				}
				values++
				if repairs > 0 {
					repaired++
				}
			}
		})
	}
	t.Logf("%d parameters and results, %d of them repaired; %d lines outside the schema: errors, unknown methods, null results",
		values, repaired, others)
	if values == 0 {
		t.Error("the folder holds no messages")
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
