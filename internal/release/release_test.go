// Package release_test tests release.sh.
package release_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/zip"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// version is one that will never be released.
const version = "v0.999.0"

// TestMain keeps the user's settings of git away from the tests, and this repository too: a hook that runs the tests has
// variables that lead git to it from any folder.
func TestMain(m *testing.M) {
	local, err := exec.Command("git", "rev-parse", "--local-env-vars").Output()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for name := range strings.FieldsSeq(string(local)) {
		os.Unsetenv(name)
	}
	os.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	os.Exit(m.Run())
}

// release runs the script in a repository, with a check in place of the usual ones.
func release(t *testing.T, repo, version, check string) (out string, err error) {
	t.Helper()
	script, err := filepath.Abs("release.sh")
	must.Do(t, err)
	cmd := exec.CommandContext(t.Context(), "sh", script, version)
	cmd.Dir, cmd.Env = repo, append(os.Environ(), "CHECKS="+check)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// folders are those of the other modules that are released.
func folders(t *testing.T) []string {
	return strings.Fields(regexp.MustCompile(`(?m)^nested="(.*)"$`).FindStringSubmatch(read(t, "release.sh"))[1])
}

// TestRelease releases small modules and their library.
func TestRelease(t *testing.T) {
	tier.Need(t, tier.Normal)
	repo := small(t)
	write(t, repo, "CHANGELOG.md", "## v1.2.3, 2027-01-31\n\n- Everything.\n")
	gitIn(t, repo, "commit", "--quiet", "-am", "CHANGELOG")
	write(t, repo, "ignored", "by git")
	head, branch := gitIn(t, repo, "rev-parse", "HEAD"), gitIn(t, repo, "branch", "--show-current")
	out, err := release(t, repo, "v1.2.3", "git --version")
	if err != nil || !strings.Contains(out, "git push --atomic origin v1.2.3 acp/acpv2/v0.102.3 cmd/acp/v1.2.3 ") {
		t.Fatalf("%v\n%s", err, out)
	}
	if gitIn(t, repo, "rev-parse", "HEAD") != head || gitIn(t, repo, "branch", "--show-current") != branch || gitIn(t, repo, "status", "--porcelain") != "" {
		t.Error("the branch or the tree has changed")
	}
	want := []string{"acp/acpv2/v0.102.3", "cmd/acp/v1.2.3", "contrib/mcpacp/v1.2.3", "contrib/natsacp/v1.2.3", "contrib/otelacp/v1.2.3", "contrib/sqlitestore/v1.2.3", "v1.2.3"}
	if got := strings.Fields(gitIn(t, repo, "tag")); !slices.Equal(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	var changed []string
	for _, tag := range want[:len(want)-1] {
		if got := gitIn(t, repo, "cat-file", "-t", tag); got != "tag" {
			t.Errorf("%s is a %s, not an annotated tag", tag, got)
		}
		changed = append(changed, path.Dir(tag)+"/go.mod", path.Dir(tag)+"/go.sum")
	}
	if got := gitIn(t, repo, "rev-parse", "v1.2.3^{commit}"); got != head {
		t.Errorf("the library is tagged at %s, not %s", got, head)
	}
	if got := strings.Fields(gitIn(t, repo, "diff", "--name-only", "HEAD", want[5])); !slices.Equal(got, changed) {
		t.Errorf("the last tag changes\n%q\nnot\n%q", got, changed)
	}
	if got, want := gitIn(t, repo, "show", "cmd/acp/v1.2.3:cmd/acp/go.mod"), "module github.com/acpgo/sdk/cmd/acp\n\ngo 1.25\n\nrequire github.com/acpgo/sdk v1.2.3"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := gitIn(t, repo, "show", "contrib/natsacp/v1.2.3:contrib/natsacp/go.sum"); !strings.Contains(got, "contrib/otelacp v1.2.3 h1:") {
		t.Errorf("the checksums in contrib/natsacp are\n%s", got)
	}
	if out, err := release(t, repo, "v1.2.3", "true"); err == nil || !strings.Contains(out, "there are tags already") {
		t.Errorf("the second time: %v, %s", err, out)
	}
}

// TestRefuses has releases that must not be, and checks that they leave nothing behind.
func TestRefuses(t *testing.T) {
	tier.Need(t, tier.Normal)
	const commit = "git commit --quiet --all --message edit"
	tests := []struct {
		name, version string
		spoil         string // a script that prepares the repository
		check         string
		want          string
	}{
		{name: "untracked", spoil: "echo package sdk >new.go", want: "?? new.go"},
		{name: "edited", spoil: "echo >>sdk.go", want: "M sdk.go"},
		{name: "one tag", spoil: "git tag contrib/otelacp/v0.999.0", want: "tags already: contrib/otelacp/v0.999.0"},
		{name: "unreleased", spoil: "sed -i.old s/v0.999.0.*/Unreleased/ CHANGELOG.md && rm *.old && " + commit, want: `the first section of CHANGELOG.md is "Unreleased"`},
		{name: "nothing to say", spoil: "sed -i.old /Everything/d CHANGELOG.md && rm *.old && " + commit, want: "is empty"},
		{name: "failing check", check: "git no-such-command", want: "a check fails"},
		{name: "check that writes", check: "git mv sdk.go new.go", want: "the tree has changes"},
		{name: "other replacement", spoil: "mkdir x && echo 'module example.com/x' >x/go.mod && git add x && echo 'replace example.com/x => ../../x' >>cmd/acp/go.mod && " + commit, want: "nobody could install it"},
		{name: "not tidy", spoil: "echo package lib >cmd/acp/main.go && " + commit, want: "go mod tidy changes it"},
		{name: "tags cannot be made", spoil: "printf '#!/bin/sh\n! grep -q refs/tags/contrib\n' >.git/hooks/reference-transaction && chmod +x .git/hooks/reference-transaction", want: "ref updates aborted by hook"},
		{name: "no version", version: "0.999.0", want: "not a version"},
		{name: "a short version", version: "v0.999", want: "not a version"},
		{name: "a flag", version: "--force", want: "not a version"},
		{name: "version 2", version: "v2.0.0", want: "not a version"},
		{name: "a pseudo-version", version: "v0.999.1-0.20270131120000-0123456789ab", want: "not a version"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			repo, temp := small(t), t.TempDir()
			shell := exec.CommandContext(t.Context(), "sh", "-ec", test.spoil)
			shell.Dir = repo
			if out, err := shell.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if test.version == "" {
				test.version = version
			}
			if test.check == "" {
				test.check = "true"
			}
			tags, head := gitIn(t, repo, "tag"), gitIn(t, repo, "rev-parse", "HEAD")
			t.Setenv("TMPDIR", temp)
			if out, err := release(t, repo, test.version, test.check); err == nil || !strings.Contains(out, test.want) {
				t.Errorf("got %v, want %q\n%s", err, test.want, out)
			}
			if gitIn(t, repo, "tag") != tags || gitIn(t, repo, "rev-parse", "HEAD") != head {
				t.Errorf("there are other tags or commits now: %s", gitIn(t, repo, "tag"))
			}
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("temporary files are left: %v %v", left, err)
			}
		})
	}
}

