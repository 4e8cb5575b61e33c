package acp

import "fmt"

// runsTerminals reports whether a client asks for authentication methods that run in a terminal, through a member of
// _meta that predates the capability. Clients of the agent registry do this.
func runsTerminals(meta Meta) bool {
	var on bool
	ok, err := meta.Get("terminal-auth", &on)
	return ok && err == nil && on
}

// checkAuthMethods refuses authentication methods that no client can choose: those with an empty or a duplicate id.
func checkAuthMethods(methods []AuthMethod) error {
	seen := map[AuthMethodID]bool{"": true}
	for i := range methods {
		id := authID(&methods[i])
		if seen[id] {
			return fmt.Errorf("acp: AuthMethods: the id %q of method %d is empty or a duplicate", id, i)
		}
		seen[id] = true
	}
	return nil
}

// checkOffered returns the reason why the client cannot authenticate with the method with this id, or nil if it can.
// Clients can choose methods of unknown types.
func checkOffered(methods []AuthMethod, id AuthMethodID) error {
	for i := range methods {
		if authID(&methods[i]) != id {
			continue
		}
		if _, terminal := methods[i].Variant.(*AuthMethodTerminal); terminal {
			return fmt.Errorf("%w: the method %q runs in a terminal and must not be requested", ErrUnsupported, id)
		}
		return nil
	}
	return fmt.Errorf("%w: the agent does not offer the method %q", ErrUnsupported, id)
}
