package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// inspectedRow has what tests look at in a row or a source.
type inspectedRow struct {
	Is, Source, Kind, From, Method, ID, Raw, Name, Update, Session string

	N, Re int
}

// inspectPage is a page of acp inspect.
type inspectPage struct {
	t       *testing.T
	url     string
	browser *http.Client
	conn    *websocket.Conn
	rows    []inspectedRow
	replies map[int]string // errors
	last    int
}

// openPage opens the page with the URL that acp inspect prints.
func openPage(t *testing.T, printed string) *inspectPage {
	t.Helper()
	p := &inspectPage{t: t, browser: &http.Client{Transport: &http.Transport{}}, replies: map[int]string{}}
	t.Cleanup(p.browser.CloseIdleConnections)
	var token string
	p.url, token, _ = strings.Cut(printed, "/#")
	var err error
	if p.conn, _, err = websocket.Dial(t.Context(), p.url+"/ws", &websocket.DialOptions{
		HTTPClient: p.browser, HTTPHeader: http.Header{"Origin": {p.url}},
	}); err != nil {
		t.Fatal(err)
	}
	p.conn.SetReadLimit(-1)
	t.Cleanup(func() { p.conn.CloseNow() })
	p.write(`{"do":"attach","since":0,"run":"","keys":["` + token + `"]}`)
	return p
}

func (p *inspectPage) write(text string) {
	p.t.Helper()
	must.Do(p.t, p.conn.Write(p.t.Context(), websocket.MessageText, []byte(text)))
}

// row waits for a row or a source.
func (p *inspectPage) row(what string, match func(*inspectedRow) bool) *inspectedRow {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 3*time.Minute)
	defer cancel()
	for at := 0; ; {
		for ; at < len(p.rows); at++ {
			if match(&p.rows[at]) {
				return &p.rows[at]
			}
		}
		if err := p.read(ctx); err != nil {
			p.t.Fatalf("waiting for %s: %v; rows: %+v", what, err, p.rows[max(0, len(p.rows)-20):])
		}
	}
}

func (p *inspectPage) read(ctx context.Context) error {
	_, text, err := p.conn.Read(ctx)
	if err != nil {
		return err
	}
	var m struct {
		Is, Error string

		ID     int
		Events []inspectedRow
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	p.rows = append(p.rows, m.Events...)
	if m.Is == "reply" {
		p.replies[m.ID] = m.Error
	}
	return nil
}

// do sends a command, which must succeed.
func (p *inspectPage) do(name string, members map[string]any) {
	p.t.Helper()
	if failed := p.try(name, members); failed != "" {
		p.t.Fatalf("%s %v: %s", name, members, failed)
	}
}

// try sends a command, and returns its error.
func (p *inspectPage) try(name string, members map[string]any) string {
	p.t.Helper()
	p.last++
	members["do"], members["id"] = name, p.last
	p.write(string(must.Get(json.Marshal(members))(p.t)))
	ctx, cancel := context.WithTimeout(p.t.Context(), 3*time.Minute)
	defer cancel()
	for {
		if failed, ok := p.replies[p.last]; ok {
			return failed
		}
		must.Do(p.t, p.read(ctx))
	}
}

// request sends a request, and waits for its response.
func (p *inspectPage) request(source, method string, params any) *inspectedRow {
	p.t.Helper()
	from := len(p.rows)
	p.do("send", map[string]any{"source": source, "method": method, "params": params})
	seen := 0
	return p.row("the response to "+method, func(r *inspectedRow) bool {
		seen++
		return seen > from && r.Source == source && r.Method == method && r.Re > 0 && r.From == "agent"
	})
}

// startInspect starts acp inspect.
func startInspect(t *testing.T, env []string, args ...string) *gatewayProcess {
	t.Helper()
	cmd := exec.Command(must.Get(exec.LookPath("acp"))(t), append([]string{"inspect"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	return startServer(t, cmd)
}

// The printed command shows an editor's traffic live, and does no harm when the inspection ends, or when there is none.
func TestInspectEditor(t *testing.T) {
	tier.Need(t, tier.Normal)
	env := []string{"XDG_STATE_HOME=" + t.TempDir()}
	g := startInspect(t, env, "--listen", "--", must.Get(exec.LookPath("parrot"))(t))
	g.waitLog(t, `(?m)^  \{.*\}$`)
	printed := regexp.MustCompile(`(?m)^  (\{.*\})$`).FindStringSubmatch(g.logged())
	var command struct {
		Command string
		Args    []string
	}
	if printed == nil || json.Unmarshal([]byte(printed[1]), &command) != nil || command.Command == "" {
		t.Fatalf("no command is printed:\n%s", g.logged())
	}
	page := openPage(t, g.url)
	banner := &conformance.TapOptions{Accept: map[string]string{"TRN-5": "the parrot prints a banner"}}
	editor := func() (*acp.ClientConn, *acp.ClientSession) {
		cmd := exec.Command(must.Get(exec.LookPath("acp"))(t), command.Args...)
		cmd.Env = append(os.Environ(), env...)
		conn, err := acp.Connect(t.Context(), conformance.Tap(t, conformance.Client, acp.Command(cmd), banner), acp.ClientHandlers{}, nil)
		must.Do(t, err)
		session := must.Get(conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: t.TempDir()}))(t)
		return conn, session
	}
	prompt := func(s *acp.ClientSession, text string) {
		t.Helper()
		must.Get(s.Prompt(t.Context(), acp.TextBlock(text)))(t)
	}
	conn, session := editor()
	page.row("the source", func(r *inspectedRow) bool {
		return r.Is == "source" && r.Kind == "tap" && strings.HasSuffix(r.Name, "parrot")
	})
	prompt(session, "while it is inspected")
	page.row("the update", func(r *inspectedRow) bool {
		return r.Method == "session/update" && strings.Contains(r.Raw, "while it is inspected")
	})
	page.row("standard error", func(r *inspectedRow) bool { return r.Kind == "stderr" && r.Raw == "parrot: begins" })
	g.end(t)
	for {
		if err := page.read(t.Context()); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusGoingAway {
				t.Errorf("the page sees the end as %v", err)
			}
			break
		}
	}
	prompt(session, "when the inspection has ended")
	must.Do(t, conn.Close())
	conn, session = editor()
	prompt(session, "without an inspection")
	must.Do(t, conn.Close())
	// It ends like the agent.
	cmd := exec.Command(must.Get(exec.LookPath("acp"))(t), "inspect", "--connect", "--", "sh", "-c", "cat; exit 9")
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader("x\ny")
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 9 || string(out) != "x\ny" {
		t.Errorf("%q, %v", out, err)
	}
}
