// Package sessionstore keeps the sessions of an agent: what each said and was told, so that an agent can list them, load
// one with its conversation, and resume one in another process. It does not decide what belongs to a conversation and
// sends nothing; package agentkit does. It does not keep two processes from working on the same session, but they do not
// damage each other's work. It does not encrypt what it keeps.
//
// [Store] is the interface for version 1 of the protocol, and [StoreOf] that for the updates of any version: they may share
// a folder, and none finds the sessions of another. [Open] returns the implementation that needs nothing but a folder, and [DefaultDir] names
// the folder that fits the system. Package storetest has the tests that any implementation must pass.
package sessionstore
