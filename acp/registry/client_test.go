package registry_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/acpgo/sdk/acp/launch"
	"github.com/acpgo/sdk/acp/registry"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// server is a registry on this machine, with archives.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	entries []any // of the list; a string is written as it is
	etag    string
	broken  http.HandlerFunc // answers for the list, if set
	files   map[string][]byte
	asked   []string // "/registry.json"
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{files: map[string][]byte{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, r.URL.Path)
	switch text, ok := s.files[r.URL.Path]; {
	case r.URL.Path == "/registry.json" && s.broken != nil:
		s.broken(w, r)
	case r.URL.Path == "/registry.json":
		if s.etag != "" {
			w.Header().Set("ETag", s.etag)
			if r.Header.Get("If-None-Match") == s.etag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		var entries []string
		for _, e := range s.entries {
			text, ok := e.(string)
			if !ok {
				b, err := json.Marshal(e)
				if err != nil {
					panic(err)
				}
				text = string(b)
			}
			entries = append(entries, text)
		}
		fmt.Fprintf(w, `{"version":"1.0.0","agents":[%s],"extensions":[],"future":1}`, strings.Join(entries, ","))
	case ok:
		w.Write(text)
	default:
		http.NotFound(w, r)
	}
}

func (s *server) set(entries ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries = entries
}

func (s *server) file(name string, text []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[name] = text
	return s.URL + name
}

// requests are the paths that were asked for since the last call.
func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// client is one that consents to everything.
func (s *server) client(t *testing.T) *registry.Client {
	t.Helper()
	return &registry.Client{
		URL: s.URL + "/registry.json", Dir: filepath.Join(t.TempDir(), "acp"), Platform: "linux-x86_64", MaxAge: -1,
		Consent: func(context.Context, *registry.Plan) error { return nil },
	}
}

// script is an agent as a shell script that says its version.
func script(version string) string {
	return "#!/bin/sh\nread -r line\necho '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":1,\"agentInfo\":{\"name\":\"script\",\"version\":\"" + version +
		"\"},\"agentCapabilities\":{}}}'\ncat >/dev/null\n"
}

// binary is the entry of an agent that is an archive.
func (s *server) binary(id, version, archive string, sum bool) *registry.Entry {
	a := registry.Archive{Archive: s.URL + archive, Cmd: "./agent", Args: []string{"--acp"}, Env: map[string]string{"A": "b"}}
	if sum {
		hash := sha256.Sum256(s.files[archive])
		a.SHA256 = hex.EncodeToString(hash[:])
	}
	return &registry.Entry{
		ID: id, Name: "Agent " + id, Version: version, Description: "An agent.", Authors: []string{"Me"}, License: "MIT",
		Distribution: registry.Distribution{Binary: map[string]registry.Archive{"linux-x86_64": a}},
	}
}

// release has the registry offer one version of the agent "one", and returns its entry.
func (s *server) release(t *testing.T, version string) *registry.Entry {
	t.Helper()
	name := "/" + version + ".tgz"
	s.file(name, tgz(t, item{name: "agent", text: script(version)}))
	e := s.binary("one", version, name, true)
	s.set(e)
	return e
}

// changed is an entry with another archive.
func changed(e *registry.Entry, change func(a *registry.Archive)) *registry.Entry {
	a := e.Distribution.Binary["linux-x86_64"]
	change(&a)
	e.Distribution.Binary["linux-x86_64"] = a
	return e
}

// elsewhere is an entry whose archive has another address, and no sum.
func elsewhere(e *registry.Entry, address string) *registry.Entry {
	return changed(e, func(a *registry.Archive) { *a = registry.Archive{Archive: address, Cmd: "agent"} })
}

// nothing fails the test if there is something in a folder.
func nothing(t *testing.T, dir string) {
	t.Helper()
	for path := range tree(t, dir) {
		if path != "." {
			t.Errorf("%s is left", path)
		}
	}
}

// is requires that a call has returned an agent of a version.
func is(t *testing.T, version string) func(*registry.Installed, error) {
	t.Helper()
	return func(i *registry.Installed, err error) {
		t.Helper()
		if err != nil || i.Entry.Version != version {
			t.Errorf("got %v, %v, want version %s", i, err, version)
		}
	}
}

// fails requires that a call has failed.
func fails(t *testing.T, want error) func(*registry.Installed, error) {
	t.Helper()
	return func(i *registry.Installed, err error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("got %v, %v, want %v", i, err, want)
		}
	}
}

// item is one of an archive.
type item struct {
	name, text, to string
	mode           fs.FileMode
	kind           byte // of a tar
}

func tgz(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range items {
		h := &tar.Header{Name: f.name, Mode: int64(f.mode & 0o7777), Size: int64(len(f.text)), Typeflag: f.kind, Linkname: f.to}
		switch {
		case f.kind != 0:
		case f.to != "":
			h.Typeflag = tar.TypeSymlink
		default:
			h.Typeflag = tar.TypeReg
		}
		if f.kind == tar.TypeXGlobalHeader {
			h = &tar.Header{Typeflag: f.kind, PAXRecords: map[string]string{"comment": f.text}, Name: f.name}
			f.text = ""
		}
		must.Do(t, w.WriteHeader(h))
		must.Get(io.WriteString(w, f.text))(t)
	}
	must.Do(t, errors.Join(w.Close(), z.Close()))
	return b.Bytes()
}

func zipOf(t testing.TB, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range items {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		h.SetMode(f.mode | 0o600)
		if f.to != "" {
			h.SetMode(fs.ModeSymlink | 0o777)
			f.text = f.to
		}
		one := must.Get(w.CreateHeader(h))(t)
		must.Get(io.WriteString(one, f.text))(t)
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

// TestNoPrivileges: of the modes in an archive only the owner's right to run a file is kept.
func TestNoPrivileges(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	s.file("/1/agent.tar.gz", tgz(t, item{name: "d/", kind: tar.TypeDir, mode: 0o7777}, item{name: "d/x", text: "x", mode: 0o7777}, item{name: "agent", text: script("1.0.0"), mode: 0o6755}))
	const setuid, setgid, sticky = fs.ModeSetuid, fs.ModeSetgid, fs.ModeSticky
	s.file("/1/agent.zip", zipOf(t, item{name: "d/x", text: "x", mode: setuid | setgid | sticky | 0o777}, item{name: "agent", text: script("1.0.0"), mode: setuid | setgid | 0o755}))
	for _, archive := range []string{"/1/agent.tar.gz", "/1/agent.zip"} {
		s.set(s.binary("agent", "1.0.0", archive, true))
		installed := must.Get(s.client(t).Install(t.Context(), "agent", nil))(t)
		for name, line := range tree(t, installed.Folder()) {
			if mode, _, _ := strings.Cut(line, " "); mode != "-rwx------" && mode != "drwx------" && filepath.Base(name) != "installed.json" {
				t.Errorf("%s: %s is %s", archive, name, mode)
			}
		}
	}
}

// tree lists all under a folder, with modes, links and sums.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		line := info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(name)
			if err != nil {
				return err
			}
			line += " " + to
		case info.Mode().IsRegular():
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(text))
		}
		rel, err := filepath.Rel(dir, name)
		all[rel] = line
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func requireShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the agents are shell scripts")
	}
}

