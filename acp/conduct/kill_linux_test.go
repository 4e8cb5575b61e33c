package conduct_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/conduct"
	"github.com/acpgo/sdk/acp/local"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/ledger"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// exampleCommand is the reference agent as a component.
func exampleCommand(t *testing.T) conduct.Component {
	t.Helper()
	return conduct.Component{Name: "agent", Transport: started(exec.Command(exampleAgent, "-state", t.TempDir()))}
}

// running are the processes of components and those that these have started, but for what has ended and nobody has waited
// for.
func running(t *testing.T, components []conduct.Component) (all []string) {
	t.Helper()
	groups := map[string]string{}
	for _, c := range components {
		groups[strconv.Itoa(process(c).Pid)] = c.Name
	}
	stats := must.Get(filepath.Glob("/proc/[0-9]*/stat"))(t)
	for _, stat := range stats {
		text, err := os.ReadFile(stat)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // state, parent, group
		if name := groups[fields[2]]; name != "" && fields[0] != "Z" && fields[0] != "X" {
			all = append(all, name+" "+stat)
		}
	}
	return all
}

// orphans are what is left of components. What was killed may take its time to end.
func orphans(t *testing.T, components []conduct.Component) (left []string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if left = running(t, components); len(left) == 0 {
			break
		}
	}
	return left
}

// Each component of a chain is killed at each message of a turn: no process is left, the client's request fails with an
// error that names the component, and so does the conductor.
func TestKill(t *testing.T) {
	tier.Need(t, tier.Normal)
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("Buy milk.\n"), 0o600))
	step := tier.Pick(0, 24, 8, 1)
	kills, failed := 0, 0
	for victim, place := range []string{"proxy:0 (pass)", "proxy:1 (pass)", "agent (agent)"} {
		for at := 1; ; at += step {
			passed := killAt(t, dir, victim, place, at, &failed)
			if passed < at {
				break // the turn is over
			}
			kills++
		}
	}
	t.Logf("%d kills, after which %d requests failed", kills, failed)
	if failed < kills/2 {
		t.Error("most requests did not fail")
	}
}

// killAt kills a component when so many messages have passed at the client, and returns how many have when the turn is over.
func killAt(t *testing.T, dir string, victim int, place string, at int, failed *int) (passed int) {
	t.Helper()
	agent := exampleCommand(t)
	proxies := []conduct.Component{program(t, "pass"), program(t, "pass")}
	all := append(proxies, agent)
	client, ended := run(t.Context(), proxies, &agent, nil)
	handlers := acp.ClientHandlers{
		RequestPermission: func(context.Context, *acp.ClientSession, *acp.RequestPermissionRequest) (*acp.RequestPermissionResponse, error) {
			return &acp.RequestPermissionResponse{Outcome: acp.PermissionSelected("allow")}, nil
		},
	}
	machine, err := local.Serve(&handlers, local.Trusted(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer machine.Close()
	var count atomic.Int32
	var killing sync.WaitGroup
	defer killing.Wait()
	accept := map[string]string{
		"TRM-7": "an agent that is killed releases no terminals",
		"PRM-5": "the connection may be over before the prompt is read", // see unread
	}
	waiting, unread := false, false // the client waits for an answer; it did not when the component was killed
	tap := conformance.Tap(t, conformance.Client, client, &conformance.TapOptions{Accept: accept, OnMessage: func(m conformance.Message) {
		line, err := ledger.Read(m.Line)
		if err != nil {
			t.Error(err)
		}
		if m.Direction == conformance.ToClient && line.IsAnswer() {
			waiting = false
		}
		if int(count.Add(1)) == at {
			unread = !waiting
			kill := func() {
				if err := process(all[victim]).Kill(); err != nil {
					t.Errorf("%s, message %d: %v", place, at, err)
				}
			}
			if at > 1 {
				kill()
				return
			}
			killing.Go(kill) // it starts with the first message
		}
		if m.Direction == conformance.ToAgent && line.IsRequest() {
			waiting = true
		}
	}})
	turn := func() error {
		conn, err := acp.Connect(t.Context(), tap, handlers, &acp.ClientOptions{Info: acp.Implementation{Name: "test", Version: "1"}})
		if err != nil {
			return err
		}
		defer conn.Close()
		session, err := conn.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: dir})
		if err == nil {
			_, err = session.Prompt(t.Context(), acp.TextBlock("plan, think, read notes.txt, run `echo hello`, permission"))
		}
		if passed = int(count.Load()); err == nil && passed >= at {
			<-conn.Done() // killed at the last message
		}
		return err
	}
	err = turn()
	runErr := <-ended
	if left := orphans(t, all); len(left) > 0 {
		t.Errorf("%s, message %d: left %q", place, at, left)
	}
	if int(count.Load()) < at {
		if err != nil || runErr != nil {
			t.Errorf("the whole turn: %v, %v", err, runErr)
		}
		return int(count.Load())
	}
	want := place + ": subprocess ended: signal: killed"
	var component *conduct.ComponentError
	if !errors.As(runErr, &component) || !strings.HasPrefix(runErr.Error(), want) {
		t.Errorf("%s, message %d: the conductor ended with %v", place, at, runErr)
	}
	// The connection may be over before the chain reads a request that the client makes after the kill. And what has
	// passed the component that was killed still arrives, perhaps the whole turn.
	if err != nil && !(unread && errors.Is(err, acp.ErrClosed)) && !strings.Contains(err.Error(), want) {
		t.Errorf("%s, message %d: the client got %v", place, at, err)
	}
	if err != nil {
		*failed++
	}
	return at
}

