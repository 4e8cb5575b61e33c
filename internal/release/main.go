// Release tags a version of every module that this repository publishes.
//
// Usage:
//
//	release VERSION
//
// The modules are released together, at one version: they import internal packages of the library. The version of
// acp/acpv2 begins with v0 nevertheless. In the tree each nested module replaces the others that it requires by their
// folders. The go command refuses to install a module that does so, and so the tags point at a commit of their own,
// which the branch does not contain: in it, the nested modules require the others at the version that is released.
//
// Release pushes nothing and changes no file and no branch. It prints the command that publishes the tags. If it fails,
// there are no tags.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// library is the path of the root module.
const library = "github.com/acpgo/sdk"

// nested are the folders of the other modules that are published. A module comes after those that it requires.
var nested = []string{"acp/acpv2", "cmd/acp", "contrib/mcpacp", "contrib/otelacp", "contrib/natsacp",
	"contrib/sqlitestore"}

// checks are the commands that must succeed before a release. Make check includes the others, which fail sooner.
var checks = [][]string{
	{"go", "run", "./cmd/acpgen", "-check"},
	{"go", "test", "-run", "^(TestAPI|TestLeniencyTable|TestRequirementsTable)$", "./internal/test/repo"},
	{"make", "check", "heavy"},
}

func main() {
	if len(os.Args) != 2 || os.Args[1] == "" {
		fmt.Fprintln(os.Stderr, "usage: make release VERSION=vX.Y.Z")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := release{repo: ".", version: os.Args[1], checks: checks, log: os.Stderr}
	if err := r.run(ctx); err != nil {
		stop()
		fmt.Fprintf(os.Stderr, "release %s: %v\n", r.version, err)
		os.Exit(1)
	}
	fmt.Printf("Tagged, and not published. To publish:\n\n\tgit push --atomic origin %s\n", strings.Join(r.tags(), " "))
}

// preview is the folder of the module of version 2 of the protocol, whose versions stay below v1 while that is in
// Preview.
const preview = "acp/acpv2"

// release is one version of all modules.
type release struct {
	repo    string // the root of the repository
	version string // of all modules but one; see versionOf
	checks  [][]string
	log     io.Writer // what the checks print
}

// tags are the names of the tags: the go command expects the folder of a nested module before its version.
func (r *release) tags() []string {
	tags := []string{r.version}
	for _, dir := range nested {
		tags = append(tags, dir+"/"+r.versionOf(dir))
	}
	return tags
}

// versionOf is the version of the module in a folder. The module in preview has v0.102.3 where the others have v1.2.3.
func (r *release) versionOf(dir string) string {
	rest, ok := strings.CutPrefix(r.version, "v1.")
	if dir != preview || !ok {
		return r.version
	}
	minor, rest, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	if err != nil {
		return r.version // checkVersion refuses it
	}
	return fmt.Sprintf("v0.%d.%s", 100+n, rest)
}

// run checks the repository, makes the release commit and its tags in a temporary clone, and fetches the tags from
// there, all of them or none.
func (r *release) run(ctx context.Context) (err error) {
	if err := checkVersion(r.version); err != nil {
		return err
	}
	if err := r.checkTree(ctx); err != nil {
		return err
	}
	head, err := git(ctx, r.repo, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	for _, check := range r.checks {
		fmt.Fprintln(r.log, strings.Join(check, " "))
		cmd := exec.CommandContext(ctx, check[0], check[1:]...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = r.repo, r.log, r.log
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(check, " "), err)
		}
	}
	// The checks take minutes, in which the tree may change, and they may write files themselves.
	if err := r.checkTree(ctx); err != nil {
		return fmt.Errorf("after the checks: %w", err)
	}

	temp, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	repo, err := filepath.Abs(r.repo)
	if err != nil {
		return err
	}
	clone, proxy := filepath.Join(temp, "clone"), filepath.Join(temp, "proxy")
	if _, err := git(ctx, repo, "clone", "--quiet", "--shared", "--no-checkout", repo, clone); err != nil {
		return err
	}
	if _, err := git(ctx, clone, "checkout", "--quiet", "--detach", head); err != nil {
		return err
	}
	for _, key := range []string{"user.name", "user.email", "user.signingKey"} {
		if value, err := git(ctx, repo, "config", key); err == nil { // else the environment or the user's settings say it
			if _, err := git(ctx, clone, "config", key, value); err != nil {
				return err
			}
		}
	}

	// A module's zip has no nested module in it, so it is the same in the release commit, whatever is done to the next
	// ones.
	done, revision := map[string][]string{}, head
	for _, dir := range append([]string{""}, nested...) {
		if dir != "" {
			if err := r.require(filepath.Join(clone, filepath.FromSlash(dir)), done); err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
			if _, err := git(ctx, clone, "add", "."); err != nil {
				return err
			}
			if revision, err = git(ctx, clone, "stash", "create"); err != nil { // a commit without a branch
				return err
			}
		}
		if done[path.Join(library, dir)], err = addToProxy(ctx, proxy, clone, revision, dir, r.versionOf(dir)); err != nil {
			return err
		}
	}
	if err := r.checkTidy(ctx, clone, proxy, filepath.Join(temp, "mod")); err != nil {
		return err
	}
	if _, err := git(ctx, clone, "commit", "--quiet", "-m", "all: release "+r.version); err != nil {
		return err
	}
	fetch := []string{"fetch", "--quiet", "--atomic", "--no-tags", clone}
	for _, tag := range r.tags() {
		if _, err := git(ctx, clone, "tag", "--annotate", "-m", path.Join(library, path.Dir(tag))+" "+path.Base(tag),
			tag); err != nil {
			return err
		}
		fetch = append(fetch, "refs/tags/"+tag+":refs/tags/"+tag)
	}
	_, err = git(ctx, repo, fetch...)
	return err
}

// checkVersion reports why a string is not a version that the modules can have.
func checkVersion(version string) error {
	if err := module.Check(library, version); err != nil {
		return err
	}
	if semver.Canonical(version) != version {
		return errors.New("not a semantic version of the form vX.Y.Z")
	}
	if module.IsPseudoVersion(version) {
		return errors.New("the go command gives such versions to commits without a tag")
	}
	return nil
}

// checkTree reports why the tree is not ready to be released.
func (r *release) checkTree(ctx context.Context) error {
	status, err := git(ctx, r.repo, "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return fmt.Errorf("the tree has changes that are not committed:\n%s", status)
	}
	tags, err := git(ctx, r.repo, append([]string{"tag", "--list"}, r.tags()...)...)
	if err != nil {
		return err
	}
	if tags != "" {
		return fmt.Errorf("there are tags already: %s", strings.Join(strings.Fields(tags), ", "))
	}
	text, err := os.ReadFile(filepath.Join(r.repo, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	return checkChangelog(string(text), r.version)
}

// checkChangelog reports whether the newest section of the changelog is about the version. Its heading is the version,
// and the date if one likes: "## v0.3.0, 2027-01-31".
func checkChangelog(text, version string) error {
	_, section, found := strings.Cut("\n"+text, "\n## ")
	if !found {
		return errors.New("CHANGELOG.md has no sections")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	heading, entries, _ := strings.Cut(section, "\n")
	if name, _, _ := strings.Cut(strings.TrimSpace(heading), ","); name != version {
		return fmt.Errorf("the first section of CHANGELOG.md is %q; rename it to %q", heading, version)
	}
	if strings.TrimSpace(entries) == "" {
		return fmt.Errorf("the section %q of CHANGELOG.md is empty", heading)
	}
	return nil
}

// require has the nested module in a folder require the modules that are done, whose lines of go.sum are given by path,
// at the released version.
func (r *release) require(dir string, done map[string][]string) error {
	name := filepath.Join(dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(name, data, nil)
	if err != nil {
		return err
	}
	var sums []string
	for _, required := range mod.Require {
		if lines := done[required.Mod.Path]; lines != nil {
			sums = append(sums, lines...)
			err = errors.Join(err, mod.DropReplace(required.Mod.Path, ""),
				mod.AddRequire(required.Mod.Path, r.versionOf(strings.TrimPrefix(required.Mod.Path, library+"/"))))
		}
	}
	if err != nil {
		return err
	}
	mod.Cleanup()
	if len(mod.Replace) > 0 {
		return fmt.Errorf("go.mod replaces %s: nobody could install the module", mod.Replace[0].Old.Path)
	}
	if data, err = mod.Format(); err != nil {
		return err
	}
	if err := os.WriteFile(name, data, 0o644); err != nil {
		return err
	}

	name = filepath.Join(dir, "go.sum")
	data, err = os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	slices.Sort(sums)
	var before, after []string // go.sum is in the order of paths
	for line := range strings.Lines(string(data)) {
		if mod, _, _ := strings.Cut(line, " "); mod < library {
			before = append(before, line)
		} else {
			after = append(after, line)
		}
	}
	text := strings.Join(before, "") + strings.Join(sums, "") + strings.Join(after, "")
	return os.WriteFile(name, []byte(text), 0o644)
}

// checkTidy reports what go mod tidy would change in the nested modules of a clone. A proxy in a folder has the modules
// that are released. The module cache is a folder too: the user's would keep them at this version, also if the release
// fails.
func (r *release) checkTidy(ctx context.Context, clone, proxy, cache string) error {
	env, err := proxyEnv(ctx, proxy, cache)
	if err != nil {
		return err
	}
	for _, dir := range nested {
		cmd := exec.CommandContext(ctx, "go", "mod", "tidy", "-diff")
		cmd.Dir, cmd.Env = filepath.Join(clone, filepath.FromSlash(dir)), env
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: go mod tidy -diff: %w\n%s", dir, err, out)
		}
	}
	return nil
}

// proxyEnv is an environment in which the go command looks for modules in a proxy in a folder first, then in the user's
// module cache, and then where the user does. It keeps them in another cache, which can be removed.
func proxyEnv(ctx context.Context, proxy, cache string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "-json", "GOMODCACHE", "GOPROXY")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	var user struct{ GOMODCACHE, GOPROXY string }
	if err := json.Unmarshal(out, &user); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	return append(os.Environ(),
		"GOPROXY="+fileURL(proxy)+","+fileURL(filepath.Join(user.GOMODCACHE, "cache", "download"))+","+user.GOPROXY,
		"GOMODCACHE="+cache, "GOFLAGS=-modcacherw", "GOWORK=off",
		"GOPRIVATE=", "GONOPROXY=none", "GONOSUMDB="+library+","+library+"/*"), nil
}

func fileURL(dir string) string {
	return "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/")
}

// addToProxy adds a module to a proxy in a folder, as the module is in a folder of a repository at a revision. It
// returns the module's lines of go.sum.
func addToProxy(ctx context.Context, proxy, repo, revision, dir, version string) (sums []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("module in %q: %w", dir, err)
		}
	}()
	mod := module.Version{Path: path.Join(library, dir), Version: version}
	escaped, err := module.EscapePath(mod.Path)
	if err != nil {
		return nil, err
	}
	base := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(base, 0o755); err != nil {
		return nil, err
	}
	goMod, err := git(ctx, repo, "show", revision+":"+path.Join(dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	goMod += "\n" // git above drops the last one
	date, err := git(ctx, repo, "log", "-1", "--format=%cI", revision)
	if err != nil {
		return nil, err
	}
	when, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return nil, err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, when.UTC()})
	if err != nil {
		return nil, err
	}
	var zipped bytes.Buffer
	if err := zip.CreateFromVCS(&zipped, mod, repo, revision, dir); err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{
		version + ".zip": zipped.Bytes(), version + ".mod": []byte(goMod), version +
			".info": info, "list": []byte(version + "\n"),
	} {
		if err := os.WriteFile(filepath.Join(base, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	zipSum, err := dirhash.HashZip(filepath.Join(base, version+".zip"), dirhash.DefaultHash)
	if err != nil {
		return nil, err
	}
	modSum, err := dirhash.DefaultHash([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(goMod)), nil
	})
	if err != nil {
		return nil, err
	}
	return []string{mod.Path + " " + version + " " + zipSum + "\n", mod.Path + " " + version + "/go.mod " + modSum + "\n"},
		nil
}

// git runs git in a folder, and returns what it prints without the last line break.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}
