// Package remote carries connections of the Agent Client Protocol over the network, by WebSocket and by streamable
// HTTP, both sides of each.
//
// [Dial] makes an [rpc.Transport] of a URL, for clients. [Handler] makes an [http.Handler], for agents: each
// connection that a client opens is given to a function of yours, which serves it as it would serve any other
// Transport.
//
//	server := remote.Handler(func(ctx context.Context, t rpc.Transport, peer *remote.Peer) error {
//		return acp.ServeAgent(ctx, t, newAgent(peer.Principal).handlers(), nil)
//	}, nil)
//	mux.Handle(remote.DefaultPath, server)
//
// What package rpc says of connections holds here too: messages keep their order, nothing is dropped without being
// reported, and a side that does not read holds the other up.
//
// # WebSocket
//
// One text frame is one message. The socket is the connection: when it is lost, the connection is.
//
// # Streamable HTTP
//
// A client sends each message by a POST, and reads what the agent sends from GETs that are answered with server-sent
// events: one stream for the connection, and one for each session. What the agent sends for a stream that nobody
// reads is kept until somebody does. A connection outlives the loss of its streams; it ends by a DELETE, or when for
// some time there was neither a stream nor a POST.
package remote
