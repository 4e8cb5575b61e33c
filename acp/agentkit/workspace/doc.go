// Package workspace gives an agent the files and commands of a session: those of the client, if it offers them, and
// otherwise those of this machine. An editor's files include text that is not saved yet, and the user sees commands in
// the client's terminals, so the client comes first.
//
// [Open] belongs in Config.Open of package agentkit. The workspace ends with the session:
//
//	Open: func(ctx context.Context, s *agentkit.Session[state], o *agentkit.Opening) (err error) {
//		s.State.workspace, err = workspace.Open(s, nil)
//		return err
//	},
//
// # What is safe and what is not
//
// Paths may come from a model. Files are read, written, listed and searched only inside the directories of the session,
// also if the client serves them: other paths, and symbolic links that lead out, are refused with an error that matches
// local.ErrOutside. So are those of Options.Hidden: an agent hides its own key and rules there. Commands are not
// confined: they may do whatever the user may do. Ask for permission before you run one or write a file; see
// agentkit.ToolCall.Ask. Package acp/local, which serves what the client does not, documents the bounds of texts,
// output and waiting times. Every method ends when its context does, on this machine at most a second later, whatever
// file it has met and whether or not the file system responds.
package workspace
