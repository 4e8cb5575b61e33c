// Package proxy is for programs between a client and an agent: they change, answer, block or watch a few messages, and
// pass on all others as they are.
//
//	hooks := proxy.Hooks{CreateTerminal: func(ctx context.Context, req *acp.CreateTerminalRequest,
//		next func(context.Context, *acp.CreateTerminalRequest) (*acp.CreateTerminalResponse, error),
//	) (*acp.CreateTerminalResponse, error) {
//		log.Printf("run %s %q", req.Command, req.Args)
//		if req.Command == "rm" {
//			return nil, rpc.ErrInvalidParams.WithMessagef("rm is not allowed")
//		}
//		return next(ctx, req)
//	}}
//	err := proxy.Serve(ctx, rpc.Stdio(), rpc.Command(exec.Command("agent")), hooks, nil)
//
// A proxy is not a sandbox: an agent may do what it wants without asking its client.
//
// # What is passed on
//
// Messages without a hook are passed on byte for byte and in order, both ways, whether or not this library understands
// them: unknown methods and members, answers, $/cancel_request, and lines that are not messages. One that is longer
// than the transport accepts is refused: its sender gets an error, or the receiver if it was an answer.
//
// # Hooks
//
// The hook of a request gets the parameters, and next, which sends them on and returns the answer. What the hook
// returns is the answer to the sender. It may call next with other parameters, several times, or not at all. The hook
// of a notification drops it by not calling next. Each hook has its own copy of the parameters and may change it.
//
// Parameters and results that were not changed are sent on with the bytes that were received. If some of their members
// were changed in place, all other members stay as they were, including those that this library does not know. A value
// that the hook made is sent as it is.
//
// An [rpc.Error] that a hook returns is the answer; the text of any other error is not sent, unless [rpc.Public] wraps
// it. The error of next is an rpc.Error too: a hook that returns it passes the other side's error on unchanged.
//
// When the sender cancels the request, the context of the hook ends, and the cancellation is sent on for a next that is
// waiting. That next still returns the answer, usually an error. If a hook ends the context of next itself, next
// cancels the request and returns at once; a late answer is dropped.
//
// The hook does not run for a message that does not fit its types: a request is refused, a notification is passed on.
//
// Hooks send messages of the proxy's own with [Call] and [Notify].
//
// # Order
//
// The messages of one session stay in order in each direction, and so do those without a session. While a hook has a
// message, later ones of the session from the same side wait: until a request has been sent on or answered, or the hook
// of a notification has returned, or makes a Call after next. When next returns an answer, later messages of the side
// that gave it wait until the hook has returned or makes another call. So the hooks of updates, and the updates, are
// before the answer of their prompt, and a hook must not wait for the hook of a later message of its session.
//
// Other sessions, and the other direction, do not wait. While a hook waits for a [Call], requests that the called side
// sends meanwhile are passed on, and answers to these, because it may need them in order to answer.
//
// [Options].MaxHeld bounds the messages that wait. At that limit nothing more is read from their side, and a Call of a
// hook that they wait for fails with [rpc.ErrOverflow].
//
// # Chains
//
// Without an agent of its own, a proxy is a component of a chain that a conductor starts, and reaches its successor
// through the conductor, on the one connection that it has. Nothing else changes for hooks.
//
// Experimental: chains are not part of the stable protocol; any minor release may change them.
package proxy
