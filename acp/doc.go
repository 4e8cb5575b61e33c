// Package acp holds the types, peers and handlers of the Agent Client Protocol, version 1.
package acp

//go:generate go run ../cmd/acpgen
