package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/cmd/acp/internal/agents"
	"github.com/acpgo/sdk/cmd/acp/internal/config"
	"github.com/acpgo/sdk/conformance/report"
	"github.com/acpgo/sdk/internal/plain"
)

// agentsCommand holds what the subcommands of acp agents share.
type agentsCommand struct {
	p    *program
	cfg  *config.Config
	json bool
}

// newAgentsCommand returns the command acp agents.
func newAgentsCommand(p *program) *cobra.Command {
	a := &agentsCommand{p: p}
	c := &cobra.Command{
		Use:        "agents",
		SuggestFor: []string{"list", "search", "install", "update", "remove", "pin", "unpin", "doctor", "login", "logout"},
		Short:      "List, install and examine agents",
		Long: `List, install and examine agents: those in your configuration and those in the ACP registry.

The beginning of a name is enough if only one agent's name begins with it. Nothing is fetched or run before you
have seen what it is and have consented, on the terminal or with --yes. Installed agents start without a network
and stay as they are until you update them.`,
		Example: `  acp agents                     yours, and the installed ones
  acp agents search code         in the registry
  acp agents install gemini
  acp agents doctor gemini       why it does not start
  acp agents doctor -- my-agent --acp`,
	}
	a.listing(c)
	a.cfg = config.Bind(c)
	c.AddCommand(a.listing(&cobra.Command{Use: "list [FLAGS]", Short: "List your agents and those that are installed"}),
		a.searchCommand(), a.showCommand(), a.installCommand(), a.updateCommand(), a.removeCommand(),
		a.pinCommand("pin", "Keep agents at their versions", true), a.pinCommand("unpin", "Let agents be updated again",
			false), a.doctorCommand(),
		a.loginCommand(), a.logoutCommand())
	return c
}

// jsonFlag adds the flag --json.
func (a *agentsCommand) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&a.json, "json", false, "print JSON")
}

// write writes v as indented JSON to standard output.
func (a *agentsCommand) write(v any) error {
	return report.WriteJSON(a.p.stdout, v)
}

// say writes a line to standard error with control characters made harmless.
func (a *agentsCommand) say(format string, args ...any) {
	fmt.Fprintln(a.p.stderr, plain.Sprintf(format, args...))
}

// listed describes an agent in a list.
type listed struct {
	Name   string `json:"name"`
	Source string `json:"source"` // configuration or registry
	// How an agent of the configuration is started: its program and arguments, its URL without the parts that may be
	// secret, or its id in the registry.
	Program  string   `json:"program,omitempty"`
	Args     []string `json:"args,omitempty"`
	URL      string   `json:"url,omitempty"`
	Registry string   `json:"registry,omitempty"`

	// The only version of the protocol that the configuration has for this agent; 0 if the agent chooses.
	Protocol int `json:"protocolVersion,omitempty"`

	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Version     string          `json:"version,omitempty"` // in the registry
	Preview     string          `json:"preview,omitempty"` // its version
	Kinds       []registry.Kind `json:"kinds,omitempty"`
	Installed   *installedJSON  `json:"installed,omitempty"`
}

// installedJSON describes an installed agent.
type installedJSON struct {
	Version  string        `json:"version"`
	Kind     registry.Kind `json:"kind"`
	Time     time.Time     `json:"time"`
	Pinned   bool          `json:"pinned"`
	Preview  bool          `json:"preview"`
	Verified bool          `json:"verified"` // the registry gave a checksum, and it matched
	Folder   string        `json:"folder"`
}

func asInstalled(i *registry.Installed) *installedJSON {
	return &installedJSON{i.Entry.Version, i.Kind, i.Time, i.Pinned, i.Preview, i.Verified, i.Folder()}
}

// ofConfig describes an agent of the configuration.
func (a *agentsCommand) ofConfig(own *config.Agent) listed {
	settings := a.cfg.For(own)
	l := listed{Name: own.Name, Source: "configuration", Registry: own.Registry, URL: harmless(own.URL),
		Protocol: settings.Version()}
	if own.Command != nil {
		l.Program, l.Args = own.Command.Program, own.Command.Args
	}
	return l
}

