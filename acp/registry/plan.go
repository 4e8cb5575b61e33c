package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/internal/plain"
)

// InstallOptions configures how an agent is installed. Nil is the same as the zero value.
type InstallOptions struct {
	// Kind is the kind to install, regardless of Client.Prefer; "" leaves the choice to Client.Prefer.
	Kind Kind
	// Again installs the registry's version even if it is already installed. It also replaces a pinned version; the
	// agent then stays pinned.
	Again bool
	// NoScripts keeps npm from running the install scripts of packages. Some agents need them to be complete.
	NoScripts bool
	// Preview installs the preview of the entry instead of the released version.
	Preview bool
	// AnyAge makes npm install the version however new it is, even if the user's min-release-age forbids it. Leave this
	// decision to the user.
	AnyAge bool
}

// Plan describes everything that will be fetched and run to install an agent, and then at each start.
type Plan struct {
	// Entry is the registry's entry of the agent.
	Entry Entry
	// Kind is the kind in which it is installed.
	Kind Kind
	// Preview reports that the version has not been released.
	Preview bool
	// Installed is the version that is currently installed, or "".
	Installed string
	// URL is the address of the archive that is fetched, for a Binary.
	URL string
	// SHA256 is the checksum that the archive must have. "" means that the registry provides none, so anyone who
	// controls the address decides what is run.
	SHA256 string
	// Package is the package that is fetched, for NPX and UVX. Its dependencies are fetched too, in the versions that
	// the package names, and the install scripts of all these packages are run.
	Package string
	// Install is the program that fetches the package; nil for a Binary.
	Install *launch.Command
	// Program is the program that is started: a file of the archive, or a command of the package; "" means its only
	// command, or the one with the package's name.
	Program string
	// Args and Env are the arguments and variables with which it is started.
	Args []string
	Env  map[string]string
	// Folder is the directory in which the agent is kept; the version gets a new subdirectory.
	Folder string
}

// maxPlanLine is the greatest number of characters in a line of Plan.String.
const maxPlanLine = 500

// String returns the plan as lines for a terminal, without control characters. Long names, authors and licenses are cut
// off; everything that is fetched and run is shown in full.
func (p *Plan) String() string {
	var lines []string
	say := func(format string, args ...any) {
		// Nothing is left out, however long it is, because the end of a line may be the part that matters.
		rest := []rune(fmt.Sprintf(format, args...))
		for indent := ""; ; indent = "         " {
			n := min(len(rest), maxPlanLine)
			lines = append(lines, indent+plain.Line(string(rest[:n])))
			if rest = rest[n:]; len(rest) == 0 {
				return
			}
		}
	}
	note := map[bool]string{true: ", a preview"}
	say("agent:   %s (%s) %s%s", short(p.Entry.Name), p.Entry.ID, p.Entry.Version, note[p.Preview])
	if p.Installed != "" {
		note[true] = ", which is newer"
		say("now:     %s%s", p.Installed, note[older(p.Entry.Version, p.Installed)])
	}
	if len(p.Entry.Authors) > 0 {
		say("authors: %s", short(strings.Join(p.Entry.Authors, ", ")))
	}
	if p.Entry.License != "" {
		say("license: %s", short(p.Entry.License))
	}
	if p.Entry.LicenseURL != "" {
		say("         %s", short(p.Entry.LicenseURL))
	}
	if p.Kind == Binary {
		address, _, notes := plain.Address(p.URL)
		say("fetches: %s", address)
		for _, note := range notes {
			say("         %s", note)
		}
		if p.SHA256 == "" {
			say("         the registry has no checksum, so the download cannot be verified")
		} else {
			say("         SHA-256 %s", p.SHA256)
		}
	} else {
		say("fetches: the package %s, and what it depends on", p.Package)
		say("runs:    %s", p.Install)
		say("         and the install scripts of the packages")
	}
	program := cmp.Or(p.Program, "(the command of the package)")
	start := &launch.Command{Program: program, Args: p.Args, Env: p.Env}
	say("starts:  %s", start)
	say("in:      %s", p.Folder)
	return strings.Join(lines, "\n")
}

// UnavailableError reports that an agent cannot be installed here.
type UnavailableError struct {
	// ID is the agent.
	ID string
	// Kinds are the kinds in which the agent is distributed for this system.
	Kinds []Kind
	// Reason is the reason why none of them can be used.
	Reason string
}

// Error implements the error interface.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("%s cannot be installed here: %s", e.ID, e.Reason)
}

