// Package reconnect keeps a client's sessions alive when connections are lost, and restarts agents that end. It does
// not resend interrupted calls, except prompts with [Options].RetryPrompts, and does not store the conversation, which
// the agent does. It does not restore modes and options that the agent has forgotten, but reports them. It does not
// diagnose why an agent does not start; launch.Doctor does.
//
// A [Client] connects to an agent over a transport that can be recreated: a URL, or a command. When the connection is
// lost, because a network changed, a laptop slept, or the agent's process died, it reconnects, with increasing waits
// between tries, and restores the sessions: with session/resume if the agent supports it, and otherwise with
// session/load. MCP servers of the client's own, with a new address on each connection, are in [Options].Servers.
//
//	client, err := reconnect.Connect(ctx, func(context.Context) (acp.Transport, error) {
//		return acp.Command(exec.Command("my-agent")), nil
//	}, handlers, nil, &reconnect.Options{Notify: show})
//	session, err := client.NewSession(ctx, &acp.NewSessionRequest{Cwd: dir})
//	res, err := session.Prompt(ctx, acp.TextBlock("fix the bug"))
//
// An agent may have done half of a prompt that was interrupted. The call fails with an [InterruptedError], and the user
// decides what to do. With RetryPrompts it returns the outcome instead, if the agent can say it.
//
// Events report losses: calls that were interrupted, sessions that could not be restored, and modes and options that
// have changed. An agent that repeatedly ends soon after it starts is given up after some time ([Options]). A session
// during whose restoring the connection ends three times in a row, perhaps because it makes the agent end, is given up,
// so that the others can continue.
package reconnect
