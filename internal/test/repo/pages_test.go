package repo_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
)

// TestPages runs the script that reports changed pages of the protocol with a program gh that lists a tree of files.
func TestPages(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("SKIPPED: it needs a shell")
	}
	list := must.Get(os.ReadFile("schema/PAGES"))(t)
	_, pages, _ := strings.Cut(string(list), "docs/protocol/v1/")
	at := strings.LastIndex(string(list[:len(list)-len(pages)]), "\n") + 1
	comment, tree := string(list[:at]), string(list[at:])
	const other = "0123456789012345678901234567890123456789 "
	first, rest, _ := strings.Cut(tree, "\n")
	_, path, _ := strings.Cut(first, " ")
	rest = strings.TrimSuffix(rest, "\n")
	for _, test := range []struct {
		name, tree string
		want       []string // in the body; none if there is nothing to report
		fails      bool
	}{
		{"as they were read", tree, nil, false},
		{"in another order, with other files", other + "docs/protocol/v1/schema.mdx\n" + other + "docs/protocol/v2/draft/plan.mdx\n" + other + "README.md\n" + rest + "\n" + first + "\n", nil, false},
		{"changed", other + path + "\n" + rest, []string{"- changed: [" + path + "](https://github.com/"}, false},
		{"removed", rest, []string{"- removed: [" + path + "]"}, false},
		{"new", tree + other + "docs/protocol/v3/new-page.mdx\n", []string{"- new: [docs/protocol/v3/new-page.mdx]"}, false},
		{"several", other + "docs/protocol/v1/a.mdx\n" + rest, []string{"- new: [docs/protocol/v1/a.mdx]", "- removed: [" + path + "]"}, false},
		{"names that are no pages", tree + other + "docs/protocol/v1/$(id).mdx\n" + other + "docs/protocol/v1/x](y).mdx\n", nil, false},
		{"nothing", "", nil, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			bin, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
			gh := "#!/bin/sh\ncase $2 in repos/agentclientprotocol/*) cat \"$TREE\" ;; *) exit 9 ;; esac\n"
			file := filepath.Join(bin, "tree")
			must.Do(t, errors.Join(os.WriteFile(filepath.Join(bin, "gh"), []byte(gh), 0o700), os.WriteFile(file, []byte(test.tree), 0o600)))
			cmd := exec.CommandContext(t.Context(), "sh", ".github/scripts/pages-report.sh", out)
			cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "TREE="+file)
			if text, err := cmd.CombinedOutput(); (err != nil) != test.fails {
				t.Fatalf("%v\n%s", err, text)
			}
			body, err := os.ReadFile(filepath.Join(out, "body.md"))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			if got := strings.Count(string(body), "\n- "); got != len(test.want) {
				t.Errorf("%d changes:\n%s", got, body)
			}
			for _, want := range test.want {
				if !strings.Contains(string(body), want) {
					t.Errorf("there is no %q in\n%s", want, body)
				}
			}
			if now, err := os.ReadFile(filepath.Join(out, "PAGES")); !test.fails && (err != nil || !strings.HasPrefix(string(now), comment) || len(test.want) == 0 && string(now) != string(list)) {
				t.Errorf("the list is now\n%s", now)
			}
		})
	}
}
