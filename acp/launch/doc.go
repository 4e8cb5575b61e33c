// Package launch describes how an agent's program is started, and finds out why it does not start.
//
// It installs nothing (package registry does), keeps nothing running (package reconnect does), and does not confine the
// program: an agent runs as the user, with the environment that it is given.
//
//   - [Command] is a program with arguments, variables and a directory, as a value that can be stored. [Command.Cmd]
//     makes the exec.Cmd of one start, for acp.Command.
//   - [TerminalLogins] and [Command.Login] implement the login in a terminal, as the protocol defines it: the agent's
//     own command, with more arguments and variables.
//   - [Doctor] starts an agent, examines its behavior, and says in words what is wrong.
//
// All of it is for version 1 of the protocol.
package launch