// harmless returns a URL without the parts that may be secret.
func harmless(text string) string {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// ofRegistry describes an entry of the registry, or an installed agent that is no longer in the registry.
func ofRegistry(e *registry.Entry, installed *registry.Installed) listed {
	l := listed{Name: e.ID, Source: "registry", Title: e.Name, Description: e.Description, Version: e.Version,
		Kinds: e.Kinds(registry.Platform())}
	if e.Preview != nil {
		l.Preview = e.Preview.Version
	}
	if installed != nil {
		l.Installed = asInstalled(installed)
	}
	return l
}

// listing makes c a command that lists agents.
func (a *agentsCommand) listing(c *cobra.Command) *cobra.Command {
	var all bool
	c.Args = cobra.NoArgs
	c.RunE = a.p.until(func(ctx context.Context, _ *cobra.Command, _ []string) error {
		return a.list(ctx, all)
	})
	a.jsonFlag(c)
	c.Flags().BoolVar(&all, "all", false, "list all agents of the registry too")
	return c
}

// list lists agents. It uses the network only if all is set.
func (a *agentsCommand) list(ctx context.Context, all bool) error {
	r := a.p.resolver(a.cfg)
	rows := []listed{}
	for _, name := range slices.Sorted(maps.Keys(a.cfg.File.Agents)) {
		rows = append(rows, a.ofConfig(a.cfg.File.Agents[name]))
	}
	installed, damaged := r.Registry.Installed()
	known := &registry.List{}
	if all {
		list, err := r.Registry.List(ctx)
		if err != nil {
			return err
		}
		known = list
		a.warn(list)
	} else {
		r.Registry.Offline = true
		if list, err := r.Registry.List(ctx); err == nil {
			known = list
		}
	}
	for _, i := range installed {
		e, err := known.Find(i.ID())
		if err != nil {
			e = &i.Entry
		}
		rows = append(rows, ofRegistry(e, i))
	}
	if all {
		for i := range known.Agents {
			e := &known.Agents[i]
			if !slices.ContainsFunc(installed, func(i *registry.Installed) bool { return i.ID() == e.ID }) {
				rows = append(rows, ofRegistry(e, nil))
			}
		}
	}
	if a.json {
		return errors.Join(a.write(rows), damaged)
	}
	if len(rows) == 0 && damaged == nil {
		a.say("no agents yet: search the registry with acp agents search, or add your own with acp config edit")
	}
	return errors.Join(a.table(rows), damaged)
}

// warn reports that the registry's list is old, cannot be stored, or has entries that were skipped.
func (a *agentsCommand) warn(list *registry.List) {
	if list.Stale != nil && !errors.Is(list.Stale, registry.ErrOffline) {
		a.say("acp: the registry's list is %s old: %v", list.Age().Round(time.Minute).String(), list.Stale)
	}
	if list.NotKept != nil {
		a.say("acp: the registry's list cannot be stored: %v", list.NotKept)
	}
	for _, err := range list.Skipped {
		a.say("acp: %v", err)
	}
}

// table prints one agent per line.
func (a *agentsCommand) table(rows []listed) error {
	w := tabwriter.NewWriter(a.p.stdout, 0, 0, 2, ' ', 0)
	for i := range rows {
		l := &rows[i]
		var version, kind, note string
		switch {
		case l.Installed != nil:
			version, kind = l.Installed.Version, string(l.Installed.Kind)
			var notes []string
			if l.Installed.Pinned {
				notes = append(notes, "pinned")
			}
			if l.Installed.Preview {
				notes = append(notes, "a preview")
			}
			if l.Version != version {
				notes = append(notes, "the registry has "+l.Version)
			}
			note = strings.Join(notes, ", ")
		case l.Source == "registry":
			version, kind, note = l.Version, joinKinds(l.Kinds), "not installed"
			if kind == "" {
				note = "not for this system"
			}
		case l.Program != "":
			kind, note = "command", launch.New(l.Program, l.Args...).String()
		case l.URL != "":
			kind, note = "url", l.URL
		default:
			kind, note = "registry", l.Registry
		}
		if l.Protocol != 0 {
			note += fmt.Sprintf(", protocol version %d only", l.Protocol)
		}
		line := plain.Sprintf("%s\t%s\t%s\t%s", l.Name, cmp.Or(version, "-"), cmp.Or(kind, "-"), note)
		fmt.Fprintln(w, strings.TrimRight(line, "\t"))
	}
	return w.Flush()
}

func joinKinds(kinds []registry.Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ",")
}

func (a *agentsCommand) searchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "search [FLAGS] WORD...",
		Short: "Search the registry for agents that match all words",
		Long: "Search the registry for agents whose name, description or authors contain all words. The exit status is 1 " +
			"if there are none.",
		Args: cobra.ArbitraryArgs,
		RunE: a.p.until(func(ctx context.Context, _ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("expected a word; acp agents list --all lists all")
			}
			return a.search(ctx, strings.Join(args, " "))
		}),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.jsonFlag(c)
	return c
}

