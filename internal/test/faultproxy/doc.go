// Package faultproxy is an HTTP proxy that fails by rules, so that tests can show what becomes of a connection when a
// network, or a proxy on the way, cuts, delays, doubles, refuses or holds what it should pass on.
//
// It works on requests, responses and upgraded connections, over HTTP/1.1 and HTTP/2 without TLS, and on the sockets under
// them. Package faultpipe does the same for the bytes of a connection in memory. Here are sockets, so there is no simulated
// time: what waits, waits for an event that the test decides.
package faultproxy
