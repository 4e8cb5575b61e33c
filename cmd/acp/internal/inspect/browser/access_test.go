package browser

import (
	_ "embed"
	"testing"

	"github.com/acpgo/sdk/cmd/acp/internal/inspect"
)

// audit is an expression for what is wrong with the page for people who do not see it well or do not use a mouse.
//
//go:embed testdata/audit.js
var audit string

// accessible checks what the page shows.
func (p *tab) accessible(where string) {
	p.t.Helper()
	for _, problem := range eval[[]string](p, audit) {
		p.t.Errorf("%s: %s", where, problem)
	}
}

// TestAccessible checks names, roles and contrast of all views, in both themes and both widths, and that the keyboard
// reaches everything.
func TestAccessible(t *testing.T) {
	in, server := inspection(t, inspect.Options{Agent: agent(t), Cwd: t.TempDir()})
	read(t, in, "shop.jsonl", faulty(t))
	p := newTab(t, wide)
	p.open(server.URL())
	p.see("Findings")
	eval[bool](p, `(() => {
		document.body.insertAdjacentHTML("beforeend", '<p id="bad"><button></button><span>faint</span><input id="bad" aria-label="x"></p>');
		document.querySelector("#bad span").style.color = "#999";
		return true;
	})()`)
	if got := eval[[]string](p, audit); len(got) != 3 {
		t.Errorf("the audit finds %q, want a button without a name, a faint text, and an id twice", got)
	}

	started := false
	for _, v := range []view{wide, {1280, 800, true}, narrow, {400, 800, true}} {
		p := newTab(t, v)
		p.open(server.URL())
		p.see("Findings")
		if !started {
			started = true
			p.prompt("ask for permission and a form")
			p.see("The agent asks for permission")
		}
		p.until(`document.querySelector(".question")`)
		p.accessible("a question")
		if v.width == narrow.width {
			p.press("1")
			p.accessible("Timeline")
		}
		// Send first: its tab appears only when the page knows that there is an agent.
		for _, pair := range [][2]string{
			{"7", "Send"}, {"2", "Message"}, {"3", "Conversation"}, {"4", "Findings"}, {"5", "Capabilities"}, {"6", "Statistics"},
		} {
			key, name := pair[0], pair[1]
			eval[bool](p, `(document.activeElement.blur(), true)`)
			p.press(key)
			p.until(`document.querySelector("[role=tab][aria-selected=true]").textContent === ` + quote(name))
			p.accessible(name)
		}
		eval[bool](p, `(document.activeElement.blur(), true)`)
		p.press("n")
		p.accessible("a message")
		p.press("?")
		p.accessible("Keys")
		p.press("\x1b")

		// Tab goes around the page, and each stop can be seen to have the focus.
		stops := map[string]bool{}
		for range 120 {
			p.press("\t")
			stop := eval[string](p, `(() => {
				const e = document.activeElement;
				const style = getComputedStyle(e);
				return e === document.body ? "" : style.outlineStyle === "none" ? "invisible: " + e.outerHTML.slice(0, 200) : e.localName + "." + e.className + "#" + e.id + e.textContent.slice(0, 20);
			})()`)
			if len(stop) > 10 && stop[:10] == "invisible:" {
				t.Errorf("the focus cannot be seen at %s", stop)
			}
			stops[stop] = true
		}
		if len(stops) < 15 {
			t.Errorf("the keyboard reaches %d places: %v", len(stops), stops)
		}
	}
}
