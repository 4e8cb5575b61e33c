// Package registry finds, installs and starts agents of the ACP registry.
//
// It is not a sandbox: an installed agent runs as the user. It trusts the registry's information about agents, so it
// asks for consent before anything is fetched or run, and the question shows all of it. It does not trust what is
// fetched: archives are bounded, and cannot write outside their directory. It does not run agents or draw lists, and
// updates only on request.
//
//	agents := &registry.Client{Dir: dir, Consent: ask}
//	list, err := agents.List(ctx)                    // from the cache when there is no network
//	installed, err := agents.Install(ctx, "my-agent", nil)
//	conn, err := acp.Connect(ctx, acp.Command(installed.Command().Cmd()), handlers, nil)
//
// Each agent is kept in its own directory, in the version that was installed: it starts without a network, and is
// replaced only by [Client.Update]. npm packages are installed by npm rather than fetched by npx at each start; the
// command that is started is the same.
//
// The text of entries (names, descriptions) is untrusted: clean it before you print it, as [Plan.String] does.
package registry