// TestREG1_List reads the list: unknown members, entries that cannot be used, the ETag, and the cache.
func TestREG1_List(t *testing.T) {
	tier.Need(t, tier.Normal)
	s := newServer(t)
	s.etag = `"one"`
	s.set(
		`{"id":"first","name":"First","version":"1.0.0","description":"A coder","distribution":{"npx":{"package":"f@1.0.0"}},"future":{}}`,
		`{"id":"Second!","name":"x","version":"1.0.0"}`, `{"id":"con","version":"1.0.0"}`, `{"id":"third","version":"1.0.0/../../x"}`, `7`,
		`{"id":"first","version":"2.0.0"}`,
		`{"id":"other","name":"Other","version":"0.1.0","description":"Not a CODER but first","authors":["Zoe"]}`,
	)
	c := s.client(t)
	c.MaxAge = time.Hour
	list, err := c.List(t.Context())
	must.Do(t, err)
	ids := func(entries []registry.Entry) (ids []string) {
		for _, e := range entries {
			ids = append(ids, e.ID)
		}
		return ids
	}
	if got := ids(list.Agents); !slices.Equal(got, []string{"first", "other"}) || len(list.Skipped) != 5 || list.Stale != nil || list.Age() > time.Minute {
		t.Errorf("got %q, skipped %v, %v, %v", got, list.Skipped, list.Stale, list.Age())
	}
	for text, want := range map[string][]string{
		"": {"first", "other"}, "coder": {"first", "other"}, "FIRST": {"first", "other"}, "coder zoe": {"other"}, "other coder": {"other"}, "nothing": nil,
		"O": {"other", "first"}, // which has it in its description only
	} {
		if got := ids(list.Search(text)); !slices.Equal(got, want) {
			t.Errorf("search for %q: %q, want %q", text, got, want)
		}
	}
	s.requests()
	if _, err := c.List(t.Context()); err != nil || len(s.requests()) != 0 {
		t.Errorf("a list that is new was fetched again: %v", err)
	}
	s.set() // with the same ETag
	if list, err = c.Refresh(t.Context()); err != nil || list.Stale != nil || len(s.requests()) != 1 || len(list.Agents) != 2 {
		t.Errorf("confirmed: %v, %v", list, err)
	}
	if _, err := list.Find("none"); !errors.Is(err, registry.ErrUnknownAgent) {
		t.Errorf("got %v", err)
	}
	c.Offline = true
	c.MaxAge = -1
	if list, err = c.List(t.Context()); err != nil || !errors.Is(list.Stale, registry.ErrOffline) || len(s.requests()) != 0 {
		t.Errorf("offline: %v, %v", list, err)
	}
	c.Offline = false
	for name, broken := range map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) },
		"html":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>log in to the hotel") },
		"object": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"agents":null}`) },
		"format": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"2.0.0","agents":[]}`) },
		"large":  func(w http.ResponseWriter, _ *http.Request) { w.Write(bytes.Repeat([]byte(" "), 9<<20)) },
	} {
		s.mu.Lock()
		s.broken = broken
		s.mu.Unlock()
		list, err := c.List(t.Context())
		if err != nil || list.Stale == nil || len(list.Agents) != 2 {
			t.Errorf("%s: the cache is not used: %v, %v", name, list, err)
		}
		fresh := s.client(t)
		if _, err := fresh.List(t.Context()); err == nil {
			t.Errorf("%s: there is a list without a cache", name)
		}
	}
	s.Close()
	if list, err := c.List(t.Context()); err != nil || list.Stale == nil || len(list.Agents) != 2 {
		t.Errorf("without a server: %v, %v", list, err)
	}
	must.Do(t, os.WriteFile(filepath.Join(c.Dir, "registry.json"), []byte(`{"url":`), 0o600))
	if _, err := c.List(t.Context()); err == nil {
		t.Error("a broken cache is a list")
	}
}

// TestLargeLists: neither an entry nor a list takes more than it may, and what was installed can be found.
func TestLargeLists(t *testing.T) {
	tier.Need(t, tier.Normal)
	requireShell(t)
	s := newServer(t)
	s.file("/agent.tar.gz", tgz(t, item{name: "agent", text: script("1.0.0")}))
	large := s.binary("large", "1.0.0", "/agent.tar.gz", true)
	large.Icon = "data:image/svg+xml;base64," + strings.Repeat("A", 2<<20)
	most := changed(s.binary("most", "1.0.0", "/agent.tar.gz", true),
		func(a *registry.Archive) { a.Args = slices.Repeat([]string{""}, 19_000) })
	strange := s.binary("strange", "1.0.0", "/agent.tar.gz", true)
	strange.Name = "\u202eevil\x1b[2J\nin: /etc " + strings.Repeat("界", 100)
	s.set(large, most, strange, strings.TrimSuffix(strings.Repeat("7,", 100_000), ","))
	c := s.client(t)
	list, err := c.List(t.Context())
	if err != nil || len(list.Agents) != 2 || len(list.Skipped) == 0 || len(list.Skipped) > 101 {
		t.Fatalf("got %d agents, %d skipped, %v", len(list.Agents), len(list.Skipped), err)
	}
	if last := list.Skipped[len(list.Skipped)-1].Error(); !strings.Contains(last, "99901 more") {
		t.Error(last)
	}
	fails(t, registry.ErrUnknownAgent)(c.Install(t.Context(), "large", nil))
	must.Get(c.Install(t.Context(), "most", nil))(t)
	if i, err := c.Find("most"); err != nil || len(i.Command().Args) != 19_000 {
		t.Errorf("what was installed cannot be found: %v", err)
	}
	p := must.Get(c.Plan(t.Context(), "strange", nil))(t)
	if text := p.String(); strings.ContainsAny(text, "\u202e\x1b") || strings.Contains(text, "\nin: /etc") {
		t.Errorf("%s", text)
	}
}

// TestPlainHTTP: what others could answer is not asked.
func TestPlainHTTP(t *testing.T) {
	c := &registry.Client{URL: "http://example.com/registry.json", Dir: t.TempDir()}
	if _, err := c.List(t.Context()); !errors.Is(err, registry.ErrPlainHTTP) {
		t.Errorf("got %v", err)
	}
	for _, address := range []string{"file:///etc/passwd", "ftp://localhost/x", "x"} {
		c.URL = address
		if _, err := c.List(t.Context()); err == nil {
			t.Errorf("%s was asked", address)
		}
	}
	for to, refused := range map[string]bool{"http://example.com/": true, "http://127.0.0.1.example.com/": true, "http://[::1]:1/": false} {
		redirect := httptest.NewServer(http.RedirectHandler(to, http.StatusFound))
		c.URL = redirect.URL
		if _, err := c.List(t.Context()); err == nil || errors.Is(err, registry.ErrPlainHTTP) != refused {
			t.Errorf("%s: got %v", to, err)
		}
		redirect.Close()
	}
	var loop *httptest.Server
	loop = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, loop.URL, http.StatusFound) }))
	defer loop.Close()
	c.URL = loop.URL
	if _, err := c.List(t.Context()); err == nil || !strings.Contains(err.Error(), "redirects") {
		t.Errorf("got %v", err)
	}
}

