package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A file of overrides resolves clashes. What is wrong with it, and what in it is not used, is said by line.
func TestOverridesFile(t *testing.T) {
	dir := t.TempDir()
	schema, table, out := filepath.Join(dir, "schema.json"), filepath.Join(dir, "overrides.txt"), filepath.Join(dir, "pkg")
	writeFile(t, schema, `{"$defs":{"Thing":{"type":"object","properties":{"a_b":{"type":"string"},"aB":{"type":"string"},"level":{"type":"string","enum":["x y","x-y"]}}}}}`)
	args := []string{"-schema", schema, "-package", "pkg", "-out", out, "-overrides", table}
	tests := []struct {
		name, table string
		want        []string
	}{
		{"nothing decided", "", []string{
			schema + `: /$defs/Thing/properties/level/enum/1: the name ThingLevelXY is taken by /$defs/Thing/properties/level/enum/0; an override {Value, "Thing/level/x-y"} can name it`,
			schema + `: /$defs/Thing/properties/aB: the name AB is taken by /$defs/Thing/properties/a_b; an override {Member, "Thing/aB"} can name it`,
			"these overrides would resolve this; you may choose other names:",
		}},
		{"wrong lines", "Member Thing/aB\n\nMembr Thing/aB = B # b\n", []string{
			table + `: line 1: {Member, "Thing/aB"} decides nothing: expected = and a value after the subject`,
			table + `: line 3: unknown kind "Membr": expected one of Name, `,
		}},
		{"some decided, some not used", "Member Thing/aB = CapitalB # a clash\nMember Thing/c = C # gone\n# next\nUngated m # gone\n", []string{
			schema + `: /$defs/Thing/properties/level/enum/1: the name ThingLevelXY is taken`,
			table + `: line 2: the override {Member, "Thing/c", "C"} is not used: the schema has no such thing`,
			table + `: line 4: the override {Ungated, "m", ""} is not used: the schema has no such thing`,
			"these overrides would resolve this; you may choose other names:",
		}},
		{"too large", strings.Repeat("\n", 17<<20), []string{table + ": not read: larger than 16 MiB"}},
		{"no file", "-", []string{"open " + table}},
	}
	for _, test := range tests {
		if test.table == "-" {
			must.Do(t, os.Remove(table))
		} else {
			writeFile(t, table, test.table)
		}
		status, text := acpgen(t, args...)
		lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		suggested := slices.IndexFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "acpgen: ") })
		if suggested >= 0 {
			lines = lines[:suggested]
		}
		if status != failed || len(lines) != len(test.want) {
			t.Errorf("%s: got %d and\n%s", test.name, status, text)
			continue
		}
		for i, line := range lines {
			if !strings.HasPrefix(line, "acpgen: "+test.want[i]) {
				t.Errorf("%s: got %s, want %s", test.name, line, test.want[i])
			}
		}
	}

	// What is suggested is the file.
	writeFile(t, table, "")
	_, text := acpgen(t, args...)
	_, suggested, _ := strings.Cut(text, "choose other names:\n")
	writeFile(t, table, suggested)
	if status, text := acpgen(t, args...); status != ok || text != "" || strings.Count(suggested, "\n") != 2 {
		t.Errorf("with\n%sgot %d and %s", suggested, status, text)
	}
	writeFile(t, table, "Member Thing/aB = CapitalB # a clash\nValue /$defs/Thing/properties/level/enum/1 = ThingLevelDash # a clash, by pointer\nName Thing/level = Level # short\n")
	if status, text := acpgen(t, args...); status != ok || text != "" {
		t.Fatalf("got %d and %s", status, text)
	}
	if got := contents(t, out); !strings.Contains(got["types_gen.go"], "\tCapitalB codec.Opt[string] `json:\"aB,omitzero\" ") ||
		!strings.Contains(got["enums_gen.go"], "ThingLevelDash Level = \"x-y\"\n") {
		t.Errorf("the overrides were not applied:\n%s%s", got["types_gen.go"], got["enums_gen.go"])
	}
}

