package launch_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/reconnect"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestREG12_Login: the arguments of the method are appended, its variables set, and only the exit status 0 is success.
func TestREG12_Login(t *testing.T) {
	command := self(t, "login")
	command.Args = []string{"acp"}
	command.Env["ACP_TEST_WHO"] = "base"
	before := maps.Clone(command.Env)
	method := &acp.AuthMethodTerminal{ID: "t", Name: "Log in", Args: []string{"--login"}, Env: map[string]string{"ACP_TEST_WHO": "method"}}
	var out bytes.Buffer
	err := command.Login(t.Context(), method, launch.Terminal{Stdin: strings.NewReader("secret\n"), Stdout: &out})
	if want := "password: acp --login|method|secret\n"; err != nil || out.String() != want {
		t.Errorf("got %q, %v, want %q", out.String(), err, want)
	}
	if !slices.Equal(command.Args, []string{"acp"}) || !maps.Equal(command.Env, before) {
		t.Errorf("the command was changed: %v", command)
	}
	err = command.Login(t.Context(), method, launch.Terminal{Stdin: strings.NewReader("wrong\n")})
	failed, ok := errors.AsType[*launch.LoginError](err)
	exit, exited := errors.AsType[*exec.ExitError](err)
	if !ok || failed.Name != "Log in" || !exited || exit.ExitCode() != 4 {
		t.Errorf("got %v", err)
	}
	if err := launch.New("no-such-agent").Login(t.Context(), method, launch.Terminal{}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if err := command.Login(t.Context(), nil, launch.Terminal{}); err == nil {
		t.Error("nothing was run")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the user has closed the window")
	cancel(gone)
	if err := self(t, "silent").Login(ctx, method, launch.Terminal{}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

// TestAUT6_Login: the method that is chosen is run by the agent or in the terminal, after which the agent is started anew.
func TestAUT6_Login(t *testing.T) {
	tier.Need(t, tier.Normal)
	requireShell(t)
	command := launch.New(write(t, filepath.Join(t.TempDir(), "agent"), "#!/bin/sh\ntest \"$1\" = login\n", 0o700))
	both := []acp.AuthMethod{
		acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "agent", Name: "In the browser", Description: acp.Some("It is quick.")}),
		acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "terminal", Name: "Here", Args: []string{"login"}}),
		acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "fails", Name: "There", Args: []string{"logout"}}),
	}
	const browser = "In the browser: It is quick."
	const all = browser + ", Here, There"
	gone := errors.New("the user does not want to")
	for _, test := range []struct {
		name     string
		methods  []acp.AuthMethod
		command  *launch.Command
		choose   string
		options  string
		starts   int // of the agent
		loggedIn bool
		want     error
	}{
		{"agent", both, command, browser, all, 1, true, nil},
		{"terminal", both, command, "Here", all, 2, false, nil},
		{"terminal fails", both, command, "There", all, 1, false, new(launch.LoginError)},
		{"without a command", both, nil, browser, browser, 1, true, nil},
		{"none", both[1:], nil, "", "", 1, false, acp.ErrUnsupported},
		{"not chosen", both, command, "", all, 1, false, gone},
	} {
		t.Run(test.name, func(t *testing.T) {
			starts, loggedIn, offered := 0, false, ""
			login := launch.Login(test.command, func(_ context.Context, _ string, options ...string) (int, error) {
				if offered = strings.Join(options, ", "); test.choose == "" {
					return 0, gone
				}
				return slices.Index(options, test.choose), nil
			})
			client, err := reconnect.Connect(t.Context(), func(context.Context) (acp.Transport, error) {
				starts++
				known := loggedIn || starts > 1
				theirs, ours := acp.Pipe()
				_, err := acp.StartAgent(context.Background(), theirs, acp.AgentHandlers{
					Authenticate: func(_ context.Context, _ *acp.AgentConn, req *acp.AuthenticateRequest) (*acp.AuthenticateResponse, error) {
						loggedIn, known = true, true
						return &acp.AuthenticateResponse{}, nil
					},
					NewSession: func(context.Context, *acp.AgentConn, *acp.NewSessionRequest) (*acp.NewSessionResponse, error) {
						if !known {
							return nil, acp.ErrAuthRequired
						}
						return &acp.NewSessionResponse{SessionID: "s"}, nil
					},
					Prompt: func(context.Context, *acp.AgentSession, *acp.PromptRequest) (*acp.PromptResponse, error) {
						return nil, acp.ErrAuthRequired
					},
				}, &acp.AgentOptions{AuthMethods: test.methods})
				return conformance.Tap(t, conformance.Client, ours, nil), err
			}, acp.ClientHandlers{}, &acp.ClientOptions{TerminalAuth: true}, &reconnect.Options{MinBackoff: time.Millisecond, Login: login})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			_, err = client.NewSession(t.Context(), &acp.NewSessionRequest{Cwd: "/"})
			if _, failed := errors.AsType[*launch.LoginError](err); failed != (test.name == "terminal fails") || !failed && !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if offered != test.options || starts != test.starts || loggedIn != test.loggedIn {
				t.Errorf("offered %q, %d starts, logged in: %v", offered, starts, loggedIn)
			}
		})
	}
}

