// Package acp is the Agent Client Protocol, version 1: what authors of coding agents and of their
// clients (editors, terminals, bots) import.
//
// An agent is a set of handlers that [ServeAgent] serves over a transport, usually [Stdio]; a client
// connects to one with [Connect], usually over [Command], which starts it. Handlers are structs of
// functions, [AgentHandlers] and [ClientHandlers]: one that is nil is not there, and which are set says
// which capabilities are advertised.
//
// What an agent's author holds begins with Agent, what a client's author holds with Client:
//
//	            the connection: calls of every method    one session of it
//	an agent    AgentConn                                AgentSession: updates, permissions, files, terminals
//	a client    ClientConn                               ClientSession: prompts, modes, config options
//
// A handler whose parameters name a session is given that session, any other the connection. Who made the
// connection also ends it.
//
// [ClientSession.Prompt] blocks and leaves the updates to the client's handler, [ClientSession.Stream]
// yields them. The context of a prompt cancels the turn as the protocol wants it.
//
// # Values
//
// Types are generated from the protocol's schema. A member that may be absent or null is an [Opt]. A
// union is a struct with the field Variant, an interface that its variants implement, to be told apart
// by a type switch; what a newer peer sent is the Unknown variant, byte for byte. Constructors such as
// [TextBlock] keep literals short. Values are encoded strictly and decoded as leniently as the schema
// says; what was repaired is reported to [Hooks].
//
// # Errors
//
// What a peer answered is an [*Error], to be matched with errors.Is and the sentinels of this package.
// An error that a handler returns reaches the peer as an internal error without its text, unless it is
// an [*Error] or wrapped by [Public]. When the connection is over, errors match [ErrClosed] and say why.
package acp

//go:generate go run ../cmd/acpgen
