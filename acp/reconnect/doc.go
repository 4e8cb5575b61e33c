// Package reconnect keeps a client's sessions alive when connections are lost, and restarts agents that end. It does
// not resend interrupted calls, does not keep the conversation (the agent does), and does not restore modes and options
// that the agent has forgotten but reports them. It does not explain why an agent does not start: see launch.Doctor for
// that.
//
// A [Client] connects to an agent over a transport that can be recreated: a URL, or a command. When the connection is
// lost, because a network changed, a laptop slept, or the agent's process died, it connects again, after increasing
// waits, and restores the sessions: with session/resume if the agent supports it, else with session/load.
//
//	client, err := reconnect.Connect(ctx, func(context.Context) (acp.Transport, error) {
//		return acp.Command(exec.Command("my-agent")), nil
//	}, handlers, nil, &reconnect.Options{Notify: show})
//	session, err := client.NewSession(ctx, &acp.NewSessionRequest{Cwd: dir})
//	res, err := session.Prompt(ctx, acp.TextBlock("fix the bug"))
//
// An agent may have done half of a prompt that was interrupted. The call fails, with an [InterruptedError], and the
// user decides.
//
// Events report what is lost: calls that were interrupted, sessions that could not be restored, and modes and options
// that have changed. An agent that repeatedly ends soon after its start is given up after a time ([Options]), and a
// session that ends the agent each time it is restored is given up after three times, so that the others go on.
package reconnect
