// Package local lets a client serve an agent from this machine: files under chosen directories, and
// commands as terminals. It implements the client's side of fs/* and terminal/*, for clients that use
// package acp and for those that use acp/unstable.
//
// [Serve] is the short form: it gives all sessions the same directories. For more, [OpenRoots] says what
// sessions may reach, [NewFiles] and [NewTerminals] serve it, and their Register methods put them into the
// handlers of a client; [RegisterFiles] and [RegisterTerminals] take the handlers of acp/unstable as well.
//
// # Sessions and connections
//
// [Roots.SetSession] gives a session its own directories. When a session is closed, [Terminals.CloseSession]
// ends what it still runs and [Roots.RemoveSession] forgets its directories; when its connection ends, both
// happen by themselves. One Roots, one Files and one Terminals may serve several connections: what belongs to
// a session of one is out of reach for the others, also where agents choose the same session ids.
//
// # What is safe and what is not
//
// Files never leave the directories of [Roots]: a path outside them, and a symbolic link that leads
// out, is refused without being followed. Terminals are no sandbox. A command starts inside the
// directories and then does whatever the user running the client may do; a client that wants to ask
// first wraps the CreateTerminal handler.
//
// Whatever an agent sends, memory, processes and waiting are bounded; see [FilesOptions] and
// [TerminalsOptions].
package local
