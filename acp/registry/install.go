// This file has installed agents: where they are kept, how they are installed, and how they are started.
//
// An agent has a directory in Client.Dir. In it, installed.json names the directory next to it that has the version to
// start. Each installation creates a new directory, which is not used before installed.json names it: a half-written
// version is never started, and the next installation removes it. A lock allows one installation at a time.

package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/internal/filelock"
	"github.com/acpgo/sdk/internal/plain"
)

// agents returns the directory of all agents.
func (c *Client) agents() (string, error) {
	dir, err := c.dir()
	return filepath.Join(dir, "agents"), err
}

// agent returns the directory of an agent.
func (c *Client) agent(id string) (string, error) {
	if !idPattern.MatchString(id) || len(id) > maxID || windowsName(id) != "" {
		return "", fmt.Errorf("%w: %q is not an id", ErrUnknownAgent, short(id))
	}
	dir, err := c.agents()
	return filepath.Join(dir, id), err
}

// Installed returns all installed agents, by id. It needs no network. Agents for which the error matches ErrIncomplete
// are among them.
func (c *Client) Installed() ([]*Installed, error) {
	dir, err := c.agents()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []*Installed
	var errs []error
	for _, e := range entries {
		if !e.IsDir() || !idPattern.MatchString(e.Name()) {
			continue
		}
		one, err := c.Find(e.Name())
		switch {
		case err == nil:
			all = append(all, one)
		case one != nil:
			all, errs = append(all, one), append(errs, err)
		case !errors.Is(err, ErrNotInstalled):
			errs = append(errs, err)
		}
	}
	return all, errors.Join(errs...)
}

// Find returns an installed agent. It needs no network. The error matches ErrNotInstalled if the agent is not
// installed, and ErrIncomplete, together with the agent, if its program is missing.
func (c *Client) Find(id string) (*Installed, error) {
	dir, err := c.agent(id)
	if err != nil {
		return nil, err
	}
	return readRecord(dir, id)
}

// lock prevents other processes, and other calls, from changing an agent. The lock file is not in the agent's
// directory, which may be removed.
func (c *Client) lock(ctx context.Context, id string) (*filelock.Lock, error) {
	dir, err := c.dir()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return filelock.Wait(ctx, filepath.Join(dir, id))
}

// Plan returns what Install would fetch and run, without asking for consent.
func (c *Client) Plan(ctx context.Context, id string, options *InstallOptions) (*Plan, error) {
	list, err := c.List(ctx)
	if err != nil {
		return nil, err
	}
	e, err := list.Find(id)
	if err != nil {
		return nil, err
	}
	return c.planOf(e, options)
}

func (c *Client) planOf(e *Entry, options *InstallOptions) (*Plan, error) {
	options = cmp.Or(options, &InstallOptions{})
	dir, err := c.agent(e.ID)
	if err != nil {
		return nil, err
	}
	if options.Preview {
		preview := e.Previewed()
		if preview == nil {
			return nil, &UnavailableError{e.ID, e.Kinds(c.platform()), "it has no preview"}
		}
		if err := preview.usable(); err != nil {
			return nil, fmt.Errorf("the preview: %w", err)
		}
		e = preview
	}
	p, err := c.plan(e, options.Kind, options, dir)
	if err != nil {
		return nil, err
	}
	if now, err := readRecord(dir, e.ID); err == nil {
		p.Installed = now.Entry.Version
	}
	return p, nil
}

// Install installs the registry's version of an agent, after Consent, also if it is older than the installed one. If
// that version is already installed completely in the requested kind, or the agent is pinned to another version in that
// kind, Install returns the installed agent without asking for consent. Otherwise the previously installed version
// stays in use until the new one is complete. To start the installed agent regardless of the registry, use Find rather
// than Install.
//
// The error matches ErrUnknownAgent if the registry has no such agent, and ErrNoConsent if Client.Consent is nil. It is
// an *UnavailableError if there is nothing for this system, an *ArchiveError if the download was rejected, and an
// *InstallError, which describes the reason, if npm or uv failed. It matches ErrPinned if the agent is pinned in
// another kind than the requested one; InstallOptions.Again overrides this. It matches ErrChanged if the agent was
// changed elsewhere while the user was asked, unless the agent that is then installed is the requested one.
func (c *Client) Install(ctx context.Context, id string, options *InstallOptions) (*Installed, error) {
	list, err := c.List(ctx)
	if err != nil {
		return nil, err
	}
	e, err := list.Find(id)
	if errors.Is(err, ErrUnknownAgent) && list.Stale == nil { // it may be new
		if list, err = c.Refresh(ctx); err == nil {
			e, err = list.Find(id)
		}
	}
	if err != nil {
		return nil, err
	}
	return c.install(ctx, e, options, false)
}

