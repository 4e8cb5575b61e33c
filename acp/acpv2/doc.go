// Package acpv2 is the Agent Client Protocol, version 2, which is in Preview. Its module has versions below v1 until
// the protocol is stable, and changes as the protocol does. It is released together with the module
// github.com/acpgo/sdk, and works only with the version of that module that it requires.
//
// It is used like package acp, and most names are the same. The differences are those of the protocol:
//
// # Turns
//
// The answer to a prompt only reports that the user's message has become part of the conversation, and its id there.
// Work is reported by states of the session: running, requires_action while it waits for the user, and idle, with the
// reason why it stopped.
//
// An agent's handler of prompts decides whether to accept the prompt, and passes the work to [AgentSession.StartTurn];
// the runtime answers, reports the states, and handles cancellation. [AgentSession.RunTurn] is for work that no prompt
// has asked for. At a lower level, a handler may answer as it likes and send the states itself. Prompts that arrive
// while a session is working are held until the work is done or, with AgentOptions.Steer, accepted at once.
//
// A client's [ClientSession.Prompt] and [ClientSession.Stream] last until the session is idle again.
// [ClientConn.Prompt] only waits for the answer. Updates may arrive at any time, even while a session is idle, so a
// client should have the handler SessionUpdate.
//
// # Updates
//
// Messages, tool calls, terminals and plans are updated by their ids. A member that an update leaves out stays as it
// is, and a member that is null is cleared: such members are of type [Opt], with [Some], [Null] and the zero value.
//
// # Less than package acp
//
// Package acp has more conveniences: typed forms (acp.Ask; here [AgentSession.ElicitForm]), and methods of a session
// for session/set_title, archive, unarchive, status and fork (here those of [ClientConn]). A program that wants them,
// or package agentkit, is written in version 1, and package acp/translate connects it to peers of version 2.
//
// # What is checked
//
// As in package acp, calls and results of handlers are checked before they are sent: empty ids, paths that are not
// absolute, lines that are 0, permission options and config options with the same id, config options and values that
// the session does not have, and values that cannot be encoded are refused. Before initialize has been answered,
// nothing else is served or sent.
//
// # Capabilities
//
// A session needs the handlers NewSession, ListSessions, ResumeSession, CloseSession and Prompt together. Clients do
// not serve files or terminals to agents; an agent shows the output of its own terminals with updates.
package acpv2
