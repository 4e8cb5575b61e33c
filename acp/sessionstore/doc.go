// Package sessionstore keeps the sessions of an agent with their conversations, so that an agent can list them, load
// one with its conversation, and resume one in another process. It does not decide what belongs to a conversation, and
// sends nothing; package agentkit does both. It does not prevent two processes from working on the
// same session, but they do not damage each other's data. It does not encrypt its data.
//
// [Store] is the interface. [Open] returns the implementation that needs only a directory, and [DefaultDir] returns the
// usual directory of the system. [OpenApp] opens the store there, and one in memory where there is no such directory.
// Package storetest has the tests that any implementation must pass.
package sessionstore
