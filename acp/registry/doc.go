// Package registry finds, installs and starts agents of the ACP registry, and checks entries for their authors.
//
// It confines nothing: an agent that is installed runs as the user. It trusts the registry with what it says of agents,
// so it asks for consent before anything is fetched or run, with all of it in the question; and it does not trust what
// is fetched: archives are bounded, and cannot write outside of their folder. It runs no agent by itself, draws no list,
// and does not update unless it is told to.
//
//	agents := &registry.Client{Dir: dir, Consent: ask}
//	list, err := agents.List(ctx)                    // from the cache when there is no network
//	installed, err := agents.Install(ctx, "my-agent", nil)
//	conn, err := acp.Connect(ctx, acp.Command(installed.Command().Cmd()), handlers, nil)
//
// An agent is kept in a folder of its own in the version that was installed: it starts without a network, and is never
// replaced before [Client.Update] is called. Packages of npm are installed by npm, and not fetched by npx at each start;
// the command that is started is the same.
//
// [Check] checks the folder of an entry as the registry does before it takes it.
//
// What entries say (names, descriptions) is text of others: clean it before you print it, as [Plan.String] does.
package registry
