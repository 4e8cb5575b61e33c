// Package local lets a client serve an agent from this machine: files under chosen directories, and
// commands as terminals. It implements the client's side of fs/* and terminal/*.
//
// [OpenRoots] says what sessions may reach, [NewFiles] and [NewTerminals] serve it, and their Register
// methods put them into the handlers of a client. A session's own directories are set once it is known,
// with [Roots.SetSession]; when it is closed, [Terminals.CloseSession] ends what it still runs.
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
