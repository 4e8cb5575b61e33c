package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/proxy"
	"github.com/acpgo/sdk/acp/rpc"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// When the agent ends, every open request of the client is answered, and says why.
func TestAgentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, proxy.Hooks{Prompt: pass[acp.PromptRequest, acp.PromptResponse]}, nil, true)
		r.client.send(prompt(1, "s"), `{"jsonrpc":"2.0","id":2.0,"method":"session/list"}`)
		synctest.Wait()
		r.agent.send(update("s", 1))
		r.agent.stream.Close()
		err := <-r.served
		if err == nil || !errors.Is(err, io.EOF) {
			t.Errorf("the proxy ended with %v", err)
		}
		r.client.want0(update("s", 1))
		seen := map[string]bool{}
		for range 2 {
			seen[r.client.next()] = true
		}
		for _, id := range []string{"1", "2.0"} {
			if want := `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32603,"message":"the agent has ended"}}`; !seen[want] {
				t.Errorf("%v lacks %s", seen, want)
			}
		}
		if _, open := <-r.client.lines; open {
			t.Error("the client got more")
		}
	})
}

// The reason has the exit status of the agent, and the end of what it said.
func TestAgentDies(t *testing.T) {
	tier.Need(t, tier.Normal)
	down := rpc.Command(exec.Command("sh", "-c", "read line; echo 'no such model' >&2; exit 3"))
	far, up := rpc.Pipe()
	client := newPeer(t, far)
	served := make(chan error, 1)
	go func() { served <- proxy.Serve(t.Context(), up, down, proxy.Hooks{}, nil) }()
	client.send(prompt(1, "s"))
	answer := <-client.lines
	for _, want := range []string{`"id":1,"error":{"code":-32603,`, "exit status 3", "no such model"} {
		if !strings.Contains(answer, want) {
			t.Errorf("%s lacks %s", answer, want)
		}
	}
	err := <-served
	exit, ok := errors.AsType[*rpc.ExitError](err)
	if !ok || exit.State.ExitCode() != 3 || !strings.Contains(exit.Stderr, "no such model") {
		t.Errorf("the proxy ended with %v", err)
	}
}

// When the client ends, what hooks have is still sent, and the agent's answers still pass.
func TestClientEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, proxy.Hooks{
			Cancel: func(ctx context.Context, n *acp.CancelNotification, next func(context.Context, *acp.CancelNotification) error) error {
				time.Sleep(500 * time.Millisecond)
				return next(ctx, n)
			},
			ReadTextFile: pass[acp.ReadTextFileRequest, acp.ReadTextFileResponse],
		}, nil, true)
		read := `{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/a"}}`
		r.agent.send(read)
		r.client.want(read)
		r.client.send(prompt(1, "s"), cancel("s"))
		must.Do(t, r.client.stream.(rpc.HalfCloser).CloseWrite())
		r.agent.want0(prompt(1, "s"))
		r.agent.want0(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the client has ended"}}`) // to the hook's next
		time.Sleep(500 * time.Millisecond)
		r.agent.want0(cancel("s"))
		synctest.Wait()
		if _, open := <-r.agent.lines; open {
			t.Error("the agent got more")
		}
		r.agent.send(update("s", 1), result(1, endTurn))
		r.client.want(update("s", 1), result(1, endTurn))
		r.agent.stream.Close()
		if err := <-r.served; err != nil {
			t.Errorf("the proxy ended with %v", err)
		}
	})
}

// An agent that does not end with the client is closed, and so is everything when the context ends.
func TestStubbornAgent(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","method":"_hello"}` // which has no hook
	for _, test := range []struct {
		name  string
		end   func(r *rig)
		after time.Duration
		want  error
	}{
		{"silent", func(r *rig) { r.client.stream.Close() }, time.Second, nil},
		{"talks on", func(r *rig) {
			r.client.stream.Close()
			r.agent.send(hello)
			synctest.Wait() // until writing it has failed
			r.agent.send(hello)
		}, 0, nil},
		{"context", func(r *rig) { r.cancel() }, 0, context.Canceled},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, transparent(), nil, true)
			r.client.send(prompt(1, "s"))
			r.agent.want(prompt(1, "s"))
			began := time.Now()
			test.end(r)
			if err := <-r.served; !errors.Is(err, test.want) || time.Since(began) != test.after {
				t.Errorf("%s: the proxy ended with %v after %v", test.name, err, time.Since(began))
			}
			if r.agent.stream.Write([]byte(update("s", 2))) == nil {
				t.Errorf("%s: the agent is still connected", test.name)
			}
			r.client.stream.Close()
			r.agent.stream.Close()
		})
	}
}

