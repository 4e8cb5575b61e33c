// Package agentkit provides what most agents need: sessions with state of the author's own type, which are stored,
// listed and loaded; turns that wait for one another, or take further prompts while they run; tool calls as values; and
// streams of text. It does not talk to a model, does not run tools, and does not ask for permission on its own. Package
// workspace has the files and commands of a session, and package github.com/acpgo/sdk/contrib/mcpacp the tools of its
// MCP servers and those of the agent's own. Agents are written in version 1 of the protocol, package acp, and serve
// clients of version 2 too (see [Sessions.Serve]). Of the experimental features this package supports session/fork (see
// [Config].Fork), subagents (see [Turn.Subagent]) and system prompts (see [Opening]); the others are left to the agent.
//
// [Sessions] is the starting point, and [Sessions.Serve] serves a client:
//
//	sessions := agentkit.NewSessions(agentkit.Config[state]{Store: store, Open: open, Prompt: prompt})
//	err := sessions.Serve(ctx, acp.Stdio(), nil)
//
// # What is stored
//
// Prompts and updates sent with [Session.Update] are stored if a client must see them again when it loads the session:
// messages and thoughts, with their chunks joined, tool calls with their updates, plans, compactions, and updates that
// this package does not know. The title and the current mode are stored as such. Notices and usage are not stored
// because they are about the moment; neither are commands and config options, which [Config].Open provides each time,
// nor questions to the user. A turn that ends with the stop reason refusal is left out, with its prompts, when the
// session is loaded. A prompt is stored when its turn begins. Chunks are stored when another kind of update follows,
// when the turn ends, and at the latest a second after the first of them was sent; if the process is killed, that
// second of text may be lost.
//
// A tool call is stored when it begins, and its updates are joined into one, because each may repeat the previous
// content. The joined update is stored when the call ends and when the turn ends; before that, it is stored a second
// after the first update and then at intervals that double. If the process is killed, later updates of a call may be
// lost: at most those of the last part of its running time: half of it, plus half a second. A client that loads such a
// session sees the call as failed.
//
// # Tool calls and texts
//
// [ToolCall] is a tool call that tracks what the client knows about it, and [Text] is an io.Writer whose text is sent
// as one message. The tool calls and texts of a turn are closed at its end, calls as failed, and are sent in the order
// in which the turn produced them. Both also work for agents without Sessions: see [StartToolCall], [NewMessage] and
// [HandlePrompt].
//
// # A session that is open
//
// Loading or resuming a session that is open on the same connection closes it first, and opens it with the directories
// and MCP servers of the request. While a prompt runs or waits, the request is refused instead, because a growing
// history cannot be replayed. If opening then fails, the session stays closed. While a session is being opened, closed
// or deleted, all other requests about it are refused, until all of its handlers and Config.Close have returned, even
// if the request that closes it is cancelled in the meantime. Deleting an open session cancels its turn, closes it and
// deletes it. A session that another connection or another process has open may be loaded: each then knows only its own
// updates, and the store has both.
//
// # A prompt while one runs
//
// [WhileBusy] selects what happens. In every mode, session/cancel applies to everything that the session does, because
// it names only the session: the running prompt and those that wait are all answered with the stop reason cancelled,
// and those that wait are never started. $/cancel_request names one request: a waiting prompt is removed from the queue
// and answered with the code -32800, and nothing else changes.
package agentkit
