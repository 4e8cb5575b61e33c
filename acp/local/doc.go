// Package local lets a client serve an agent from this machine: files under chosen directories, and commands as
// terminals. It implements the client's side of fs/* and terminal/*.
//
// [Serve] is the short form: it gives all sessions the same directories. For options, use [OpenRoots], which says what
// sessions may reach, and [NewFiles] and [NewTerminals], which serve it. Their Register methods set the handlers of a
// client.
//
// # Sessions and connections
//
// [Roots.SetSession] gives a session its own directories. When a session is closed, [Terminals.CloseSession] ends the
// session's commands and [Roots.RemoveSession] forgets its directories; when the connection ends, both happen
// automatically. One Roots, one Files and one Terminals may serve several connections. The sessions of one cannot reach
// what belongs to the sessions of another, even if the agents choose the same session ids.
//
// # What is safe and what is not
//
// Only files inside the directories of [Roots] are read and written: a path outside them, and a symbolic link that
// leads out, are refused without being followed. A hard link is a file like any other, even if the file also has a name
// elsewhere. Terminals are not a sandbox: a command starts inside the directories, and may then do whatever the user of
// the client may do; [Terminals] says which processes of it are ended. A client that wants to ask first wraps the
// handler CreateTerminal.
//
// Memory, processes, the bytes that are read for a request, and waiting are bounded, whatever an agent sends; see
// [FilesOptions] and [TerminalsOptions].
package local
