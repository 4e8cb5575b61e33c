// Each file of this package uses only those above it in this list:
//
//	protocol, errors, secrets, sse_reader, websocket   names, errors, what to hide from logs, both formats
//	server_refusal, history, server_options            refusals of the server, stored events, options
//	server                                             the server's connections, of either transport
//	server_websocket                                   a connection over WebSocket
//	server_stream                                      events for one receiver
//	server_inbox, server_outbox, server_link           a connection over HTTP: its halves, and both together
//	server_http, server_routes                         HTTP requests for a connection; who may send them
//	client_options, client_request, client_websocket   options, one HTTP request, a WebSocket
//	client_http                                        what the parts of a client over HTTP share
//	client_events, client_post, client_read            streams of events, POSTs, what the client reads
//	dial                                               a transport for a URL

// Package remote carries connections of the Agent Client Protocol over the network: WebSocket and streamable HTTP, for
// clients and servers.
//
// [Dial] returns an [rpc.Transport] for a URL, for clients. [ServeAgent] returns an [http.Handler] that serves an agent
// on each connection. [Handler] passes each connection to a function, which serves it like any other Transport.
//
//	server := remote.Handler(func(ctx context.Context, t rpc.Transport, peer *remote.Peer) error {
//		return acp.ServeAgent(ctx, t, newAgent(peer.Principal).handlers(), nil)
//	}, nil)
//	mux.Handle(remote.DefaultPath, server)
//
// The rules of package rpc for connections apply here too: messages keep their order, nothing is dropped without being
// reported, and there is backpressure: a side that does not read blocks the other one.
//
// # WebSocket
//
// One text frame is one message. When the WebSocket is lost, so is the connection.
//
// # Streamable HTTP
//
// A client sends each message with a POST, and reads the agent's messages from GETs whose responses are server-sent
// events: one stream for the connection, and one for each session. Messages for a stream without a reader are kept
// until there is one. A connection outlives the loss of its streams; it ends with a DELETE, or after some time without
// a stream or a POST.
package remote
