// Package gateway passes messages between a network connection and standard input and output: it gives a URL to an
// agent that is a command, and makes a command of an agent at a URL.
package gateway
