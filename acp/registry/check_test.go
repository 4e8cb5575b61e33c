package registry

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/buildtest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// agent is a shell script that answers initialize with some ways to authenticate, and writes its environment into $OUT
// if the entry sets that.
const agent = `#!/bin/sh
[ -n "$OUT" ] && { env; echo "ARGS $*"; pwd; } >"$OUT"
read -r line
case "$line" in *'"method":"initialize"'*'"terminal-auth":true'*) ;; *) exit 9 ;; esac
echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{},"authMethods":METHODS}}'
cat >/dev/null
`

func script(methods string) string { return strings.Replace(agent, "METHODS", methods, 1) }

const login = `[{"id":"login","name":"Log in"}]`

// folder writes the folder of an entry.
func folder(t *testing.T, name, entry string, more map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("agent.json", entry)
	for name, text := range more {
		write(name, text)
	}
	return dir
}

// check checks an entry, and returns the report and all findings, "REG-3 /id: …".
func check(t *testing.T, dir string, o *CheckOptions) (*Report, []string) {
	t.Helper()
	o.EndTime = 300 * time.Millisecond
	r, err := Check(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	var findings []string
	for _, row := range r.Requirements {
		for _, f := range row.Findings {
			findings = append(findings, strings.TrimSpace(row.ID+" "+f.Pointer)+": "+f.Text)
		}
	}
	return r, findings
}

// expect compares failures with texts that each must have, one for one.
func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	left := slices.Clone(got)
	for _, w := range want {
		i := slices.IndexFunc(left, func(text string) bool { return strings.Contains(text, w) })
		if i < 0 {
			t.Errorf("no failure has %q", w)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	for _, text := range left {
		t.Errorf("unexpected: %s", text)
	}
}

// previewing is an entry with a preview.
func previewing(preview string) string {
	return strings.Replace(entryWith(`{"npx":{"package":"@me/my-agent@1.2.3"}}`), `"id"`, `"preview":`+preview+`,"id"`, 1)
}

// entryWith is an entry with a distribution.
func entryWith(distribution string) string {
	return `{"id":"my-agent","name":"My agent","version":"1.2.3","description":"An agent.","license_url":"https://example.com/license","distribution":` + distribution + `}`
}

const systems = `"darwin-aarch64":{"archive":"https://example.com/a-1.2.3.zip","cmd":"./a"},"linux-x86_64":{"archive":"https://example.com/a-1.2.3.tar.gz","cmd":"./a","args":["acp"],"env":{"A":"b"}},"windows-x86_64":{"archive":"https://example.com/a-1.2.3.tar.bz2","cmd":"a.exe","sha256":"` + zeros + `"}`
const zeros = "0000000000000000000000000000000000000000000000000000000000000000"
const goodIcon = `<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16" fill="none"><path d="M0 0h16" stroke="currentColor" style="fill: inherit"/></svg>`

// TestREG2_REG3_REG4_REG5_REG8_Entries checks entries without the network.
func TestREG2_REG3_REG4_REG5_REG8_Entries(t *testing.T) {
	npx := `{"npx":{"package":"@me/my-agent@1.2.3"}}`
	for _, c := range []struct {
		name, entry string
		want        []string
	}{
		{"good", entryWith(`{"binary":{` + systems + `},"npx":{"package":"@me/my-agent@1.2.3","cmd":"a","args":["--acp"],"env":{"A":"b"}},"uvx":{"package":"my-agent==1.2.3"}}`), nil},
		{"all members", strings.Replace(entryWith(npx), `"id"`, `"repository":"https://example.com/r","website":"https://example.com","authors":["Me"],"license":"MIT","license_url":"https://example.com/l","icon":"https://example.com/i.svg","id"`, 1), nil},
		{"no JSON", `{"id":`, []string{"REG-2: agent.json is not JSON"}},
		{"no object", `[1]`, []string{"REG-2: agent.json is not an object"}},
		{"empty", `{}`, []string{"REG-2: id is left out", "REG-2: name is left out", "REG-2: version is left out", "REG-2: description is left out", "REG-2: license_url is left out", "REG-2: distribution is left out"}},
		{"no license_url", strings.Replace(entryWith(npx), `"license_url"`, `"license"`, 1), []string{"REG-2: license_url is left out"}},
		{"preview", previewing(`{"version":"1.3.0-preview.2","distribution":{"npx":{"package":"@me/my-agent@1.3.0-preview.2"}}}`), nil},
		{"preview of more", previewing(`{"version":"1.3.0-rc","distribution":{"npx":{"package":"@me/my-agent@1.2.3"},"docker":{}},"name":"x"}`), []string{
			"REG-2 /preview/name: a preview has only", "REG-3 /preview/version: \"1.3.0-rc\" is not like", "REG-4 /preview/distribution/docker", "REG-8 /preview/distribution/npx/package: the package has the version 1.2.3",
		}},
		{"preview of nothing", previewing(`{"version":"next"}`), []string{"REG-2 /preview: distribution is left out", "REG-3 /preview/version: \"next\" does not begin"}},
		{"no preview", previewing(`[]`), []string{"REG-2 /preview: it is not an object"}},
		{"wrong types", `{"id":7,"name":null,"version":[],"description":"","distribution":7,"authors":"me","license":{},"website":"me","future":1}`, []string{
			"REG-2 /id: it is not text", "REG-2 /name: it is not text", "REG-2 /version: it is not text", "REG-2 /description: it is empty", "REG-4 /distribution: it has none",
			"REG-2 /authors: it is not a list", "REG-2 /license: it is not text", "REG-2 /website: \"me\" is no address", "REG-2: license_url is left out", "REG-2 /future: the registry knows no such member",
		}},
		{"id", strings.Replace(entryWith(npx), `"my-agent"`, `"My_Agent"`, 1), []string{"REG-3 /id: \"My_Agent\" has other characters", "REG-3 /id: it is \"My_Agent\", and the folder is \"my-agent\""}},
		{"version", strings.Replace(entryWith(`{"npx":{"package":"a@v1.2"}}`), `1.2.3`, `v1.2`, 1), []string{"REG-3 /version: \"v1.2\" does not begin with three numbers", "REG-8 /distribution/npx/package: the version \"v1.2\" is not exact"}},
		{"distribution", entryWith(`{"docker":{},"npx":{"package":"a@1.2.3"}}`), []string{"REG-4 /distribution/docker"}},
		{"no distribution", entryWith(`{}`), []string{"REG-4 /distribution: it has none"}},
		{"systems", entryWith(`{"binary":{"linux-x86_64":{"archive":"https://example.com/a-1.2.3","cmd":"a"},"linux-amd64":{"archive":"https://example.com/a","cmd":"a"}}}`), []string{
			"REG-5 /distribution/binary/linux-amd64: there is no such system", "REG-5 /distribution/binary: it has nothing for darwin and windows",
		}},
		{"binary", entryWith(`{"binary":{"darwin-aarch64":7,"linux-x86_64":{"cmd":"","args":"x","env":{"A":1,"B=":"x"},"sha256":"abc","more":1},"windows-x86_64":{"archive":"a.zip","cmd":"a"}}}`), []string{
			"darwin-aarch64: it is not an object", "linux-x86_64: archive is left out", "linux-x86_64/cmd: it is empty", "args: it is not a list of texts", "env: it is not an object of texts", "REG-5 /distribution/binary/linux-x86_64/env/B=: it is not a valid variable name",
			"sha256: it has not", "linux-x86_64/more: the registry knows no such member", "REG-8 /distribution/binary/windows-x86_64/archive: \"a.zip\" is no address",
		}},
		{"installers", entryWith(`{"binary":{"darwin-aarch64":{"archive":"https://example.com/1.2.3/a.dmg?x=1","cmd":"a"},"linux-x86_64":{"archive":"https://example.com/1.2.3/a.AppImage","cmd":"a"},"windows-x86_64":{"archive":"https://example.com/1.2.3/a.msi","cmd":"a"}}}`), []string{
			"REG-6 /distribution/binary/darwin-aarch64/archive: a.dmg is an installer", "a.appimage is an installer", "a.msi is an installer",
		}},
		{"addresses", entryWith(`{"binary":{"darwin-aarch64":{"archive":"https://example.com/releases/latest/a.zip","cmd":"a"},"linux-x86_64":{"archive":"https://example.com/v1.2.2/a.zip","cmd":"a"},"windows-x86_64":{"archive":"https://example.com/a.zip","cmd":"a"}}}`), []string{
			"REG-8 /distribution/binary/darwin-aarch64/archive: the address says latest", "REG-8 /distribution/binary/linux-x86_64/archive: the address is of the version 1.2.2",
		}},
		{"packages", entryWith(`{"npx":{"package":"@me/a"},"uvx":{"package":"a[x]==1.2.4","cmd":7,"future":1}}`), []string{
			"REG-8 /distribution/npx/package: \"@me/a\" has no version", "REG-8 /distribution/uvx/package: the package has the version 1.2.4, and the entry 1.2.3",
			"REG-7 /distribution/uvx/cmd: it is not text", "REG-7 /distribution/uvx/future: the registry knows",
		}},
		{"versions of npm", entryWith(`{"npx":{"package":"a@1.2.3.4"}}`), []string{"REG-8 /distribution/npx/package: the version \"1.2.3.4\" is not exact"}},
		{"kinds of archives", entryWith(`{"binary":{"darwin-aarch64":{"archive":"https://example.com/1.2.3/a.tar.xz","cmd":"a"},"linux-x86_64":{"archive":"https://example.com/1.2.3/a.7z","cmd":"../a"},"windows-x86_64":{"archive":"https://example.com/1.2.3/a.tar","cmd":"node"}}}`), []string{
			"REG-6 /distribution/binary/darwin-aarch64/archive: a.tar.xz is an archive of an unsupported kind", "REG-6 /distribution/binary/linux-x86_64/archive: a.7z is an archive of an unsupported kind",
			"REG-6 /distribution/binary/windows-x86_64/archive: a.tar is an archive of an unsupported kind", "REG-6 /distribution/binary/linux-x86_64/cmd: the command \"../a\" is outside",
		}},
		{"latest", entryWith(`{"npx":{"package":"a@latest"},"uvx":{"package":"a@^1.2.3"}}`), []string{"\"a@latest\" says latest", "the version \"^1.2.3\" is not exact"}},
		{"no package", entryWith(`{"npx":{},"uvx":[]}`), []string{"REG-7 /distribution/npx: package is left out", "REG-7 /distribution/uvx: it is not an object"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, failures := check(t, folder(t, "my-agent", c.entry, nil), &CheckOptions{Offline: true})
			expect(t, failures, c.want...)
			failed := slices.ContainsFunc(failures, func(f string) bool {
				return !strings.Contains(f, "it has nothing for") && !strings.Contains(f, "/future: the registry knows no such member")
			})
			if r.OK() == failed {
				t.Errorf("OK: %t, and something fails: %t\n%s", r.OK(), failed, r)
			}
			for _, row := range r.Requirements {
				if (len(row.Steps) == 0) != (row.Reason != "") {
					t.Errorf("%s was looked at in %q, and why not: %q", row.ID, row.Steps, row.Reason)
				}
				if (row.ID == "REG-10" || row.ID == "REG-11") && len(row.Steps) > 0 {
					t.Errorf("%s was looked at without a launch", row.ID)
				}
			}
		})
	}
	t.Run("twice", func(t *testing.T) {
		dir := folder(t, "my-agent", entryWith(npx), map[string]string{"../other/agent.json": entryWith(npx), "../broken/agent.json": "{", "../third/agent.json": `{"id":"third"}`})
		_, failures := check(t, dir, &CheckOptions{Offline: true})
		expect(t, failures, "REG-3 /id: other has the same id")
	})
	t.Run("alone", func(t *testing.T) {
		for entry, want := range map[string]bool{entryWith(npx): true, entryWith(`{}`): false, `{`: false} {
			r, err := CheckEntry(t.Context(), []byte(entry), &CheckOptions{Offline: true})
			if err != nil || r.OK() != want || rowOf(t, r, "REG-9").Reason != "there is no folder" {
				t.Errorf("%s: %v\n%s", entry, err, r)
			}
		}
	})
	t.Run("no folder", func(t *testing.T) {
		if _, err := Check(t.Context(), filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	t.Run("no file", func(t *testing.T) {
		_, failures := check(t, t.TempDir(), &CheckOptions{Offline: true})
		expect(t, failures, "REG-2: agent.json: ")
	})
}

// TestREG9_Icons checks icons.
func TestREG9_Icons(t *testing.T) {
	svg := func(attributes, inside string) string {
		return `<svg xmlns="http://www.w3.org/2000/svg" ` + attributes + `>` + inside + `</svg>`
	}
	for _, c := range []struct {
		icon string
		want []string
	}{
		{goodIcon, nil},
		{`<?xml version="1.0"?>` + goodIcon, nil},
		{svg(`viewBox="0 0 16 16"`, `<style>path { fill: currentColor; stroke-width: 2 }</style>`), nil},
		{svg(`width="16px" height="16px" viewBox="0 0 24 24"`, ``), nil},
		{svg(``, ``), []string{"it has no size"}},
		{svg(`width="24" height="24"`, ``), []string{`width is "24"`}},
		{svg(`width="16" height="12"`, ``), []string{`height is "12"`}},
		{svg(`viewBox="0 0 16 24"`, ``), []string{`viewBox is "0 0 16 24"`}},
		{svg(`viewBox="0 0 32 32"`, ``), []string{`viewBox is "0 0 32 32"`}},
		{svg(`viewBox="0 0 16 16" fill="#fff"`, `<path fill="#fff"/><path stroke="red" style="fill:url(#a);stroke:none"/><stop stop-color="blue"/>`), []string{`fill is "#fff"`, `stroke is "red"`, `fill is "url(#a)"`, `stop-color is "blue"`}},
		{svg(`viewBox="0 0 16 16"`, `<style>.a{fill:red}</style>`), []string{`fill is "red"`}},
		{svg(`viewBox="0 0 16 16"`, `<!-- made by hand -->`), []string{"it has a comment"}},
		{`<html/>`, []string{"no SVG, but html"}},
		{`<svg`, []string{"no XML"}},
		{``, []string{"is empty"}},
		{"\x89PNG", []string{"no XML"}},
	} {
		r, failures := check(t, folder(t, "my-agent", entryWith(`{"npx":{"package":"a@1.2.3"}}`), map[string]string{"icon.svg": c.icon}), &CheckOptions{Offline: true})
		expect(t, failures, c.want...)
		if row := rowOf(t, r, "REG-9"); row.Failed() != (len(c.want) > 0) || len(row.Steps) == 0 {
			t.Errorf("%s: %+v", c.icon, row)
		}
	}
}

func rowOf(t *testing.T, r *Report, id string) *Requirement {
	t.Helper()
	for i := range r.Requirements {
		if r.Requirements[i].ID == id {
			return &r.Requirements[i]
		}
	}
	t.Fatalf("there is no %s", id)
	return nil
}

// file is one of an archive.
type file struct {
	name, text, link string
	mode             int64
}

func tarball(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.text)), Typeflag: tar.TypeReg, Linkname: f.link}
		if f.link != "" {
			h.Typeflag = tar.TypeSymlink
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func bzipped(t testing.TB, text []byte) string {
	t.Helper()
	c := exec.Command("bzip2", "-c")
	c.Stdin = bytes.NewReader(text)
	out, err := c.Output()
	if err != nil {
		t.Skipf("bzip2: %v", err)
	}
	return string(out)
}

func zipped(t testing.TB, files ...file) string {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		h.SetMode(0o644)
		text := f.text
		if f.link != "" {
			h.SetMode(os.ModeSymlink | 0o777)
			text = f.link
		}
		one, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := one.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestREG6_Binaries fetches, unpacks and starts binaries of all forms, also hostile ones.
func TestREG6_Binaries(t *testing.T) {
	tier.Need(t, tier.Normal)
	if runtime.GOOS == "windows" {
		t.Skip("the agents are shell scripts")
	}
	good := file{name: "dist/bin/my-agent", text: script(login), mode: 0o644}
	platforms = append(platforms, "test-x86_64")
	t.Cleanup(func() { platforms = platforms[:len(platforms)-1] })
	t.Setenv("ACP_TEST_SECRET", "secret")
	outside := filepath.Join(t.TempDir(), "outside")
	sum := func(text string) string {
		h := sha256.Sum256([]byte(text))
		return hex.EncodeToString(h[:])
	}
	for _, c := range []struct {
		name, archive, text, cmd, more string
		want                           []string
	}{
		{"zip", "a.zip", zipped(t, good), "./dist/bin/my-agent", "", nil},
		{"tar.gz", "a.tar.gz", gzipped(t, tarball(t, good)), "dist/bin/my-agent", `,"sha256":"` + strings.ToUpper(sum(gzipped(t, tarball(t, good)))) + `"`, nil},
		{"tgz", "a.tgz", gzipped(t, tarball(t, good)), "./my-agent", "", nil},
		{"deeper", "a.tgz", gzipped(t, tarball(t, good)), "./bin/my-agent", "", nil},
		{"elsewhere", "a.tgz", gzipped(t, tarball(t, good)), "./other/my-agent", "", nil},
		{"tar.bz2", "a.tar.bz2", bzipped(t, tarball(t, good)), "my-agent", "", nil},
		{"tbz2", "a.tbz2", bzipped(t, tarball(t, good)), "my-agent", "", nil},
		{"raw", "my-agent-linux", script(login), "./my-agent", "", nil},
		{"link", "a.tgz", gzipped(t, tarball(t, good, file{name: "my", link: "dist/bin/my-agent"})), "./my", "", nil},
		{"wrong sum", "a.zip", zipped(t, good), "my-agent", `,"sha256":"` + zeros + `"`, []string{"REG-6 /distribution/binary/test-x86_64: the SHA-256 of"}},
		{"no command", "a.zip", zipped(t, good), "./your-agent", "", []string{"REG-6 /distribution/binary/test-x86_64: the archive has no file \"./your-agent\""}},
		{"command outside", "a.zip", zipped(t, good), "../../bin/sh", "", []string{"REG-6 /distribution/binary/test-x86_64/cmd: the command \"../../bin/sh\" is outside"}},
		{"linked command in a folder", "a.tgz", gzipped(t, tarball(t, good, file{name: "x/my", link: "../dist/bin/my-agent"})), "./my", "", nil},
		{"kind that is not unpacked", "a.tar.xz", "x", "my-agent", "", []string{"REG-6 /distribution/binary/test-x86_64/archive: a.tar.xz is an archive of an unsupported kind"}},
		{"no zip", "a.zip", "x", "my-agent", "", []string{"the archive is not a zip file"}},
		{"no gzip", "a.tgz", "x", "my-agent", "", []string{"not compressed as its name says"}},
		{"no tar", "a.tgz", gzipped(t, []byte("x")), "my-agent", "", []string{"the archive is not a tar archive"}},
		{"tar outside", "a.tgz", gzipped(t, tarball(t, file{name: "../../outside", text: "x"})), "my-agent", "", []string{"outside its folder"}},
		{"tar absolute", "a.tgz", gzipped(t, tarball(t, file{name: outside, text: "x"})), "my-agent", "", []string{"outside its folder"}},
		{"zip outside", "a.zip", zipped(t, file{name: "../outside", text: "x"}), "my-agent", "", []string{"outside its folder"}},
		{"zip with \\", "a.zip", zipped(t, file{name: `..\outside`, text: "x"}), "my-agent", "", []string{"the name has"}},
		{"link outside", "a.tgz", gzipped(t, tarball(t, file{name: "l", link: "../.."}, file{name: "l/outside", text: "x"})), "my-agent", "", []string{"the link \"l\" to \"../..\""}},
		{"link absolute", "a.zip", zipped(t, file{name: "l", link: filepath.Dir(outside)}, file{name: "l/outside", text: "x"}), "my-agent", "", []string{"the link \"l\""}},
		{"not there", "none.zip", "", "my-agent", "", []string{"REG-8 /distribution/binary/test-x86_64/archive: ", "REG-10 /distribution/binary/test-x86_64: fetching"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // each waits a second for its processes
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					http.Error(w, "no", http.StatusMethodNotAllowed) // then GET is asked
				} else if c.text == "" {
					http.NotFound(w, r)
				} else {
					fmt.Fprint(w, c.text)
				}
			}))
			defer s.Close()
			out := filepath.Join(t.TempDir(), "out")
			entry := entryWith(`{"binary":{"test-x86_64":{"archive":"` + s.URL + `/1.2.3/` + c.archive + `","cmd":"` + c.cmd + `","args":["acp","a b"],"env":{"OUT":"` + out + `"}` + c.more + `}}}`)
			r, failures := check(t, folder(t, "my-agent", entry, nil), &CheckOptions{Platform: "test-x86_64"})
			expect(t, failures, append(c.want, "it has nothing for darwin and linux and windows")...)
			if _, err := os.Stat(outside); err == nil {
				t.Error("there is a file outside the folder")
			}
			if c.want != nil {
				return
			}
			if row := rowOf(t, r, "REG-11"); row.Failed() || len(row.Steps) == 0 {
				t.Errorf("REG-11: %+v", row)
			}
			saw, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"TERM=dumb", "HOME=" + os.TempDir(), "ARGS acp a b", "/unpacked\n"} {
				if !strings.Contains(string(saw), want) {
					t.Errorf("the launch has not %q:\n%s", want, saw)
				}
			}
			if strings.Contains(string(saw), "secret") {
				t.Error("the launch has the variables of this process")
			}
		})
	}
}

