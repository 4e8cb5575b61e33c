package browser

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/cmd/acp/internal/inspect"
)

// TestSecret: a link works once, its page can be loaded again, and what listens on another port of the machine gets
// nothing of it when the browser comes there.
func TestSecret(t *testing.T) {
	in, server := inspection(t, inspect.Options{})
	read(t, in, "shop.jsonl", faulty(t))
	var mu sync.Mutex
	var requests strings.Builder
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		requests.Write(text)
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<link rel="icon" href="data:,"><p>Another program`)
	}))
	defer other.Close()

	p := newTab(t, wide)
	link := server.URL()
	p.open(link)
	p.see("43 rows")
	secret := eval[string](p, `sessionStorage.getItem("secret")`)
	if left := eval[string](p, `location.href + document.cookie`); left != strings.Split(link, "#")[0] || len(secret) < 20 {
		t.Errorf("the page is %s, its secret %q", left, secret)
	}
	p.open(strings.Split(link, "#")[0]) // as when it is loaded again
	p.see("43 rows")

	second := newTab(t, wide)
	second.open(link)
	second.see("used before")
	eval[bool](second, `(location.href = `+quote(server.URL())+`, true)`)
	second.wait(func() bool { // the page is loaded again meanwhile
		there, err := chromedp.Run(second.ctx, chromedp.Evaluate[bool](`document.body?.innerText.includes("43 rows") === true`))
		return err == nil && there
	}, "the page of a new link")

	p.open(other.URL)
	p.see("Another program")
	told := eval[string](p, `JSON.stringify([document.cookie, document.referrer, window.name, {...sessionStorage}, {...localStorage}, !!window.opener])`)
	if told != `["","","",{},{},false]` {
		t.Errorf("a page of another port sees %s", told)
	}
	mu.Lock()
	defer mu.Unlock()
	token := strings.Split(link, "#")[1]
	if got := requests.String(); got == "" || strings.Contains(got, "Cookie") || strings.Contains(got, secret) || strings.Contains(got, token) {
		t.Errorf("another program gets %s", got)
	}
}

// TestPattern: an agent's form has a pattern that JavaScript would need years for, and alternatives in each other. The
// pattern is judged nevertheless, and the page stays usable.
func TestPattern(t *testing.T) {
	deep := strings.Repeat(`{"anyOf":[{"type":"null"},`, 60) + `{"type":"number"}` + strings.Repeat(`]}`, 60)
	form := `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Name?","requestedSchema":` +
		`{"type":"object","required":["name"],"properties":{"name":{"type":"string","pattern":"^(a+)+$","default":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"},` +
		`"deep":{"type":"string","default":"x","not":` + deep + `}}}}}`
	_, server := inspection(t, inspect.Options{Cwd: t.TempDir(), Agent: &inspect.Agent{
		Words: []string{"sh"},
		Connect: func(_ context.Context, stderr io.Writer) (rpc.Transport, error) {
			cmd := exec.Command("sh", "-c", `printf '%s\n' "$1"; cat >/dev/null`, "sh", form)
			cmd.Stderr = stderr
			return rpc.Command(cmd), nil
		},
	}})
	p := newTab(t, wide)
	p.open(server.URL())
	p.click("[role=tab]", "Send")
	p.click("button", "Start")
	p.see("Name?")
	p.see("It must match ^(a+)+$.")
	p.click(".question button", "Accept")
	p.fill(".question textarea", "name", "aaa")
	p.until(`document.querySelector(".question .problems").textContent === "Valid."`)
	if eval[bool](p, `document.body.innerText.includes('"action":"accept"')`) {
		t.Error("what does not match was accepted")
	}
	p.click(".question button", "Accept")
	p.until(`!document.querySelector(".question")`)
}
