package remote_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp/remote"
)

// TestREM6_REM30_Table makes each request of the table and prints what is answered.
func TestREM6_REM30_Table(t *testing.T) {
	t.Parallel()
	const prompt = `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"s1"}}`
	const answer = `{"jsonrpc":"2.0","id":5,"result":{}}`
	const stream = "text/event-stream"
	f := serve(t, &remote.HandlerOptions{MaxMessage: 1 << 20})
	// described says of an answer what the table does.
	described := func(resp *http.Response, body string) string {
		text := fmt.Sprint(resp.StatusCode)
		if resp.Header.Get("Acp-Connection-Id") != "" {
			text += ", id"
		} else if resp.StatusCode == 200 && resp.Header.Get("Content-Type") == "application/json" {
			text += ", no id"
		}
		if strings.HasPrefix(body, "{") && resp.StatusCode != 200 {
			text += fmt.Sprintf(", %d", parse(t, body).Error.Code)
		}
		if resp.StatusCode == 202 {
			if resp.ContentLength == 0 && resp.TransferEncoding == nil {
				text += " length 0"
			} else {
				text += " chunked"
			}
		}
		if resp.Header.Get("Allow") != "" {
			text += ", Allow"
		}
		return text
	}
	simple := func(method, body string, header ...string) func(*peer) string {
		return func(p *peer) string {
			resp, text := p.do(method, body, header...)
			return described(resp, text)
		}
	}
	on := func(method, body string, header ...string) func(*peer) string {
		return func(p *peer) string {
			resp, text := p.do(method, body, p.header(header...)...)
			return described(resp, text)
		}
	}
	dial := func(f *fixture, header ...string) (*websocket.Conn, *http.Response, error) {
		h := http.Header{}
		o := &websocket.DialOptions{HTTPClient: f.client, HTTPHeader: h}
		for i := 0; i < len(header); i += 2 {
			if header[i] == "Host" {
				o.Host = header[i+1]
			} else {
				h.Set(header[i], header[i+1])
			}
		}
		return websocket.Dial(t.Context(), f.url, o)
	}
	upgrade := func(header ...string) func(*peer) string {
		return func(p *peer) string {
			ws, resp, err := dial(p.fixture, header...)
			if err == nil {
				defer ws.CloseNow()
			} else if resp == nil {
				t.Fatal(err)
			}
			return described(resp, "")
		}
	}
	open := func(method string, header ...string) func(*peer) string {
		return func(p *peer) string {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			resp := p.request(ctx, method, "", p.header(append(header, "Accept", stream)...)...)
			defer resp.Body.Close()
			return described(resp, "")
		}
	}
	closed := func(f *fixture, frame string) string {
		ws, _, err := dial(f)
		if err != nil {
			t.Fatal(err)
		}
		defer ws.CloseNow()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := ws.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
			t.Fatal(err)
		}
		_, _, err = ws.Read(ctx)
		return fmt.Sprint(int(websocket.CloseStatus(err)))
	}

	rows := []struct {
		name, want string
		make       func(*peer) string
	}{
		{"POST initialize", "200, id", simple("POST", initialize)},
		{"its error", "200, no id", simple("POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"do":"fail"}}`)},
		{"initialize on a connection", "400, -32600", on("POST", initialize)},
		{"id null", "400, -32600", simple("POST", `{"jsonrpc":"2.0","id":null,"method":"initialize"}`)},
		{"id absent", "400", simple("POST", `{"jsonrpc":"2.0","method":"initialize"}`)},
		{"Content-Type not JSON", "415", simple("POST", initialize, "Content-Type", "text/plain")},
		{"not JSON", "400, -32700", on("POST", `{`)},
		{"no object", "400, -32600", on("POST", `1`)},
		{"batch", "400, -32600", on("POST", `[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","id":2,"method":"x"}]`)},
		{"empty batch", "400, -32600", on("POST", `[]`)},
		{"body over limit", "413", on("POST", `{"jsonrpc":"2.0","method":"`+strings.Repeat("x", 1<<20)+`"}`)},
		{"connection id missing", "400", simple("POST", prompt)},
		{"connection id unknown", "404", simple("POST", prompt, "Acp-Connection-Id", "x")},
		{"session neither in params nor header", "400", on("POST", `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{}}`)},
		{"session only in params", "202 length 0", on("POST", prompt)},
		{"session only in the header", "202 length 0", on("POST", `{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{}}`, "Acp-Session-Id", "s1")},
		{"header ≠ params", "400", on("POST", prompt, "Acp-Session-Id", "s2")},
		{"response without header", "202 length 0", on("POST", answer)},
		{"accepted", "202 length 0", on("POST", prompt, "Acp-Session-Id", "s1")},
		{"GET, Accept lacks text/event-stream", "406", on("GET", "", "Accept", "application/json")},
		{"GET, Accept */*", "406", on("GET", "", "Accept", "*/*")},
		{"GET, unknown session", "200", open("GET", "Acp-Session-Id", "nobody")},
		{"GET, no connection id", "400", simple("GET", "", "Accept", stream)},
		{"GET, unknown connection id", "404", simple("GET", "", "Accept", stream, "Acp-Connection-Id", "x")},
		{"second GET", "newest wins", func(p *peer) string {
			first, second := p.get("s1"), p.get("s1")
			if err := p.agent.send("%s", update("s1", 1)); err != nil {
				t.Fatal(err)
			}
			second.want(update("s1", 1))
			// HTTP/1.1 is cut, because its write may have to be.
			if _, err := first.next(); err == nil {
				return "both"
			}
			return "newest wins"
		}},
		{"Last-Event-ID", "ignored; with History replay, 409 if not kept", func(p *peer) string {
			_, ignored := p.getAfter("", "x")
			q := serve(t, &remote.HandlerOptions{History: remote.MemoryHistory(10, 1000)}).open()
			p.send(note("x", "1"))
			q.send(note("x", "1"))
			q.send(note("x", "2"))
			first := q.get("").event()
			again, replayed := q.getAfter("", first.id)
			second := again.event()
			_, unknown := q.getAfter("", "x")
			if ignored != 200 || replayed != 200 || second.data != note("x", "2") || unknown != 409 {
				return fmt.Sprint(ignored, replayed, second, unknown)
			}
			return "ignored; with History replay, 409 if not kept"
		}},
		{"DELETE", "202 length 0", on("DELETE", "")},
		{"DELETE, unknown", "404", simple("DELETE", "", "Acp-Connection-Id", "x")},
		{"other method", "405, Allow", on("PUT", "")},
		{"foreign Origin: POST", "403", simple("POST", initialize, "Origin", "https://evil.example")},
		{"foreign Origin: upgrade", "403", upgrade("Origin", "https://evil.example")},
		{"own Origin: upgrade", "101, id", func(p *peer) string { return upgrade("Origin", strings.TrimSuffix(p.url, remote.DefaultPath))(p) }},
		{"foreign Host", "403", simple("POST", initialize, "Host", "evil.example")},
		{"foreign Host: upgrade", "403", upgrade("Host", "evil.example")},
		{"SSE keep-alive", "`:` 15 s", func(*peer) (got string) {
			bubble(t, nil, func(f *fixture) {
				stream, began := f.open().get(""), time.Now()
				got = fmt.Sprintf("`%s` %.0f s", stream.part(), time.Since(began).Seconds())
			})
			return got
		}},
		{"first frame not initialize", "1002", func(p *peer) string { return closed(p.fixture, prompt) }},
		{"2 MiB frame, limit 1 MiB", "1009", func(p *peer) string {
			return closed(p.fixture, `"`+strings.Repeat("x", 2<<20)+`"`)
		}},
		{"HTTP/2", "yes", func(*peer) string {
			for _, protocol := range []string{"h2c", "HTTP/2"} {
				g := serveBy(t, protocol, nil, nil)
				resp, _ := g.do("POST", initialize)
				if resp.ProtoMajor != 2 || resp.StatusCode != 200 {
					return resp.Status
				}
			}
			return "yes"
		}},
	}
	var table strings.Builder
	table.WriteString("| case | ours |\n|---|---|\n")
	for _, row := range rows {
		got := row.make(f.open())
		if got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
		fmt.Fprintf(&table, "| %s | %s |\n", row.name, got)
	}
	t.Log("\n" + table.String())
	if path := os.Getenv("ACP_REMOTE_TABLE"); path != "" {
		if err := os.WriteFile(path, []byte(table.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
