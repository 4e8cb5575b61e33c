// Package sessionstore keeps the sessions of an agent: what each said and was told, so that an agent can list them, load
// one with its conversation, and resume one in another process. It does not decide what belongs to a conversation and
// sends nothing; packages agentkit and v2draft/agentkit do. It does not keep two processes from working on the same session, but they do not
// damage each other's work. It does not encrypt what it keeps.
//
// [Store] is the interface, for version 1 of the protocol, and [StoreOf] for any version. [Open] and [OpenOf] return the
// implementation that needs nothing but a folder, and [DefaultDir] names the folder that fits the system. Stores of several
// versions may share a folder, and none finds the sessions of another. Package storetest has the tests that any implementation must pass.
package sessionstore
