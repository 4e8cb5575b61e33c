// Package gateway passes messages between a connection over the network and standard input and output: an agent that is a
// command becomes one that has a URL, and an agent at a URL becomes a command.
package gateway
