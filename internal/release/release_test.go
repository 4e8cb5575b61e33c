package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/tier"
)

// version is one that will never be released.
const version = "v0.999.0"

// TestMain keeps the user's settings of git away from the tests, and this repository too: a hook that runs the tests has
// variables that lead git to it from any folder.
func TestMain(m *testing.M) {
	local, err := git(context.Background(), ".", "rev-parse", "--local-env-vars")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name := range strings.FieldsSeq(local) {
		os.Unsetenv(name)
	}
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Exit(m.Run())
}

// TestRelease releases small modules and their library.
func TestRelease(t *testing.T) {
	tier.Need(t, tier.Normal)
	repo := small(t)
	write(t, repo, "ignored", "by git")
	head, branch := gitIn(t, repo, "rev-parse", "HEAD"), gitIn(t, repo, "branch", "--show-current")
	r := release{repo: repo, version: version, checks: [][]string{{"git", "--version"}}, log: io.Discard}
	if err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := gitIn(t, repo, "rev-parse", "HEAD"); got != head {
		t.Errorf("HEAD moved from %s to %s", head, got)
	}
	if got := gitIn(t, repo, "branch", "--show-current"); got != branch {
		t.Errorf("the branch is %q, not %q", got, branch)
	}
	if got := gitIn(t, repo, "status", "--porcelain"); got != "" {
		t.Errorf("the tree has changed:\n%s", got)
	}
	want := []string{"acp/acpv2/v0.999.0", "cmd/acp/v0.999.0", "contrib/mcpacp/v0.999.0", "contrib/natsacp/v0.999.0", "contrib/otelacp/v0.999.0", "contrib/sqlitestore/v0.999.0", "v0.999.0"}
	if got := strings.Fields(gitIn(t, repo, "tag")); !slices.Equal(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	for _, tag := range want {
		if got := gitIn(t, repo, "cat-file", "-t", tag); got != "tag" {
			t.Errorf("%s is a %s, not an annotated tag", tag, got)
		}
		if got := gitIn(t, repo, "rev-parse", tag+"^{commit}^"); got != head {
			t.Errorf("the parent of %s is %s, not %s", tag, got, head)
		}
	}
	var changed []string
	for _, tag := range want[:len(want)-1] {
		changed = append(changed, path.Dir(tag)+"/go.mod", path.Dir(tag)+"/go.sum")
	}
	if got := strings.Fields(gitIn(t, repo, "diff", "--name-only", "HEAD", version)); !slices.Equal(got, changed) {
		t.Errorf("the release commit changes\n%q\nnot\n%q", got, changed)
	}
	if got, want := gitIn(t, repo, "show", version+":cmd/acp/go.mod"), "module github.com/acpgo/sdk/cmd/acp\n\ngo 1.25\n\nrequire github.com/acpgo/sdk v0.999.0"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	sums, err := addToProxy(t.Context(), t.TempDir(), repo, "contrib/otelacp/"+version, "contrib/otelacp", version)
	if got := gitIn(t, repo, "show", version+":contrib/natsacp/go.sum") + "\n"; err != nil || !strings.HasSuffix(got, strings.Join(sums, "")) {
		t.Errorf("the checksums in contrib/natsacp are\n%swant those of contrib/otelacp, %q, %v", got, sums, err)
	}
	if err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), "there are tags already") {
		t.Errorf("the second time: %v", err)
	}
}

