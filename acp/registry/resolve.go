package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// AmbiguousError reports that a short name matches several agents.
type AmbiguousError struct {
	Name string
	IDs  []string
}

// Error implements the error interface.
func (e *AmbiguousError) Error() string {
	text := fmt.Sprintf("%q matches several agents", e.Name)
	switch last := len(e.IDs) - 1; last {
	case -1:
		return text
	case 0:
		return text + ": " + e.IDs[0]
	default:
		return text + ": " + strings.Join(e.IDs[:last], ", ") + " or " + e.IDs[last]
	}
}

// Match returns the id that name stands for: name itself if it is one of ids; or else the only one that begins with it
// and a hyphen; otherwise the only id that has name as one of its hyphen-separated words. So "claude" is
// claude-code-acp if no other id begins with "claude-". The error is an *AmbiguousError, or matches ErrUnknownAgent.
func Match(name string, ids []string) (string, error) {
	if slices.Contains(ids, name) {
		return name, nil
	}
	for _, matches := range []func(id string) bool{
		func(id string) bool { return strings.HasPrefix(id, name+"-") },
		func(id string) bool { return slices.Contains(strings.Split(id, "-"), name) },
	} {
		found := slices.DeleteFunc(slices.Sorted(slices.Values(ids)),
			func(id string) bool { return name == "" || !matches(id) })
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return "", &AmbiguousError{name, found}
		}
	}
	return "", fmt.Errorf("%w: %q", ErrUnknownAgent, short(name))
}

// FindName is Find for a name as Match takes it.
func (c *Client) FindName(name string) (*Installed, error) {
	found, err := c.Find(name)
	if err == nil || !errors.Is(err, ErrNotInstalled) && !errors.Is(err, ErrUnknownAgent) {
		return found, err
	}
	all, _ := c.Installed() // damaged agents have no other names
	ids := make([]string, len(all))
	for i, installed := range all {
		ids[i] = installed.ID()
	}
	id, err := Match(name, ids)
	switch {
	case err == nil:
		return c.Find(id)
	case errors.Is(err, ErrUnknownAgent):
		return nil, fmt.Errorf("%w: %s", ErrNotInstalled, short(name))
	}
	return nil, err
}

// Resolve returns the agent that a user means by a name, as Match takes it: an installed one, for which it needs no
// network, or one of the registry, which it installs after Consent. An agent with a transport is then
//
//	agent, err := client.Resolve(ctx, "claude")
//	…
//	transport := acp.Command(agent.Command().Cmd())
//
// The errors are those of Match and Install.
func (c *Client) Resolve(ctx context.Context, name string) (*Installed, error) {
	installed, err := c.FindName(name)
	if !errors.Is(err, ErrNotInstalled) {
		return installed, err
	}
	list, err := c.List(ctx)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(list.Agents))
	for i := range list.Agents {
		ids[i] = list.Agents[i].ID
	}
	id, err := Match(name, ids)
	if errors.Is(err, ErrUnknownAgent) {
		id, err = name, nil // Install looks whether it is new
	}
	if err != nil {
		return nil, err
	}
	return c.Install(ctx, id, nil)
}
