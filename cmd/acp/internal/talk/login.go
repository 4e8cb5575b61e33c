package talk

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/internal/plain"
)

// LoginKind is a way to log in.
type LoginKind int

// The kinds of logins.
const (
	AgentLogin       LoginKind = iota + 1 // the agent does it when asked to, for example in a browser
	TerminalLogin                         // the agent's program runs in the user's terminal
	EnvironmentLogin                      // the agent is started with environment variables that hold secrets
	UnknownLogin                          // in a way that this client does not know
)

// LoginMethod is a login method that the agent offers.
type LoginMethod struct {
	ID                acp.AuthMethodID
	Name, Description string
	Kind              LoginKind
	// Variables lists what an EnvironmentLogin needs, and Link is where the user gets them, or "".
	Variables []LoginVariable
	Link      string

	terminal *acp.AuthMethodTerminal
}

// LoginVariable is an environment variable.
type LoginVariable struct {
	Name     string `json:"name"`
	Label    string `json:"label"`
	Optional bool   `json:"optional"`
}

// maxName is how many characters of the name of a login method are shown.
const maxName = 80

// String says in a line what to do: first how the login works, then the agent's name for it. The address for the user
// is shown in the form of plain.Address.
func (m *LoginMethod) String() string {
	name := []rune(cmp.Or(m.Name, string(m.ID)))
	if len(name) > maxName {
		name = append(name[:maxName], '…')
	}
	var text string
	switch m.Kind {
	case AgentLogin:
		text = "by the agent"
	case TerminalLogin:
		text = "in the terminal"
		if len(m.terminal.Args) > 0 {
			text += ", with the arguments " + strings.Join(m.terminal.Args, " ")
		}
		if len(m.terminal.Env) > 0 {
			text += ", with the variables " + strings.Join(slices.Sorted(maps.Keys(m.terminal.Env)), ", ")
		}
	case EnvironmentLogin:
		var names []string
		for _, v := range m.Variables {
			name := v.Name
			if v.Optional {
				name += " (optional)"
			}
			names = append(names, name)
		}
		text = "set " + strings.Join(names, ", ") + " and start again"
		if m.Link != "" {
			address, _, notes := plain.Address(m.Link)
			text += "; see " + strings.Join(append([]string{address}, notes...), " ")
		}
	case UnknownLogin:
		text = "not known to this client"
	}
	return text + ": " + string(name)
}

// LoginError says that the user has to log in first.
type LoginError struct {
	// Agent is the agent's name.
	Agent string
	// Methods are the login methods.
	Methods []LoginMethod
	// Err is the agent's error.
	Err error
}

// Error implements the error interface.
func (e *LoginError) Error() string {
	var b strings.Builder
	b.WriteString(plain.Sprintf("agent %s requires you to log in: %v", e.Agent, e.Err))
	for i := range e.Methods {
		b.WriteString(plain.Sprintf("\n  %s: %s", string(e.Methods[i].ID), e.Methods[i].String()))
	}
	return b.String()
}

// Unwrap returns Err.
func (e *LoginError) Unwrap() error { return e.Err }

// asLogin makes the error of a call a *LoginError if it says that the user has to log in.
func (c *Client) asLogin(err error) error {
	if !errors.Is(err, acp.ErrAuthRequired) {
		return err
	}
	return &LoginError{Agent: c.opts.Agent.Name, Methods: c.LoginMethods(), Err: err}
}

// LoginMethods returns the login methods that the agent offers.
func (c *Client) LoginMethods() []LoginMethod {
	var methods []LoginMethod
	for _, m := range c.Initialized().AuthMethods {
		switch v := m.Variant.(type) {
		case *acp.AuthMethodAgent:
			method := LoginMethod{ID: v.ID, Name: v.Name, Description: v.Description.Value(), Kind: AgentLogin}
			if m.Type.Value() == environmentType {
				more := c.environmentLogin(v.ID)
				method.Kind, method.Variables, method.Link = EnvironmentLogin, more.Vars, more.Link
			}
			methods = append(methods, method)
		case *acp.AuthMethodTerminal:
			methods = append(methods, LoginMethod{ID: v.ID, Name: v.Name, Description: v.Description.Value(),
				Kind: TerminalLogin, terminal: v})
		default: // a kind that this program has no case for, though package acp may know it
			var tagged struct{ Type acp.AuthMethodID }
			if raw, err := m.MarshalJSON(); err == nil && json.Unmarshal(raw, &tagged) == nil {
				methods = append(methods, LoginMethod{ID: tagged.Type, Kind: UnknownLogin})
			}
		}
	}
	return methods
}