// tools are the programs that install packages.
var tools = map[Kind]struct{ program, comesWith string }{
	NPX: {"npm", "Node.js"},
	UVX: {"uv", "uv"},
}

// choose selects one of an entry's kinds.
func (c *Client) choose(e *Entry, kind Kind) (Kind, error) {
	platform := c.platform()
	have := e.Kinds(platform)
	unavailable := func(format string, args ...any) (Kind, error) {
		return "", &UnavailableError{e.ID, have, fmt.Sprintf(format, args...)}
	}
	if len(have) == 0 {
		return unavailable("it has nothing for %s", platform)
	}
	prefer := c.Prefer
	if prefer == nil {
		prefer = []Kind{Binary, NPX, UVX}
	}
	if kind != "" {
		if !slices.Contains(have, kind) {
			return unavailable("it has no %s for %s, but %v", kind, platform, have)
		}
		prefer = []Kind{kind}
	}
	var missing []string
	for _, k := range prefer {
		if !slices.Contains(have, k) {
			continue
		}
		tool, needed := tools[k]
		if !needed {
			return k, nil
		}
		if _, err := c.find(tool.program); err == nil {
			return k, nil
		}
		missing = append(missing, fmt.Sprintf("for %s the program %s is needed, which comes with %s", k, tool.program,
			tool.comesWith))
	}
	if missing == nil {
		return unavailable("of its kinds %v none is preferred", have)
	}
	return unavailable("%s", strings.Join(missing, "; "))
}

// find looks a program up in the environment of the Client.
func (c *Client) find(program string) (string, error) {
	return (&launch.Command{Program: program, Environ: c.Environ}).Find()
}

// plan returns the plan for an entry.
func (c *Client) plan(e *Entry, kind Kind, options *InstallOptions, folder string) (*Plan, error) {
	kind, err := c.choose(e, kind)
	if err != nil {
		return nil, err
	}
	p := &Plan{Entry: *e, Kind: kind, Preview: options.Preview, Folder: folder}
	switch kind {
	case Binary:
		a := e.Distribution.Binary[c.platform()]
		p.URL, p.SHA256, p.Program, p.Args, p.Env = a.Archive, a.SHA256, a.Cmd, a.Args, a.Env
		err = a.usable()
	case NPX, UVX:
		d := e.Distribution.NPX
		if kind == UVX {
			d = e.Distribution.UVX
		}
		p.Package, p.Program, p.Args, p.Env = d.Package, d.Cmd, d.Args, d.Env
		err = d.exact(kind, e)
		if err == nil {
			p.Install, err = c.installer(kind, d, options)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the entry of %s: %w", e.ID, err)
	}
	return p, nil
}

// interpreters are commands that mean programs of the system, and not of the archive.
var interpreters = map[string]bool{"node": true, "python": true, "python3": true, "java": true, "ruby": true}

// usable returns the reason why an archive of an entry is refused.
func (a *Archive) usable() error {
	switch {
	case hasSuffix(fileName(a.Archive), installers...):
		return brokenf("%s is an installer", short(fileName(a.Archive)))
	case hasSuffix(fileName(a.Archive), otherArchives...) && !hasSuffix(fileName(a.Archive), tarSuffixes...):
		return brokenf("%s is an archive of an unsupported kind", short(fileName(a.Archive)))
	case a.SHA256 != "" && !sumPattern.MatchString(a.SHA256):
		return brokenf("%q is not a SHA-256", short(a.SHA256))
	}
	if interpreters[a.Cmd] {
		return brokenf("it needs %s of the system, which is not supported", a.Cmd)
	}
	if _, err := localCommand(a.Cmd); err != nil {
		return err
	}
	return usableEnv(a.Env)
}

// installer returns the command that installs a package. Its directory is added later.
func (c *Client) installer(kind Kind, d *Package, options *InstallOptions) (*launch.Command, error) {
	path, err := c.find(tools[kind].program)
	if err != nil {
		return nil, err
	}
	if kind == UVX {
		return &launch.Command{Program: path, Args: []string{"tool", "install", "--no-config", d.Package},
			Environ: c.Environ}, nil
	}
	args := []string{"install", "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--omit=dev"}
	if options.NoScripts {
		args = append(args, "--ignore-scripts")
	}
	if options.AnyAge {
		args = append(args, "--min-release-age=0")
	}
	return &launch.Command{Program: path, Args: append(args, "--save-exact", "--", d.Package), Environ: c.Environ}, nil
}
