package repo_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/gen"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// TestNewerSchema adds a variant "hologram" to unions of the protocol, generates package acp from that schema, and runs
// the tests with the tag acp_newer against it: what programs written for today's schema do with the new variant.
func TestNewerSchema(t *testing.T) {
	tier.Need(t, tier.Full)
	target := gen.Targets[0]
	files := must.Get(gen.Generate(gen.Config{
		Schema: withHologram(t, target.Schema), Stable: withHologram(t, target.Stable), Source: "a newer schema", Package: target.Package, Module: "github.com/acpgo/sdk",
		Overrides: gen.Overrides[target.Protocol], Facade: true,
	}))(t)
	dir, replaced := t.TempDir(), map[string]string{}
	root := must.Get(os.Getwd())(t)
	for name, source := range files {
		file := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(file, source, 0o600))
		replaced[filepath.Join(root, target.Dir, name)] = file
	}
	overlay := must.Get(json.Marshal(map[string]any{"Replace": replaced}))(t)
	overlayFile := filepath.Join(dir, "overlay.json")
	must.Do(t, os.WriteFile(overlayFile, overlay, 0o600))
	for module, packages := range map[string][]string{".": {"./acp/view"}, "cmd/acp": {"./internal/draw"}} {
		args := append([]string{"test", "-vet=off", "-v", "-overlay", overlayFile, "-tags", "acp_newer", "-run", "^TestNewer$"}, packages...)
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = module
		out, err := cmd.CombinedOutput()
		if ran := strings.Count(string(out), "--- PASS: TestNewer "); err != nil || ran != len(packages) {
			t.Errorf("%s: %d of %d tests passed, %v\n%s", module, ran, len(packages), err, out)
		}
	}
}

// withHologram returns a schema with the variant "hologram" in each of its unions that programs switch over.
func withHologram(t *testing.T, file string) []byte {
	t.Helper()
	schema := []byte(readFile(t, file))
	insert := func(at int, text string) { schema = slices.Insert(schema, at, []byte(text)...) }
	for union, tag := range map[string]string{
		"SessionUpdate": "sessionUpdate", "ContentBlock": "type", "ToolCallContent": "type", "PlanUpdateContent": "type", "AuthMethod": "type",
	} {
		at := bytes.Index(schema, []byte(`"`+union+`": {`))
		if at < 0 { // only the unstable schema has it
			continue
		}
		list := regexp.MustCompile(`"(oneOf|anyOf)": \[`).FindIndex(schema[at:])
		insert(at+list[1], fmt.Sprintf(`{"type": "object", "properties": {%q: {"type": "string", "const": "hologram"}},
			"required": [%q], "allOf": [{"$ref": "#/$defs/Hologram"}]},`, tag, tag))
	}
	const defs = `"$defs": {`
	insert(bytes.Index(schema, []byte(defs))+len(defs), `"Hologram": {"type": "object", "required": ["id", "planId", "beam"],
		"properties": {"id": {"type": "string"}, "planId": {"type": "string"}, "beam": {"type": "string"}}},`)
	return schema
}