// TestModules requires a decision about each module of the repository: whether it is released.
func TestModules(t *testing.T) {
	got := strings.Fields(gitIn(t, root(t), "ls-files", "go.mod", "*/go.mod"))
	want := []string{"go.mod", "bench/go.mod", "examples/acme/go.mod", "examples/coder/go.mod", "examples/kit-agent/go.mod", "examples/kit-client/go.mod"} // and these are not
	for _, dir := range folders(t) {
		want = append(want, dir+"/go.mod")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// A file whose name some system does not allow makes a module impossible to download.
	for _, dir := range append(folders(t), ".") {
		if files, err := zip.CheckDir(filepath.Join(root(t), dir)); err != nil || len(files.Invalid) > 0 {
			t.Errorf("%s: %v, %v", dir, files.Invalid, err)
		}
	}
}

// TestPublished releases a clone of this repository, has the go command find the tags there, and
// does what the documentation tells users to do, with an empty module cache. Compiling takes minutes.
func TestPublished(t *testing.T) {
	tier.Need(t, tier.Nightly)
	temp := t.TempDir()
	repo := filepath.Join(temp, "repo")
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
		if out, err := release(t, repo, version, "true"); err != nil { // the checks are what runs this test
			t.Fatalf("%v\n%s", err, out)
		}
	}
	publish(version)

	user, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOPROXY").Output()
	must.Do(t, err)
	cache, proxies, _ := strings.Cut(strings.TrimSpace(string(user)), "\n")
	bin := filepath.Join(temp, "bin")
	// The checksums of other modules were checked when they came into the user's cache.
	const library = "github.com/acpgo/sdk"
	env := append(os.Environ(), "GOPROXY=file://"+cache+"/cache/download,"+proxies, "GOMODCACHE="+filepath.Join(temp, "mod"), "GOPRIVATE="+library, "GONOPROXY="+library,
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+repo+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+library,
		"GOBIN="+bin, "GOSUMDB=off", "GOCACHE="+filepath.Join(temp, "build"), "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local", "GOWORK=off")
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
		const nested, next = "github.com/acpgo/sdk/acp/acpv2", "v0.999.1"
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
	for _, dir := range folders(t) {
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
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %q: %v", args, err)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	must.Do(t, err)
	return string(data)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	name = filepath.Join(dir, filepath.FromSlash(name))
	must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must.Do(t, os.WriteFile(name, []byte(text), 0o644))
}