// Components that end by nothing but a signal that cannot be ignored end with the chain, and their children do.
func TestStubborn(t *testing.T) {
	tier.Need(t, tier.Normal)
	agent := exampleCommand(t)
	proxies := []conduct.Component{program(t, "stubborn"), program(t, "stubborn")}
	for _, p := range proxies {
		c := p.Transport.(*command)
		c.StopTime, c.KillTime = time.Millisecond, time.Millisecond
	}
	e, ended := runRaw(t, proxies, &agent)
	e.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)
	e.next()
	if left := running(t, append(proxies, agent)); len(left) != 5 {
		t.Errorf("running: %q", left)
	}
	e.Close()
	must.Do(t, <-ended)
	if left := orphans(t, append(proxies, agent)); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// A component that fails is named to the client, with its exit status and what it has said.
func TestFails(t *testing.T) {
	tier.Need(t, tier.Normal)
	agent := exampleCommand(t)
	proxies := []conduct.Component{program(t, "pass"), program(t, "failing")}
	e, ended := runRaw(t, proxies, &agent)
	e.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}`)
	e.want(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"proxy:1 (failing): subprocess ended: exit status 1: cannot read the configuration",` +
		`"data":{"component":"proxy:1","name":"failing","status":"exit status 1","stderr":"one\ncannot read the configuration\n"}}}`)
	err := <-ended
	if exit, ok := errors.AsType[*rpc.ExitError](err); !ok || exit.State.ExitCode() != 1 {
		t.Errorf("got %v", err)
	}
	e.Close()
}

// An agent that ends in the middle of a long message, behind three proxies: the client sees no part of the message, and an
// error that says how the agent ended.
func TestDiesWithinMessage(t *testing.T) {
	tier.Need(t, tier.Normal)
	for _, role := range []string{"dying in an update", "dying in an answer"} {
		t.Run(role, func(t *testing.T) {
			proxies := []conduct.Component{program(t, "pass"), program(t, "pass"), program(t, "pass")}
			agent := program(t, role)
			e, ended := runRaw(t, proxies, &agent)
			e.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
			e.want(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
			e.send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{}}`)
			e.want(`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"agent (` + role + `): unexpected EOF within a message: subprocess ended: exit status 1: out of memory",` +
				`"data":{"component":"agent","name":"` + role + `","status":"exit status 1","stderr":"out of memory\n"}}}`)
			if component, ok := errors.AsType[*conduct.ComponentError](<-ended); !ok || component.Component != "agent" {
				t.Errorf("got %v", component)
			}
			e.Close()
			if left := orphans(t, append(proxies, agent)); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
		})
	}
}