// TestLoginLeavesOpen: a login that has succeeded has succeeded, also when it has left behind what holds its output.
func TestLoginLeavesOpen(t *testing.T) {
	tier.Need(t, tier.Normal)
	t.Parallel()
	requireShell(t)
	program := write(t, filepath.Join(t.TempDir(), "agent"), "#!/bin/sh\nsleep 10 &\necho done\n", 0o700)
	var out bytes.Buffer
	err := launch.New(program).Login(t.Context(), &acp.AuthMethodTerminal{ID: "t", Name: "Log in"}, launch.Terminal{Stdout: &out})
	if err != nil || out.String() != "done\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// TestREG12_Offered: a client that has not said that it runs logins in a terminal uses none, whatever the agent offers.
func TestREG12_Offered(t *testing.T) {
	agent := &acp.InitializeResponse{AuthMethods: []acp.AuthMethod{
		acp.NewAuthMethodAgent(acp.AuthMethodAgent{ID: "a", Name: "A"}),
		acp.NewAuthMethodTerminal(acp.AuthMethodTerminal{ID: "t", Name: "T"}),
	}}
	if got := launch.TerminalLogins(agent, true); len(got) != 1 || got[0].ID != "t" {
		t.Errorf("got %v", got)
	}
	if got := launch.TerminalLogins(agent, false); got != nil {
		t.Errorf("got %v", got)
	}
	if got := launch.TerminalLogins(nil, true); got != nil {
		t.Errorf("got %v", got)
	}
}

// TestLoginEndlessInput: a login ends with its process, although its input does not.
func TestLoginEndlessInput(t *testing.T) {
	requireShell(t)
	program := write(t, filepath.Join(t.TempDir(), "agent"), "#!/bin/sh\nread -r word\necho \"$word\"\n", 0o700)
	method := &acp.AuthMethodTerminal{ID: "t", Name: "Log in"}
	t.Run("without deadlines", func(t *testing.T) {
		from, to := io.Pipe()
		go to.Write([]byte("secret\n"))
		var out bytes.Buffer
		if err := launch.New(program).Login(t.Context(), method, launch.Terminal{Stdin: from, Stdout: &out}); err != nil || out.String() != "secret\n" {
			t.Errorf("got %q, %v", out.String(), err)
		}
		to.Close() // the last Read returns
	})
	t.Run("with deadlines", func(t *testing.T) {
		from, to := net.Pipe()
		defer from.Close()
		defer to.Close()
		go to.Write([]byte("secret\n"))
		var out bytes.Buffer
		if err := launch.New(program).Login(t.Context(), method, launch.Terminal{Stdin: from, Stdout: &out}); err != nil || out.String() != "secret\n" {
			t.Errorf("got %q, %v", out.String(), err)
		}
		go to.Write([]byte("x")) // nobody else reads, and no deadline is left
		if n, err := from.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		from, to := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		slow := write(t, filepath.Join(t.TempDir(), "agent"), "#!/bin/sh\necho ready\nexec sleep 100\n", 0o700)
		err := launch.New(slow).Login(ctx, method, launch.Terminal{Stdin: from, Stdout: writerFunc(func(b []byte) (int, error) { cancel(); return len(b), nil })})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		to.Close()
	})
	t.Run("no program", func(t *testing.T) {
		from, to := io.Pipe()
		bad := write(t, filepath.Join(t.TempDir(), "agent"), "\x7fELF", 0o700)
		if err := launch.New(bad).Login(t.Context(), method, launch.Terminal{Stdin: from}); err == nil {
			t.Error("it was run")
		}
		to.Close()
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
