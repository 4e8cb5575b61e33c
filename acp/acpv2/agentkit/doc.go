// Package agentkit provides what most agents for version 2 of the protocol need: sessions with state of the author's
// own type, which are stored, listed, and resumed with their history, also by another process; tool calls and terminals
// as values; and streams of text. It is to version 2 what package github.com/acpgo/sdk/acp/agentkit is to version 1,
// except that the runtime queues prompts, and config options are left to the agent. It does not talk to a model, does
// not run tools, and does not start MCP servers. Of the experimental features it supports session/fork (see
// [Config].Fork) and system prompts (see [Opening]); the others are left to the agent. Like all of version 2, it is not
// covered by any compatibility promise.
//
// [NewSessions] is the starting point, and [Sessions.Handlers] serve an agent:
//
//	store, err := agentkit.OpenStore(dir, nil)
//	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: store, Prompt: prompt})
//	defer sessions.Close()
//	err := acpv2.ServeAgent(ctx, acpv2.Stdio(), sessions.Handlers(), opts)
//
// # Tool calls, terminals and texts
//
// [ToolCall] is a tool call that tracks what the client knows about it, [Terminal] shows the output of a command that
// the agent runs, and [Text] is an io.Writer whose text is sent as one message. Those of a turn are closed at its end,
// and are sent in the order in which the turn produced them. They also work for agents without Sessions: see
// [StartToolCall], [StartTerminal], [NewMessage] and [HandleWork].
//
// # What is stored
//
// Prompts are stored, and so are updates sent with [Session.Update], except those that are only about the moment:
// states, commands, config options, usage and notices. The title is stored as such. A prompt is stored when its turn
// has come, before it is accepted; if it cannot be stored, it is refused. Pieces of one text are joined. They and the
// output of terminals are stored when another kind of update follows, when the turn ends, and at the latest a second
// after they were sent; if the process is killed, that second may be lost.
//
// # What is replayed
//
// A client that resumes a session from its start is sent everything that was stored, in order and with the same ids,
// before the answer. It may already have some of it: before the first chunk of a message is replayed, an update empties
// the message. Tool calls and compactions that have not ended are shown as failed, and terminals as exited, because
// nothing ends them any more.
//
// # A session that is open
//
// Resuming a session that is open on the same connection closes it first, and opens it with the parameters of the
// request. While a prompt runs or waits, the request is refused instead, because a growing history cannot be replayed.
// While a session is being opened, closed or deleted, all other requests about it are refused. A session that another
// connection or another process has open may be resumed: each then knows only its own updates, and the store has both.
package agentkit