func (a *agentsCommand) search(ctx context.Context, words string) error {
	r := a.p.resolver(a.cfg)
	list, err := r.Registry.List(ctx)
	if err != nil {
		return err
	}
	a.warn(list)
	rows := []listed{}
	for _, e := range list.Search(words) {
		installed, err := r.Registry.Find(e.ID)
		if err != nil {
			installed = nil // not installed, or damaged, which acp agents list reports
		}
		rows = append(rows, ofRegistry(&e, installed))
	}
	if a.json {
		return a.write(rows)
	}
	for i := range rows {
		l := &rows[i]
		note := ""
		if l.Installed != nil {
			note = ", installed " + l.Installed.Version
		}
		fmt.Fprintln(a.p.stdout, plain.Sprintf("%s  %s (%s%s)", l.Name, l.Version,
			cmp.Or(joinKinds(l.Kinds), "not for this system"), note))
		fmt.Fprintln(a.p.stdout, plain.Sprintf("    %s", l.Description))
	}
	if len(rows) == 0 {
		a.say("nothing found")
		return &exit{statusFindings, nil}
	}
	return nil
}

func (a *agentsCommand) showCommand() *cobra.Command {
	c := &cobra.Command{
		Use:               "show [FLAGS] AGENT",
		Short:             "Show what is known about an agent, and what installing it would fetch and run",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeAgents(true),
		RunE: a.p.until(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return a.show(ctx, args[0])
		}),
	}
	a.jsonFlag(c)
	return c
}

// fact prints one fact about an agent, unless it is not known.
func (a *agentsCommand) fact(name, value string) {
	if value != "" {
		fmt.Fprintln(a.p.stdout, plain.Sprintf("%-12s %s", name+":", value))
	}
}

// show prints what is known about an agent.
func (a *agentsCommand) show(ctx context.Context, name string) error {
	r := a.p.resolver(a.cfg)
	if own := a.cfg.File.Agents[name]; own != nil {
		return a.showOwn(own)
	}
	installed, err := r.Registry.FindName(name)
	if errors.Is(err, registry.ErrIncomplete) {
		a.say("acp: %v", err)
		err = nil
	}
	switch {
	case err == nil:
		name = installed.ID()
	case errors.Is(err, registry.ErrNotInstalled):
		name, err = r.InRegistry(ctx, name)
	}
	if err != nil {
		return err
	}
	list, err := r.Registry.List(ctx)
	e := &registry.Entry{}
	if err == nil {
		a.warn(list)
		e, err = list.Find(name)
	}
	if err != nil {
		if installed == nil {
			return err
		}
		a.say("acp: %v", err)
		e = &installed.Entry
	}
	plan, unavailable := r.Registry.Plan(ctx, name, nil)
	if a.json {
		shown := struct {
			listed
			Repository  string   `json:"repository,omitempty"`
			Website     string   `json:"website,omitempty"`
			Authors     []string `json:"authors,omitempty"`
			License     string   `json:"license,omitempty"`
			LicenseURL  string   `json:"licenseUrl,omitempty"`
			Unavailable string   `json:"unavailable,omitempty"` // why it cannot be installed here
		}{ofRegistry(e, installed), e.Repository, e.Website, e.Authors, e.License, e.LicenseURL, ""}
		if unavailable != nil {
			shown.Unavailable = unavailable.Error()
		}
		return a.write(shown)
	}
	a.fact("name", e.ID)
	a.fact("title", e.Name)
	a.fact("about", e.Description)
	a.fact("version", e.Version)
	if e.Preview != nil {
		a.fact("preview", e.Preview.Version)
	}
	a.fact("kinds", cmp.Or(joinKinds(e.Kinds(registry.Platform())), "none for this system"))
	a.fact("authors", strings.Join(e.Authors, ", "))
	a.fact("license", strings.TrimSpace(e.License+" "+e.LicenseURL))
	a.fact("repository", e.Repository)
	a.fact("website", e.Website)
	if installed != nil {
		text := fmt.Sprintf("%s as %s, %s", installed.Entry.Version, installed.Kind, installed.Time.Local().
			Format(time.DateTime))
		if installed.Pinned {
			text += ", pinned"
		}
		a.fact("installed", text)
		a.fact("starts", installed.Command().String())
	}
	if installed == nil || installed.Entry.Version != e.Version {
		if unavailable != nil {
			a.fact("unavailable", unavailable.Error())
			return nil
		}
		fmt.Fprintf(a.p.stdout, "\nInstalling it:\n%s\n", plain.Text(plan.String()))
	}
	return nil
}

