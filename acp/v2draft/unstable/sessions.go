package unstable

import "context"

// ForkSession makes a new session that begins with the context of the one that req names (session/fork).
//
// It fails with ErrUnsupported, unsent, when the agent did not advertise what req needs.
func (c *ClientConn) ForkSession(ctx context.Context, req *ForkSessionRequest) (*ClientSession, error) {
	s := &ClientSession{conn: c}
	_, err := c.forkSession(ctx, req, func(res *ForkSessionResponse) {
		s.id = res.SessionID
		s.opened(res.ConfigOptions, res.AvailableCommands, res.Meta)
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Fork is [ClientConn.ForkSession] of this session, whose id is filled in; req is not changed.
func (s *ClientSession) Fork(ctx context.Context, req *ForkSessionRequest) (*ClientSession, error) {
	own := *orEmpty(req)
	own.SessionID = s.id
	return s.conn.ForkSession(ctx, &own)
}