// install installs an entry. An update does not accept a pinned version as the requested one.
func (c *Client) install(ctx context.Context, e *Entry, options *InstallOptions, update bool) (_ *Installed,
	err error) {
	options = cmp.Or(options, &InstallOptions{})
	dir, err := c.agent(e.ID)
	if err != nil {
		return nil, err
	}
	wanted := e // for comparing
	if options.Preview {
		wanted = cmp.Or(e.Previewed(), e)
	}
	isThere := func(now *Installed, err error) bool {
		same := err == nil && (now.Preview || !options.Preview) &&
			(now.Pinned && !update || now.Entry.Version == wanted.Version && now.Entry.Distribution.same(&wanted.Distribution))
		return same && !options.Again && (options.Kind == "" || options.Kind == now.Kind)
	}
	pinned := func(now *Installed, err error) error {
		repairs := errors.Is(err, ErrIncomplete) && now.Entry.Version == wanted.Version
		if now == nil || !now.Pinned || options.Again || repairs {
			return nil
		}
		return fmt.Errorf("%w: %s %s, as %s", ErrPinned, e.ID, now.Entry.Version, now.Kind)
	}
	now, err := readRecord(dir, e.ID)
	if isThere(now, err) {
		return now, nil
	}
	before := now
	if err := pinned(now, err); err != nil {
		return nil, err
	}
	if c.Offline {
		return nil, fmt.Errorf("installing %s: %w", e.ID, ErrOffline)
	}
	p, err := c.planOf(e, options)
	if err != nil {
		return nil, err
	}
	if c.Consent == nil {
		return nil, fmt.Errorf("installing %s: %w", e.ID, ErrNoConsent)
	}
	// Do not ask for consent to a change that cannot be written.
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, fmt.Errorf("installing %s: %w", e.ID, err)
	}
	asked := *p
	if err := c.Consent(ctx, &asked); err != nil {
		return nil, fmt.Errorf("installing %s: %w", e.ID, err)
	}
	limits := c.Limits.orDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.InstallTime,
		fmt.Errorf("installing %s took longer than %v: %w", e.ID, limits.InstallTime, context.DeadlineExceeded))
	defer cancel()
	lock, err := c.lock(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	now, err = readRecord(dir, e.ID)
	if isThere(now, err) { // another process was faster
		return now, nil
	}
	if err := pinned(now, err); err != nil { // while the user was asked
		return nil, err
	}
	if was, is := folderOf(before), folderOf(now); was != is {
		return nil, fmt.Errorf("installing %s: %w", e.ID, ErrChanged)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	keep := []string{record}
	if now != nil {
		keep = append(keep, now.folder) // it may still be running
	}
	sweep(dir, keep)
	e = &p.Entry
	i := &Installed{
		Entry: *e, Kind: p.Kind, Preview: p.Preview, Time: time.Now().UTC(), Pinned: now != nil &&
			now.Pinned, Args: p.Args, Env: p.Env,
		dir: dir, folder: e.Version + "-" + strings.ToLower(rand.Text()[:8]),
	}
	if err := os.Mkdir(i.Folder(), 0o700); err != nil {
		return nil, err
	}
	if err = c.place(ctx, p, i, limits); err == nil {
		err = i.write()
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("installing %s: %w", e.ID, causeOf(ctx, err)), removeAll(i.Folder()))
		if now == nil {
			_ = os.Remove(dir) // unless it is not empty
		}
		return nil, err
	}
	return i, nil
}

