// Package dual holds an agent and a client that speak version 1 and version 2 of the protocol: each is two
// thin layers over what the program does in either version, and package negotiate says which of them a
// connection is for.
package dual
