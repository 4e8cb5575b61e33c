// Package conduct runs chains of proxies: programs between a client and an agent that change what passes. [Run] is the
// conductor, to which the client talks as to an agent. It starts the components, and forwards all messages between
// neighbors; the components do not know each other.
//
//	client ⇄ conductor ⇄ client
//	             ⇅
//	   proxy:0, proxy:1, …, agent
//
// A proxy exchanges ordinary messages with its predecessor. What it exchanges with its successor is in the parameters
// of the method proxy/successor, which the conductor unwraps and wraps. A component that receives proxy/initialize is a
// proxy; the one that receives initialize is the agent. A chain without an agent is itself a proxy: its client is
// another conductor, which forwards what the last proxy sends to its successor. So chains nest.
//
// Both methods are a draft of the protocol: any release may change this package.
//
// # Rules
//
//  1. The components start when the client sends its first initialize, all at once. Later ones pass like any other
//     message, but a component that has not answered one gets no other.
//  2. One lock guards all forwarding, and each connection has one queue. Messages that take the same way stay in order:
//     updates arrive before the answer to their prompt over any number of hops.
//  3. Each hop has its own request ids. Nothing else is changed: parameters, results and errors stay the same bytes,
//     with their unknown members. Each hop has its own envelope of proxy/successor, whose _meta is not passed on; the
//     _meta of the message inside is.
//  4. $/cancel_request applies to one hop. It is not forwarded: the conductor cancels its own request at the next hop.
//  5. Messages of all versions of the protocol pass, including those that this library does not know. The conductor
//     checks only that a proxy which answers proxy/initialize has initialized its successor, and has not changed the
//     protocolVersion.
//  6. Malformed messages are not forwarded. The sender gets the error that JSON-RPC prescribes; if the message was an
//     answer, its request fails with an error that names the component. Text on a component's standard output that is
//     not a message is logged and dropped, as are answers that match no request. The log gets at most 100 warnings
//     about what one component sends.
//  7. When the queue of a connection reaches 1 MiB, the components that send to it are not read until there is room.
//     The exception is a component whose own queue has reached 1 MiB, because it may not read before its output is
//     read: it is read until the other queue reaches 16 MiB. So no two components wait for each other. If a component
//     stays at that limit for a minute, the chain ends, with an error that names the one that does not read. A queue
//     exceeds its limit by at most one message from each sender. At most 10,000 requests to a component are in flight,
//     with ids of at most 1 KiB.
//  8. When the client ends its input, its requests in flight are still answered, for a bounded time. The end is read
//     after all that the client has sent: not while a component reads nothing and its queue is full. When a component
//     ends, the chain ends: the client's requests in flight fail with an error that names the component, its exit
//     status and the end of its standard error. However the chain ends, Run closes all components and waits for them.
package conduct