// place fetches and unpacks what the plan describes into the directory of the version.
func (c *Client) place(ctx context.Context, p *Plan, i *Installed, limits Limits) (err error) {
	if p.Kind != Binary {
		i.Program, err = c.placePackage(ctx, p, i)
		return err
	}
	a := &Archive{Archive: p.URL, Cmd: p.Program, Args: p.Args, SHA256: p.SHA256}
	archive := i.Folder() + ".fetched"
	defer func() {
		// A program without an archive was moved.
		if failed := os.Remove(archive); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}()
	if i.SHA256, err = fetch(ctx, c.HTTP, p.URL, plainHTTP(c.URL), archive, limits.Archive); err != nil {
		return fmt.Errorf("fetching %s: %w", plain.Line(p.URL), err)
	}
	if err := a.verify(i.SHA256); err != nil {
		return err
	}
	i.Verified = a.SHA256 != ""
	return i.placeArchive(ctx, archive, a, limits)
}

// sweep removes the content of an agent's directory, except for the files in keep. Files that cannot be removed, such
// as a running program on Windows, are left for the next time.
func sweep(dir string, keep []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.Contains(keep, e.Name()) {
			_ = removeAll(filepath.Join(dir, e.Name()))
		}
	}
}

// removeAll removes a directory, even if archives have put write-protected directories into it.
func removeAll(name string) error {
	err := os.RemoveAll(name)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	walk := func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			return os.Chmod(path, 0o700) // then it can be read
		}
		return err
	}
	return errors.Join(filepath.WalkDir(name, walk), os.RemoveAll(name))
}

// Update replaces an agent with the registry's version, after Consent, and returns the agent that is then installed. If
// the registry has no other version, and the agent is complete, it returns the installed agent. An agent that is a
// preview, or with InstallOptions.Preview, is replaced with the preview, if there is one and the release is not newer.
//
// The error matches ErrOlder if the registry's version is older than the installed one, unless InstallOptions.Again is
// set, and ErrPinned if the agent is pinned. If Update fails, the installed version stays.
func (c *Client) Update(ctx context.Context, id string, options *InstallOptions) (*Installed, error) {
	now, missing := c.Find(id)
	if now == nil {
		return nil, missing
	}
	if now.Pinned && missing == nil {
		return now, fmt.Errorf("%w: %s %s", ErrPinned, id, now.Entry.Version)
	}
	list, err := c.Refresh(ctx)
	if err != nil {
		return now, err
	}
	if list.Stale != nil {
		return now, list.Stale
	}
	e, err := list.Find(id)
	if err != nil {
		return now, err
	}
	o := *cmp.Or(options, &InstallOptions{})
	if o.Kind == "" && slices.Contains(e.Kinds(c.platform()), now.Kind) {
		o.Kind = now.Kind // as the user chose it
	}
	version := e.Version
	preview := e.Previewed()
	if o.Preview = (o.Preview || now.Preview) && preview != nil && preview.usable() == nil &&
		!older(preview.Version, e.Version); o.Preview {
		version = preview.Version
	}
	if older(version, now.Entry.Version) && missing == nil && !o.Again {
		return now, fmt.Errorf("%w: %s %s, installed is %s", ErrOlder, id, version, now.Entry.Version)
	}
	updated, err := c.install(ctx, e, &o, true)
	if err != nil {
		return now, err
	}
	return updated, nil
}

// Update is an agent for which the registry has a newer version.
type Update struct {
	Installed *Installed
	// Entry is the registry's entry.
	Entry *Entry
}

// Outdated returns the agents whose installed version is older than that of a list, including pinned ones.
func (c *Client) Outdated(list *List) ([]Update, error) {
	all, err := c.Installed()
	var newer []Update
	for _, i := range all {
		if e, missing := list.Find(i.ID()); missing == nil && older(i.Entry.Version, e.Version) {
			newer = append(newer, Update{i, e})
		}
	}
	return newer, err
}

// Pin makes Update keep an agent at its version, or stops doing so if pinned is false.
func (c *Client) Pin(ctx context.Context, id string, pinned bool) (err error) {
	dir, err := c.agent(id)
	if err != nil {
		return err
	}
	lock, err := c.lock(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	i, err := readRecord(dir, id)
	if err != nil || i.Pinned == pinned {
		return err
	}
	i.Pinned = pinned
	return i.write()
}

// Remove removes an agent with all its files. Files that it has written elsewhere, such as its settings, stay. End
// running agents first.
func (c *Client) Remove(ctx context.Context, id string) (err error) {
	dir, err := c.agent(id)
	if err != nil {
		return err
	}
	lock, err := c.lock(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	// A damaged record is removed as well.
	if err := os.Remove(filepath.Join(dir, record)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNotInstalled, id)
	} else if err != nil {
		return err
	}
	return removeAll(dir)
}
