// Package interop runs this module against the official TypeScript SDK, as separate processes and
// with every message validated: a TypeScript client with the example agent, and this module's client
// with a TypeScript agent. It has tests only; they need node and npm.
package interop
