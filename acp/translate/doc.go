// Package translate lets a program that is written in one version of the Agent Client Protocol talk to peers of
// versions 1 and 2. It translates messages on the wire, so that the program and everything between it and its transport
// stay as they are:
//
//	err := acp.ServeAgent(ctx, translate.Agent(acp.Stdio()), handlers, options)     // clients of both versions
//	conn, err := acp.Connect(ctx, translate.Client(acp.Command(cmd)), handlers, nil) // agents of both versions
//
// [Transport] does the same for programs that are written in version 2, and takes [Options]. Where both sides speak the
// program's version, which initialize decides, all further messages pass byte for byte, without being read.
//
// A client asks for version 2 first, with the members of both versions in initialize. An agent that is written in
// version 1 takes these as the sign that it may answer in version 1, so that two programs of this package do not
// translate twice. A client asks again for version 1 if the agent refuses version 2 with an error that may be about the
// version. An agent that chooses version 2 with an answer of version 1 is spoken to in version 1. For an agent that
// ends instead of answering there is [Options].Again.
//
// # On the wire
//
// The translation works on the members of JSON objects. What no schema defines passes as it is: unknown members and
// updates, _meta, methods of extensions. docs/reference/translate.md has a table of everything that differs between the
// schemas, with what becomes of it; what has no form in the other version is named there, too.
//
// A layer that reads messages, such as a recorder, a judge or a log, belongs between the translation and the peer,
// where it sees what was spoken: translate.Agent(tap(transport)). Layers that change messages of version 1 belong on
// the other side.
//
// # Turns
//
// An agent of version 1 answers a prompt when its turn is over. In version 2 the answer says that the message is in the
// conversation, and an update reports the end of the turn. For an agent of version 1 the translation therefore answers
// at the agent's first message of the turn, or after half a second, so that a refusal before that is the prompt's
// error. Prompts that arrive during a turn wait, and each is answered when it begins. For an agent of version 2 the
// answer waits until the agent becomes idle again after it has worked on the prompt. A turn of an agent of version 1
// that fails later ends with the stop reason error.
//
// # State
//
// [State] is the translation as a function of messages, without goroutines or timers, for programs that move messages
// themselves. What it remembers is bounded, whatever the peers send; a peer that exceeds a bound gets an error, or
// worse translations.
//
// Version 2 is in preview, and this package follows it: it has no promise of compatibility.
package translate
