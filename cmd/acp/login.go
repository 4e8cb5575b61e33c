package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
	"github.com/acpgo/sdk/internal/plain"
)

func (a *agentsCommand) loginCommand() *cobra.Command {
	var list bool
	c := &cobra.Command{
		Use:   "login [FLAGS] AGENT [METHOD] | -- COMMAND [ARG...]",
		Short: "Log in to an agent",
		Long: `Log in to an agent by one of the methods that it offers. The agent does that itself, for example in a browser, or
its program is run in this terminal. Some methods need environment variables instead: those that are not set are listed.
Without METHOD the only one is used; if there are several, they are listed, and nothing is done.

The exit status is 1 if nothing could be done here.`,
		Example: `  acp agents login claude
  acp agents login --list claude
  acp agents login gemini oauth-personal`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeAgents(true),
		RunE: a.p.until(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			method := ""
			if cmd.ArgsLenAtDash() < 0 && len(args) == 2 {
				args, method = args[:1], args[1]
			}
			return a.withAgent(ctx, cmd, args, func(agent *agents.Agent, client *talk.Client) error {
				if list {
					return a.listLogins(client.LoginMethods())
				}
				return a.login(ctx, agent, client, acp.AuthMethodID(method))
			})
		}),
	}
	c.Flags().BoolVar(&list, "list", false, "only list the methods")
	a.jsonFlag(c)
	return c
}

// withAgent starts an agent or connects to it, calls do, and ends the agent.
func (a *agentsCommand) withAgent(ctx context.Context, cmd *cobra.Command, args []string,
	do func(*agents.Agent, *talk.Client) error) error {
	agent, err := a.findAgent(ctx, cmd, args)
	if err != nil {
		return err
	}
	client, err := talk.Open(ctx, a.forLogin(agent))
	if err != nil {
		return err
	}
	err = do(agent, client)
	if closed := client.Close(); err == nil {
		err = closed
	}
	return err
}

// forLogin returns the options of a client that only logs in. It shows what the agent says meanwhile, such as an
// address to open.
func (a *agentsCommand) forLogin(agent *agents.Agent) *talk.Options {
	return &talk.Options{
		Agent: talk.Agent{Name: agent.Name, Connect: agent.Connect, Command: agent.Command}, Version: moduleVersion(),
		Cwd:     ".",
		NoFiles: true, NoTerminals: true, NoReconnect: true, TerminalLogin: agent.Command != nil,
		URL: func(_ context.Context, e *talk.Elicitation) (*acp.CreateElicitationResponse, error) {
			address, host, notes := plain.Address(e.URL)
			a.say("open %s", address)
			a.say("it leads to %s", cmp.Or(host, "nowhere"))
			for _, note := range notes {
				a.say("%s", note)
			}
			a.say("%s: %s", agent.Name, e.Message)
			res := acp.NewCreateElicitationResponseAccept(acp.ElicitationAcceptAction{})
			return &res, nil
		},
		Event: func(e talk.Event) {
			if e.Kind == talk.Stderr {
				a.say("%s: %s", agent.Name, e.Text)
			}
		},
	}
}

// loginKinds names the kinds of logins.
var loginKinds = map[talk.LoginKind]string{
	talk.AgentLogin: "agent", talk.TerminalLogin: "terminal", talk.EnvironmentLogin: "env_var",
	talk.UnknownLogin: "unknown",
}

// listLogins lists the login methods of an agent.
func (a *agentsCommand) listLogins(methods []talk.LoginMethod) error {
	if !a.json {
		writeLogins(a.p.stdout, methods)
		return nil
	}
	type method struct {
		ID          acp.AuthMethodID     `json:"id"`
		Kind        string               `json:"kind"`
		Name        string               `json:"name"`
		Description string               `json:"description,omitempty"`
		Variables   []talk.LoginVariable `json:"variables,omitempty"`
		Link        string               `json:"link,omitempty"`
	}
	all := []method{}
	for _, m := range methods {
		all = append(all, method{m.ID, loginKinds[m.Kind], m.Name, m.Description, m.Variables, m.Link})
	}
	return a.write(all)
}

// writeLogins writes methods, each line beginning with the id.
func writeLogins(w io.Writer, methods []talk.LoginMethod) {
	for i := range methods {
		fmt.Fprintln(w, plain.Sprintf("%s: %s", string(methods[i].ID), methods[i].String()))
		if text := methods[i].Description; text != "" {
			fmt.Fprintln(w, plain.Sprintf("    %s", text))
		}
	}
}

// login logs in by the method with this id, or by the only method.
func (a *agentsCommand) login(ctx context.Context, agent *agents.Agent, client *talk.Client,
	id acp.AuthMethodID) error {
	methods := client.LoginMethods()
	switch {
	case len(methods) == 0:
		a.say("the agent offers no login method; perhaps it needs none")
		return &exit{statusFindings, nil}
	case id == "" && len(methods) > 1:
		writeLogins(a.p.stderr, methods)
		return usagef("the agent offers several login methods: name one of them")
	case id == "":
		id = methods[0].ID
	}
	var ids []string
	for _, m := range methods {
		ids = append(ids, string(m.ID))
		if m.ID == id && m.Kind == talk.EnvironmentLogin {
			return a.environmentLogin(agent, &m)
		}
		if m.ID == id {
			a.say("%s", m.String())
			if err := client.Login(ctx, id,
				launch.Terminal{Stdin: a.p.stdin, Stdout: a.p.stdout, Stderr: a.p.stderr}); err != nil {
				return err
			}
			a.say("logged in")
			return nil
		}
	}
	return usagef("the agent has no login method %q, only %s", string(id), strings.Join(ids, ", "))
}

// environmentLogin reports whether the variables of a method are set. They are secrets, so acp does not store them.
func (a *agentsCommand) environmentLogin(agent *agents.Agent, m *talk.LoginMethod) error {
	environ := a.cfg.Environ()
	if agent.Command != nil {
		environ = agent.Command.Cmd().Env
	}
	var missing []string
	for _, v := range m.Variables {
		has := slices.ContainsFunc(environ,
			func(pair string) bool { return strings.HasPrefix(pair, v.Name+"=") && pair != v.Name+"=" })
		if !has && !v.Optional {
			missing = append(missing, v.Name)
		}
	}
	writeLogins(a.p.stderr, []talk.LoginMethod{*m})
	if len(missing) > 0 {
		a.say("not set: %s", strings.Join(missing, ", "))
		return &exit{statusFindings, nil}
	}
	a.say("they are set: there is nothing to do")
	return nil
}

func (a *agentsCommand) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "logout [FLAGS] AGENT | -- COMMAND [ARG...]",
		Short:             "Log out of an agent",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeAgents(true),
		RunE: a.p.until(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return a.withAgent(ctx, cmd, args, func(_ *agents.Agent, client *talk.Client) error {
				if !client.Capabilities().Auth.Logout.Present() {
					return fmt.Errorf("%w: the agent offers no logout", acp.ErrUnsupported)
				}
				if err := client.Logout(ctx); err != nil {
					return err
				}
				a.say("logged out")
				return nil
			})
		}),
	}
}