// TestREG7_Packages starts packages by npx and uvx of our own.
func TestREG7_Packages(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("npx and uvx are shell scripts")
	}
	bin := t.TempDir()
	for _, name := range []string{"npx", "uvx"} {
		text := "#!/bin/sh\nOUT=" + filepath.Join(bin, name+".out") + "\n" + strings.TrimPrefix(script(login), "#!/bin/sh\n")
		if err := buildtest.WriteFile(filepath.Join(bin, name), text, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.EscapedPath())
		if strings.Contains(r.URL.Path, "gone") {
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	for _, c := range []struct {
		distribution, npx, uvx, asked string
		want                          []string
	}{
		{`{"npx":{"package":"@me/a@1.2.3","args":["--acp"]},"uvx":{"package":"a[x]==1.2.3","args":["acp"]}}`, "--yes @me/a@1.2.3 --acp", "a[x]==1.2.3 acp", "HEAD /@me%2fa/1.2.3 HEAD /pypi/a/1.2.3/json", nil},
		{`{"npx":{"package":"a@1.2.3","cmd":"b","args":["--acp"]},"uvx":{"package":"a@1.2.3","cmd":"b"}}`, "--yes --package a@1.2.3 b --acp", "--from a@1.2.3 b", "HEAD /a/1.2.3 HEAD /pypi/a/1.2.3/json", nil},
		{`{"npx":{"package":"gone@1.2.3"}}`, "--yes gone@1.2.3", "", "HEAD /gone/1.2.3 GET /gone/1.2.3", []string{"REG-8 /distribution/npx/package: gone@1.2.3: "}},
	} {
		asked = nil
		_, failures := check(t, folder(t, "my-agent", entryWith(c.distribution), map[string]string{"icon.svg": goodIcon}), &CheckOptions{NPM: s.URL, PyPI: s.URL + "/"})
		expect(t, failures, c.want...)
		if got := strings.Join(asked, " "); got != c.asked {
			t.Errorf("it asked for %s", got)
		}
		for name, want := range map[string]string{"npx": c.npx, "uvx": c.uvx} {
			if want == "" {
				continue
			}
			out, err := os.ReadFile(filepath.Join(bin, name+".out"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(out), "ARGS "+want+"\n") {
				t.Errorf("%s, not with %q:\n%s", name, want, out)
			}
		}
	}
}

// TestREG10_REG11_Launches starts agents that are not as the registry wants them.
func TestREG10_REG11_Launches(t *testing.T) {
	tier.Need(t, tier.Normal)
	if runtime.GOOS == "windows" {
		t.Skip("the agents are shell scripts")
	}
	bin := t.TempDir()
	if err := buildtest.WriteFile(filepath.Join(bin, "npx"), "#!/bin/sh\nexec \"${0%/*}/$2\"\n", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	tries := filepath.Join(t.TempDir(), "tries")
	for _, c := range []struct {
		name, agent string
		want        []string
	}{
		{"good", script(login), nil},
		{"typed", script(`[{"id":"a","type":"env_var"},{"id":"b","type":"terminal"}]`), nil},
		{"older", script(`[{"id":"a","type":"env_var","_meta":{"terminal-auth":{"command":"x"}}}]`), nil},
		{"none", script(`[]`), []string{"REG-11 /distribution/npx: authMethods is empty"}},
		{"other", script(`[{"id":"a","type":"env_var"}]`), []string{"REG-11 /distribution/npx: authMethods has only the types env_var"}},
		{"null", script(`null`), []string{"REG-11 /distribution/npx: authMethods is missing"}},
		{"wrong", script(`{"a":1}`), []string{"REG-11 /distribution/npx: authMethods: "}},
		{"banner", strings.Replace(script(login), "read -r line", "echo Welcome; read -r line", 1), []string{`REG-10 /distribution/npx: the first line of its output is not JSON: "Welcome"`}},
		{"later noise", strings.Replace(script(login), "read -r line", `read -r line; echo '{"jsonrpc":"2.0","method":"_x"}'; echo noise`, 1), nil},
		{"dies", "#!/bin/sh\necho no configuration >&2; exit 3\n", []string{"REG-10 /distribution/npx: "}},
		{"silent", "#!/bin/sh\ncat >/dev/null\n", []string{"REG-10 /distribution/npx: no answer within 1s"}},
		{"error", "#!/bin/sh\nread -r l\necho '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"no\"}}'\ncat\n", []string{"REG-10 /distribution/npx: unexpected answer to initialize:"}},
		{"second time", "#!/bin/sh\n[ -e " + tries + " ] || { touch " + tries + "; exit 1; }\n" + strings.TrimPrefix(script(login), "#!/bin/sh\n"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(c.name, " ", "-")
			if err := buildtest.WriteFile(filepath.Join(bin, name+"@1.2.3"), c.agent, 0o700); err != nil {
				t.Fatal(err)
			}
			s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			defer s.Close()
			limit := time.Minute
			if c.name == "silent" {
				limit = time.Second
			}
			_, failures := check(t, folder(t, "my-agent", entryWith(`{"npx":{"package":"`+name+`@1.2.3"}}`), nil), &CheckOptions{NPM: s.URL, Time: limit})
			expect(t, failures, c.want...)
			if c.name == "dies" && !strings.Contains(strings.Join(failures, ""), "no configuration") {
				t.Errorf("what it says on standard error is not told: %s", failures)
			}
		})
	}
}

// TestREG14_Interrupt ends a check in the middle of a launch.
func TestREG14_Interrupt(t *testing.T) {
	tier.Need(t, tier.Normal)
	if runtime.GOOS == "windows" {
		t.Skip("npx is a shell script")
	}
	bin := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	if err := buildtest.WriteFile(filepath.Join(bin, "npx"), "#!/bin/sh\ncat >/dev/null\n", 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	dir := folder(t, "my-agent", entryWith(`{"npx":{"package":"a@1.2.3"}}`), nil)
	r, err := Check(ctx, dir, &CheckOptions{
		NPM: s.URL, EndTime: 100 * time.Millisecond,
		Progress: func(step string) {
			if step == stepLaunch+"npx" {
				cancel()
			}
		},
	})
	if !errors.Is(err, context.Canceled) || r == nil {
		t.Fatalf("%v, %v", r, err)
	}
	if last := r.Steps[len(r.Steps)-1]; last.Skipped != "context canceled" {
		t.Errorf("%+v", last)
	}
}