// TestREG5_Install: an agent is installed after consent, started without a network, pinned, updated and removed.
func TestREG5_Install(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	s.file("/1/agent.tar.gz", tgz(t, item{name: "pax", kind: tar.TypeXGlobalHeader, text: "x"}, item{name: "a/", kind: tar.TypeDir, mode: 0o500},
		item{name: "./a/bin/agent", text: script("1.0.0")}, item{name: "a/link", to: "bin/agent"},
		item{name: "a/hard", to: "a/bin/agent", kind: tar.TypeLink}))
	s.file("/2/agent.zip", zipOf(t, item{name: "agent", text: script("2.0.0")}, item{name: "l", to: "agent"}))
	s.set(s.binary("one", "1.0.0", "/1/agent.tar.gz", true))
	c := s.client(t)
	var plans []*registry.Plan
	refuse := errors.New("the user said no")
	consent := c.Consent
	c.Consent = nil
	fails(t, registry.ErrNoConsent)(c.Install(t.Context(), "one", nil))
	c.Consent = func(_ context.Context, p *registry.Plan) error { plans = append(plans, p); return refuse }
	s.requests()
	if _, err := c.Install(t.Context(), "one", nil); !errors.Is(err, refuse) {
		t.Errorf("refused: %v", err)
	}
	if got := s.requests(); !slices.Equal(got, []string{"/registry.json"}) {
		t.Errorf("fetched without consent: %q", got)
	}
	for _, want := range []string{"Agent one (one) 1.0.0", s.URL + "/1/agent.tar.gz", "SHA-256", "A=b ./agent --acp", "Me", "MIT", c.Dir} {
		if !strings.Contains(plans[0].String(), want) {
			t.Errorf("the plan does not say %q:\n%s", want, plans[0])
		}
	}
	if all, err := c.Installed(); err != nil || len(all) != 0 {
		t.Errorf("got %v, %v", all, err)
	}
	c.Consent = consent

	i := must.Get(c.Install(t.Context(), "one", nil))(t)
	if !i.Verified || i.SHA256 == "" || i.Kind != registry.Binary || time.Since(i.Time) > time.Minute {
		t.Errorf("got %+v", i)
	}
	starts := func(version string) {
		t.Helper()
		offline := &registry.Client{Dir: c.Dir, Offline: true}
		i := must.Get(offline.Find("one"))(t)
		command := i.Command()
		if !slices.Equal(command.Args, []string{"--acp"}) || !maps.Equal(command.Env, map[string]string{"A": "b"}) {
			t.Errorf("got %s", command)
		}
		if d := launch.Doctor(t.Context(), command, &launch.DoctorOptions{NoSession: true}); !d.OK() || d.Agent.AgentInfo.Value().Version != version {
			t.Errorf("want version %s:\n%s", version, d)
		}
	}
	s.requests()
	starts("1.0.0")
	c.Consent = nil // nobody is asked for what is there
	if again, err := c.Install(t.Context(), "one", nil); err != nil || again.Folder() != i.Folder() {
		t.Errorf("got %v, %v", again, err)
	}
	c.Consent = consent

	s.set(s.binary("one", "2.0.0", "/2/agent.zip", false))
	list := must.Get(c.List(t.Context()))(t)
	if newer, err := c.Outdated(list); err != nil || len(newer) != 1 || newer[0].Entry.Version != "2.0.0" || newer[0].Installed.Entry.Version != "1.0.0" {
		t.Errorf("got %v, %v", newer, err)
	}
	must.Do(t, c.Pin(t.Context(), "one", true))
	if now, err := c.Update(t.Context(), "one", nil); !errors.Is(err, registry.ErrPinned) || now.Entry.Version != "1.0.0" {
		t.Errorf("got %v, %v", now, err)
	}
	if now, err := c.Install(t.Context(), "one", nil); err != nil || now.Entry.Version != "1.0.0" || !now.Pinned {
		t.Errorf("got %v, %v", now, err)
	}
	fails(t, registry.ErrPinned)(c.Install(t.Context(), "one", &registry.InstallOptions{Kind: registry.NPX}))
	must.Do(t, c.Pin(t.Context(), "one", false))
	c.Consent = func(_ context.Context, p *registry.Plan) error { plans = append(plans, p); return nil }
	updated, err := c.Update(t.Context(), "one", nil)
	if err != nil || updated.Entry.Version != "2.0.0" || updated.Verified {
		t.Fatalf("got %+v, %v", updated, err)
	}
	if p := plans[len(plans)-1]; p.Installed != "1.0.0" || !strings.Contains(p.String(), "no checksum") {
		t.Errorf("got %s", p)
	}
	starts("2.0.0")
	if _, err := os.Stat(i.Folder()); err != nil {
		t.Errorf("the version before is gone while agents of it may run: %v", err)
	}
	s.requests()
	if now, err := c.Update(t.Context(), "one", nil); err != nil || now.Folder() != updated.Folder() || len(s.requests()) != 1 {
		t.Errorf("got %v, %v", now, err)
	}
	again, err := c.Install(t.Context(), "one", &registry.InstallOptions{Again: true})
	if err != nil || again.Folder() == updated.Folder() {
		t.Errorf("got %v, %v", again, err)
	}
	if _, err := os.Stat(i.Folder()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("old versions stay for ever: %v", err)
	}

	s.set() // it vanishes from the registry
	if now, err := c.Update(t.Context(), "one", nil); !errors.Is(err, registry.ErrUnknownAgent) || now == nil {
		t.Errorf("got %v, %v", now, err)
	}
	starts("2.0.0")
	must.Do(t, c.Remove(t.Context(), "one"))
	fails(t, registry.ErrNotInstalled)(c.Find("one"))
	nothing(t, filepath.Join(c.Dir, "agents"))
	if err := c.Remove(t.Context(), "one"); !errors.Is(err, registry.ErrNotInstalled) {
		t.Errorf("got %v", err)
	}
	fails(t, registry.ErrNotInstalled)(c.Update(t.Context(), "one", nil))
	for _, id := range []string{"../../x", "", "a/b", "nul", strings.Repeat("a", 100)} {
		fails(t, registry.ErrUnknownAgent)(c.Find(id))
	}
}

