package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/acpgo/sdk/cmd/acp/internal/inspect"
	"github.com/acpgo/sdk/internal/test/must"
)

// hostile are texts that want to be something else.
var hostile = []string{
	`</script><script>window.broken = 1</script>`, `<img src=x onerror="window.broken = 1">`, `<svg onload="window.broken = 1">`,
	`" onmouseover="window.broken = 1" x="`, `javascript:window.broken=1`, `<a href="javascript:window.broken=1">x</a>`,
	`<style>* { display: none }</style>`, `<iframe src="https://example.com"></iframe>`, `<!--`, `]]>`, `{{7*7}}`, "`${window.broken = 1}`",
	"\u202etxt.exe\u202c", "\u2066x\u2069", "\u200bzero\ufeffwidth", "\u2028line\u2029", "\x1b[2J\x1b]0;x\a", "\x00nul", "a\rb", "\U000e0041tag",
	strings.Repeat("\u0301", 300), strings.Repeat("🧨", 1000), strings.Repeat("W", 3000), "__proto__", "constructor", "hasOwnProperty", "\U0001f468\u200d\U0001f469",
}

// hostileRecording has each text wherever an agent can put one.
func hostileRecording() string {
	var b strings.Builder
	n := 0.0
	add := func(from, raw string) {
		n += 3
		b.WriteString(entry(n, from, raw))
	}
	b.WriteString(`{"recording":1,"tool":"acp record","command":[` + quote(strings.Join(hostile, " ")) + "]}\n")
	add("client", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	for i, text := range hostile {
		q := quote(text)
		if i == 0 {
			add("agent", `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":`+q+`,"title":`+q+`,"version":`+q+`},"agentCapabilities":{`+q+`:`+q+`}}}`)
			add("client", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
			add("agent", `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`)
			add("client", `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"Go"}]}}`)
		}
		update := func(update string) {
			add("agent", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":`+update+`}}`)
		}
		update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","messageId":%d,"content":{"type":"text","text":%s}}`, i, q))
		update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"%d","title":%s,"kind":%[2]s,"status":%[2]s,"rawInput":{%[2]s:%[2]s}}`, i, q))
		update(fmt.Sprintf(`{"sessionUpdate":%s,%[1]s:%[1]s}`, q))
		update(`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":` + q + `,"description":` + q + `}]}`)
		add("agent", `{"jsonrpc":"2.0","id":`+q+`,"method":`+q+`,"params":{"sessionId":`+q+`,`+q+`:`+q+`}}`)
		add("client", `{"jsonrpc":"2.0","id":`+q+`,"error":{"code":1,"message":`+q+`,"data":`+q+`}}`)
		add("agent", text)
		n += 3
		b.WriteString(fmt.Sprintf(`{"t":%g,"from":"agent","stderr":%s}`, n, q) + "\n")
	}
	add("agent", `{"jsonrpc":"2.0","method":"x","params":`+strings.Repeat(`{"a":`, 2000)+"1"+strings.Repeat("}", 2000)+`}`)
	add("agent", `{"jsonrpc":"2.0","method":"y","params":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`)
	add("agent", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"big","title":"`+strings.Repeat("<b>long ", 1_400_000)+`"}}}`)
	add("agent", `{"jsonrpc":"2.0","method":"twice","method":"twice","params":{"a":1,"a":1e999999,"a":`+strings.Repeat("9", 1000)+`}}`)
	add("agent", "{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"")
	b.WriteString(`{"t":9e99,"from":"agent","bytes":"gICA/w=="}` + "\n")
	return b.String()
}

// TestHostile shows texts that want to be markup, scripts, or other texts: they stay texts, and nothing is loaded.
func TestHostile(t *testing.T) {
	in, server := inspection(t, inspect.Options{})
	read(t, in, hostile[0]+".jsonl", hostileRecording())
	for _, v := range []view{wide, narrow} {
		p := newTab(t, v)
		p.open(server.URL())
		p.see("MUST")
		if v == narrow {
			p.click("[role=tab]", "Timeline")
		}
		p.see("rows")
		elements := eval[[]string](p, `[...new Set([...document.querySelectorAll("*")].map((e) => e.localName))]`)
		visit := func() {
			t.Helper()
			var found struct {
				Broken   bool
				Elements []string
				Unseen   []string
				Wide     []string
			}
			text := eval[string](p, `(async () => {
				await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
				const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
				const unseen = new Set();
				for (let n; (n = walker.nextNode());) {
					if (n.parentElement.closest("script, style")) continue;
					for (const c of n.data) if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(c) && !"\n\t\u200c\u200d".includes(c)) unseen.add(c.codePointAt(0).toString(16));
				}
				for (const e of document.body.querySelectorAll("*")) for (const a of e.attributes) if (a.name !== "value")
					for (const c of a.value) if (/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(c) && !"\n\t\u200c\u200d".includes(c)) unseen.add(a.name + " " + c.codePointAt(0).toString(16));
				return JSON.stringify({
					broken: "broken" in window,
					elements: [...new Set([...document.querySelectorAll("*")].map((e) => e.localName))],
					unseen: [...unseen],
					wide: document.documentElement.scrollWidth > innerWidth ? [String(document.documentElement.scrollWidth)] : [],
				});
			})()`)
			must.Do(t, json.Unmarshal([]byte(text), &found))
			if found.Broken || len(found.Unseen) > 0 || len(found.Wide) > 0 {
				t.Errorf("a script ran: %v; characters that cannot be seen: %q; wider than the window: %q", found.Broken, found.Unseen, found.Wide)
			}
			for _, name := range found.Elements {
				if strings.Contains("iframe img svg style object embed base", name) && !strings.Contains(strings.Join(elements, " "), name) {
					t.Errorf("an element %s", name)
				}
			}
		}
		visit()
		p.click(".row", "initialize")
		total := eval[int](p, `+document.querySelector(".counted").textContent.replace(/\D/g, "")`)
		for n := 0; n < total; n += 8 {
			p.press(strings.Repeat("j", 8))
			visit()
		}
		for _, name := range []string{"Conversation", "Findings", "Capabilities", "Statistics"} {
			p.click("[role=tab]", name)
			visit()
		}
		for _, address := range p.requests {
			if !strings.HasPrefix(address, "http://127.0.0.1:") && !strings.HasPrefix(address, "data:") {
				t.Errorf("it loads %s", address)
			}
		}
		// The page can still be used.
		p.press("1")
		p.click("[role=tab]", "Message")
		p.press("?")
		p.see("from a request to its response, and back")
	}
}
