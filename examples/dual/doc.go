// Package dual has an agent and a client that speak version 1 and version 2 of the protocol: each has two thin layers
// over code that is the same for both versions, and package negotiate decides which layer gets a connection.
package dual
