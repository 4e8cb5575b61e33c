package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/acpgo/sdk/internal/wholefile"
)

// DefaultURL is the address of the registry's list.
const DefaultURL = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"

// Limits bounds what is fetched and unpacked. The zero value of each field means its default. Downloads by npm and uv
// are bounded only by the time.
type Limits struct {
	// List bounds the registry's list, in bytes. The default is 8 MiB.
	List int64
	// Archive bounds an archive, in bytes. The default is 1 GiB.
	Archive int64
	// Unpacked bounds the unpacked size of an archive, in bytes. The default is 4 GiB.
	Unpacked int64
	// Files bounds how many files, directories and links an archive has. The default is 200,000.
	Files int
	// ListTime bounds fetching the list. The default is 30 s.
	ListTime time.Duration
	// InstallTime bounds fetching and unpacking an agent, or installing its package. The default is 15 min.
	InstallTime time.Duration
}

func (l Limits) orDefaults() Limits {
	return Limits{
		List: cmp.Or(l.List, 8<<20), Archive: cmp.Or(l.Archive, 1<<30), Unpacked: cmp.Or(l.Unpacked, 4<<30),
		Files:    cmp.Or(l.Files, 200_000),
		ListTime: cmp.Or(l.ListTime, 30*time.Second), InstallTime: cmp.Or(l.InstallTime, 15*time.Minute),
	}
}

// Client lists and installs agents. Its methods are safe for concurrent use, including by several processes with the
// same Dir; its fields must not be changed during that time.
type Client struct {
	// URL is the address of the registry's list. The default is DefaultURL. The address, those in the list, and
	// redirections must be https. If the address is http on this machine, as in a test, the others may be too, but an
	// https request is never redirected there.
	URL string
	// Dir is the directory in which the list and the agents are kept; it is created if necessary. The default is
	// DefaultDir. No one but the user should be able to write there, because programs are started from it.
	Dir string
	// Consent is called before something is fetched or run for an agent, with the whole plan. An error refuses it. If
	// Consent is nil, everything is refused with ErrNoConsent.
	Consent func(ctx context.Context, plan *Plan) error
	// Prefer lists the kinds in order of preference, for agents with more than one. The default is Binary, NPX, UVX. A
	// kind that is left out is not used unless InstallOptions name it.
	Prefer []Kind
	// MaxAge is how old the list may be before it is fetched again. The default is 1 h; a negative value means that it
	// is always fetched.
	MaxAge time.Duration
	// Offline keeps the Client from using the network: lists come from the cache, and nothing can be installed.
	Offline bool
	// HTTP is used for fetching. The default uses the proxies of the environment.
	HTTP *http.Client
	// Environ is the environment in which npm and uv run, as "NAME=VALUE", and in which they are looked up. Nil means
	// the environment of this process.
	Environ []string
	// Platform is the system whose binaries are installed. The default is the function Platform.
	Platform string
	// Limits bounds what is fetched and unpacked.
	Limits Limits
}

// Errors of a Client.
var (
	// ErrUnknownAgent reports that the registry has no agent with the given id. Entries may disappear from the
	// registry; installed agents stay.
	ErrUnknownAgent = errors.New("no such agent in the registry")
	// ErrNotInstalled reports that an agent is not installed.
	ErrNotInstalled = errors.New("the agent is not installed")
	// ErrIncomplete reports that the program of an installed agent is missing. Install and Update install it again.
	ErrIncomplete = errors.New("the installed agent is not complete")
	// ErrOlder reports that the registry's version is older than the installed one.
	ErrOlder = errors.New("the registry's version is older than the installed one")
	// ErrNoConsent reports that Client.Consent is nil, so nothing may be fetched or run.
	ErrNoConsent = errors.New("no consent was given")
	// ErrPinned reports that an agent is pinned to its version.
	ErrPinned = errors.New("the agent is pinned to its version")
	// ErrChanged reports that an agent was installed, removed or pinned elsewhere while the user was asked for consent.
	// Nothing was done, because the question no longer applied.
	ErrChanged = errors.New("the agent was changed in the meantime")
	// ErrOffline reports that Client.Offline is set.
	ErrOffline = errors.New("network access is disabled")
)

// DefaultDir returns the default directory in the user's data: $XDG_DATA_HOME/acp, or ~/.local/share/acp;
// ~/Library/Application Support/acp on macOS, %LocalAppData%\acp on Windows.
func DefaultDir() (string, error) {
	switch runtime.GOOS {
	case "windows":
		dir, err := os.UserCacheDir() // %LocalAppData%
		return filepath.Join(dir, "acp"), err
	case "darwin":
		dir, err := os.UserConfigDir() // ~/Library/Application Support
		return filepath.Join(dir, "acp"), err
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "acp"), nil
	}
	home, err := os.UserHomeDir()
	return filepath.Join(home, ".local", "share", "acp"), err
}

