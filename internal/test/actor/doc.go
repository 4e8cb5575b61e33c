// Package actor has one scripted agent and one scripted client, for every test that needs "an agent" or "a client": as
// values, and as the program internal/test/actor/actor. Words in a prompt choose what the agent plays, and lines what
// the client does, the same on every run. Neither is meant to be copied: examples/kit-agent and examples/kit-client are.
//
// # The agent
//
// A prompt that begins with "Write a very long" streams text until it is cancelled, for two minutes at most. In any
// other prompt each of these words plays a scene, in this order; with a slash before them they are also commands:
//
//	plan            a plan of the following steps, updated at each step
//	think           thoughts, if the option "thoughts" shows them
//	read PATH       reads a file of the session (notes.txt if no path is named)
//	edit PATH       adds a line to a file (demo.txt if no path is named), after asking
//	run `COMMAND`   runs a command in a terminal of the client, after asking
//	permission      asks for permission regardless of the mode, and does nothing
//	form            asks the user to fill in a form
//	link            asks the user to open a page
//	mode            switches to the other mode
//	notice          sends a notice
//	compact         compacts the conversation
//	mcp             lists the tools of the session's MCP servers
//	fail            a tool call that fails
//
// At the end it repeats the prompt, says what was attached to it, and links what was linked. These words choose how a
// turn ends, which is with end_turn otherwise: max_tokens, max_turn_requests, refuse. In the mode "auto" it does not ask
// before it edits and runs.
//
// # The client
//
// A line is a prompt, an answer to a question, or one of the commands of Commands, such as ":load SESSION".
package actor
