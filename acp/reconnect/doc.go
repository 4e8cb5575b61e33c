// Package reconnect keeps a client's sessions alive over lost connections.
//
// A [Client] connects to an agent by a transport that can be made again: a URL, or a command. When the connection is
// lost, because a network changed, a laptop slept, or the agent's process died, it connects again, after waits that
// grow, and brings the sessions back: by session/resume if the agent has it, else by session/load.
//
//	client, err := reconnect.Connect(ctx, func(context.Context) (acp.Transport, error) {
//		return acp.Command(exec.Command("my-agent")), nil
//	}, handlers, nil, &reconnect.Policy{Notify: show})
//	session, err := client.NewSession(ctx, &acp.NewSessionRequest{Cwd: dir})
//	res, err := session.Prompt(ctx, acp.TextBlock("fix the bug"))
//
// Nothing that was interrupted is sent again: an agent may have done half of a prompt. The call fails, with an
// [InterruptedError], and the user decides.
package reconnect