// A hook that does not return is waited for, but not for ever, also when the client is not read because of it.
func TestStuck(t *testing.T) {
	for _, held := range []int{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			goOn := make(chan bool)
			opts := quiet()
			opts.MaxHeld = held // 0 is the default
			r := newRig(t, proxy.Hooks{Prompt: func(context.Context, *acp.PromptRequest, func(context.Context, *acp.PromptRequest) (*acp.PromptResponse, error)) (*acp.PromptResponse, error) {
				<-goOn
				return nil, nil
			}}, opts, true)
			r.client.send(prompt(1, "s"), cancel("s"))
			synctest.Wait()
			if held == 0 {
				r.client.stream.Close()
			} else {
				r.cancel()
			}
			if err := <-r.served; !errors.Is(err, rpc.ErrStuck) {
				t.Errorf("the proxy ended with %v", err)
			}
			close(goOn)
			r.client.stream.Close()
			r.agent.stream.Close()
		})
	}
}

// Wherever a side breaks off, the proxy ends, and nothing stays behind: goleak looks at the end.
func TestBreaksAnywhere(t *testing.T) {
	client := []string{initialize("initialize", "0"), prompt(1, "s"), cancel("s"), cancelRequest(1), result(1, "null")}
	agent := []string{result(0, `{"protocolVersion":1}`), update("s", 1), `{"jsonrpc":"2.0","id":1,"method":"fs/write_text_file","params":{"sessionId":"s","path":"/a","content":""}}`, result(1, endTurn)}
	for _, chain := range []bool{false, true} {
		for _, hooks := range []proxy.Hooks{{}, transparent()} {
			for n := range client {
				for m := range agent {
					for _, breaks := range []proxy.Side{proxy.Client, proxy.Agent} {
						synctest.Test(t, func(t *testing.T) {
							r := newRig(t, hooks, nil, !chain)
							side := []*peer{r.client, r.agent}
							r.client.send(initialize("proxy/initialize", "0"))
							for i := range max(n, m) {
								if i < n {
									r.client.send(client[i])
								}
								if i < m && chain {
									r.client.send(wrapped(agent[i]))
								} else if i < m {
									r.agent.send(agent[i])
								}
							}
							if chain {
								breaks = proxy.Client
							}
							side[breaks].stream.Close()
							err := <-r.served
							if (err == nil) != (breaks == proxy.Client) {
								t.Errorf("%v breaks after %d and %d: %v", breaks, n, m, err)
							}
							for _, p := range side {
								if p != nil {
									p.stream.Close()
								}
							}
						})
					}
				}
			}
		}
	}
}

// A message that is too long is refused, or fails the request that it answers, and those after it are passed on.
func TestTooLong(t *testing.T) {
	const limit = 1000
	fill := strings.Repeat("x", 2*limit)
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"a","params":"` + fill + `"}`,
		`{"jsonrpc":"2.0","method":"a","params":"` + strings.Repeat("x", 20*limit) + `"}`,
		`{"jsonrpc":"2.0","id":"2","result":"` + fill + `"}`,
		`{"jsonrpc":"2.0","result":"` + strings.Repeat("x", 20*limit) + `","id":3,"more":"` + fill + `"}`,
		`{"last":1}`,
	}, "\n") + "\n"
	var back, forth bytes.Buffer
	r, w := io.Pipe()
	agent := rpc.IO(r, nopCloser{&forth}, 0)
	client := rpc.IO(io.NopCloser(strings.NewReader(in)), nopCloser{&back}, limit)
	ended := time.AfterFunc(time.Minute, func() { w.Close() })
	defer ended.Stop()
	must.Do(t, proxy.Serve(t.Context(), client, agent, proxy.Hooks{}, quiet()))
	refused := func(id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32600,"message":"message longer than 1000 bytes"}}` + "\n"
	}
	if got, want := back.String(), refused("1")+refused("null"); got != want {
		t.Errorf("got back\n%swant\n%s", got, want)
	}
	want := `{"jsonrpc":"2.0","id":"2","error":{"code":-32603,"message":"message longer than 1000 bytes"}}` + "\n" + `{"last":1}` + "\n"
	if got := forth.String(); got != want {
		t.Errorf("passed on\n%swant\n%s", got, want)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// A proxy that cannot reach a side says so, and leaves nothing open.
func TestCannotConnect(t *testing.T) {
	missing := rpc.Command(exec.Command("/no/such/agent"))
	near, _ := rpc.Pipe()
	if err := proxy.Serve(t.Context(), near, missing, proxy.Hooks{}, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	near, far := rpc.Pipe()
	if err := proxy.Serve(t.Context(), missing, near, proxy.Hooks{}, nil); err == nil {
		t.Error("a client that is not there is served")
	}
	stream := must.Get(far.Connect(t.Context()))(t)
	if _, err := stream.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("the agent's connection: %v", err)
	}
	for _, method := range []string{"session/prompt", "$/cancel_request", "proxy/successor"} {
		hooks := transparent()
		hooks.Raw = map[string]proxy.Raw{method: nil}
		if err := proxy.Serve(t.Context(), near, far, hooks, nil); err == nil || !strings.Contains(err.Error(), method) {
			t.Errorf("a raw hook of %s: %v", method, err)
		}
	}
}
