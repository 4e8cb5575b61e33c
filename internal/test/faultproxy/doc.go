// Package faultproxy is an HTTP proxy that fails according to rules. Tests use it to show what happens to a connection
// when a network, or a proxy on the way, cuts, delays, duplicates, refuses or holds messages.
//
// It works on requests, responses and upgraded connections, over HTTP/1.1 and HTTP/2 without TLS, and on their sockets.
// Package faultpipe does the same for the bytes of a connection in memory. Since this package uses sockets, there is no
// simulated time: delays last until an event that the test controls.
package faultproxy
