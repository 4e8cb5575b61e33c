// Package local lets a client serve files and terminals to an agent from this machine: files in chosen directories, and
// commands as terminals. It implements the client's side of fs/* and terminal/*. Package acp/agentkit/workspace uses it
// for agents whose client has neither.
//
// The simplest way to use it is [Serve], which gives all sessions the same directories. For options, use [OpenRoots],
// which defines what sessions can reach, and [NewFiles] and [NewTerminals], which serve it. Their Register methods set
// the handlers of a client.
//
// # Sessions and connections
//
// [Roots.SetSession] gives a session its own directories. When a session is closed, [Terminals.CloseSession] ends the
// session's commands and [Roots.RemoveSession] forgets its directories; when the connection ends, both happen
// automatically. One Roots, one Files and one Terminals may serve several connections. The sessions of one connection
// cannot reach files or terminals of the sessions of another, even if the agents choose the same session ids.
//
// # What is safe and what is not
//
// Only files inside the directories of [Roots] are read and written: paths outside them, and symbolic links that lead
// out, are refused without being followed. A hard link is treated like any other file, even if the file also has a name
// elsewhere. Terminals are not a sandbox: a command starts inside the directories, and may then do whatever the user of
// the client may do; [Terminals] describes which of its processes are ended. An [Approval] decides about each write and
// each command: everything is permitted for agents that could do it anyway, and the user is asked about the others.
//
// Memory, processes, the bytes read for a request, and waiting times are bounded, whatever an agent sends; see
// [FilesOptions] and [TerminalsOptions].
package local
