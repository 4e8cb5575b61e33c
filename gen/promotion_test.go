package gen

import (
	"bytes"
	"encoding/json"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/internal/gen/api"
	"github.com/acpgo/sdk/internal/gen/model"
	"github.com/acpgo/sdk/internal/test/apitest"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// When an experimental feature becomes stable, programs keep compiling and its gates remain. Whether the stable schema
// adopts one feature or all, only comments, the order of handlers, and the feature's constant change in the generated
// code, and the codec loses what it has for features that are off.
func TestPromotion(t *testing.T) {
	tier.Need(t, tier.Normal)
	imports := must.Get(runtime())(t)
	for i, target := range Targets {
		t.Run(target.Package, func(t *testing.T) {
			if i > 0 {
				tier.Need(t, tier.Nightly)
			}
			t.Parallel()
			before := configOf(t, target, filepath.Join("..", filepath.FromSlash(target.Schema)))
			stable := must.Get(os.ReadFile(filepath.Join("..", filepath.FromSlash(target.Stable))))(t)
			before.Stable = stable
			old := must.Get(generate(before))(t)
			if len(old.pkg.Features) < 10 {
				t.Fatalf("%d features", len(old.pkg.Features))
			}
			oldAPI := must.Get(api.Declarations(target.Package, old.Files, imports))(t)
			promote := func(name string, features ...*model.Feature) {
				t.Run(name, func(t *testing.T) {
					after := before
					after.Stable = promoted(t, stable, before.Schema, features)
					now := must.Get(generate(after))(t)
					for _, f := range now.pkg.Features {
						is := slices.ContainsFunc(features, func(p *model.Feature) bool { return p.Name == f.Name })
						if f.Experimental == is {
							t.Errorf("%s is experimental: %v", f.Name, f.Experimental)
						}
					}
					for file, source := range old.Files {
						got, want := code(now.Files[file]), code(source)
						if file == "codec_gen.go" && isPart(got, want) {
							continue // what is stable is no longer left out where it is malformed and the feature is off
						}
						if file != "features_gen.go" && got != want {
							t.Errorf("%s changes (-before +after):\n%s", file, cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")))
						}
					}
					for i, f := range now.pkg.Features {
						if f.Name != old.pkg.Features[i].Name || f.Bit != old.pkg.Features[i].Bit {
							t.Errorf("%s is bit %d", f.Name, f.Bit)
						}
					}
					nowAPI := must.Get(api.Declarations(target.Package, now.Files, imports))(t)
					if diff := cmp.Diff(visible(oldAPI), visible(nowAPI)); diff != "" {
						t.Errorf("the API changes (-before +after):\n%s", diff)
					}
				})
			}
			for _, f := range old.pkg.Features {
				promote(f.Name, f)
			}
			promote("all", old.pkg.Features...)
		})
	}
}

// A report says what became stable and what that demands of the overrides, and nothing that is not so.
func TestPromotionReport(t *testing.T) {
	tier.Need(t, tier.Normal)
	imports := must.Get(runtime())(t)
	target := Targets[0]
	whole := configOf(t, target, filepath.Join("..", target.Schema))
	stable := configOf(t, target, filepath.Join("..", target.Stable))
	whole.Stable, stable.Experimental = stable.Schema, whole.Schema
	stable.Overrides, stable.Unstable = Overrides["v1"], Overrides["v1.unstable"]
	before := must.Get(generate(whole))(t)
	title := slices.IndexFunc(before.pkg.Features, func(f *model.Feature) bool { return f.Name == "SessionTitle" })
	stable.Schema = promoted(t, stable.Schema, whole.Schema, nil) // with the members in the same order
	nextStable, nextWhole := stable, whole
	nextStable.Schema = promoted(t, stable.Schema, whole.Schema, before.pkg.Features[title:title+1])
	nextWhole.Stable = nextStable.Schema
	compare := func(old, new Config) (*api.Report, []string) {
		t.Helper()
		report := must.Get(Compare(old, new, imports))(t)
		var subjects []string
		for _, c := range report.Changes {
			if c.Level != api.Promoted {
				t.Errorf("%v: %s: %s", c.Level, c.Subject, c.Text)
			}
			subjects = append(subjects, c.Subject)
		}
		return report, subjects
	}
	for _, c := range []Config{stable, whole} {
		if report, subjects := compare(c, c); len(subjects) > 0 || report.Todo.String() != "" {
			t.Errorf("nothing happened: %v, %v", subjects, report.Todo)
		}
	}
	report, subjects := compare(stable, nextStable)
	want := []string{
		`Capability    session/set_title = sessionCapabilities.title # the capability's description says so`,
		`SessionByHand session/set_title # takes the title alone`,
	}
	if diff := cmp.Diff(api.Todo{Moves: want}, report.Todo); diff != "" || len(subjects) < 5 ||
		!strings.Contains(report.Markdown(), "\n\n## Became stable (") {
		t.Errorf("%v\n%s", subjects, diff)
	}
	report, subjects = compare(whole, nextWhole)
	if diff := cmp.Diff([]string{"FeatureSessionTitle", "MethodSetSessionTitle", "SessionCapabilities.Title",
		"SessionTitleCapabilities", "SetSessionTitleRequest", "SetSessionTitleResponse"}, subjects); diff != "" || report.Todo.String() != "" {
		t.Errorf("%v\n%s", report.Todo, diff)
	}

	// A feature that has no row, or is new, changes no other.
	without := whole
	without.Overrides = slices.DeleteFunc(slices.Clone(whole.Overrides), func(o Override) bool { return o.Value == "Fork" })
	if report = must.Get(Compare(without, without, imports))(t); len(report.Changes) > 0 {
		t.Error(report)
	}
	lacks := []string{
		`Feature       SessionCapabilities/fork = SessionCapabilitiesFork # what it belongs to`,
		`Feature       session/fork = SessionFork # what it belongs to`,
	}
	if diff := cmp.Diff(api.Todo{Lacks: lacks}, report.Todo); diff != "" {
		t.Error(diff)
	}
	without.Overrides = append(without.Overrides, Override{Kind: Feature, Subject: "SessionCapabilities/fork", Value: "A"})
	after := must.Get(generate(without))(t)
	if !bytes.Contains(after.Files["types_gen.go"], []byte(`"archived,omitzero" codec:"null,open,feature=0"`)) {
		t.Error("the tags of members have other numbers")
	}
	for _, f := range after.pkg.Features {
		if i := slices.Index(featureBits, f.Name); f.Bit != i && (f.Name != "A" || f.Bit != len(featureBits)) {
			t.Errorf("%s is bit %d", f.Name, f.Bit)
		}
	}
}

// visible returns the part of a package that programs can see, without the set of all features.
func visible(pkg *types.Package) []string {
	lines := apitest.Lines(pkg)
	for i, line := range lines {
		lines[i] = featureValue.ReplaceAllString(line, "$1")
	}
	return lines
}

var featureValue = regexp.MustCompile(`^(const AllFeatures Features = )\d+$`)

var featureTag = regexp.MustCompile(` \x60codec:"feature=\d+"\x60| codec:"feature(s|=\d+)(,feature=\d+)?"|,feature(s|=\d+)` +
	`|, Off: uint64\(Feature\w+\)`)

// code returns the lines of a source file without comments and the features in tags and tables, sorted: the order of
// handlers may change.
func code(source []byte) string {
	var lines []string
	for line := range strings.Lines(featureTag.ReplaceAllString(string(source), "")) {
		if line = strings.Join(strings.Fields(line), " "); line != "" && !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// isPart reports whether all sorted lines of one text are among those of another, as often.
func isPart(text, of string) bool {
	rest := strings.Split(of, "\n")
	for line := range strings.SplitSeq(text, "\n") {
		i := slices.Index(rest, line)
		if i < 0 {
			return false
		}
		rest = rest[i+1:]
	}
	return true
}

// promoted returns the stable schema with the parts of an unstable one that belong to features, and what they refer to.
func promoted(t *testing.T, stable, unstable []byte, features []*model.Feature) []byte {
	t.Helper()
	var from, to map[string]any
	for data, v := range map[*[]byte]*map[string]any{&stable: &to, &unstable: &from} {
		d := json.NewDecoder(bytes.NewReader(*data))
		d.UseNumber()
		must.Do(t, d.Decode(v))
	}
	source, defs := from["$defs"].(map[string]any), to["$defs"].(map[string]any)
	var refer func(v any)
	define := func(name string) {
		if defs[name] == nil {
			defs[name] = source[name]
			refer(source[name])
		}
	}
	refer = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				define(strings.TrimPrefix(ref, "#/$defs/"))
			}
			for _, v := range v {
				refer(v)
			}
		case []any:
			for _, v := range v {
				refer(v)
			}
		}
	}
	for _, f := range features {
		for _, covered := range f.Covers {
			owner, part, _ := strings.Cut(covered, "/")
			definition, isType := source[owner].(map[string]any)
			found := false
			switch properties, _ := definition["properties"].(map[string]any); {
			case !isType: // a method
				for name, d := range source {
					if d.(map[string]any)["x-method"] == covered {
						define(name)
						found = true
					}
				}
			case properties[part] != nil:
				if defs[owner] == nil {
					found = true // it covers something experimental
					break
				}
				defs[owner].(map[string]any)["properties"].(map[string]any)[part] = properties[part]
				refer(properties[part])
				found = true
			default:
				for _, choice := range []string{"oneOf", "anyOf"} {
					branches, _ := definition[choice].([]any)
					for i, branch := range branches {
						text := must.Get(json.Marshal(branch))(t)
						if !bytes.Contains(text, []byte(`"const":"`+part+`"`)) || bytes.Contains(text, []byte(`"not":`)) {
							continue
						}
						union := defs[owner].(map[string]any)
						union[choice] = slices.Insert(slices.Clone(union[choice].([]any)), min(i, len(union[choice].([]any))), branch)
						refer(branch)
						found = true
					}
				}
			}
			if !found {
				t.Fatalf("%s: the schema has no %s", f.Name, covered)
			}
		}
	}
	// A union's branch for unknown tags excludes the known tags.
	for name, d := range defs {
		union, _ := d.(map[string]any)
		branches, _ := union["anyOf"].([]any)
		for i, branch := range branches {
			if b, _ := branch.(map[string]any); b["not"] != nil {
				whole := source[name].(map[string]any)["anyOf"].([]any)
				for _, other := range whole {
					if o, _ := other.(map[string]any); o["not"] != nil {
						branches[i] = maps.Clone(o)
					}
				}
			}
		}
	}
	return must.Get(json.Marshal(to))(t)
}