// showOwn prints an agent of the configuration, without the values of its variables, which may be secret.
func (a *agentsCommand) showOwn(own *config.Agent) error {
	if a.json {
		return a.write(a.ofConfig(own))
	}
	a.fact("name", own.Name)
	a.fact("from", a.cfg.File.Path)
	if c := own.Command; c != nil {
		a.fact("starts", masked(c).String())
		a.fact("directory", c.Dir)
	}
	a.fact("url", harmless(own.URL))
	a.fact("registry", own.Registry)
	if version := a.ofConfig(own).Protocol; version != 0 {
		a.fact("protocol", fmt.Sprintf("version %d only", version))
	}
	return nil
}

// installFlags are the flags of the commands that install agents.
type installFlags struct {
	options registry.InstallOptions
	kind    oneOf
	yes     bool
}

// kinds lists the names of the registry's kinds.
var kinds = []string{string(registry.Binary), string(registry.NPX), string(registry.UVX)}

func (f *installFlags) add(c *cobra.Command) {
	f.kind.values = kinds
	flags := c.Flags()
	flags.BoolVarP(&f.yes, "yes", "y", false, "consent to everything that is fetched and run")
	flags.Var(&f.kind, "kind", "the `KIND`: binary, npx (npm) or uvx (PyPI); default: see --registry-prefer")
	flags.BoolVar(&f.options.Preview, "preview", false, "take the preview version, which has not been released")
	flags.BoolVar(&f.options.NoScripts, "no-scripts", false, "keep npm from running the install scripts of packages")
	flags.BoolVar(&f.options.AnyAge, "any-age", false,
		"take the version even if npm's min-release-age says that it is too new")
	complete(c, "kind", kinds...)
}

// consenting returns a resolver that installs agents once the user consents.
func (a *agentsCommand) consenting(f *installFlags) *agents.Resolver {
	f.options.Kind = registry.Kind(f.kind.value)
	r := a.p.resolver(a.cfg)
	ask := a.p.asker()
	r.Registry.Consent = func(ctx context.Context, plan *registry.Plan) error {
		switch {
		case f.yes:
			fmt.Fprintln(a.p.stderr, plan)
		case ask == nil:
			fmt.Fprintln(a.p.stderr, plan)
			return errors.New("cannot ask for consent without a terminal: use --yes")
		default:
			yes, err := ask(ctx, plan.String()+"\nInstall it?")
			if err != nil {
				return err
			}
			if !yes {
				return agents.ErrRefused
			}
		}
		a.say("installing %s %s", plan.Entry.ID, plan.Entry.Version)
		return nil
	}
	return r
}

func (a *agentsCommand) installCommand() *cobra.Command {
	f := &installFlags{}
	c := &cobra.Command{
		Use:   "install [FLAGS] AGENT...",
		Short: "Install agents from the registry",
		Long: `Install agents from the registry, in the registry's version. What would be fetched and run is shown first, and only
done if you consent. An archive whose SHA-256 differs from the registry's is refused; if the registry has none, you
are told so.`,
		Example:           "  acp agents install claude\n  acp agents install --yes --kind npx gemini     in a script",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeRegistry,
		RunE: a.p.until(func(ctx context.Context, _ *cobra.Command, args []string) error {
			r := a.consenting(f)
			return a.forEach(args, func(name string) error {
				id, err := r.InRegistry(ctx, a.inRegistry(name))
				if err != nil {
					return err
				}
				had, _ := r.Registry.Find(id) // damaged and missing are the same here
				installed, err := r.Registry.Install(ctx, id, &f.options)
				if err != nil {
					return err
				}
				note := ""
				if had != nil && had.Folder() == installed.Folder() {
					note = " was already installed"
				}
				_, err = fmt.Fprintln(a.p.stdout, plain.Sprintf("%s %s%s", id, installed.Entry.Version, note))
				return err
			})
		}),
	}
	f.add(c)
	c.Flags().BoolVar(&f.options.Again, "again", false, "install it even if it is already installed or pinned")
	return c
}

