// Package agentkit has what authors of agents of version 2 of the protocol otherwise write again and again: sessions with a
// state of the author's own type, which are stored, listed, and resumed with their history, also by another process; tool
// calls and terminals as values; and streams of text. It is to version 2 what package github.com/acpgo/sdk/acp/agentkit is to
// version 1; the queue of prompts is the runtime's here, and config options are left to the agent. It does not talk to a
// model, does not run tools, and does not start MCP servers. Of the experimental features it serves session/fork, see
// [Config].Fork, and passes on system prompts, see [Opening]; the others are left to the agent. As all of version 2, it is
// outside any compatibility promise.
//
// [NewSessions] is the beginning, and [Sessions.Handlers] serve an agent:
//
//	store, err := agentkit.OpenStore(dir, nil)
//	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: store, Prompt: prompt})
//	defer sessions.Close()
//	err := v2draft.ServeAgent(ctx, v2draft.Stdio(), sessions.Handlers(), opts)
//
// # Tool calls, terminals and texts
//
// [ToolCall] is a tool call that knows what the client knows of it, [Terminal] shows the output of a command that the agent
// runs, and [Text] is an io.Writer whose text is sent as one message. Those of a turn are closed at its end, and keep the
// order in which the turn has said things. They also serve agents without Sessions: see [StartToolCall], [StartTerminal],
// [NewMessage] and [HandleWork].
//
// # What is stored
//
// Stored are the prompts, and what is sent by [Session.Update], but for what is about the moment only: states, commands,
// config options, usage and notices. The title is stored as such. A prompt is stored when its turn has come, before it is
// accepted; one that cannot be stored is refused. Pieces of one text are joined. They and the output of terminals reach
// the store when another kind of update follows, when the turn ends, and at the latest a second after they were sent: if
// the process is killed, that second may be lost.
//
// # What is replayed
//
// A client that resumes a session from its start is sent all that was stored, in order and with the same ids, before the
// answer. It may have some of it already: what chunks are added to is emptied by an update ahead of the first of them.
// Tool calls and compactions that have not ended are shown as failed, and terminals as exited, because nobody ends them any
// more.
//
// # A session that is open
//
// Resuming a session that is open on the same connection closes it first, and opens it with what the request says. While a
// prompt runs or waits, that is refused, because a history that grows cannot be replayed. While a session is being opened,
// closed or deleted, all other requests about it are refused. A session that another connection or another process has
// open may be resumed: each then knows what it says itself, and the store has both.
package agentkit
