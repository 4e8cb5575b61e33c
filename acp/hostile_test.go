package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

// eachSide runs f in a bubble for a fresh agent and a fresh client.
func eachSide(t *testing.T, f func(t *testing.T, tr *trial)) {
	t.Helper()
	for name, start := range map[string]func(t *testing.T) *trial{
		"agent":  func(t *testing.T) *trial { return tryAgent(t, true) },
		"client": tryClient,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, start(t)) })
		})
	}
}

// Parameters that are JSON, and still wrong or strange. MEMBERS stands for those that are needed, NAME for
// one of them and its value for VALUE.
func TestHostileParams(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "0" + strings.Repeat("}", n) }
	const fine, bad, refused = 0, rpc.ErrInvalidParams, rpc.ErrInvalidRequest
	rows := []struct {
		name, params string
		code         acp.Code
	}{
		{"absent", "", bad},
		{"null", "null", bad},
		{"an array", "[]", bad},
		{"an array of parameters", `["/",[]]`, bad},
		{"a string", `"{}"`, bad},
		{"a number", "0", bad},
		{"empty", "{}", bad},
		{"a member of another case", `{MEMBERS,"CWD":0,"SESSIONID":0,"Path":0}`, fine},
		{"only members of another case", `{"CWD":"/","McpServers":[],"SessionId":"s","PATH":"/x"}`, bad},
		{"a member twice", `{MEMBERS,"NAME":"VALUE"}`, bad},
		{"a member twice, once with escapes", `{MEMBERS,"\u00ESCAPED":"VALUE"}`, bad},
		{"a name with escapes", `{OTHERS,"\u00ESCAPED":"VALUE"}`, fine},
		{"an unknown member twice", `{MEMBERS,"x":1,"x":2}`, fine},
		{"a member of _meta twice", `{MEMBERS,"_meta":{"a":1,"a":2}}`, fine},
		{"_meta that is not an object", `{MEMBERS,"_meta":[1]}`, fine},
		{"a huge number in _meta", `{MEMBERS,"_meta":{"a":1e99999}}`, fine},
		{"NUL", `{OTHERS,"NAME":"VALUE\u0000"}`, fine},
		{"a lone surrogate", `{OTHERS,"NAME":"VALUE\ud800"}`, fine},
		{"a pair of surrogates", `{OTHERS,"NAME":"VALUE\ud83d\ude00"}`, fine},
		{"noncharacters", `{OTHERS,"NAME":"VALUE` + "\uffff\ufeff" + `"}`, fine},
		{"1 MiB of text", `{OTHERS,"NAME":"VALUE` + strings.Repeat("x", 1<<20) + `"}`, fine},
		{"null for a string", `{OTHERS,"NAME":null}`, bad},
		{"a number for a string", `{OTHERS,"NAME":1}`, bad},
		{"an object for a string", `{OTHERS,"NAME":{}}`, bad},
		{"an array for a string", `{OTHERS,"NAME":["VALUE"]}`, bad},
		{"an empty path", `{OTHERS,"NAME":""}`, bad},
		{"a relative path", `{OTHERS,"NAME":"../x"}`, bad},
		{"250 levels", `{MEMBERS,"x":` + nested(250) + `}`, fine},
		{"250 levels in _meta", `{MEMBERS,"_meta":` + nested(250) + `}`, fine},
		{"257 levels", `{MEMBERS,"x":` + nested(257) + `}`, refused},
		{"257 levels in _meta", `{MEMBERS,"_meta":` + nested(257) + `}`, refused},
		{"100,000 levels", `{MEMBERS,"x":` + nested(100_000) + `}`, refused},
		{"10,000 unknown members", `{MEMBERS` + strings.Repeat(`,"x":{}`, 10_000) + `}`, fine},
		{"the prototype's name", `{MEMBERS,"__proto__":{"NAME":1},"constructor":1}`, fine},
	}
	eachSide(t, func(t *testing.T, tr *trial) {
		method, members := tr.request()
		name, others := "cwd", `"mcpServers":[]`
		value := "/"
		if tr.side == conformance.Client {
			name, others, value = "path", `"sessionId":"s"`, "/x"
		}
		escaped := fmt.Sprintf("%02x%s", name[0], name[1:])
		r := strings.NewReplacer("MEMBERS", members, "OTHERS", others, "ESCAPED", escaped, "NAME", name, "VALUE", value)
		for i, row := range rows {
			params := ""
			if row.params != "" {
				params = `,"params":` + r.Replace(row.params)
			}
			id := fmt.Sprint(1000 + i)
			tr.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q%s}`+"\n", id, method, params), nil)
			time.Sleep(time.Minute)
			answers := tr.peer.Answers(id)
			if len(answers) != 1 || acp.Code(answers[0].Code) != row.code {
				t.Errorf("%s: answered with %v, want code %d", row.name, answers, row.code)
				continue
			}
			var data struct{ Pointer *string }
			if row.code == bad && (json.Unmarshal(answers[0].Data, &data) != nil || data.Pointer == nil) {
				t.Errorf("%s: no pointer in %v", row.name, answers[0])
			}
		}
		tr.alive()
		tr.finish(true)
		t.Logf("%d rows", len(rows))
	})
}

// An error repeats so much of what the peer sent as people need, and not the 64 MiB that it may be.
func TestErrorsRepeatLittle(t *testing.T) {
	tier.Need(t, tier.Normal)
	long := strings.Repeat("<~/", 1<<15)
	eachSide(t, func(t *testing.T, tr *trial) {
		method, members := tr.request()
		lines := []string{
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1001,"method":%q}`, long),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1002,"method":%q,"params":{%s,"%s":01}}`, method, members, long),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1003,"method":%q,"params":{"%s":{}}}`, method, long),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1004,"method":"elicitation/create","params":{"mode":"form","message":"m","sessionId":"s",`+
				`"requestedSchema":{"type":"object","properties":{"%s":{"type":"string","title":1,"oneOf":0}}}}}`, long),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1005,"method":"session/prompt","params":{"sessionId":%q,"prompt":[]}}`, long),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1006,"method":"session/prompt","params":{"sessionId":%q,"prompt":[]}}`, long),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":1007,"method":"authenticate","params":{"methodId":%q}}`, long),
		}
		tr.write(strings.Join(lines, "\n")+"\n", nil)
		time.Sleep(time.Minute)
		errors := 0
		for _, id := range []string{"1001", "null", "1003", "1004", "1005", "1006", "1007"} {
			for _, a := range tr.peer.Answers(id) {
				if n := len(a.Message) + len(a.Data); n > 4000 {
					t.Errorf("%d bytes of error under the id %s: %.100s", n, id, a.Message)
				}
				if a.Code != 0 {
					errors++
				}
			}
		}
		if errors < 5 {
			t.Errorf("only %d errors", errors)
		}
		tr.alive()
		tr.finish(true)
	})
}