// dir returns the absolute path of Dir, creating it if necessary.
func (c *Client) dir() (dir string, err error) {
	if dir = c.Dir; dir == "" {
		if dir, err = DefaultDir(); err != nil {
			return "", err
		}
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

func (c *Client) platform() string { return cmp.Or(c.Platform, Platform()) }

// List is the registry's list of agents.
type List struct {
	// Agents are the agents, in the registry's order.
	Agents []Entry
	// Skipped reports which entries could not be used, and why; if there are more than 100, the last error says how
	// many more there are.
	Skipped []error
	// Fetched is when the registry last sent or confirmed the list.
	Fetched time.Time
	// Stale is the error of fetching the list, if the list is older than Client.MaxAge allows, and nil otherwise.
	Stale error
	// NotKept is the error of saving the fetched list for the next time, or nil.
	NotKept error
}

// Age returns the age of the list.
func (l *List) Age() time.Duration { return time.Since(l.Fetched) }

// Find returns the entry of an agent. The error matches ErrUnknownAgent.
func (l *List) Find(id string) (*Entry, error) {
	for i := range l.Agents {
		if l.Agents[i].ID == id {
			return &l.Agents[i], nil
		}
	}
	return nil, fmt.Errorf("%w: %q", ErrUnknownAgent, short(id))
}

// Search returns the agents that have every word of text in their id, name, description or authors, with those first
// that have the first word in their id or name. It ignores case.
func (l *List) Search(text string) []Entry {
	words := strings.Fields(strings.ToLower(text))
	var found []Entry
	for _, e := range l.Agents {
		all := strings.ToLower(strings.Join(append([]string{e.ID, e.Name, e.Description}, e.Authors...), "\n"))
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(all, word) }) {
			found = append(found, e)
		}
	}
	if len(words) > 0 {
		named := func(e *Entry) int {
			if strings.Contains(strings.ToLower(e.ID+"\n"+e.Name), words[0]) {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(found, func(a, b Entry) int { return named(&a) - named(&b) })
	}
	return found
}

// cached is the list in the form in which a file stores it.
type cached struct {
	URL     string    `json:"url"`
	ETag    string    `json:"etag,omitempty"`
	Fetched time.Time `json:"fetched"`
	List    []byte    `json:"list"`
}

// List returns the registry's list: from the cache if that is not older than MaxAge, and otherwise from the registry.
// If the registry cannot be reached, or answers with something other than a list, the cache is still used, and
// List.Stale holds the error; without a cache that error is returned.
func (c *Client) List(ctx context.Context) (*List, error) { return c.list(ctx, false) }

// Refresh returns the registry's list like List, but asks the registry even if the cache is recent.
func (c *Client) Refresh(ctx context.Context) (*List, error) { return c.list(ctx, true) }

func (c *Client) list(ctx context.Context, refresh bool) (*List, error) {
	address := cmp.Or(c.URL, DefaultURL)
	// If the cache cannot be read or written, the list is returned as if there were no cache.
	var kept *cached
	var list *List
	name := ""
	dir, noCache := c.dir()
	if noCache == nil {
		name = filepath.Join(dir, "registry.json")
		kept, list, noCache = c.readCache(name, address)
	}
	if list != nil && !refresh {
		// A list from the future was saved when the clock was wrong.
		if age := list.Age(); age >= 0 && age < cmp.Or(c.MaxAge, time.Hour) {
			return list, nil
		}
	}
	fetched, err := c.fetchList(ctx, address, kept)
	if err == nil {
		agents, skipped, wrong := parseList(fetched.List)
		if err = wrong; err == nil {
			list = &List{Agents: agents, Skipped: skipped, Fetched: fetched.Fetched}
			list.NotKept = noCache
			if name != "" {
				list.NotKept = fetched.write(name)
			}
			return list, nil
		}
	}
	if err = fmt.Errorf("fetching %s: %w", address, err); list == nil {
		return nil, errors.Join(err, noCache)
	}
	list.Stale = err
	return list, nil
}

func (c *cached) write(name string) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return wholefile.Replace(name, text, 0o600)
}

// readCache reads the cache. The result is nil if there is none for the address, or none that can be read.
func (c *Client) readCache(name, address string) (*cached, *List, error) {
	text, err := readFile(name, 2*c.Limits.orDefaults().List+4096)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errTooLong) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	var kept cached
	if json.Unmarshal(text, &kept) != nil || kept.URL != address {
		return nil, nil, nil // it will be fetched again
	}
	agents, skipped, err := parseList(kept.List)
	if err != nil {
		return nil, nil, nil
	}
	return &kept, &List{Agents: agents, Skipped: skipped, Fetched: kept.Fetched}, nil
}

// fetchList fetches the list, or lets the registry confirm that the cached one is current.
func (c *Client) fetchList(ctx context.Context, address string, kept *cached) (*cached, error) {
	if c.Offline {
		return nil, ErrOffline
	}
	limits := c.Limits.orDefaults()
	ctx, cancel := context.WithTimeoutCause(ctx, limits.ListTime,
		fmt.Errorf("no list within %v: %w", limits.ListTime, context.DeadlineExceeded))
	defer cancel()
	header := http.Header{"Accept": {"application/json"}}
	if kept != nil && kept.ETag != "" {
		header.Set("If-None-Match", kept.ETag)
	}
	now := time.Now()
	response, err := ask(ctx, c.HTTP, address, plainHTTP(address), header)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusNotModified && kept != nil:
		again := *kept
		again.Fetched = now
		return &again, nil
	case response.StatusCode != http.StatusOK:
		return nil, &StatusError{address, response.Status}
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, limits.List+1))
	if err != nil {
		return nil, causeOf(ctx, err)
	}
	if int64(len(text)) > limits.List {
		return nil, fmt.Errorf("longer than %d bytes", limits.List)
	}
	etag := response.Header.Get("ETag")
	if len(etag) > 1024 {
		etag = ""
	}
	return &cached{URL: address, ETag: etag, Fetched: now, List: text}, nil
}

// errTooLong reports that a file is longer than allowed.
var errTooLong = errors.New("too long")

// readFile reads a file of at most the given number of bytes; the error matches errTooLong if it has more.
func readFile(name string, most int64) ([]byte, error) {
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if info.Mode().Type()&^fs.ModeDir != 0 { // reading a pipe without a writer would block
		return nil, fmt.Errorf("%s is not a file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: %w: more than %d bytes", name, errTooLong, most)
	}
	return text, err
}