// TestREG6_HostileArchives: each is refused, with nothing written anywhere, and what was installed before is still started.
func TestREG6_HostileArchives(t *testing.T) {
	tier.Need(t, tier.Normal)
	requireShell(t)
	good := item{name: "agent", text: script("9.0.0")}
	many := make([]item, 300)
	for i := range many {
		many[i] = item{name: fmt.Sprint("f", i), text: "x"}
	}
	deep := strings.Repeat("d/", 100) + "x"
	bomb := strings.Repeat("\x00", 3<<20)
	type hostile struct {
		name  string
		items []item
		want  string
		tar   bool // only a tar can have it
		zip   bool
	}
	all := []hostile{
		{name: "parent", items: []item{good, {name: "../outside", text: "x"}}, want: "outside its folder"},
		{name: "parent inside", items: []item{good, {name: "a/../../outside", text: "x"}}, want: "outside its folder"},
		{name: "parent that stays", items: []item{good, {name: "a/../b", text: "x"}}, want: "outside its folder"},
		{name: "absolute", items: []item{good, {name: "/OUTSIDE/outside", text: "x"}}, want: "outside its folder"},
		{name: "backslash", items: []item{good, {name: `..\outside`, text: "x"}}, want: `the name has '\\'`},
		{name: "drive", items: []item{good, {name: "C:/outside", text: "x"}}, want: "the name has ':'"},
		{name: "stream", items: []item{good, {name: "agent:evil", text: "x"}}, want: "the name has ':'"},
		{name: "device of Windows", items: []item{good, {name: "a/Nul.txt", text: "x"}}, want: "Windows device"},
		{name: "port of Windows", items: []item{good, {name: "com1", text: "x"}}, want: "Windows device"},
		{name: "another port", items: []item{good, {name: "LPT¹.x", text: "x"}}, want: "Windows device"},
		{name: "dot at the end", items: []item{good, {name: "a./x", text: "x"}}, want: "ends with a dot"},
		{name: "space at the end", items: []item{good, {name: "x ", text: "x"}}, want: "ends with a dot or a space"},
		{name: "control", items: []item{good, {name: "a\x1b[2Jb", text: "x"}}, want: "the name has"},
		{name: "other order", items: []item{good, {name: "a\u202egpj.exe", text: "x"}}, want: `the name has '\u202e'`},
		{name: "no width", items: []item{good, {name: "a\u200bb/x", text: "x"}}, want: `the name has '\u200b'`},
		{name: "separator of lines", items: []item{good, {name: "a\u2028b", text: "x"}}, want: `the name has '\u2028'`},
		{name: "no UTF-8", items: []item{good, {name: "a\xff", text: "x"}}, want: "no UTF-8"},
		{name: "long", items: []item{good, {name: strings.Repeat("a", 300), text: "x"}}, want: "too long"},
		{name: "deep", items: []item{good, {name: deep, text: "x"}}, want: "too long"},
		{name: "twice", items: []item{good, good}, want: "twice"},
		{name: "case", items: []item{good, {name: "AGENT", text: "x"}}, want: "differ only by case"},
		{name: "case of a folder", items: []item{good, {name: "a/x", text: "x"}, {name: "A/y", text: "y"}}, want: "differ only by case"},
		{name: "case beyond ASCII", items: []item{good, {name: "\u017ftart", text: "x"}, {name: "start", text: "y"}}, want: "differ only by case"},
		{name: "file as a folder", items: []item{good, {name: "agent/x", text: "x"}}, want: "twice"},
		{name: "link to a parent", items: []item{good, {name: "l", to: ".."}}, want: "outside its folder"},
		{name: "link to root", items: []item{good, {name: "l", to: "/etc/passwd"}}, want: "outside its folder"},
		{name: "link below", items: []item{good, {name: "l", to: "a"}, {name: "l/x", text: "x"}}, want: "twice"},
		{name: "link in place", items: []item{good, {name: "l", to: "agent"}, {name: "l", text: "x"}}, want: "twice"},
		{name: "links in a row", items: []item{good, {name: "d", to: "."}, {name: "l", to: "d/d/d/../../../outside"}}, want: "cannot be resolved in it"},
		{name: "links in a circle", items: []item{good, {name: "x", to: "y"}, {name: "y", to: "x"}}, want: "cannot be resolved in it"},
		{name: "link to nothing", items: []item{good, {name: "l", to: "none"}}, want: "cannot be resolved in it"},
		{name: "the command is a link out", items: []item{{name: "agent", to: "/bin/sh"}}, want: "outside its folder"},
		{name: "bomb", items: []item{good, {name: "b", text: bomb}}, want: "more than 2097152 bytes"},
		{name: "many files", items: append(slices.Clone(many), good), want: "more than 200 files"},
		{name: "no command", items: []item{{name: "other", text: "x"}}, want: `no file "./agent"`},
		{name: "hard link out", items: []item{good, {name: "l", to: "/etc/passwd", kind: tar.TypeLink}}, want: "outside its folder", tar: true},
		{name: "hard link to a parent", items: []item{good, {name: "l", to: "../../outside", kind: tar.TypeLink}}, want: "outside its folder", tar: true},
		{name: "hard link to a link", items: []item{good, {name: "s", to: "agent"}, {name: "l", to: "s", kind: tar.TypeLink}}, want: "not a file of it", tar: true},
		{name: "twice by another form", items: []item{good, {name: "./agent", text: "x"}}, want: "twice"},
		{name: "twice by slashes", items: []item{good, {name: "a/b", text: "x"}, {name: "a//b", text: "y"}}, want: "twice"},
		{name: "folder in place of a link", items: []item{good, {name: "l", to: "agent"}, {name: "l/", kind: tar.TypeDir, mode: fs.ModeDir}}, want: "twice"},
		{name: "link to itself", items: []item{good, {name: "l", to: "l"}}, want: "cannot be resolved in it"},
		{name: "link with a NUL", items: []item{good, {name: "l", to: "agent\x00/../../outside"}}, want: "outside its folder", zip: true},
		{name: "empty program", items: []item{{name: "agent"}}, want: "is empty"},
		{name: "no files", want: "no file"},
		{name: "hard link to itself", items: []item{good, {name: "l", to: "l", kind: tar.TypeLink}}, want: "not a file of it", tar: true},
		{name: "hard link to a later file", items: []item{good, {name: "l", to: "later", kind: tar.TypeLink}, {name: "later", text: "x"}}, want: "not a file of it", tar: true},
		{name: "hard link to a folder", items: []item{good, {name: "d/", kind: tar.TypeDir}, {name: "l", to: "d", kind: tar.TypeLink}}, want: "not a file of it", tar: true},
		{name: "hard link in another case", items: []item{good, {name: "l", to: "AGENT", kind: tar.TypeLink}}, want: "not a file of it", tar: true},
		{name: "hard link in place", items: []item{good, {name: "x", text: "x"}, {name: "agent", to: "x", kind: tar.TypeLink}}, want: "twice", tar: true},
		{name: "pipe", items: []item{good, {name: "p", kind: tar.TypeFifo}}, want: "not a file, folder or link", tar: true},
		{name: "device", items: []item{good, {name: "p", kind: tar.TypeChar}}, want: "not a file, folder or link", tar: true},
		{name: "block device", items: []item{good, {name: "p", kind: tar.TypeBlock}}, want: "not a file, folder or link", tar: true},
		{name: "device in a zip", items: []item{good, {name: "p", mode: fs.ModeDevice}}, want: "not a file, folder or link", zip: true},
		{name: "pipe in a zip", items: []item{good, {name: "p", mode: fs.ModeNamedPipe}}, want: "not a file, folder or link", zip: true},
	}
	base := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(base, "outside"), []byte("mine"), 0o600))
	s := newServer(t)
	s.file("/good.tgz", tgz(t, item{name: "agent", text: script("1.0.0")}))
	c := s.client(t)
	c.Dir = filepath.Join(base, "acp")
	c.Limits = registry.Limits{Archive: 4 << 20, Unpacked: 2 << 20, Files: 200}
	s.set(s.binary("agent", "1.0.0", "/good.tgz", true))
	must.Get(c.Install(t.Context(), "agent", nil))(t)
	// refused installs a version, which must fail with nothing changed.
	refused := func(t *testing.T, entry *registry.Entry, want string) {
		t.Helper()
		s.set(entry)
		if _, err := c.List(t.Context()); err != nil { // it is written to the cache
			t.Fatal(err)
		}
		before := tree(t, base)
		_, err := c.Update(t.Context(), "agent", nil)
		if broken, ok := errors.AsType[*registry.ArchiveError](err); !ok || !strings.Contains(broken.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		after := tree(t, base)
		delete(before, filepath.Join("acp", "registry.json"))
		delete(after, filepath.Join("acp", "registry.json")) // its time
		if !maps.Equal(before, after) {
			t.Errorf("before %v\nafter %v", before, after)
		}
		is(t, "1.0.0")(c.Find("agent"))
	}
	count := 0
	for _, h := range all {
		items := slices.Clone(h.items)
		for i := range items {
			items[i].name = strings.Replace(items[i].name, "/OUTSIDE", base, 1)
		}
		if !h.zip {
			count++
			t.Run(h.name+" tgz", func(t *testing.T) {
				s.file("/evil.tgz", tgz(t, items...))
				refused(t, s.binary("agent", "2.0.0", "/evil.tgz", true), h.want)
			})
		}
		if !h.tar {
			count++
			t.Run(h.name+" zip", func(t *testing.T) {
				s.file("/evil.zip", zipOf(t, items...))
				refused(t, s.binary("agent", "2.0.0", "/evil.zip", true), h.want)
			})
		}
	}
	t.Logf("%d hostile archives", count)

	for _, h := range []struct {
		name, file, want string
		text             []byte
	}{
		{"no zip", "/x.zip", "not a zip file", []byte("x")},
		{"no gzip", "/x.tgz", "not compressed", []byte("x")},
		{"no bzip2", "/x.tar.bz2", "not a tar archive", []byte("x")},
		{"cut", "/x.tar.gz", "unexpected EOF", tgz(t, good)[:40]},
		{"zip of 0 bytes", "/x.zip", "not a zip file", nil},
		{"tgz of 0 bytes", "/x.tgz", "not compressed", nil},
		{"tbz2 of 0 bytes", "/x.tbz2", "not a tar archive", nil},
		{"program of 0 bytes", "/agent-linux", "is empty", nil},
		{"zip64 with a false size", "/x.zip", "", wrongZip(t, zip.FileHeader{Method: zip.Deflate, UncompressedSize64: 1 << 40}, "\x01\x00\x00")},
		{"zip whose files overlap", "/x.zip", "more than 2097152 bytes", overlapping(t)},
		{"large", "/x.zip", "more than 4194304 bytes", make([]byte, 5<<20)},
		{"installer", "/x.deb", "is an installer", []byte("x")},
		{"sparse", "/x.tgz", "more than 2097152 bytes", sparse(t)},
		{"long list", "/x.zip", "list of files is too long", longList(t)},
		{"bad sum", "/x.zip", "checksum", wrongZip(t, zip.FileHeader{Method: zip.Store, CRC32: 1, UncompressedSize64: 1}, "x")},
	} {
		t.Run(h.name, func(t *testing.T) {
			s.file(h.file, h.text)
			refused(t, s.binary("agent", "2.0.0", h.file, true), h.want)
		})
	}
	t.Run("another sum", func(t *testing.T) {
		e := s.binary("agent", "2.0.0", "/good.tgz", true)
		refused(t, changed(e, func(a *registry.Archive) { a.SHA256 = strings.Repeat("0", 64) }), "the SHA-256 of")
	})
	for cmd, want := range map[string]string{
		"../../../bin/sh": "outside the archive", "/bin/sh": "outside the archive", "": "outside the archive",
		".": "outside the archive", `..\sh`: "outside the archive", "node": "it needs node of the system",
	} {
		t.Run("command "+cmd, func(t *testing.T) {
			e := s.binary("agent", "2.0.0", "/good.tgz", true)
			refused(t, changed(e, func(a *registry.Archive) { a.Cmd = cmd }), want)
		})
	}
}

