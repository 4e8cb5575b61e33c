// Package v2draft is the Agent Client Protocol, version 2, which is a draft: it changes as the draft does,
// outside any compatibility promise.
//
// It is used as package acp is, and most names are the same. What differs is what differs in the protocol:
//
// # Turns
//
// The answer to a prompt only says that the user's message has become a part of the conversation, and
// which id it has there. Work is reported by states of the session: running, requires_action while it waits
// for the user, and idle, with the reason why it stopped.
//
// An agent's handler of prompts decides whether it takes the prompt, and gives the work to
// [AgentSession.StartTurn]; the runtime answers, reports the states, and sees to cancellation.
// [AgentSession.RunTurn] is for work that no prompt has asked for. Below that, a handler may answer as it
// likes and send the states itself. Prompts that come while a session works are held until that is done,
// or, with AgentOptions.Steer, taken at once.
//
// A client's [ClientSession.Prompt] and [ClientSession.Stream] last until the session is idle again.
// [ClientConn.Prompt] only waits for the answer. Updates may come at any time, also while a session is
// idle, so a client should have the handler SessionUpdate.
//
// # Updates
//
// Messages, tool calls, terminals and plans are updated by their ids. A member that an update leaves out
// stays as it is, one that is null is cleared: such members are an [Opt], with [Some], [Null] and the zero
// value.
//
// # What is checked
//
// As in package acp, calls and results of handlers are checked before they are sent: ids that are empty, paths that
// are not absolute, lines that are 0, permission options and config options of the same id, config options and
// values that the session does not have, values that cannot be encoded. Nothing but initialize is served or sent
// before it was answered.
//
// # Capabilities
//
// A session needs the handlers NewSession, ListSessions, ResumeSession, CloseSession and Prompt together.
// Clients have neither files nor terminals for agents; an agent shows the output of its own terminals by
// updates.
package v2draft

//go:generate go run ../../cmd/acpgen
