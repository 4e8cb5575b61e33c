// Package agents makes an agent of one word: the name of one of the user's own agents, the id of an agent of the registry
// or the beginning of it, or a URL.
//
// It fetches and runs nothing that the user has not consented to, and needs no network for what is there already.
package agents