// TestRefuses has releases that must not be, and looks that they leave nothing behind.
func TestRefuses(t *testing.T) {
	tier.Need(t, tier.Normal)
	edit := func(name, from, to string) func(*testing.T, *release) {
		return func(t *testing.T, r *release) {
			text := read(t, filepath.Join(r.repo, name))
			if !strings.Contains(text, from) {
				t.Fatalf("%s has no %q", name, from)
			}
			write(t, r.repo, name, strings.ReplaceAll(text, from, to))
			gitIn(t, r.repo, "commit", "--quiet", "-am", "edit")
		}
	}
	tests := []struct {
		name  string
		spoil func(*testing.T, *release)
		want  string
	}{
		{"bad version", func(_ *testing.T, r *release) { r.version = "0.999.0" }, "not a semantic version"},
		{"untracked", func(t *testing.T, r *release) { write(t, r.repo, "new.go", "package sdk\n") }, "?? new.go"},
		{"edited", func(t *testing.T, r *release) { write(t, r.repo, "sdk.go", "package sdk // new\n") }, "M sdk.go"},
		{"one tag", func(t *testing.T, r *release) { gitIn(t, r.repo, "tag", "contrib/otelacp/v0.999.0") }, "tags already: contrib/otelacp/v0.999.0"},
		{"unreleased", edit("CHANGELOG.md", version+", 2027-01-31", "Unreleased"), `the first section of CHANGELOG.md is "Unreleased"`},
		{"failing check", func(_ *testing.T, r *release) { r.checks = [][]string{{"git", "no-such-command"}} }, "git no-such-command: exit status 1"},
		{"check that writes", func(_ *testing.T, r *release) { r.checks = [][]string{{"git", "mv", "sdk.go", "new.go"}} }, "after the checks: the tree has changes"},
		{"other replacement", edit("cmd/acp/go.mod", "replace ", "replace example.com/x => ../x\n\nreplace "), "go.mod replaces example.com/x"},
		{"not tidy", edit("cmd/acp/main.go", `import _ "github.com/acpgo/sdk"`, ""), "go mod tidy -diff"},
		{"tags cannot be made", func(t *testing.T, r *release) {
			name := filepath.Join(r.repo, ".git", "hooks", "reference-transaction")
			write(t, r.repo, ".git/hooks/reference-transaction", "#!/bin/sh\n! grep -q refs/tags/contrib\n")
			if err := os.Chmod(name, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "git fetch"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := release{repo: small(t), version: version, log: io.Discard}
			test.spoil(t, &r)
			tags, refs := gitIn(t, r.repo, "tag"), gitIn(t, r.repo, "rev-parse", "HEAD")
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			if err := r.run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if got := gitIn(t, r.repo, "tag"); got != tags {
				t.Errorf("there are tags now: %s", got)
			}
			if got := gitIn(t, r.repo, "rev-parse", "HEAD"); got != refs {
				t.Errorf("HEAD moved to %s", got)
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("temporary files are left: %v %v", left, err)
			}
		})
	}
}

func TestCheckVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v0.999":                                 "not a semantic version of the form",
		"--force":                                "not a semantic version",
		"v2.0.0":                                 "should be v0 or v1",
		"v0.999.0+build":                         "not a semantic version of the form",
		"v0.999.1-0.20270131120000-0123456789ab": "commits without a tag",
	} {
		if err := checkVersion(version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", version, err, want)
		}
	}
	if err := checkVersion("v1.0.0-rc.1"); err != nil {
		t.Error(err)
	}
}

