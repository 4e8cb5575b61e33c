// Package talk is a client of one agent without a user interface: what the commands for scripts and for people have in
// common.
//
// Open starts the agent, or connects to it. A Client opens sessions; a Session sends prompts, and keeps its conversation
// in a view.State. What the agent asks comes to functions of Options: questions for permission that no rule answers, forms,
// URLs. What happens beside that, such as a lost connection, comes as an Event.
//
//	client, err := talk.Open(ctx, &talk.Options{Agent: agent, Cwd: dir, Ask: ask})
//	session, err := client.NewSession(ctx, nil)
//	res, err := session.Prompt(ctx, acp.TextBlock("fix the bug"))
//
// Text of the agent comes as the agent wrote it; who shows it in a terminal makes it harmless first.
package talk
