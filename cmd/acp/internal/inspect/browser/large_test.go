package browser

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/performance"

	"github.com/acpgo/sdk/cmd/acp/internal/inspect"
	"github.com/acpgo/sdk/internal/test/tier"
)

// long returns a recording with about n messages, of which none can be folded with another.
func long(n int) string {
	var b strings.Builder
	b.WriteString(`{"recording":1,"tool":"acp record","command":["big-agent"]}` + "\n")
	b.WriteString(entry(0, "client", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`))
	b.WriteString(entry(1, "agent", `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentCapabilities":{}}}`))
	b.WriteString(entry(2, "client", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`))
	b.WriteString(entry(3, "agent", `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}`))
	b.WriteString(entry(4, "client", `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"Go"}]}}`))
	for i := range n - 6 {
		kind := "agent_message_chunk"
		if i%2 == 1 {
			kind = "agent_thought_chunk"
		}
		b.WriteString(entry(5+float64(i)/10, "agent", fmt.Sprintf(
			`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":%q,"content":{"type":"text","text":"word %d "}}}}`, kind, i)))
	}
	b.WriteString(entry(5+float64(n), "agent", `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`))
	return b.String()
}

// measured is what a page costs.
type measured struct {
	shown  time.Duration // from the start of loading
	heap   float64       // bytes
	median float64       // milliseconds of a frame while scrolling
	worst  float64       // the time that 95 % of the frames do not exceed
}

func measure(t *testing.T, messages int) measured {
	t.Helper()
	in, server := inspection(t, inspect.Options{})
	read(t, in, "long.jsonl", long(messages))
	p := newTab(t, wide)
	begin := time.Now()
	p.open(server.URL())
	p.until(fmt.Sprintf(`document.querySelector(".counted")?.textContent === "%s rows" && %s.length > 10`, grouped(messages+1), rows("")))
	m := measured{shown: time.Since(begin)}
	frames := eval[[]float64](p, `(async () => {
		const list = document.querySelector(".list"), frames = [];
		const frame = () => new Promise(requestAnimationFrame);
		let before = await frame();
		for (let i = 0; i < 120; i++) {
			list.scrollTop = (list.scrollHeight * i) / 120 + (i % 7) * 40;
			const now = await frame();
			frames.push(now - before);
			before = now;
		}
		return frames.sort((a, b) => a - b);
	})()`)
	m.median, m.worst = frames[len(frames)/2], frames[len(frames)*95/100]
	// It shows what is there.
	eval[bool](p, `(document.querySelector(".list").scrollTop = 1e9, true)`)
	p.until(rows("stopReason: end_turn") + ".length === 1")
	eval[bool](p, `(globalThis.gc?.(), true)`)
	call(p, performance.Enable, performance.EnableParams{})
	for _, metric := range call(p, performance.GetMetrics, struct{}{}).Metrics {
		if metric.Name == "JSHeapUsedSize" {
			m.heap = metric.Value
		}
	}
	// A search goes through all of them.
	p.fill("input", "Search in messages", fmt.Sprintf("word %d ", messages-10))
	p.until(rows("") + ".length === 1")
	return m
}

// grouped writes a number as the page does.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// TestLarge compares 100,000 messages with 1,000: scrolling costs the same, and memory grows with the messages only.
func TestLarge(t *testing.T) {
	need(t)
	few, many := 1000, tier.Pick(0, 0, 20_000, 100_000)
	small, large := measure(t, few), measure(t, many)
	for _, m := range []struct {
		n int
		measured
	}{{few, small}, {many, large}} {
		t.Logf("%6d messages: shown after %v, heap %.1f MB, frames %.1f ms (median), %.1f ms (95 %%)", m.n, m.shown.Round(time.Millisecond), m.heap/1e6, m.median, m.worst)
	}
	if large.median > 5*small.median+50 {
		t.Errorf("a frame takes %.1f ms, and %.1f ms with few messages", large.median, small.median)
	}
	if perMessage := (large.heap - small.heap) / float64(many-few); perMessage > 4000 {
		t.Errorf("%.0f bytes of memory for each message", perMessage)
	}
}
