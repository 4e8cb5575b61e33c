package unstable

import (
	"cmp"
	"context"
)

// SetTitle gives the session another title (session/set_title), and returns what the agent has made of it,
// which is what to show.
func (s *ClientSession) SetTitle(ctx context.Context, title string) (string, error) {
	res, err := s.conn.SetSessionTitle(ctx, &SetSessionTitleRequest{SessionID: s.id, Title: title})
	if err != nil {
		return "", err
	}
	return res.Title, nil
}

// Archive keeps the session out of the agent's list (session/archive).
func (s *ClientSession) Archive(ctx context.Context) error {
	_, err := s.conn.ArchiveSession(ctx, &ArchiveSessionRequest{SessionID: s.id})
	return err
}

// Unarchive puts the session into the agent's list again (session/unarchive).
func (s *ClientSession) Unarchive(ctx context.Context) error {
	_, err := s.conn.UnarchiveSession(ctx, &UnarchiveSessionRequest{SessionID: s.id})
	return err
}

// Status says whether the agent has the session in memory (session/status). A value that is not known must
// be taken for saved.
func (s *ClientSession) Status(ctx context.Context) (SessionStatus, error) {
	res, err := s.conn.SessionStatus(ctx, &SessionStatusRequest{SessionID: s.id})
	if err != nil {
		return "", err
	}
	return res.Status, nil
}

// checkParams is that of the stable features, and looks at forks too.
func checkParams(params any) *flaw {
	if p, ok := params.(*ForkSessionRequest); ok {
		return checkRoots(p.Cwd, p.AdditionalDirectories)
	}
	return baseCheckParams(params)
}

// checkUpdate is that of the stable features, and looks at plans with ids, subagents and their messages too.
func checkUpdate(update *SessionUpdate) *flaw {
	if missing(update.Variant) {
		return nil
	}
	switch u := update.Variant.(type) {
	case *SessionUpdatePlanUpdate:
		return cmp.Or(checkPlanID(&u.Plan), checkPlan(&u.Plan))
	case *SessionUpdatePlanRemoved:
		return checkID("/update/planId", u.PlanID)
	case *SessionUpdateSubagentUpdate:
		return cmp.Or(checkID("/update/sessionId", u.SessionID), checkOptPath("/update/cwd", u.Cwd),
			checkPaths("/update/additionalDirectories", u.AdditionalDirectories.Value()))
	case *SessionUpdateSessionMessage:
		return checkID("/update/messageId", u.MessageID)
	case *SessionUpdateSessionMessageChunk:
		return checkID("/update/messageId", u.MessageID)
	}
	return baseCheckUpdate(update)
}

// checkPlanID refuses a plan without an id.
func checkPlanID(plan *PlanUpdateContent) *flaw {
	const at = "/update/plan/planId"
	if missing(plan.Variant) {
		return nil
	}
	switch p := plan.Variant.(type) {
	case *PlanUpdateContentItems:
		return checkID(at, p.PlanID)
	case *PlanUpdateContentFile:
		return checkID(at, p.PlanID)
	case *PlanUpdateContentMarkdown:
		return checkID(at, p.PlanID)
	}
	return nil
}

// serversOf is that of the stable features, and looks at forks too.
func serversOf(params any) []MCPServer {
	if p, ok := params.(*ForkSessionRequest); ok {
		return p.MCPServers
	}
	return baseServersOf(params)
}
