// Package agents finds the agent for a word: the name of one of the user's own agents, the id of an agent in the
// registry or the beginning of it, or a URL.
//
// It fetches and runs nothing without the user's consent, and needs no network for agents that are already installed.
package agents