// A new release says in one run which overrides its schemas have no use for, and asks what people must answer.
func TestBumpSaysAll(t *testing.T) {
	tier.Need(t, tier.Normal)
	root := t.TempDir()
	must.Do(t, os.Mkdir(filepath.Join(root, "schema"), 0o777))
	bump := func(edit func(defs map[string]any)) (status int, text string) {
		var versions strings.Builder
		for _, file := range []string{"schema.json", "schema/v1.unstable.json", "schema/v2.json", "schema/v2.unstable.json"} {
			data := must.Get(os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file))))(t)
			var schema map[string]any
			must.Do(t, json.Unmarshal(data, &schema))
			edit(schema["$defs"].(map[string]any))
			data = must.Get(json.Marshal(schema))(t)
			writeFile(t, filepath.Join(root, filepath.FromSlash(file)), string(data))
			fmt.Fprintf(&versions, "%s some-package 9.9.9 2026-01-01 %x\n", file, sha256.Sum256(data))
		}
		writeFile(t, filepath.Join(root, "schema", "VERSIONS"), versions.String())
		return acpgen(t, "-root", root)
	}

	status, text := bump(func(defs map[string]any) {
		members := defs["InitializeResponse"].(map[string]any)["properties"].(map[string]any)
		for _, member := range members {
			if m := member.(map[string]any); m["default"] != nil {
				m["default"] = map[string]any{}
			}
		}
		for _, name := range []string{"AgentCapabilities", "SessionCapabilities"} {
			if d, ok := defs[name].(map[string]any); ok {
				delete(d["properties"].(map[string]any), "loadSession")
				delete(d["properties"].(map[string]any), "delete")
				delete(d["properties"].(map[string]any), "title")
			}
		}
	})
	unstable1, unstable2 := filepath.Join(root, "schema", "v1.unstable.json"), filepath.Join(root, "schema", "v2.unstable.json")
	want := []string{
		unstable1 + `: /$defs/LoadSessionRequest: the override {Capability, "session/load", "loadSession"} is not used: "AgentCapabilities" has no "loadSession"`,
		unstable1 + `: /$defs/DeleteSessionRequest: the override {Capability, "session/delete", "sessionCapabilities.delete"} is not used: "AgentCapabilities" has no "delete"`,
		unstable1 + `: /$defs/SetSessionTitleRequest: the override {Capability, "session/set_title", "sessionCapabilities.title"} is not used: "AgentCapabilities" has no "title"`,
		unstable1 + `: /: the override {Feature, "SessionCapabilities/title", "SessionTitle"} is not used: the schema has no such thing`,
		unstable2 + `: /: the override {Feature, "SessionCapabilities/title", "SessionTitle"} is not used: the schema has no such thing`,
		unstable2 + `: /$defs/DeleteSessionRequest: the override {Capability, "session/delete", "session.delete"} is not used: "AgentCapabilities" has no "delete"`,
		unstable2 + `: /$defs/SetSessionTitleRequest: the override {Capability, "session/set_title", "session.title"} is not used: "AgentCapabilities" has no "title"`,
	}
	if got := strings.Split(strings.TrimSuffix(text, "\n"), "\n"); status != failed || len(got) != len(want) {
		t.Errorf("got %d and\n%s", status, text)
	} else {
		for _, line := range want {
			if !strings.Contains(text, "acpgen: "+line+"\n") {
				t.Errorf("got\n%s\nwant %s", text, line)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(root, "acp")); err == nil {
		t.Error("something was written")
	}

	tier.Need(t, tier.Full) // what follows generates all packages; gen asks the questions of each schema in every tier
	status, text = bump(func(defs map[string]any) {
		for _, last := range []string{"Request", "Response"} {
			defs["PauseSession"+last] = map[string]any{"type": "object", "properties": map[string]any{}, "x-method": "session/pause", "x-side": "agent",
				"description": "Only available if the agent advertises the `pause` capability."}
		}
	})
	if asked := `question: /$defs/PauseSessionRequest: does a capability gate session/pause? `; status != ok || strings.Count(text, asked) != 2 || strings.Count(text, "\n") != 2 {
		t.Errorf("got %d and\n%s\nwant %d and twice %s", status, text, ok, asked)
	}
}
