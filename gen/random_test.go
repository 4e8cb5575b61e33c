package gen

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

var (
	schemaCount = flag.Int("schemas", 0, "how many schemas TestRandomSchemas makes; 0 is what the tier says")
	schemaSeed  = flag.Uint64("schemas.seed", 1, "the first of the seeds of TestRandomSchemas")
)

// inProgram is the number of schemas compiled into one program, and inPackage the number compiled into one of its
// packages.
const (
	inProgram = 4000
	inPackage = 80
)

// TestRandomSchemas makes random schemas. Each one is refused, with the place, or becomes Go code that compiles and
// agrees with a validator about values. None takes long.
func TestRandomSchemas(t *testing.T) {
	tier.Need(t, tier.Normal)
	mixer := must.Get(sample.NewMixer("testdata/constructs/*.json"))(t)
	r := &randomSchemas{t: t, mixer: mixer, check: newChecker(t)}
	count := cmp.Or(*schemaCount, tier.Pick(0, 12, 80, 4000))
	for done := 0; done < count; done += inProgram {
		r.try(*schemaSeed+uint64(done), min(inProgram, count-done))
	}
	t.Logf("%d schemas: %d accepted, %d of them endless for the validator, %d refused with their place; %d values: %d valid, %d tolerated, %d refused or repaired",
		count, r.accepted, r.unjudged, r.refused, r.valid+r.tolerated+r.invalid, r.valid, r.tolerated, r.invalid)
}

type randomSchemas struct {
	t                         *testing.T
	mixer                     *sample.Mixer
	check                     *checker
	accepted, refused         int
	unjudged                  int // of those accepted
	valid, tolerated, invalid int
}

// candidate is a schema with the code generated for it.
type candidate struct {
	seed        uint64
	definitions map[string]any
	document    []byte
	out         generated
}

// fail reports a failure with a schema.
func (r *randomSchemas) fail(c *candidate, format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("seed %d: %s\n%s", c.seed, fmt.Sprintf(format, args...), c.document)
}

// try tries a number of schemas, starting at a seed.
func (r *randomSchemas) try(seed uint64, count int) {
	candidates := make([]*candidate, count)
	for i := range candidates {
		c := &candidate{seed: seed + uint64(i)}
		c.definitions = r.mixer.Definitions(c.seed, fmt.Sprintf("S%dx", i))
		c.document = sample.DocumentOf(c.definitions)
		candidates[i] = c
	}
	r.generate(candidates)
	program := newBinary(r.t)
	var tasks []task
	var tried []trial
	accepted := slices.DeleteFunc(candidates, func(c *candidate) bool { return !r.acceptable(c) })
	for batch := range slices.Chunk(accepted, inPackage) {
		number := program.add(r.t, r.together(batch))
		for _, c := range batch {
			values := r.values(c)
			for _, v := range values {
				tasks = append(tasks, task{number, v.definition, v.text})
			}
			tried = append(tried, values...)
		}
	}
	if len(tasks) == 0 {
		return
	}
	program.compile(r.t)
	for i, o := range program.run(r.t, tasks) {
		if err := tried[i].compare(o); err != nil {
			r.fail(tried[i].candidate, "%s: %s: %v", tried[i].definition, tried[i].text, err)
		}
	}
}

// generate runs workers that generate code for the candidates.
func (r *randomSchemas) generate(candidates []*candidate) {
	var wg sync.WaitGroup
	next := make(chan *candidate)
	for range 2 {
		worker := newWorker(r.t)
		wg.Go(func() {
			for c := range next {
				out, err := worker.generate(c.document)
				if err != nil {
					out.Crash = err.Error()
				}
				c.out = out
			}
		})
	}
	for _, c := range candidates {
		next <- c
	}
	close(next)
	wg.Wait()
}

// acceptable counts the candidate, and reports whether Go code was generated for it.
func (r *randomSchemas) acceptable(c *candidate) bool {
	switch {
	case c.out.Crash != "":
		r.fail(c, "%s", c.out.Crash)
		return false
	case c.out.Refused != nil:
		document := pointersOf(c.document)
		for _, refusal := range c.out.Refused {
			if refusal.Foreign || !document.has(refusal.Pointer) {
				r.fail(c, "refused without its place: %s", refusal.Message)
			}
		}
		r.refused++
		return false
	}
	if _, err := r.check.check(c.out.Files); err != nil {
		r.fail(c, "it does not compile: %v", err)
		return false
	}
	r.accepted++
	return true
}

// together returns the files of a package for all candidates.
func (r *randomSchemas) together(batch []*candidate) map[string][]byte {
	all := map[string]any{}
	for _, c := range batch {
		maps.Copy(all, c.definitions)
	}
	document := sample.DocumentOf(all)
	files, err := Generate(Config{Schema: document, Source: "schema.json", Package: "generated", Module: module, Tests: true})
	if err != nil {
		r.t.Fatalf("seeds from %d on: each alone was accepted, all together are not: %v", batch[0].seed, err)
	}
	return files
}

