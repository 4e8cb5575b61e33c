package conformance_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestSchemas compiles the definitions of every message of the module's four schemas.
func TestSchemas(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, path := range []string{"schema.json", "schema/v1.unstable.json", "schema/v2.json", "schema/v2.unstable.json"} {
		t.Run(path, func(t *testing.T) {
			text := must.Get(os.ReadFile(filepath.Join("..", path)))(t)
			compileAll(t, text)
		})
	}
}

// TestVersions distinguishes the module's schemas by requests that a client may send.
func TestVersions(t *testing.T) {
	for name, test := range map[string]struct {
		schema         *conformance.Schema
		known, unknown string
	}{
		"1":          {conformance.V1(), "session/load", "session/fork"},
		"1 unstable": {conformance.V1Unstable(), "session/fork", "auth/login"},
		"2":          {conformance.V2(), "auth/login", "session/load"},
		"2 unstable": {conformance.V2Unstable(), "session/fork", "session/load"},
	} {
		for method, want := range map[string]string{test.known: "missing propert", test.unknown: "unknown method"} {
			line := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{}}`, method)
			f := conformance.NewValidator(test.schema).Message(conformance.ToAgent, line)
			if len(f) == 0 || !strings.Contains(f[0].Message, want) {
				t.Errorf("version %s: %s: got %v, want %q", name, method, f, want)
			}
		}
	}
}

// compileAll sends one message for each definition with a method, and looks for errors in the schema rather than the
// message.
func compileAll(t *testing.T, text []byte) {
	t.Helper()
	schema := must.Get(conformance.NewSchema(text))(t)
	messages := 0
	for name, d := range gentest.DefinitionsOf(t, string(text)) {
		if d.Method == "" {
			continue
		}
		messages++
		v := conformance.NewValidator(schema)
		to, from := conformance.ToAgent, conformance.ToClient
		if d.Side == "client" {
			to, from = from, to
		}
		id := `"id":1,`
		if strings.HasSuffix(name, "Notification") {
			id = ""
		}
		findings := v.Message(to, fmt.Appendf(nil, `{"jsonrpc":"2.0",%s"method":%q,"params":5}`, id, d.Method))
		if strings.HasSuffix(name, "Response") {
			findings = v.Message(from, []byte(`{"jsonrpc":"2.0","id":1,"result":5}`))
		}
		// The finding names the definition. A few results may be any JSON.
		for _, f := range findings {
			if strings.Contains(f.Message, "schema") || f.Definition == conformance.Envelope {
				t.Errorf("%s: %s", name, f)
			}
		}
	}
	if messages == 0 {
		t.Error("no methods")
	}
}

// TestSchemaShared uses one schema from many validators at once while the first message of each definition arrives.
func TestSchemaShared(t *testing.T) {
	schema := schemaOf(t, "schema.json")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			v := conformance.NewValidator(schema)
			for _, line := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`,
				`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`,
				`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"t"}]}}`,
			} {
				if f := v.Message(conformance.ToAgent, []byte(line)); len(f) > 0 {
					t.Errorf("%s: %v", line, f)
				}
			}
			if f := v.Message(conformance.ToClient, []byte(chunk)); len(f) > 0 {
				t.Errorf("%s: %v", chunk, f)
			}
		})
	}
	wg.Wait()
}

// TestBadSchemas lists schemas that NewSchema refuses.
func TestBadSchemas(t *testing.T) {
	for text, want := range map[string]string{
		`{`:            "unexpected EOF",
		`[]`:           "cannot unmarshal array",
		`{}`:           "no $defs",
		`{"$defs":{}}`: "no definition has x-method",
		`{"$defs":{"A":{"x-method":"a","x-side":"agent"}}}`:                                                    `/$defs/A: method "a" is in no envelope`,
		`{"$defs":{"ARequest":{"x-method":"a","x-side":"moon"}}}`:                                              "/$defs/ARequest: unknown x-side moon",
		`{"$defs":{"ARequest":{"x-method":"a","x-side":"agent"},"BRequest":{"x-method":"a","x-side":"both"}}}`: `ARequest and BRequest are both the request "a" of the agent`,
	} {
		if _, err := conformance.NewSchema([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

// TestBrokenDefinition reports a definition that does not compile with the message that needs it.
func TestBrokenDefinition(t *testing.T) {
	schema := must.Get(conformance.NewSchema([]byte(`{"$defs":{"ARequest":{"x-method":"a","x-side":"agent","properties":{"b":{"$ref":"#/$defs/B"}}}}}`)))(t)
	f := conformance.NewValidator(schema).Message(conformance.ToAgent, []byte(`{"jsonrpc":"2.0","id":1,"method":"a","params":{}}`))
	if len(f) != 1 || f[0].Definition != "ARequest" || !strings.Contains(f[0].Message, "schema definition ARequest") {
		t.Errorf("got %v", f)
	}
}