// wrongZip is a zip with a file that is not as its header says.
func wrongZip(t *testing.T, header zip.FileHeader, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	header.Name, header.CompressedSize64 = "agent", uint64(len(text))
	must.Get(io.WriteString(must.Get(w.CreateRaw(&header))(t), text))(t)
	must.Do(t, w.Close())
	return b.Bytes()
}

// overlapping is a zip of many files with the same text, which is there once.
func overlapping(t *testing.T) []byte {
	t.Helper()
	text := bytes.Repeat([]byte("\x00"), 1<<20)
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	one, err := w.Create("a00")
	if err == nil {
		_, err = one.Write(text)
	}
	must.Do(t, errors.Join(err, w.Close()))
	all := b.Bytes()
	at := bytes.Index(all, []byte("PK\x01\x02"))
	end := bytes.LastIndex(all, []byte("PK\x05\x06"))
	header, tail := all[at:end], slices.Clone(all[end:])
	out := slices.Clone(all[:at])
	const files = 100
	for i := range files {
		out = append(out, bytes.Replace(header, []byte("a00"), fmt.Appendf(nil, "a%02d", i), 1)...)
	}
	binary.LittleEndian.PutUint16(tail[8:], files)
	binary.LittleEndian.PutUint16(tail[10:], files)
	binary.LittleEndian.PutUint32(tail[12:], uint32(files*len(header)))
	return append(out, tail...)
}

// sparse is a tar of a file that is almost all a hole: it has 1 TiB, of which the archive has nothing.
func sparse(t *testing.T) []byte {
	t.Helper()
	size := int64(1) << 40
	data := fmt.Sprintf("1\n%d\n0\n", size) // one piece, of no bytes, at the end
	data += strings.Repeat("\x00", 512-len(data))
	record := func(key, value string) string {
		n := len(key) + len(value) + 3
		for len(fmt.Sprint(n))+len(key)+len(value)+3 != n {
			n = len(fmt.Sprint(n)) + len(key) + len(value) + 3
		}
		return fmt.Sprintf("%d %s=%s\n", n, key, value)
	}
	pax := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.name", "hole") + record("GNU.sparse.realsize", fmt.Sprint(size))
	block := func(name string, kind byte, size int) []byte {
		b := make([]byte, 512)
		copy(b, name)
		copy(b[100:], "0000644\x00")
		copy(b[124:], fmt.Sprintf("%011o\x00", size))
		b[156] = kind
		copy(b[257:], "ustar\x0000")
		copy(b[148:], "        ")
		sum := 0
		for _, c := range b {
			sum += int(c)
		}
		copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
		return b
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for _, part := range [][]byte{
		block("pax", tar.TypeXHeader, len(pax)), []byte(pax), make([]byte, 512-len(pax)), block("hole", tar.TypeReg, len(data)), []byte(data), make([]byte, 1024),
	} {
		must.Get(z.Write(part))(t)
	}
	must.Do(t, z.Close())
	return b.Bytes()
}

// longList is a zip whose list of files is longer than that of any with as many files as are allowed.
func longList(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range 30 {
		h := &zip.FileHeader{Name: fmt.Sprint("f", i), Comment: strings.Repeat("x", 60_000)}
		must.Get(w.CreateHeader(h))(t)
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

// TestREG13_TwoInstall: goroutines, and processes, that install the same agent at once: it is fetched once, and whole.
func TestREG13_TwoInstall(t *testing.T) {
	tier.Need(t, tier.Normal)
	requireShell(t)
	s := newServer(t)
	s.file("/a.tgz", tgz(t, item{name: "agent", text: script("1.0.0")}, item{name: "more", text: strings.Repeat("x", 1<<20)}))
	s.set(s.binary("one", "1.0.0", "/a.tgz", true))
	c := s.client(t)
	must.Get(c.List(t.Context()))(t)
	s.requests()
	var work sync.WaitGroup
	folders := make(chan string, 20)
	for range 8 {
		work.Go(func() {
			i, err := c.Install(t.Context(), "one", nil)
			if err != nil {
				t.Error(err)
				return
			}
			folders <- i.Folder()
		})
	}
	for range 4 {
		work.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "REGISTRY_TEST_URL="+c.URL, "REGISTRY_TEST_DIR="+c.Dir, "REGISTRY_TEST_ID=one")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v: %s", err, out)
				return
			}
			folders <- strings.TrimSpace(string(out))
		})
	}
	work.Wait()
	close(folders)
	seen := map[string]int{}
	for f := range folders {
		seen[f]++
	}
	fetched := 0
	for _, path := range s.requests() {
		if path == "/a.tgz" {
			fetched++
		}
	}
	if len(seen) != 1 || fetched != 1 {
		t.Errorf("folders %v, fetched %d times", seen, fetched)
	}
	if left := tree(t, filepath.Join(c.Dir, "agents", "one")); len(left) != 5 { // the folder, the record, the version with two files
		t.Errorf("%v", left)
	}
}

