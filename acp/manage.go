package acp

import "context"

// SetTitle sets the session's title (session/set_title), and returns the title that the agent chose to store, which is
// the one to show.
//
// Experimental: any minor release may change or remove it. It needs [FeatureSessionTitle].
func (s *ClientSession) SetTitle(ctx context.Context, title string) (string, error) {
	res, err := s.conn.SetSessionTitle(ctx, &SetSessionTitleRequest{SessionID: s.id, Title: title})
	if err != nil {
		return "", err
	}
	return res.Title, nil
}

// Archive hides the session from the agent's list (session/archive).
//
// Experimental: any minor release may change or remove it. It needs [FeatureArchive].
func (s *ClientSession) Archive(ctx context.Context) error {
	_, err := s.conn.ArchiveSession(ctx, &ArchiveSessionRequest{SessionID: s.id})
	return err
}

// Unarchive returns the session to the agent's list (session/unarchive).
//
// Experimental: any minor release may change or remove it. It needs [FeatureArchive].
func (s *ClientSession) Unarchive(ctx context.Context) error {
	_, err := s.conn.UnarchiveSession(ctx, &UnarchiveSessionRequest{SessionID: s.id})
	return err
}

// Status reports whether the agent has the session in memory (session/status). Treat an unknown value as saved.
//
// Experimental: any minor release may change or remove it. It needs [FeatureSessionStatus].
func (s *ClientSession) Status(ctx context.Context) (SessionStatus, error) {
	res, err := s.conn.SessionStatus(ctx, &SessionStatusRequest{SessionID: s.id})
	if err != nil {
		return "", err
	}
	return res.Status, nil
}

// Fork calls [ClientConn.ForkSession] for this session. It fills in the session's id and does not change req.
//
// Experimental: any minor release may change or remove it. It needs [FeatureFork].
func (s *ClientSession) Fork(ctx context.Context, req *ForkSessionRequest) (*ClientSession, error) {
	own := *orEmpty(req)
	own.SessionID = s.id
	return s.conn.ForkSession(ctx, &own)
}
