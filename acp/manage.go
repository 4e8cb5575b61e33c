package acp

import "context"

// SetTitle gives the session another title (session/set_title), and returns what the agent has made of it,
// which is what to show.
//
// Experimental: any minor release may change or remove it. It needs [FeatureSessionTitle].
func (s *ClientSession) SetTitle(ctx context.Context, title string) (string, error) {
	res, err := s.conn.SetSessionTitle(ctx, &SetSessionTitleRequest{SessionID: s.id, Title: title})
	if err != nil {
		return "", err
	}
	return res.Title, nil
}

// Archive keeps the session out of the agent's list (session/archive).
//
// Experimental: any minor release may change or remove it. It needs [FeatureArchive].
func (s *ClientSession) Archive(ctx context.Context) error {
	_, err := s.conn.ArchiveSession(ctx, &ArchiveSessionRequest{SessionID: s.id})
	return err
}

// Unarchive puts the session into the agent's list again (session/unarchive).
//
// Experimental: any minor release may change or remove it. It needs [FeatureArchive].
func (s *ClientSession) Unarchive(ctx context.Context) error {
	_, err := s.conn.UnarchiveSession(ctx, &UnarchiveSessionRequest{SessionID: s.id})
	return err
}

// Status says whether the agent has the session in memory (session/status). A value that is not known must
// be taken for saved.
//
// Experimental: any minor release may change or remove it. It needs [FeatureSessionStatus].
func (s *ClientSession) Status(ctx context.Context) (SessionStatus, error) {
	res, err := s.conn.SessionStatus(ctx, &SessionStatusRequest{SessionID: s.id})
	if err != nil {
		return "", err
	}
	return res.Status, nil
}

// Fork is [ClientConn.ForkSession] of this session, whose id is filled in; req is not changed.
//
// Experimental: any minor release may change or remove it. It needs [FeatureFork].
func (s *ClientSession) Fork(ctx context.Context, req *ForkSessionRequest) (*ClientSession, error) {
	own := *orEmpty(req)
	own.SessionID = s.id
	return s.conn.ForkSession(ctx, &own)
}