// TestKilled: a process that is killed while it installs leaves nothing that is started, and the next removes what it has
// left.
func TestKilled(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	s.release(t, "1.0.0")
	c := s.client(t)
	must.Get(c.Install(t.Context(), "one", nil))(t)
	reached, stop := make(chan bool), make(chan bool)
	var slow atomic.Bool
	text := tgz(t, item{name: "agent", text: script("2.0.0")})
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if slow.CompareAndSwap(false, true) { // the first gets half of it
			w.Header().Set("Content-Length", fmt.Sprint(len(text)))
			w.Write(text[:len(text)/2])
			w.(http.Flusher).Flush()
			close(reached)
			<-stop
			return
		}
		w.Write(text)
	}))
	defer half.Close()
	defer close(stop)
	s.set(elsewhere(s.binary("one", "2.0.0", "/1.0.0.tgz", false), half.URL+"/2.tgz"))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "REGISTRY_TEST_URL="+c.URL, "REGISTRY_TEST_DIR="+c.Dir, "REGISTRY_TEST_ID=one")
	must.Do(t, cmd.Start())
	<-reached
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait()                                                                                                  // it was killed
	if left, err := filepath.Glob(filepath.Join(c.Dir, "agents", "one", "2.0.0-*")); err != nil || len(left) == 0 { // the folder, and what was fetched
		t.Errorf("left: %q, %v", left, err)
	}
	is(t, "1.0.0")(c.Find("one"))
	now, err := c.Update(t.Context(), "one", nil)
	if err != nil || now.Entry.Version != "2.0.0" {
		t.Fatalf("got %v, %v", now, err)
	}
	if left, err := filepath.Glob(filepath.Join(c.Dir, "agents", "one", "2.0.0-*")); err != nil || len(left) != 1 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestDamaged: what somebody else has written to the folder is not started.
func TestDamaged(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	s.release(t, "1.0.0")
	c := s.client(t)
	must.Get(c.Install(t.Context(), "one", nil))(t)
	name := filepath.Join(c.Dir, "agents", "one", "installed.json")
	outside := filepath.Join(c.Dir, "agents", "elsewhere")
	for _, dir := range []string{outside, filepath.Join(c.Dir, "agents", "one", "x", "y")} {
		must.Do(t, os.MkdirAll(dir, 0o700))
		must.Do(t, os.WriteFile(filepath.Join(dir, "agent"), []byte(script("1.0.0")), 0o700))
	}
	for _, text := range []string{
		`{`, `null`, `{"entry":{"id":"two"}}`, `{"entry":{"id":"one"},"folder":"../..","program":"agent"}`,
		`{"entry":{"id":"one"},"folder":".","program":"agent"}`, `{"entry":{"id":"one"},"folder":"x","program":"../../../../bin/sh"}`,
		`{"entry":{"id":"one"},"folder":"x","program":"/bin/sh"}`, strings.Repeat(" ", 2<<20),
		`{"entry":{"id":"one"},"folder":"..","program":"elsewhere/agent"}`, `{"entry":{"id":"one"},"folder":"../elsewhere","program":"agent"}`,
		`{"entry":{"id":"one"},"folder":"x/y","program":"agent"}`, `{"entry":{"id":"two"},"folder":"x","program":"y/agent"}`,
	} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		if i, err := c.Find("one"); err == nil {
			t.Errorf("%.80s: got %+v", text, i)
		}
		if all, err := c.Installed(); err == nil || len(all) != 0 {
			t.Errorf("%.80s: got %v, %v", text, all, err)
		}
	}
	is(t, "1.0.0")(c.Install(t.Context(), "one", nil))
	must.Get(os.Stat(filepath.Join(outside, "agent")))(t)
}

// TestPlanIsWhole: nothing of what will be run is hidden behind something long.
func TestPlanIsWhole(t *testing.T) {
	p := &registry.Plan{
		Entry: registry.Entry{ID: "one", Name: strings.Repeat("n", 100_000), Version: "1.0.0"},
		Kind:  registry.Binary, Program: "./agent", Args: []string{strings.Repeat("a", 3000), "--hidden"},
		Env: map[string]string{"A": strings.Repeat("b", 3000)},
	}
	text := p.String()
	if !strings.Contains(strings.ReplaceAll(text, "\n         ", ""), " ./agent "+p.Args[0]+" --hidden") {
		t.Errorf("the plan does not say all:\n%s", text)
	}
	if len(text) > 10_000 {
		t.Errorf("the plan has %d bytes", len(text))
	}
}

// TestEncodedArchive: an archive that its server calls an encoding is taken as it is.
func TestEncodedArchive(t *testing.T) {
	requireShell(t)
	text := tgz(t, item{name: "agent", text: script("1.0.0")})
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(text)
	}))
	t.Cleanup(files.Close)
	s := newServer(t)
	s.file("/agent.tar.gz", text)
	s.set(changed(s.binary("one", "1.0.0", "/agent.tar.gz", true), func(a *registry.Archive) { a.Archive = files.URL + "/agent.tar.gz" }))
	if i, err := s.client(t).Install(t.Context(), "one", nil); err != nil || !i.Verified {
		t.Errorf("got %v, %v", i, err)
	}
}

// TestUnknownArchive: an archive of a kind that is not unpacked is not taken for a program, and nobody is asked.
func TestUnknownArchive(t *testing.T) {
	s := newServer(t)
	c := s.client(t)
	c.Consent = func(context.Context, *registry.Plan) error { t.Error("the user was asked"); return nil }
	for _, name := range []string{"/agent.tar.xz", "/agent.7Z", "/agent.tar.zst", "/agent.gz"} {
		s.file(name, []byte("x"))
		s.set(s.binary("one", "1.0.0", name, true))
		i, err := c.Install(t.Context(), "one", nil)
		if _, ok := errors.AsType[*registry.ArchiveError](err); !ok {
			t.Errorf("%s: got %v, %v", name, i, err)
		}
	}
}

// TestLongCache: a cache that is longer than a list may be is fetched anew.
func TestLongCache(t *testing.T) {
	s := newServer(t)
	s.set(s.binary("one", "1.0.0", "/agent.tar.gz", false))
	c := s.client(t)
	c.Limits.List = 4096
	must.Do(t, os.MkdirAll(c.Dir, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(c.Dir, "registry.json"), bytes.Repeat([]byte(" "), 100_000), 0o600))
	if list, err := c.List(t.Context()); err != nil || len(list.Agents) != 1 {
		t.Errorf("got %v, %v", list, err)
	}
}

// TestPlainHTTPOfOthers: a registry that is asked over https cannot name what is on this machine, nor lead there.
func TestPlainHTTPOfOthers(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	s.file("/agent.tar.gz", tgz(t, item{name: "agent", text: script("1.0.0")}))
	local := s.binary("local", "1.0.0", "/agent.tar.gz", true)
	s.set(local)
	over := httptest.NewTLSServer(s)
	defer over.Close()
	c := s.client(t)
	c.HTTP, c.URL = over.Client(), over.URL+"/registry.json"
	fails(t, registry.ErrPlainHTTP)(c.Install(t.Context(), "local", nil))
	if asked := s.requests(); slices.Contains(asked, "/agent.tar.gz") {
		t.Errorf("asked for %q", asked)
	}
	redirect := httptest.NewTLSServer(http.RedirectHandler(s.URL+"/agent.tar.gz", http.StatusFound))
	defer redirect.Close()
	for name, address := range map[string]string{"of a list over https": over.URL, "of a list on this machine": s.URL} {
		s.set(elsewhere(s.binary("local", "1.0.0", "/agent.tar.gz", true), redirect.URL+"/agent.tar.gz"))
		c := s.client(t)
		c.HTTP, c.URL = redirect.Client(), address+"/registry.json"
		c.HTTP.Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true // two servers with certificates of their own
		if _, err := c.Install(t.Context(), "local", nil); !errors.Is(err, registry.ErrPlainHTTP) {
			t.Errorf("a redirection %s: got %v", name, err)
		}
		if asked := s.requests(); slices.Contains(asked, "/agent.tar.gz") {
			t.Errorf("asked for %q", asked)
		}
	}
}

