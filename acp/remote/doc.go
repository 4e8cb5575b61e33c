// Package remote carries connections of the Agent Client Protocol over the network, by WebSocket and by streamable
// HTTP, both sides of each.
//
// [Dial] returns an [rpc.Transport] for a URL, for clients. [Handler] returns an [http.Handler], for agents: it passes
// each connection that a client opens to your function, which serves it like any other Transport.
//
//	server := remote.Handler(func(ctx context.Context, t rpc.Transport, peer *remote.Peer) error {
//		return acp.ServeAgent(ctx, t, newAgent(peer.Principal).handlers(), nil)
//	}, nil)
//	mux.Handle(remote.DefaultPath, server)
//
// The rules of package rpc for connections apply here too: messages keep their order, nothing is dropped without being
// reported, and there is backpressure: a side that does not read holds the other up.
//
// # WebSocket
//
// One text frame is one message. The socket is the connection: when it is lost, the connection is.
//
// # Streamable HTTP
//
// A client sends each message with a POST, and reads the agent's messages from GETs that are answered with server-sent
// events: one stream for the connection, and one for each session. Messages for a stream without a reader are kept
// until there is one. A connection outlives the loss of its streams; it ends with a DELETE, or when there was neither a
// stream nor a POST for some time.
package remote