func TestVersionOf(t *testing.T) {
	for version, want := range map[string]string{
		"v0.3.1": "v0.3.1", "v1.0.0": "v0.100.0", "v1.2.3": "v0.102.3", "v1.10.0-rc.1": "v0.110.0-rc.1",
	} {
		r := release{version: version}
		if got := r.versionOf(preview); got != want || checkVersion(got) != nil {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
		if got := r.versionOf("cmd/acp"); got != version {
			t.Errorf("got %s, want %s", got, version)
		}
	}
	if r := (release{version: "v1.2.3"}); !slices.Contains(r.tags(), "acp/acpv2/v0.102.3") {
		t.Errorf("got %q", r.tags())
	}
}

func TestCheckChangelog(t *testing.T) {
	for text, want := range map[string]string{
		"## v0.999.01\n\n- A.\n":                          "rename it to \"v0.999.0\"",
		"## Unreleased\n\n- B.\n\n## v0.999.0\n\n- A.\n":  "rename it to \"v0.999.0\"",
		"# Changelog\n\n## v0.999.0\n\n## v0.1.0\n- A.\n": "is empty",
		"# Changelog\n\nv0.999.0\n":                       "has no sections",
	} {
		if err := checkChangelog(text, version); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// TestModules requires a decision about each module of the repository: whether it is released.
func TestModules(t *testing.T) {
	got := strings.Fields(gitIn(t, root(t), "ls-files", "go.mod", "*/go.mod"))
	want := []string{"go.mod", "bench/go.mod", "examples/acme/go.mod", "examples/coder/go.mod", "examples/kit-agent/go.mod", "examples/kit-client/go.mod"} // and these are not
	for _, dir := range nested {
		want = append(want, dir+"/go.mod")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestPublished releases a clone of this repository, serves what the tags contain from a module proxy in a folder, and
// does what the documentation tells users to do, with an empty module cache. Compiling takes minutes.
func TestPublished(t *testing.T) {
	tier.Need(t, tier.Nightly)
	temp := t.TempDir()
	repo, proxy := filepath.Join(temp, "repo"), filepath.Join(temp, "proxy")
	gitIn(t, temp, "clone", "--quiet", "--shared", root(t), repo)
	identify(t, repo)
	changelog := read(t, filepath.Join(repo, "CHANGELOG.md"))
	if !strings.Contains(changelog, "\n## Unreleased\n") {
		t.Error("the changelog has no section \"Unreleased\"")
	}
	publish := func(version string) {
		t.Helper()
		write(t, repo, "CHANGELOG.md", "## "+version+"\n\n- Everything.\n\n"+changelog)
		gitIn(t, repo, "commit", "--quiet", "-am", "CHANGELOG: "+version)
		r := release{repo: repo, version: version, log: io.Discard} // the checks are what runs this test
		if err := r.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, dir := range append([]string{""}, nested...) {
			if _, err := addToProxy(t.Context(), proxy, repo, "refs/tags/"+r.tags()[i], dir, version); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(version)

	env, err := proxyEnv(t.Context(), proxy, filepath.Join(temp, "mod"))
	if err != nil {
		t.Fatal(err)
	}
	// The checksums of other modules were checked when they came into the user's cache.
	bin := filepath.Join(temp, "bin")
	env = append(env, "GOBIN="+bin, "GOSUMDB=off", "GOCACHE="+filepath.Join(temp, "build"), "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local")
	shell := func(t *testing.T, dir, script string) string {
		t.Helper()
		t.Logf("%s", script)
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir, cmd.Env = dir, append(env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Logf("%s", out)
		return string(out)
	}
	readme, telemetry := read(t, filepath.Join(repo, "README.md")), read(t, filepath.Join(repo, "docs", "telemetry.md"))
	install, methods := read(t, filepath.Join(repo, "docs", "install.md")), read(t, filepath.Join(repo, "docs", "methods.md"))

	t.Run("command", func(t *testing.T) {
		shell(t, t.TempDir(), block(t, install, `sh\n(go install github.com/acpgo/sdk/cmd/acp@latest\n)`))
		if got, want := shell(t, t.TempDir(), "acp version"), "acp "+version+" ("; !strings.HasPrefix(got, want) {
			t.Errorf("got %q, want %q…", got, want)
		}
	})
	t.Run("README", func(t *testing.T) {
		dir := t.TempDir()
		shell(t, dir, block(t, install, `sh\n(go mod init example.com/hello\ngo get [^`+"`]*)"))
		for i, program := range regexp.MustCompile("(?s)```go\n(package main.*?)```").FindAllStringSubmatch(readme, -1) {
			write(t, dir, []string{"agent", "client"}[i]+"/main.go", program[1])
		}
		build, run, _ := strings.Cut(block(t, readme, "sh\n(go mod tidy\ngo build[^`]*)"), "bin/client")
		shell(t, dir, build)
		required(t, dir, "github.com/acpgo/sdk", version)
		if got, want := shell(t, dir, "bin/client"+run), "You said: hello\nend_turn\n"; !strings.HasSuffix(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	})
	t.Run("telemetry", func(t *testing.T) {
		program := block(t, telemetry, "go\n(package main.*?)")
		published := t.TempDir()
		write(t, published, "main.go", program)
		shell(t, published, "go mod init example.com/hello\ngo get github.com/acpgo/sdk/contrib/otelacp@latest\ngo mod tidy\n"+
			"go build -o agent .\n")
		required(t, published, "github.com/acpgo/sdk/contrib/otelacp", version)
		// From a clone.
		cloned := t.TempDir()
		write(t, cloned, "main.go", program)
		line := func(module string) string {
			return regexp.MustCompile("go mod edit .*acpgo/" + module + "@.*\n").FindString(install)
		}
		recipe := "go mod init example.com/hello\n" + line("sdk") + line("sdk/contrib/otelacp")
		shell(t, cloned, strings.ReplaceAll(recipe, "/path/to/clone", repo)+"go mod tidy\ngo build -o agent .\n")
	})
	t.Run("sqlitestore", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "main_test.go", read(t, filepath.Join(repo, "contrib", "sqlitestore", "example_test.go")))
		shell(t, dir, "go mod init example.com/hello\ngo get github.com/acpgo/sdk/contrib/sqlitestore@latest\ngo mod tidy\ngo test -vet=off .\n")
		required(t, dir, "github.com/acpgo/sdk/contrib/sqlitestore", version)
	})
	t.Run("fleet", func(t *testing.T) {
		shell(t, t.TempDir(), "go install github.com/acpgo/sdk/contrib/natsacp/cmd/acp-fleet@latest\nacp-fleet nodes --help\n")
	})
	t.Run("generator", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "vendoracp/vendor.json", block(t, methods, "json\n([^`]*x-method[^`]*)"))
		write(t, dir, "vendoracp/vendoracp.go", block(t, methods, "go\n([^`]*package vendoracp[^`]*)"))
		_, recipe, _ := strings.Cut(block(t, methods, "sh\n(go mod edit -tool[^`]*)"), "\n")
		shell(t, dir, "go mod init example.com/hello\ngo get -tool github.com/acpgo/sdk/cmd/acpgen@"+version+"\n"+recipe+"go build ./...\n")
		if _, err := os.Stat(filepath.Join(dir, "vendoracp", "methods_gen.go")); err != nil {
			t.Error(err)
		}
	})
	// Versions of the modules cannot be mixed, because they share internal packages. The go command never selects an older
	// library than the nested modules require, and with a newer one they may not compile.
	t.Run("version 2", func(t *testing.T) {
		const library, nested, next = "github.com/acpgo/sdk", "github.com/acpgo/sdk/acp/acpv2", "v0.999.1"
		dir := t.TempDir()
		write(t, dir, "main_test.go", read(t, filepath.Join(repo, "acp", "acpv2", "example_test.go")))
		shell(t, dir, "go mod init example.com/hello\ngo get "+nested+"@latest\ngo mod tidy\ngo test -vet=off .\n")
		required(t, dir, nested, version)
		for name := range strings.FieldsSeq(gitIn(t, repo, "ls-files", "*.go")) {
			write(t, repo, name, strings.ReplaceAll(read(t, filepath.Join(repo, name)), "AwaitTurn", "TurnAwaited"))
		}
		publish(next)
		older := shell(t, dir, "go get "+library+"@"+next+"\n! go test -vet=off .\n")
		if !strings.Contains(older, "undefined: engine.AwaitTurn") {
			t.Errorf("with a newer library: %s", older)
		}
		shell(t, dir, "go mod edit -require="+nested+"@"+next+"\ngo mod tidy\ngo test -vet=off .\n")
		shell(t, dir, "go get "+nested+"@"+version+" "+library+"@"+version+"\ngo get "+nested+"@"+next+"\ngo test -vet=off .\n")
		required(t, dir, library, next)
	})
}

// required fails the test unless the module in a folder requires another at a version that was released.
func required(t *testing.T, dir, path, version string) {
	t.Helper()
	if mod := read(t, filepath.Join(dir, "go.mod")); !strings.Contains(mod, path+" "+version) || strings.Contains(mod, "replace") {
		t.Errorf("go.mod does not require %s %s:\n%s", path, version, mod)
	}
}

// block is the part of a document's block of code that the group of a pattern matches.
func block(t *testing.T, text, pattern string) string {
	t.Helper()
	found := regexp.MustCompile("(?s)```" + pattern + "```").FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("the document does not show %s", pattern)
	}
	return found[1]
}

// small makes a repository with the modules of this one, and hardly anything in them.
func small(t *testing.T) string {
	t.Helper()
	repo := t.TempDir()
	gitIn(t, repo, "init", "--quiet", "--initial-branch", "main")
	identify(t, repo)
	write(t, repo, "go.mod", "module github.com/acpgo/sdk\n\ngo 1.25\n")
	write(t, repo, "sdk.go", "package sdk\n")
	write(t, repo, "CHANGELOG.md", "# Changelog\n\n## "+version+", 2027-01-31\n\n- Everything.\n\n## v0.1.0\n\n- Something.\n")
	write(t, repo, ".gitignore", "/ignored\n")
	for _, dir := range nested {
		write(t, repo, dir+"/go.mod", "module github.com/acpgo/sdk/"+dir+"\n\ngo 1.25\n\nrequire github.com/acpgo/sdk v0.0.0\n\nreplace github.com/acpgo/sdk => ../../\n")
		write(t, repo, dir+"/main.go", "package lib\n\nimport _ \"github.com/acpgo/sdk\"\n")
	}
	write(t, repo, "contrib/natsacp/go.mod", "module github.com/acpgo/sdk/contrib/natsacp\n\ngo 1.25\n\nrequire (\n\tgithub.com/acpgo/sdk v0.0.0\n\tgithub.com/acpgo/sdk/contrib/otelacp v0.0.0\n)\n\n"+
		"replace (\n\tgithub.com/acpgo/sdk => ../../\n\tgithub.com/acpgo/sdk/contrib/otelacp => ../otelacp\n)\n")
	write(t, repo, "contrib/natsacp/main.go", "package lib\n\nimport (\n\t_ \"github.com/acpgo/sdk\"\n\t_ \"github.com/acpgo/sdk/contrib/otelacp\"\n)\n")
	gitIn(t, repo, "add", ".")
	gitIn(t, repo, "commit", "--quiet", "-m", "all of it")
	return repo
}

// identify gives a repository an author.
func identify(t *testing.T, repo string) {
	t.Helper()
	for key, value := range map[string]string{"user.name": "Ada", "user.email": "ada@example.com"} {
		gitIn(t, repo, "config", key, value)
	}
}

// root is the root of this repository.
func root(t *testing.T) string {
	t.Helper()
	return gitIn(t, ".", "rev-parse", "--show-toplevel")
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(t.Context(), dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
