package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/policy"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/cmd/acp/internal/input"
	"github.com/acpgo/sdk/cmd/acp/internal/talk"
)

// choose sets the mode, the model and the options of a session according to the agent's settings, as far as the agent
// has them.
func choose(ctx context.Context, session *talk.Session, s *config.Settings) error {
	var errs []error
	if s.Mode != "" {
		errs = append(errs, session.Choose(ctx, acp.SessionConfigOptionCategoryMode, s.Mode))
	}
	if s.Model != "" {
		errs = append(errs, session.Choose(ctx, acp.SessionConfigOptionCategoryModel, s.Model))
	}
	for _, option := range s.Options {
		name, value, _ := strings.Cut(option, "=")
		errs = append(errs, session.ChooseOption(ctx, name, value))
	}
	return errors.Join(errs...)
}

// talkOptions returns the options of a client according to the settings. All its errors are usage errors.
func talkOptions(cfg *config.Config, folder string) (*talk.Options, error) {
	s := &cfg.Settings
	cwd, err := workFolder(folder)
	if err != nil {
		return nil, usage(err)
	}
	o := &talk.Options{Version: moduleVersion(), Cwd: cwd, Dirs: s.Dirs, Environ: cfg.Environ(), NoFiles: s.NoFiles,
		NoTerminals: s.NoTerminals}
	for _, dir := range append([]string{cwd}, s.Dirs...) {
		if err := input.Folder(dir); err != nil {
			return nil, usage(err)
		}
	}
	if s.Policy != "" {
		if o.Rules, err = readPolicy(s.Policy); err != nil {
			return nil, usage(err)
		}
	}
	if o.MCPServers, o.Notes, err = talk.MCPServers(s.MCP, cwd); err != nil {
		return nil, usage(err)
	}
	return o, nil
}

// withAgent returns the options for an agent. An agent at a URL does not get the MCP servers of the configuration,
// whose commands, variables and headers hold secrets.
func withAgent(o *talk.Options, cfg *config.Config, a *agents.Agent) *talk.Options {
	own := *o
	own.Agent = talk.Agent{Name: a.Name, Command: a.Command, Connect: a.Connect}
	own.RemoteFiles, own.RemoteTerminals = a.Settings.RemoteFiles, a.Settings.RemoteTerminals
	own.Protocol = a.Settings.Version()
	if a.Command == nil && len(o.MCPServers) > 0 && cfg.Sources["mcp"] != config.FromFlag {
		own.MCPServers = nil
		own.Notes = append(own.Notes,
			"the MCP servers of the configuration are not sent to an agent at a URL; --mcp sends them")
	}
	return &own
}

// maxPolicy is the maximum size of a file of rules in bytes.
const maxPolicy = 4 << 20

// readPolicy reads a file of rules.
func readPolicy(path string) (*policy.Policy, error) {
	text, err := input.ReadFile(path, maxPolicy)
	if err != nil {
		return nil, err
	}
	rules, err := policy.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return policy.New(rules, &policy.Options{Resolve: policy.ResolveLinks})
}

// workFolder returns the absolute path, without symbolic links, of the directory in which an agent works: sessions are
// listed and named by that path.
func workFolder(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
