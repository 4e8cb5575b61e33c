package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os/exec"
	"slices"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/acp/remote"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
)

// Agent is an agent that can be connected to.
type Agent struct {
	// Name is what the user calls the agent: a name of the configuration, an id of the registry, a URL without the
	// parts that may be secret, or the program of a command.
	Name string
	// Command is how the agent is started; nil for an agent at a URL.
	Command *launch.Command
	// URL is the agent's URL, if it has one. It may contain a secret.
	URL string
	// Installed describes the installation of an agent of the registry.
	Installed *registry.Installed
	// Settings are the settings for the agent, some of which may be its own.
	Settings config.Settings
	// Connect returns a new transport for one connection to the agent.
	Connect func(context.Context) (acp.Transport, error)
}

// Resolver finds agents.
type Resolver struct {
	// Config has the user's agents, and the credentials for agents at URLs.
	Config *config.Config
	// Registry has the agents that are or can be installed.
	Registry *registry.Client
	// Preview takes the preview versions of agents of the registry.
	Preview bool
	// Ask asks the user. If it is nil, resolving an agent that is not installed fails with a *NotInstalledError.
	Ask func(ctx context.Context, question string) (bool, error)
	// Say prints a progress message. It may be nil.
	Say func(line string)
	// Logger gets the diagnostics of connections to URLs; nil means slog.Default.
	Logger *slog.Logger
}

// New returns a resolver for a loaded configuration. It cannot ask the user until Ask is set.
func New(cfg *config.Config) *Resolver {
	r := &Resolver{Config: cfg, Registry: Registry(&cfg.Settings), Preview: cfg.Preview}
	r.Registry.Environ = cfg.Environ()
	r.Registry.Consent = r.consent
	return r
}

// Registry returns a registry client according to the settings. It has no function that asks for consent.
func Registry(s *config.Settings) *registry.Client {
	c := &registry.Client{URL: s.RegistryURL, Dir: s.RegistryDir, Offline: s.RegistryOffline, MaxAge: s.RegistryMaxAge}
	if c.MaxAge == 0 {
		c.MaxAge = -1 // always
	}
	for _, kind := range s.RegistryPrefer {
		c.Prefer = append(c.Prefer, registry.Kind(kind))
	}
	return c
}

// ErrRefused is returned when the user does not want an agent to be installed.
var ErrRefused = errors.New("declined by the user")

// consent asks the user before anything is fetched.
func (r *Resolver) consent(ctx context.Context, plan *registry.Plan) error {
	if r.Ask == nil {
		return &NotInstalledError{ID: plan.Entry.ID, Preview: plan.Preview}
	}
	yes, err := r.Ask(ctx, plan.String()+"\nInstall it?")
	if err != nil {
		return err
	}
	if !yes {
		return ErrRefused
	}
	r.say("installing %s %s", plan.Entry.ID, plan.Entry.Version)
	return nil
}

// NotInstalledError is returned when an agent of the registry is not installed and the user cannot be asked.
type NotInstalledError struct {
	ID string
	// Preview reports that the preview of the agent is not installed.
	Preview bool
}

// Error implements the error interface.
func (e *NotInstalledError) Error() string {
	if e.Preview {
		return fmt.Sprintf("the preview of the agent %s is not installed; install it first: acp agents install --preview %s",
			e.ID, e.ID)
	}
	return fmt.Sprintf("the agent %s is not installed; install it first: acp agents install %s", e.ID, e.ID)
}

// UnknownError is returned when no agent has a name.
type UnknownError struct {
	Name string
	// Near are names that may have been meant.
	Near []string
	// Program is the path of a program with that name.
	Program string
	// List is why the registry's list could not be read, or nil.
	List error
}

// Error implements the error interface.
func (e *UnknownError) Error() string {
	text := fmt.Sprintf("there is no agent %q", e.Name)
	if e.List != nil {
		text = fmt.Sprintf("no agent %q was found", e.Name) // the registry may have it
	}
	if len(e.Near) > 0 {
		text += fmt.Sprintf("; did you mean %s?", config.OrList(e.Near))
	}
	if e.Program != "" {
		text += fmt.Sprintf("; to run it as a command, use -- %s", e.Name)
	}
	if e.List != nil {
		text += fmt.Sprintf("; the registry could not be searched: %v", e.List)
	}
	return text
}

// Unwrap returns List.
func (e *UnknownError) Unwrap() error { return e.List }

// Command returns the agent that a command starts: the program and its arguments.
func (r *Resolver) Command(args []string) (*Agent, error) {
	if len(args) == 0 || args[0] == "" {
		return nil, errors.New("expected the agent's command")
	}
	a := r.started(args[0], launch.New(args[0], args[1:]...))
	a.Settings = r.Config.Settings
	return a, nil
}

// started returns an agent that is a program. It does not inherit the credentials of other agents.
func (r *Resolver) started(name string, command *launch.Command) *Agent {
	own := *command
	command, own.Environ = &own, r.Config.Environ()
	return &Agent{Name: name, Command: command, Connect: func(context.Context) (acp.Transport, error) {
		return acp.Command(command.Cmd()), nil
	}}
}