// forEach calls do for each name. It continues after failures.
func (a *agentsCommand) forEach(names []string, do func(name string) error) error {
	var errs []error
	for _, name := range names {
		if err := do(name); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// inRegistry returns the registry's name of an agent that has another name in the configuration.
func (a *agentsCommand) inRegistry(name string) string {
	if own := a.cfg.File.Agents[name]; own != nil && own.Registry != "" {
		return own.Registry
	}
	return name
}

// ids returns the ids of the installed agents with these names.
func (a *agentsCommand) ids(r *agents.Resolver, names []string) ([]string, error) {
	var ids []string
	for _, name := range names {
		name = a.inRegistry(name)
		installed, err := r.Registry.FindName(name)
		if _, ambiguous := errors.AsType[*registry.AmbiguousError](err); ambiguous {
			return nil, err
		}
		if errors.Is(err, registry.ErrNotInstalled) {
			all, _ := r.Registry.Installed() // only for suggestions
			var known []string
			for _, i := range all {
				known = append(known, i.ID())
			}
			err := fmt.Errorf("%w: %s", registry.ErrNotInstalled, name)
			if near := config.Nearest(name, known); len(near) > 0 {
				err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
			}
			return nil, err
		}
		if installed != nil {
			name = installed.ID() // a damaged agent can be removed and installed by its id
		}
		ids = append(ids, name)
	}
	return ids, nil
}

func (a *agentsCommand) updateCommand() *cobra.Command {
	f := &installFlags{}
	c := &cobra.Command{
		Use:   "update [FLAGS] [AGENT...]",
		Short: "Update agents to the registry's versions",
		Long: `Update agents to the registry's versions: the named ones, or all except pinned ones. A version that is newer than the
registry's stays; acp agents install takes the registry's. A preview is followed by newer previews, and by the release
when that is newer; with --preview, this holds for releases too. What is missing of an installed agent is installed again.`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeAgents(false),
		RunE: a.p.until(func(ctx context.Context, _ *cobra.Command, args []string) error {
			return a.update(ctx, a.consenting(f), &f.options, args)
		}),
	}
	f.add(c)
	return c
}

func (a *agentsCommand) update(ctx context.Context, r *agents.Resolver, o *registry.InstallOptions,
	names []string) error {
	ids, err := a.ids(r, names)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		all, _ := r.Registry.Installed() // what is damaged afterwards is reported
		for _, i := range all {
			if !i.Pinned {
				ids = append(ids, i.ID())
			}
		}
	}
	err = a.forEach(ids, func(id string) error {
		had, err := r.Registry.Find(id)
		if had == nil {
			return err
		}
		now, err := r.Registry.Update(ctx, id, o)
		if errors.Is(err, registry.ErrOlder) {
			a.say("acp: %v; it stays", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("updating %s: %w", id, err)
		}
		text := plain.Sprintf("%s %s is up to date", id, now.Entry.Version)
		switch {
		case had.Folder() == now.Folder():
		case had.Entry.Version == now.Entry.Version:
			text = plain.Sprintf("%s %s was installed again", id, now.Entry.Version)
		default:
			text = plain.Sprintf("%s %s -> %s", id, had.Entry.Version, now.Entry.Version)
		}
		_, err = fmt.Fprintln(a.p.stdout, text)
		return err
	})
	if len(names) == 0 {
		_, damaged := r.Registry.Installed()
		err = errors.Join(damaged, err)
	}
	return err
}

// installedCommand returns a command that does something with each of the named installed agents.
func (a *agentsCommand) installedCommand(use, short string,
	do func(ctx context.Context, r *registry.Client, id string) error) *cobra.Command {
	return &cobra.Command{
		Use:               use + " AGENT...",
		Short:             short,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeAgents(false),
		RunE: a.p.until(func(ctx context.Context, _ *cobra.Command, args []string) error {
			r := a.p.resolver(a.cfg)
			ids, err := a.ids(r, args)
			if err != nil {
				return err
			}
			return a.forEach(ids, func(id string) error { return do(ctx, r.Registry, id) })
		}),
	}
}

func (a *agentsCommand) removeCommand() *cobra.Command {
	c := a.installedCommand("remove", "Remove installed agents",
		func(ctx context.Context, r *registry.Client, id string) error { return r.Remove(ctx, id) })
	c.Long = "Remove agents installed from the registry. Files that they wrote elsewhere, such as their settings, stay."
	return c
}

func (a *agentsCommand) pinCommand(use, short string, pinned bool) *cobra.Command {
	return a.installedCommand(use, short,
		func(ctx context.Context, r *registry.Client, id string) error { return r.Pin(ctx, id, pinned) })
}

// completeAgents completes words with agents: one agent, which may be one of the configuration, or any number of
// installed ones.
func (a *agentsCommand) completeAgents(one bool) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if one {
			return completeAgent(a.cfg)(c, args, begun)
		}
		return unused(agentCompletions(a.cfg, false), args), cobra.ShellCompDirectiveNoFileComp
	}
}