// TestErrorsAreClean: nothing that a registry or a server says reaches the terminal as it is.
func TestErrorsAreClean(t *testing.T) {
	tier.Need(t, tier.Normal)
	strange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(conn, "HTTP/1.1 404 \x1b[2J\u202e\x07\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		conn.Close()
	}))
	defer strange.Close()
	s := newServer(t)
	s.file("/a\u202e", []byte("x"))
	for _, address := range []string{strange.URL + "/x", s.URL + "/\x1b[2J", s.URL + "/none\u202e", s.URL + "/a\u202e", "http://example.com/\u202e\u0085"} {
		s.set(changed(elsewhere(s.binary("agent", "1.0.0", "/x", false), address), func(a *registry.Archive) { a.SHA256 = strings.Repeat("0", 64) }))
		_, err := s.client(t).Install(t.Context(), "agent", nil)
		if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\u202e\u0085\r\n") {
			t.Errorf("%q: %q", address, err)
		}
	}
	c := s.client(t)
	c.URL = strange.URL
	if _, err := c.List(t.Context()); err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\u202e") {
		t.Errorf("%q", err)
	}
}

// TestNoCache: a cache that cannot be written, or read, keeps nobody from the list; what is installed is started.
func TestNoCache(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	s.release(t, "1.0.0")
	c := s.client(t)
	must.Get(c.Install(t.Context(), "one", nil))(t)
	name := filepath.Join(c.Dir, "registry.json")
	if err := errors.Join(os.Remove(name), os.MkdirAll(filepath.Join(name, "x"), 0o700)); err != nil { // also root cannot write it
		t.Fatal(err)
	}
	list, err := c.List(t.Context())
	if err != nil || len(list.Agents) != 1 || list.NotKept == nil || list.Stale != nil {
		t.Errorf("got %+v, %v", list, err)
	}
	if left := must.Get(filepath.Glob(filepath.Join(c.Dir, ".new-*")))(t); len(left) != 0 {
		t.Errorf("left: %q", left)
	}
	is(t, "1.0.0")(c.Install(t.Context(), "one", nil))
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	c.Dir = filepath.Join(file, "acp")
	c.Consent = func(context.Context, *registry.Plan) error {
		t.Error("the user was asked for what cannot be done")
		return nil
	}
	if list, err := c.List(t.Context()); err != nil || len(list.Agents) != 1 || list.NotKept == nil {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, err := c.Install(t.Context(), "one", nil); err == nil {
		t.Error("it is installed in a file")
	}
}

// TestChangedMeanwhile: what another installs, removes or pins while the user is asked is not undone.
func TestChangedMeanwhile(t *testing.T) {
	tier.Need(t, tier.Normal)
	requireShell(t)
	s := newServer(t)
	yes := func(context.Context, *registry.Plan) error { return nil }
	install := func(c *registry.Client) error {
		_, err := c.Install(t.Context(), "one", nil)
		return err
	}
	pin := func(c *registry.Client) error { return c.Pin(t.Context(), "one", true) }
	newer := func(c *registry.Client) error {
		s.release(t, "3.0.0")
		return install(c)
	}
	for _, test := range []struct {
		name    string
		with    *registry.InstallOptions
		update  bool
		what    func(c *registry.Client) error
		want    error
		version string // that is there then
	}{
		{"a newer version", nil, false, newer, registry.ErrChanged, "3.0.0"},
		{"a newer version, by force", &registry.InstallOptions{Again: true}, false, newer, registry.ErrChanged, "3.0.0"},
		{"the same version", nil, false, install, nil, "2.0.0"},
		{"removed", nil, true, func(c *registry.Client) error { return c.Remove(t.Context(), "one") }, registry.ErrChanged, ""},
		{"pinned", nil, true, pin, registry.ErrPinned, "1.0.0"},
		{"pinned in another kind", &registry.InstallOptions{Kind: registry.UVX}, false, pin, registry.ErrPinned, "1.0.0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s.release(t, "1.0.0")
			c := s.client(t)
			c.Environ = fakeTools(t, "false")
			must.Get(c.Install(t.Context(), "one", nil))(t)
			s.release(t, "2.0.0").Distribution.UVX = &registry.Package{Package: "one==2.0.0"}
			other := *c
			c.Consent = func(context.Context, *registry.Plan) error {
				other.Consent = yes
				return test.what(&other)
			}
			var err error
			if test.update {
				_, err = c.Update(t.Context(), "one", test.with)
			} else {
				_, err = c.Install(t.Context(), "one", test.with)
			}
			if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			now, err := c.Find("one")
			if test.version == "" {
				if !errors.Is(err, registry.ErrNotInstalled) {
					t.Errorf("got %v, %v", now, err)
				}
				return
			}
			if err != nil || now.Entry.Version != test.version {
				t.Errorf("got %v, %v", now, err)
			}
		})
	}
}

// manyFiles is a zip that says that it has a number of files, which its list has not.
func manyFiles(t *testing.T, n uint64, in64, hidden bool) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if one, err := w.Create("agent"); err != nil {
		t.Fatal(err)
	} else if _, err := one.Write(bytes.Repeat([]byte("0123456789abcdef"), 100)); err != nil {
		t.Fatal(err)
	}
	must.Do(t, w.Close())
	all := b.Bytes()
	at := bytes.LastIndex(all, []byte("PK\x05\x06"))
	end := slices.Clone(all[at:])
	all = append(all[:at:at], make([]byte, 2<<20)...) // so that there is room for them
	if in64 {
		record := make([]byte, 56)
		copy(record, "PK\x06\x06")
		binary.LittleEndian.PutUint64(record[4:], 44)
		binary.LittleEndian.PutUint64(record[24:], n)
		binary.LittleEndian.PutUint64(record[32:], n)
		locator := make([]byte, 20)
		copy(locator, "PK\x06\x07")
		binary.LittleEndian.PutUint64(locator[8:], uint64(len(all)))
		binary.LittleEndian.PutUint32(locator[16:], 1)
		all = append(append(all, record...), locator...)
		n = 0xffff
	}
	binary.LittleEndian.PutUint16(end[8:], uint16(n))
	binary.LittleEndian.PutUint16(end[10:], uint16(n))
	if hidden { // another signature, too near to the end to be one
		binary.LittleEndian.PutUint16(end[20:], 8)
		end = append(end, "PK\x05\x06none"...)
	}
	return append(all, end...)
}

