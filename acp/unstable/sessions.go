// This file owns the sessions that are made of others.

package unstable

import "context"

// Fork makes a new session that begins with the context of this one (session/fork). The session's id is
// filled in; req is not changed.
func (s *SessionAgent) Fork(ctx context.Context, req *ForkSessionRequest) (*SessionAgent, error) {
	own := *req
	own.SessionID = s.id
	res, err := s.peer.ForkSession(ctx, &own)
	if err != nil {
		return nil, err
	}
	return &SessionAgent{s.peer, res.SessionID, res.Modes, res.ConfigOptions}, nil
}
