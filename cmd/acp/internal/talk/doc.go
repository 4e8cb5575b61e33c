// Package talk is a client of one agent without a user interface: what the commands for scripts and for people share.
//
// Open starts the agent or connects to it. A Client opens sessions; a Session sends prompts and keeps its conversation
// in a view.State. The agent's questions are passed to functions of Options: permission requests that no rule decides,
// forms, URLs. Other events, such as a lost connection, are reported as an Event.
//
//	client, err := talk.Open(ctx, &talk.Options{Agent: agent, Cwd: dir, Ask: ask})
//	session, err := client.NewSession(ctx, nil)
//	res, err := session.Prompt(ctx, acp.TextBlock("fix the bug"))
//
// Text of the agent is passed on unchanged; code that shows it in a terminal has to make it harmless first.
package talk
