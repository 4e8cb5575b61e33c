// Package natsacp runs the sessions of agents on many machines, on NATS with JetStream. A [Node] runs agents, a
// [Gateway] is the http.Handler that clients connect to, and [OpenStore] opens a session store that all nodes share.
// The command acp-fleet, in cmd/acp-fleet, is made of them. For use, guarantees and limits, see docs/fleet.md.
//
//	fleet, err := natsacp.Open(ctx, nc, nil)
//	node, err := fleet.StartNode(ctx, func(string) rpc.Transport { return rpc.Command(exec.Command("agent")) }, nil)
//	gateway, err := fleet.StartGateway(ctx, nil)
//	http.Handle(remote.DefaultPath, gateway)
//
// # Links
//
// The unit is the session: each has an agent of its own, a process for example, so that it can move, or be stopped,
// alone. A link joins one client with one such agent. The client's first initialize starts an agent, whose link the
// first session takes over; for each further session the gateway opens a link and sends the initialize again. Messages
// stay as they are but for their ids: the node numbers the requests of clients, and gives the requests of its agent ids
// that name the link, which are unique among a client's sessions and the same for each client that attaches later.
//
// # Log
//
// What an agent sends goes into the subject of its link in a JetStream stream, one batch at a time: order needs no
// further care. The server publishes each message again when it is stored, and the gateway receives it from there,
// without a consumer. Numbers show what a gateway has missed, and it reads that from the stream. A node counts the
// bytes that the client has taken, and does not read its agent while the client is more than a window behind.
//
// What a client sends is a request of NATS, which the node answers when it has room. Cancellations are requests of
// their own.
//
// # Ownership
//
// The record of a session names the node, the link and an epoch. A node takes a session by compare-and-set, and then
// writes a fence into the log of the previous link. Each frame of a log is stored only if nothing but the frame before
// it came first, so a node that was believed dead cannot say anything more, whatever it does. It also cannot begin a
// prompt: a prompt is recorded, by compare-and-set, before the agent gets it. A node whose lease has ended ends its
// agents.
//
// A gateway is stateless. When a link ends, it answers the requests that the agent may have had with
// an error, and the next message of the session opens another link, with session/resume or session/load. Requests that
// no agent has had go there too.
//
// A client over HTTP has cursors that name a place in the log. If it resumes the session on another connection, at any
// gateway, it first gets what follows that place.
package natsacp
