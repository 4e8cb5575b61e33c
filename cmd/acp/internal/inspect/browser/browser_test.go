// Package browser has tests of acp inspect in a real browser.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/acpgo/sdk/cmd/acp/internal/inspect"
	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

var update = flag.Bool("update", false, "rewrite the pictures in docs")

// deadline is how long a page may take to show something. Nothing should take nearly as long.
const deadline = 2 * time.Minute

var chromium struct {
	once sync.Once
	ctx  context.Context
	stop func()
	err  error
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	buildtest.Remove()
	if chromium.stop != nil {
		chromium.stop()
	}
	os.Exit(code)
}

// need returns the browser, which all tests share, or skips the test.
func need(t *testing.T) context.Context {
	t.Helper()
	tier.Need(t, tier.Full)
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("SKIPPED: it needs chromium")
	}
	chromium.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("headless", "new"),
			chromedp.Flag("disable-component-update", true), chromedp.Flag("no-pings", true), chromedp.Flag("hide-scrollbars", false),
			chromedp.Flag("proxy-server", "127.0.0.1:9"), chromedp.Flag("proxy-bypass-list", "127.0.0.1"), // it reaches only this machine
			chromedp.WSURLReadTimeout(deadline))
		allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
		ctx, stop := chromedp.NewContext(allocator)
		chromium.ctx, chromium.stop = ctx, func() { stop(); stopAllocator() }
		chromium.err = chromedp.Do(ctx)
	})
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	return chromium.ctx
}

// view is the size and theme of a page.
type view struct {
	width, height int64
	dark          bool
}

var (
	wide   = view{1280, 800, false}
	narrow = view{400, 800, false}
)

// tab is a page in the browser.
type tab struct {
	t   *testing.T
	ctx context.Context

	clicks int

	mu       sync.Mutex
	problems []string // errors of scripts and of the content security policy
	requests []string // the addresses that were loaded
}

// newTab opens an empty page. At the end of the test it must have reported no errors.
func newTab(t *testing.T, v view) *tab {
	t.Helper()
	browser := need(t)
	ctx, stop := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	p := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			problem := e.ExceptionDetails.Text
			if e.ExceptionDetails.Exception != nil {
				problem += " " + e.ExceptionDetails.Exception.Description
			}
			p.problems = append(p.problems, problem)
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				p.problems = append(p.problems, e.Entry.Text+" "+e.Entry.URL)
			}
		case *network.EventRequestWillBeSent:
			p.requests = append(p.requests, e.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	theme := "light"
	if v.dark {
		theme = "dark"
	}
	call(p, log.Enable, cdp.Empty{})
	call(p, network.Enable, network.EnableParams{})
	p.do(chromedp.EmulateViewport(v.width, v.height))
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}})
	t.Cleanup(func() {
		p.mu.Lock()
		for _, problem := range p.problems {
			t.Errorf("the page reports: %s", problem)
		}
		p.mu.Unlock()
		stop()
	})
	return p
}

// limited is the context of one action.
func (p *tab) limited() (context.Context, context.CancelFunc) {
	return context.WithTimeout(p.ctx, deadline)
}

func call[P, R any](p *tab, command cdp.Command[P, R], params P) R {
	p.t.Helper()
	ctx, stop := p.limited()
	defer stop()
	result := must.Get(chromedp.Call(ctx, command, params))(p.t)
	return result
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, stop := p.limited()
	defer stop()
	must.Do(p.t, chromedp.Do(ctx, steps...))
}

func (p *tab) open(url string) { p.t.Helper(); p.do(chromedp.Navigate(url)) }

// eval evaluates an expression, which may be a promise, and decodes its value as JSON.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	ctx, stop := context.WithTimeout(p.ctx, 2*deadline)
	defer stop()
	value := must.Get(chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise)))(p.t)
	return value
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// until waits until an expression is true.
func (p *tab) until(expression string) {
	p.t.Helper()
	const wait = `new Promise((resolve) => {
		const end = Date.now() + %d;
		const look = () => (%s) ? resolve(true) : Date.now() > end ? resolve(false) : setTimeout(look, 20);
		look();
	})`
	if !eval[bool](p, fmt.Sprintf(wait, deadline.Milliseconds(), expression)) {
		p.t.Fatalf("%s is not true after %v; the page shows:\n%.3000s", expression, deadline, eval[string](p, `document.body.innerText`))
	}
}

// wait waits until a condition outside of the page is true.
func (p *tab) wait(condition func() bool, what string) {
	p.t.Helper()
	for end := time.Now().Add(deadline); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%s: nothing after %v", what, deadline)
		}
	}
}

// see waits until the page shows a text.
func (p *tab) see(text string) {
	p.t.Helper()
	p.until("document.body.innerText.includes(" + quote(text) + ")")
}

// find is an expression for the element of a role or tag that can be seen and has a name that contains a text.
func find(selector, name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%s)].find((e) => e.checkVisibility() &&
		(e.getAttribute("aria-label") ?? (e.labels?.[0] ?? e).textContent).includes(%s))`, quote(selector), quote(name))
}

// click clicks an element as a user does, once it is there: with the mouse, at its middle.
func (p *tab) click(selector, name string) {
	p.t.Helper()
	p.until(fmt.Sprintf(`(%s) && !(%[1]s).disabled`, find(selector, name)))
	place := eval[[]float64](p, fmt.Sprintf(`(async () => {
		(%s).scrollIntoView({block: "nearest"});
		await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
		const r = (%[1]s)?.getBoundingClientRect(); // a list reuses its elements for other rows
		return r ? [r.x + r.width / 2, r.y + r.height / 2] : null;
	})()`, find(selector, name)))
	if place == nil {
		p.click(selector, name)
		return
	}
	p.clicks++
	p.do(chromedp.MouseClickXY(place[0], place[1]))
	// What is still being loaded may have moved a tab away.
	if selector == "[role=tab]" && eval[string](p, find(selector, name)+".ariaSelected") != "true" {
		p.click(selector, name)
	}
}

// fill replaces the value of a control.
func (p *tab) fill(selector, name, value string) {
	p.t.Helper()
	p.until(find(selector, name))
	eval[bool](p, fmt.Sprintf(`(() => {
		const e = %s;
		e.focus();
		e.value = %s;
		e.dispatchEvent(new Event("input", {bubbles: true}));
		e.dispatchEvent(new Event("change", {bubbles: true}));
		return true;
	})()`, find(selector, name), quote(value)))
}

func (p *tab) press(keys string) { p.t.Helper(); p.do(chromedp.KeyEvent(keys)) }

// inspection returns an inspection and the function that makes links to it. Both end with the test.
func inspection(t *testing.T, o inspect.Options) (*inspect.Inspection, *inspect.Server) {
	t.Helper()
	need(t)
	o.Version = "v0.0.0"
	in := must.Get(inspect.New(o))(t)
	server := in.Serve(listen(t), "")
	t.Cleanup(func() {
		must.Do(t, errors.Join(server.Close(), in.Close()))
	})
	return in, server
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	return listener
}

// read adds a recording to an inspection.
func read(t *testing.T, in *inspect.Inspection, name, text string) {
	t.Helper()
	must.Do(t, in.Read(name, strings.NewReader(text), ""))
}

// entry is a line of a recording.
func entry(t float64, from, raw string) string {
	return fmt.Sprintf(`{"t":%g,"from":%q,"raw":%s}`, t, from, quote(raw)) + "\n"
}
