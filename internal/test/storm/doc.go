// Package storm tests what connections do when a peer misbehaves: it floods, is slow, reads nothing, breaks off, or is
// killed. The tests are a matrix: the agent or the client of package actor, over a pipe, as a process, or over
// WebSocket, HTTP/1.1 or HTTP/2, in every storm. After each, memory must have been bounded, every request must have been
// answered once, the next turn must be an ordinary one, and nothing may be left. Storms that send what is not a message
// come over pipes and to processes only.
package storm