// Resolve finds an agent: first in the configuration, then among the installed agents, then in the registry, from which
// it is installed if the user consents. The beginning of a registry id is enough if only one id begins with it.
//
// The error is an *UnknownError or a *NotInstalledError, an error of the registry, or matches
// ErrRefused.
func (r *Resolver) Resolve(ctx context.Context, name string) (*Agent, error) {
	a, err := r.resolve(ctx, name)
	if err != nil {
		return nil, err
	}
	a.Settings = r.Config.Settings
	if own := r.Config.File.Agents[name]; own != nil {
		a.Settings = r.Config.For(own)
	}
	return a, nil
}

func (r *Resolver) resolve(ctx context.Context, name string) (*Agent, error) {
	if config.IsURL(name) {
		if err := config.CheckURL(name); err != nil {
			return nil, err
		}
		return r.at("", name, &r.Config.Settings)
	}
	if own := r.Config.File.Agents[name]; own != nil {
		switch {
		case own.Command != nil:
			return r.started(name, own.Command), nil
		case own.URL != "":
			return r.at(name, own.URL, &own.Sent)
		}
		installed, err := r.Registry.Find(own.Registry)
		if errors.Is(err, registry.ErrNotInstalled) || r.release(installed, err) {
			installed, err = r.install(ctx, own.Registry)
		}
		if err != nil {
			return nil, fmt.Errorf("the agent %s of the configuration: %w", name, err)
		}
		return r.ofRegistry(name, installed), nil
	}
	installed, err := r.Registry.FindName(name)
	if r.release(installed, err) {
		installed, err = r.install(ctx, installed.ID())
	}
	if errors.Is(err, registry.ErrNotInstalled) {
		var id string
		if id, err = r.InRegistry(ctx, name); err == nil {
			installed, err = r.install(ctx, id)
		}
	}
	if err != nil {
		return nil, err
	}
	return r.ofRegistry(installed.ID(), installed), nil
}

// release reports whether an agent is installed as a release, although its preview is wanted.
func (r *Resolver) release(installed *registry.Installed, err error) bool {
	return err == nil && r.Preview && !installed.Preview
}

// ofRegistry returns an installed agent.
func (r *Resolver) ofRegistry(name string, installed *registry.Installed) *Agent {
	a := r.started(name, installed.Command())
	a.Installed = installed
	return a
}

// at returns an agent at a URL, to which s says what is sent.
func (r *Resolver) at(name, address string, s *config.Settings) (*Agent, error) {
	send := Credentials{s.TokenFile, s.TokenEnv, s.HeaderFile, s.HeaderEnv}
	if err := send.Check(); err != nil {
		return nil, err
	}
	if name == "" {
		u, err := url.Parse(address)
		if err != nil {
			return nil, errors.New("not a URL") // the parser's error would repeat what may be secret
		}
		name = u.Host
	}
	transport := remote.Dial(address, &remote.DialOptions{
		Header:        func(context.Context) (http.Header, error) { return send.Header() },
		AllowInsecure: s.AllowInsecure, Resume: true, Logger: r.Logger,
	})
	// Each Connect opens a separate connection.
	return &Agent{Name: name, URL: address,
		Connect: func(context.Context) (acp.Transport, error) { return transport, nil }}, nil
}

// InRegistry finds the id of an agent in the registry by the id or the beginning of it.
func (r *Resolver) InRegistry(ctx context.Context, name string) (string, error) {
	list, err := r.Registry.List(ctx)
	unknown := &UnknownError{Name: name, List: err}
	known := r.Names()
	if err == nil {
		var ids []string
		for i := range list.Agents {
			ids = append(ids, list.Agents[i].ID)
		}
		if id, err := registry.Match(name, ids); !errors.Is(err, registry.ErrUnknownAgent) {
			return id, err
		}
		unknown.List = list.Stale
		known = append(known, slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(known, id) })...)
	}
	unknown.Near = config.Nearest(name, known)
	if path, err := exec.LookPath(name); err == nil {
		unknown.Program = path
	}
	return "", unknown
}

// install installs an agent from the registry if the user consents.
func (r *Resolver) install(ctx context.Context, id string) (*registry.Installed, error) {
	o := &registry.InstallOptions{Preview: r.Preview}
	if r.Ask == nil { // before the network is used further
		known := *r.Registry
		known.Offline = true
		_, err := known.Plan(ctx, id, o)
		if unavailable, ok := errors.AsType[*registry.UnavailableError](err); ok {
			return nil, unavailable
		}
		return nil, &NotInstalledError{ID: id, Preview: r.Preview}
	}
	installed, err := r.Registry.Install(ctx, id, o)
	if err == nil {
		r.say("installed %s %s", id, installed.Entry.Version)
	}
	return installed, err
}

func (r *Resolver) say(format string, args ...any) {
	if r.Say != nil {
		r.Say(fmt.Sprintf(format, args...))
	}
}

// Names returns the names of the user's agents and of the installed ones. It does not use the network.
func (r *Resolver) Names() []string {
	var names []string
	for name := range r.Config.File.Agents {
		names = append(names, name)
	}
	all, _ := r.Registry.Installed() // damaged agents cannot be started
	for _, i := range all {
		names = append(names, i.ID())
	}
	slices.Sort(names)
	return slices.Compact(names)
}
