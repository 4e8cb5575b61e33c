// Package acp is the Agent Client Protocol, version 1: what authors of coding agents and of their
// clients (editors, terminals, bots) import.
//
// An agent is a set of handlers that [ServeAgent] serves over a transport, usually [Stdio]; a client
// connects to one with [Connect], usually over [Command], which starts it. Handlers are structs of
// functions, [AgentHandlers] and [ClientHandlers]. A nil handler is not served; which handlers are set decides
// which capabilities are advertised.
//
// Names that begin with Agent are for authors of agents, names that begin with Client for authors of clients:
//
//	            the connection: calls of every method    one session of it
//	an agent    AgentConn                                AgentSession: updates, permissions, files, terminals
//	a client    ClientConn                               ClientSession: prompts, modes, config options
//
// A handler whose parameters name a session is given that session, any other the connection. Who made the
// connection also ends it.
//
// # Turns
//
// There are two ways to run a turn from a client. [ClientSession.Prompt] blocks, and the updates go to the
// client's handler SessionUpdate: for clients that show the updates of all sessions in one place.
// [ClientSession.Stream] returns a [Turn] whose updates are read in a loop: for programs that do one thing after
// another.
//
// There are two ways to cancel one, which do the same: end the context of Prompt or Stream, or call
// [ClientSession.Cancel] or [Turn.Cancel]. session/cancel is sent, open permission requests are answered as
// cancelled, later updates are still accepted, and the agent's answer is waited for. The turn returns that answer,
// usually with [StopReasonCancelled]. If there is none within [ConnOptions].CancelGrace, it returns the cause of
// the context.
//
// In an agent the context of a Prompt handler ends with the cause [ErrTurnCancelled] when the client cancels the
// turn. Whatever the handler then returns is answered with [StopReasonCancelled]; see [AgentHandlers].
//
// # What is checked
//
// What this side sends is valid by the protocol's schema, as far as the schema tells types, required members and
// bounds; values of Meta and other raw JSON are only checked to be JSON. Beyond the schema these are checked, in
// calls, updates and results of handlers: ids are not empty; paths are absolute (working directories, files,
// diffs, locations, commands of MCP servers); lines count from 1; permission options, and config options, have
// different ids; boolean config options go only to clients that know them; a mode, a config option and its value, and
// the chosen permission option are among those that were offered. The values of these enums are values of the protocol:
// the kind and the status of a tool call, the priority and the status of a plan's entry, the kind of a permission option,
// the roles in the annotations of content, the type and the formats of a form, and the stop reason. A value that none of
// them lists is refused unless this process has read it: what a newer peer has said can be passed on.
//
// A call that fails such a check is not sent: its error matches [ErrInvalidParams] and names the member. A result
// of a handler that fails one is answered with an internal error that names the member, and the owner gets a
// warning, through [ConnOptions].Logger; so does the owner of an agent whose session offers modes or config options that
// no handler sets. A nil request is an empty one. Calls that the peer did not advertise
// fail with [ErrUnsupported], unsent. What cannot be encoded, such as a union without a variant, is not sent
// either: the error is a [codec.Error], which names the member.
//
// What the peer sends is read as leniently as the schema says, and refused with [ErrInvalidParams] where it does
// not fit, where a path is not absolute, where a line is 0, or where it needs what this side did not advertise: a
// type of MCP servers, a method to authenticate, a mode of elicitation. A command of an MCP server that is not an
// absolute path is reported to Hooks.Repair and kept.
//
// Not checked is what only the program knows: whether a session exists, whether a tool call was started before it
// is updated, whether a file is within the session's directories. Content of prompts, and additional directories, that
// an agent did not advertise reach its handlers. Calls by the raw connection, of [AgentConn.RPC]
// and [ClientConn.RPC], are not checked at all.
//
// Initialize comes first: until it has been answered, neither side sends anything else, and neither serves
// anything else. Calls fail with [ErrInvalidRequest], unsent; requests are refused with it; notifications,
// session/cancel among them, are dropped and reported to Hooks.Invalid.
//
// # Values
//
// Types are generated from the protocol's schema. A member that may be absent or null is an [Opt]: [Some] and
// [Null] make one, its methods Get, Value and Or read it ("go doc acp/codec.Opt" has them all). The values of an enum are constants whose names begin
// with its type; "go doc acp.ToolKindRead" lists all of a ToolKind. A union is a struct with the field Variant, an
// interface that its variants implement, to be told apart by a type switch; what a newer peer sent is the Unknown
// variant, byte for byte. Values are encoded strictly and decoded as leniently as the schema says; what was
// repaired is reported to [Hooks].
//
// Constructors come in two kinds. What is written all the time has a short one, named after what it makes,
// without New, which takes what is required as plain arguments: [TextBlock] and other blocks, [AgentMessageText],
// [StartToolCall], [UpdateToolCall] and other updates, [ToolText], [ToolDiff] and other content of tool calls,
// [AllowOnce] and other permission options, [SelectOption] and other config options. For every other variant
// there is one whose name begins with New, the union and the variant, which takes the variant's payload:
// [NewMCPServerStdio].
//
// # Errors
//
// When a peer answers a call with an error, the call returns it as an [*Error] in a [*CallError]; errors.Is matches
// it with constants such as [ErrAuthRequired]. When a handler returns an *Error, one of these constants or an error
// wrapped by [Public], the peer gets it. Of any other error the peer gets an internal error without text, and the
// text is logged. When the connection has ended, errors match [ErrClosed] and say why.
package acp

//go:generate go run ../cmd/acpgen
