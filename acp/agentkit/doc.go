// Package agentkit has what authors of agents otherwise write again and again: sessions with a state of the author's own
// type, which are stored, listed and loaded; turns that wait for one another, or take in what the user says meanwhile;
// tool calls as values; and streams of text. It does not talk to a model, does not run tools, does not ask for
// permission by itself, and does not start MCP servers. It is for version 1 of the protocol, package acp, and serves
// session/fork of package acp/unstable; the other methods of that package are left to the agent.
// For version 2, see package github.com/acpgo/sdk/acp/v2draft/agentkit.
//
// [Sessions] is the beginning. Its [Sessions.Handlers] serve an agent:
//
//	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: store, Open: open, Prompt: prompt})
//	defer sessions.Close()
//	err := acp.ServeAgent(ctx, acp.Stdio(), sessions.Handlers(), sessions.Options(nil))
//
// # What is stored
//
// Of what goes through [Session.Update], and of the prompts, that is stored which a client must see again when it loads
// the session: messages and thoughts, with their chunks joined, tool calls with their updates, plans, compactions, and
// what this package does not know. The title and the current mode are stored as such. Not stored are notices and usage,
// which are about the moment, commands and config options, which [Config].Open gives anew, and questions to the user. A
// turn that ends with the stop reason refusal is left out when the session is loaded, with its prompts. A prompt is stored when its turn begins. Chunks reach the store when another kind of update follows, when the turn ends,
// and at the latest a second after the first of them was sent: if the process is killed, that second of text may be lost.
//
// A tool call is stored when it begins, and its updates are joined into one, because each may repeat what came before. It
// reaches the store when the call ends and when the turn ends; before that a second after the first update, and then at
// intervals that double. If the process is killed, what a call has said since then may be lost: at most that of the last
// half of the time for which it ran, and of a second. A client that loads such a session is told that the call has failed.
//
// # Tool calls and texts
//
// [ToolCall] is a tool call that knows what the client knows of it, and [Text] is an io.Writer whose text is sent as one
// message. Those of a turn are closed at its end, calls as failed, and keep the order in which the turn has said things.
// Both also serve agents without Sessions: see [StartToolCall], [NewMessage] and [HandlePrompt].
//
// # A session that is open
//
// Loading or resuming a session that is open on the same connection closes it first, and opens it with what the request
// says: the client has named its directories and MCP servers anew. While a prompt runs or waits, it is refused instead,
// because a history that grows cannot be replayed. If it then fails, the session is closed. While a session is being
// opened, closed or deleted, all other requests about it are refused, until all of its handlers and Config.Close have
// returned; also when the request that closes it is taken back meanwhile. Deleting an open session cancels its turn, closes
// it and deletes it. A session that another connection or another process has open may be loaded: each then knows what it
// says itself, and the store has both.
//
// # A prompt while one runs
//
// [WhileBusy] says what happens. Whatever it is, session/cancel is about all that the session does, because it names
// nothing else: the prompt that runs and those that wait are all answered with the stop reason cancelled, and none of
// those that wait is begun. $/cancel_request names one request: a prompt that waits is taken out of the line and
// answered with the code -32800, and nothing else changes.
package agentkit