// TestFalseCount: no memory is taken for files that a zip only says to have.
func TestFalseCount(t *testing.T) {
	tier.Need(t, tier.Normal)
	s := newServer(t)
	for name, text := range map[string][]byte{
		"16 bits": manyFiles(t, 60_000, false, false), "64 bits": manyFiles(t, 65_000, true, false), "hidden": manyFiles(t, 60_000, false, true),
	} {
		s.file("/x.zip", text)
		s.set(s.binary("agent", "1.0.0", "/x.zip", true))
		c := s.client(t)
		c.Limits.Files = 1000
		_, err := c.Install(t.Context(), "agent", nil)
		if _, ok := errors.AsType[*registry.ArchiveError](err); !ok || !strings.Contains(err.Error(), "more than 1000 files") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestRaw: a program alone takes the name of the command.
func TestRaw(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	s.file("/agent-linux", []byte(script("1.0.0")))
	raw := s.binary("raw", "1.0.0", "/agent-linux", true)
	s.set(raw)
	c := s.client(t)
	i := must.Get(c.Install(t.Context(), "raw", nil))(t)
	if d := launch.Doctor(t.Context(), i.Command(), &launch.DoctorOptions{NoSession: true}); !d.OK() || filepath.Base(d.Program) != "agent" {
		t.Error(d)
	}
}

// TestInstallTime: what takes too long is given up, and nothing of it stays.
func TestInstallTime(t *testing.T) {
	tier.Need(t, tier.Normal)
	s := newServer(t)
	stop := make(chan bool)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		select {
		case <-stop:
		case <-r.Context().Done():
		}
	}))
	defer slow.Close()
	defer close(stop)
	s.set(elsewhere(s.binary("one", "1.0.0", "/x", false), slow.URL+"/2.tgz"))
	c := s.client(t)
	c.Limits.InstallTime = 200 * time.Millisecond
	if _, err := c.Install(t.Context(), "one", nil); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "installing one took longer than 200ms") {
		t.Errorf("got %v", err)
	}
	nothing(t, filepath.Join(c.Dir, "agents"))
}

// TestIncomplete: an agent whose files are gone is not taken for installed: Install and Update install it again, as it
// was pinned.
func TestIncomplete(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	s.release(t, "1.0.0")
	program := func(i *registry.Installed) string { return filepath.Join(i.Folder(), "agent") }
	for _, c := range []struct {
		name   string
		damage func(i *registry.Installed) error
	}{
		{"emptied", func(i *registry.Installed) error {
			return errors.Join(os.RemoveAll(i.Folder()), os.Mkdir(i.Folder(), 0o700))
		}},
		{"removed", func(i *registry.Installed) error { return os.RemoveAll(i.Folder()) }},
		{"without its program", func(i *registry.Installed) error { return os.Remove(program(i)) }},
		{"a folder", func(i *registry.Installed) error {
			return errors.Join(os.Remove(program(i)), os.Mkdir(program(i), 0o700))
		}},
		{"cut off", func(i *registry.Installed) error { return os.Truncate(program(i), 0) }},
		{"not executable", func(i *registry.Installed) error { return os.Chmod(program(i), 0o600) }},
	} {
		for _, update := range []bool{false, true} {
			for _, pinned := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, update %v, pinned %v", c.name, update, pinned), func(t *testing.T) {
					client := s.client(t)
					before, err := client.Install(t.Context(), "one", nil)
					if err == nil {
						err = errors.Join(client.Pin(t.Context(), "one", pinned), c.damage(before))
					}
					if err != nil {
						t.Fatal(err)
					}
					if i, err := client.Find("one"); !errors.Is(err, registry.ErrIncomplete) || i == nil {
						t.Errorf("Find: %v, %v", i, err)
					}
					fails(t, registry.ErrIncomplete)(client.Resolve(t.Context(), "one"))
					if all, err := client.Installed(); !errors.Is(err, registry.ErrIncomplete) || len(all) != 1 {
						t.Errorf("Installed: %v, %v", all, err)
					}
					again := client.Install
					if update {
						again = client.Update
					}
					after, err := again(t.Context(), "one", nil)
					if err != nil || after.Folder() == before.Folder() || after.Pinned != pinned {
						t.Fatalf("%+v, %v", after, err)
					}
					if _, err := client.Find("one"); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// TestPreview: a preview is installed if it is asked for, and is followed by newer previews and by its release.
func TestPreview(t *testing.T) {
	requireShell(t)
	s := newServer(t)
	entry := func(version, preview string) *registry.Entry {
		e := s.release(t, version)
		if preview != "" {
			e.Preview = &registry.Preview{Version: preview, Distribution: s.release(t, preview).Distribution}
		}
		return e
	}
	c := s.client(t)
	var plan string
	c.Consent = func(_ context.Context, p *registry.Plan) error { plan = p.String(); return nil }
	install, update := c.Install, c.Update
	preview := &registry.InstallOptions{Preview: true}
	for _, step := range []struct {
		entry   *registry.Entry
		do      func(context.Context, string, *registry.InstallOptions) (*registry.Installed, error)
		options *registry.InstallOptions
		want    string // the version, or the error
		plan    string
	}{
		{entry("1.0.0", ""), install, preview, "it has no preview", ""},
		{entry("1.0.0", "1.1.0-preview.9"), install, nil, "1.0.0", ""},
		{entry("1.0.0", ""), install, preview, "it has no preview", ""},
		{entry("1.0.0", "1.1.0-preview.9"), update, nil, "1.0.0", ""},
		{entry("1.0.0", "1.1.0-preview.9"), install, preview, "1.1.0-preview.9", "1.1.0-preview.9, a preview\nnow:     1.0.0\n"},
		{entry("1.0.0", "1.1.0-preview.9"), install, preview, "1.1.0-preview.9", ""},
		{entry("1.0.0", "1.1.0-preview.9"), update, nil, "1.1.0-preview.9", ""},
		{entry("1.0.0", "1.1.0-preview.10"), update, nil, "1.1.0-preview.10", "now:     1.1.0-preview.9\n"},
		{entry("1.0.0", "1.1.0-preview.9"), update, nil, "older than the installed one: one 1.1.0-preview.9, installed is 1.1.0-preview.10", ""},
		{entry("1.0.0", ""), update, nil, "older than the installed one: one 1.0.0, installed is 1.1.0-preview.10", ""},
		{entry("1.1.0", "1.1.0-preview.11"), update, nil, "1.1.0", "now:     1.1.0-preview.10\n"},
		{entry("1.1.0", "1.2.0-preview.1"), update, nil, "1.1.0", ""},
		{entry("1.1.0", "1.2.0-preview.1"), update, preview, "1.2.0-preview.1", "a preview"},
		{entry("1.1.0", "1.2.0-preview.1"), install, nil, "1.1.0", "1.1.0\nnow:     1.2.0-preview.1, which is newer\n"},
		{entry("1.0.9", ""), update, nil, "older than the installed one: one 1.0.9, installed is 1.1.0", ""},
		{entry("1.0.9", ""), update, &registry.InstallOptions{Again: true}, "1.0.9", "now:     1.1.0, which is newer\n"},
		{entry("1.0.10", ""), update, nil, "1.0.10", "now:     1.0.9\n"},
	} {
		s.set(step.entry)
		plan = ""
		i, err := step.do(t.Context(), "one", step.options)
		if err != nil {
			if !strings.Contains(err.Error(), step.want) {
				t.Errorf("%v: %v, want %s", step.entry.Preview, err, step.want)
			}
		} else if i.Entry.Version != step.want || i.Preview != strings.Contains(step.want, "-") {
			t.Errorf("%s %v: %s, preview %v, want %s", step.entry.Version, step.entry.Preview, i.Entry.Version, i.Preview, step.want)
		}
		if !strings.Contains(plan, step.plan) || (plan == "") != (step.plan == "") && step.want != "1.0.0" {
			t.Errorf("%s: the plan is\n%s", step.want, plan)
		}
	}
	s.set(entry("1.0.11", "1.0.12-preview.1"))
	if list, err := c.List(t.Context()); err != nil || len(list.Agents) != 1 {
		t.Errorf("%v, %v", list, err)
	} else if newer, err := c.Outdated(list); err != nil || len(newer) != 1 {
		t.Errorf("%v, %v", newer, err)
	}
	s.set(entry("1.0.9", ""))
	if list, err := c.List(t.Context()); err != nil || len(list.Agents) != 1 {
		t.Errorf("%v, %v", list, err)
	} else if newer, err := c.Outdated(list); err != nil || len(newer) != 0 {
		t.Errorf("%v, %v", newer, err)
	}
}