// environmentType is the type of a login method that agents offer but that is missing from the protocol's schema.
const environmentType = "env_var"

// environmentLogin has the additional members of such a method.
type environmentLogin struct {
	ID   acp.AuthMethodID `json:"id"`
	Vars []LoginVariable  `json:"vars"`
	Link string           `json:"link"`
}

// keepLogins keeps the login methods of the response to initialize, the first line with a result, as raw JSON, because
// the typed values lack the members of an environmentLogin. It reports whether line is that response.
func (c *Client) keepLogins(line []byte) bool {
	var answer struct {
		Result *struct {
			AuthMethods []json.RawMessage `json:"authMethods"`
		} `json:"result"`
	}
	if !bytes.Contains(line, []byte(`"result"`)) || json.Unmarshal(line, &answer) != nil || answer.Result == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logins = answer.Result.AuthMethods
	return true
}

// environmentLogin finds a method in the raw JSON.
func (c *Client) environmentLogin(id acp.AuthMethodID) (found environmentLogin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, raw := range c.logins {
		var m environmentLogin
		if json.Unmarshal(raw, &m) == nil && m.ID == id {
			return m
		}
	}
	return found
}

// Login logs in by a method. A TerminalLogin runs in terminal, which must be the user's own; afterwards the agent is
// restarted and the sessions are restored.
func (c *Client) Login(ctx context.Context, id acp.AuthMethodID, terminal launch.Terminal) error {
	m, err := c.loginMethod(id)
	switch {
	case err != nil:
		return err
	case m.Kind == AgentLogin:
		agent, err := c.agentConn(ctx)
		if err == nil {
			defer c.slow(acp.MethodAuthenticate, func() bool { return false })() // a person may need any time
			_, err = agent.Authenticate(ctx, &acp.AuthenticateRequest{MethodID: id})
		}
		return err
	}
	if err := c.LoginInTerminal(ctx, id, terminal); err != nil {
		return err
	}
	return c.Restart(ctx)
}

// LoginInTerminal only runs a TerminalLogin; the agent knows of it after [Client.Restart]. The two are separate for
// callers that process no events while another program has the terminal.
func (c *Client) LoginInTerminal(ctx context.Context, id acp.AuthMethodID, terminal launch.Terminal) error {
	m, err := c.loginMethod(id)
	switch {
	case err != nil:
		return err
	case m.Kind != TerminalLogin:
		return fmt.Errorf("%w: this client does not support login method %s: %s", acp.ErrUnsupported, id, m)
	case c.opts.Agent.Command == nil || !c.opts.TerminalLogin:
		return fmt.Errorf("%w: login method %s needs a terminal and the agent's own program", acp.ErrUnsupported, id)
	}
	return c.opts.Agent.Command.Login(ctx, m.terminal, terminal)
}

// loginMethod finds a login method.
func (c *Client) loginMethod(id acp.AuthMethodID) (*LoginMethod, error) {
	for _, m := range c.LoginMethods() {
		if m.ID == id {
			return &m, nil
		}
	}
	return nil, fmt.Errorf("%w: the agent has no login method %q", acp.ErrInvalidParams, id)
}

// Logout logs out.
func (c *Client) Logout(ctx context.Context) error {
	agent, err := c.agentConn(ctx)
	if err == nil {
		_, err = agent.Logout(ctx, nil)
	}
	return err
}

// Restart restarts the agent and restores the sessions.
func (c *Client) Restart(ctx context.Context) error {
	agent, err := c.agentConn(ctx)
	if err != nil {
		return err
	}
	c.restarting.Store(true)
	if err := agent.Close(); err != nil {
		return err
	}
	_, err = c.agentConn(ctx)
	return err
}