// trial is a value with the schema's verdict on it.
type trial struct {
	candidate        *candidate
	judge            *sample.Schema
	definition       string
	text             json.RawMessage
	valid, tolerated bool
}

// values makes values for each definition of a candidate.
func (r *randomSchemas) values(c *candidate) (out []trial) {
	judge, err := sample.Load(string(c.document))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, definition := range slices.Sorted(maps.Keys(c.definitions)) {
		if err := judge.Check(definition); err != nil && strings.Contains(err.Error(), "infinite loop") {
			r.unjudged++
			return nil // a branch that contains itself has no values, but the validator does not notice this
		} else if err != nil {
			r.fail(c, "it was accepted, and is not a schema: %v", err)
			return nil
		}
		add := func(v any) {
			text, err := json.Marshal(v)
			if err != nil {
				r.t.Fatal(err)
			}
			value := trial{
				candidate: c, judge: judge, definition: definition, text: text,
				valid: judge.Valid(definition, v), tolerated: judge.Tolerated(definition, v),
			}
			switch {
			case value.valid && !value.tolerated:
				r.fail(c, "%s: %s is valid and not tolerated: the judge is wrong", definition, text)
			case value.valid:
				r.valid++
			case value.tolerated:
				r.tolerated++
			default:
				r.invalid++
			}
			out = append(out, value)
		}
		drawer := sample.NewSmallMaker(judge, c.seed)
		for range 8 {
			v, ok := drawer.Valid(definition)
			if !ok {
				continue
			}
			add(v)
			for range 3 {
				add(drawer.Spoilt(v))
			}
		}
	}
	return out
}

// compare returns an error if the outcome for a value is wrong.
func (v *trial) compare(o outcome) error {
	if err := o.broken(); err != nil {
		return err
	}
	given, err := sample.Parse(v.text)
	if err != nil {
		return err
	}
	// The variant that was read may have no place for a member, and with marks it may be read although another is valid.
	repaired := slices.ContainsFunc(o.Repairs, func(r string) bool { return !strings.HasSuffix(r, "a member of another variant is dropped") })
	switch {
	case v.valid && o.Error != "":
		return fmt.Errorf("it is valid and was refused: %s", o.Error)
	case v.valid && repaired && !bytes.Contains(v.candidate.document, []byte(`"x-deserialize-`)):
		return fmt.Errorf("it is valid and was repaired: %q", o.Repairs)
	case v.valid && o.Value == nil:
		return fmt.Errorf("it is valid and was not sent: %s", o.Unsent)
	case !v.tolerated && o.Error == "" && len(o.Repairs) == 0:
		return fmt.Errorf("it is invalid and was read")
	case o.Value == nil:
		return nil
	}
	got, err := sample.Parse(o.Value)
	if err != nil {
		return err
	}
	if !v.judge.Tolerated(v.definition, got) { // without unknown members, it may match more branches of a oneOf
		return fmt.Errorf("what is written is invalid: %s", o.Value)
	}
	if len(o.Repairs) > 0 {
		return nil
	}
	return v.judge.Same(v.definition, given, got)
}

// FuzzSchema generates code for any document. The document is refused with a place in it, or becomes Go code that
// type-checks.
func FuzzSchema(f *testing.F) {
	mixer := must.Get(sample.NewMixer("testdata/constructs/*.json"))(f)
	for seed := range uint64(20) {
		f.Add(sample.DocumentOf(mixer.Definitions(seed, "")))
	}
	f.Add([]byte(`{"$defs":{"A":{"anyOf":true},"A":""}}`))
	check := newChecker(f)
	f.Fuzz(func(t *testing.T, document []byte) {
		files, err := Generate(Config{Schema: document, Source: "schema.json", Package: "generated", Module: module, Tests: true})
		if err != nil {
			present := pointersOf(document)
			for _, r := range refusals(err) {
				if r.Foreign || !present.has(r.Pointer) {
					t.Errorf("refused without its place: %s", r.Message)
				}
			}
			return
		}
		if _, err := check.check(files); err != nil {
			t.Errorf("it does not compile: %v", err)
		}
	})
}

