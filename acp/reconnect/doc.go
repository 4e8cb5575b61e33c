// Package reconnect keeps a client's sessions alive over lost connections, and agents running that end. It sends nothing
// again that was interrupted, keeps nothing of what was said (the agent does), does not set modes and options anew that the
// agent has forgotten but says so, and does not explain why an agent does not start: see launch.Doctor for that.
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
// An agent may have done half of a prompt that was interrupted. The call fails, with an [InterruptedError], and the user
// decides.
//
// What is lost is told by events: the calls that were interrupted, sessions that could not be brought back, and modes and
// options that are others than before. An agent that ends again and again soon after its start is given up after a time
// ([Policy]), and a session that ends the agent each time it is restored is given up after three times, so that the
// others go on.
package reconnect
