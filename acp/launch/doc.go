// Package launch describes how to start an agent's program, and diagnoses why one does not start.
//
// It does not install anything (see package registry), does not keep anything running (see package reconnect), and does
// not sandbox the program: an agent runs as the user, with the environment that it is given.
//
//   - [Command] is a program with arguments, variables and a directory, as a value that can be stored. [Command.Cmd]
//     returns the exec.Cmd for one start, for acp.Command.
//   - [Login] lets the user choose how to log in. [TerminalLogins] and [Command.Login] implement the login in a
//     terminal, as the protocol defines it: the agent's own command, with more arguments and variables.
//   - [Doctor] starts an agent, examines its behavior, and describes the problems that it finds.
//
// The whole package is for version 1 of the protocol.
package launch