// Time is linear in the size of a schema: work that doubled with each level would not end before the test's deadline.
func TestLinear(t *testing.T) {
	tier.Need(t, tier.Normal)
	const levels = 26
	chain := func(level func(i int, next string) string) string {
		var b strings.Builder
		b.WriteString(`{"$defs":{`)
		for i := range levels {
			fmt.Fprintf(&b, `"D%d":%s,`, i, level(i, fmt.Sprintf(`{"$ref":"#/$defs/D%d"}`, i+1)))
		}
		fmt.Fprintf(&b, `"D%d":{"type":"object","properties":{"end":{"type":"string"}}}}}`, levels)
		return b.String()
	}
	tests := map[string]string{
		"members": chain(func(_ int, next string) string {
			return `{"type":"object","properties":{"a":` + next + `,"b":` + next + `},"required":["a","b"]}`
		}),
		"optional members": chain(func(_ int, next string) string {
			return `{"type":"object","properties":{"a":` + next + `,"b":` + next + `}}`
		}),
		"defaults": chain(func(_ int, next string) string {
			return `{"type":"object","properties":{"a":{"allOf":[` + next + `],"default":{}},"b":{"allOf":[` + next + `],"default":{}}}}`
		}),
		"bases": chain(func(i int, next string) string {
			return fmt.Sprintf(`{"type":"object","properties":{"p%d":{"type":"string"}},"allOf":[%s,%s]}`, i, next, next)
		}),
		"branches": chain(func(_ int, next string) string {
			return `{"anyOf":[` + next + `,` + next + `]}`
		}),
		"branches of two kinds": chain(func(_ int, next string) string {
			return `{"anyOf":[` + next + `,{"type":"string"},` + next + `]}`
		}),
		"merged choices": chain(func(i int, next string) string {
			return fmt.Sprintf(`{"oneOf":[{"type":"object","properties":{"k%d":{"const":"a"}},"required":["k%d"],"allOf":[%s]},{"type":"object","properties":{"k%d":{"const":"b"}},"required":["k%d"],"allOf":[%s]}]}`, i, i, next, i, i, next)
		}),
		"lists": chain(func(_ int, next string) string {
			return `{"anyOf":[{"title":"a","type":"array","items":` + next + `},{"title":"b","type":"object","properties":{"x":` + next + `,"y":` + next + `},"required":["x"]}]}`
		}),
		"references": chain(func(_ int, next string) string { return next }),
		"tuples":     chain(func(_ int, next string) string { return `{"type":"array","prefixItems":[` + next + `,` + next + `]}` }),
		"maps": chain(func(_ int, next string) string {
			return `{"type":"object","properties":{"a":` + next + `},"additionalProperties":` + next + `}`
		}),
	}
	size := tier.Pick(0, 300, 1000, 10_000)
	many := func(definition string) string {
		var b strings.Builder
		b.WriteString(`{"$defs":{`)
		for i := range size {
			fmt.Fprintf(&b, `"D%d":%s,`, i, strings.ReplaceAll(definition, "NEXT", fmt.Sprintf(`"#/$defs/D%d"`, (i+1)%size)))
		}
		b.WriteString(`"End":{"type":"string"}}}`)
		return b.String()
	}
	tests["many definitions"] = many(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	tests["many definitions in a circle"] = many(`{"type":"object","properties":{"next":{"$ref":NEXT}}}`)
	tests["many bases in a circle"] = many(`{"type":"object","properties":{"a":{"type":"string"}},"allOf":[{"$ref":NEXT}]}`)
	tests["many references in a circle"] = many(`{"$ref":NEXT}`)
	tests["many unions in a circle"] = many(`{"anyOf":[{"type":"string"},{"$ref":NEXT}]}`)
	tests["many required members in a circle"] = many(`{"type":"object","properties":{"next":{"$ref":NEXT}},"required":["next"]}`)
	tests["a choice that is a base of its branch, and a branch of its branch"] = `{"$defs":{
		"T":{"anyOf":[
			{"allOf":[{"$ref":"#/$defs/T"}],"properties":{"k":{"const":"alpha"}},"required":["k"],"type":"object"},
			{"properties":{"k":{"const":"beta"}},"required":["k"],"type":"object"},
			{"type":"null"},
			{"anyOf":[{"$ref":"#/$defs/U"},{"$ref":"#/$defs/T"}]}]},
		"U":{"type":"string"}}}`
	tests["a choice that is a base of its branch, and with null a branch"] = `{"$defs":{
		"T":{"anyOf":[
			{"type":"object","properties":{"k":{"const":"alpha"}},"required":["k"]},
			{"type":"object","properties":{"k":{"const":"beta"}},"required":["k"],"allOf":[{"$ref":"#/$defs/T"}]},
			{"anyOf":[{"$ref":"#/$defs/T"},{"type":"null"}]}]}}}`
	var others strings.Builder // the more there are, the more may be merged
	for i := range 1_000 {
		fmt.Fprintf(&others, `,"D%d":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, i)
	}
	tests["a not beside a choice that has itself as a branch"] = `{"$defs":{
		"T":{"not":{"type":"string"},"oneOf":[
			{"type":"object","properties":{"k":{"const":"alpha"}},"required":["k"]},
			{"type":"object","properties":{"k":{"const":"beta"}},"required":["k"]},
			{"$ref":"#/$defs/U"}]},
		"U":{"$ref":"#/$defs/T"}` + others.String() + `}}`
	worker := newWorker(t)
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			out := must.Get(worker.generate([]byte(tests[name])))(t)
			if out.Crash != "" {
				t.Error(out.Crash)
			}
			document := pointersOf([]byte(tests[name]))
			for _, r := range out.Refused {
				if r.Foreign || !document.has(r.Pointer) {
					t.Errorf("refused without its place: %s", r.Message)
				}
			}
			t.Logf("%d bytes in %v, %d errors", len(tests[name]), time.Since(start).Round(time.Millisecond), len(out.Refused))
		})
	}
}
