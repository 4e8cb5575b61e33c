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
	"testing"

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
	mixer := sample.NewMixer(t, "testdata/constructs/*.json")
	r := &randomSchemas{t, mixer, newChecker(t), map[string]int{}}
	count := cmp.Or(*schemaCount, tier.Pick(0, 12, 80, 4000))
	for done := 0; done < count; done += inProgram {
		r.try(*schemaSeed+uint64(done), min(inProgram, count-done))
	}
	t.Logf("%d schemas: %v", count, r.count)
}

type randomSchemas struct {
	t     *testing.T
	mixer *sample.Mixer
	check *checker
	count map[string]int // of schemas and values of a kind
}

// candidate is a schema with the code generated for it.
type candidate struct {
	name        string
	seed        uint64
	definitions map[string]any
	document    []byte
	files       map[string][]byte
	err         error
}

// fail reports a failure with a schema.
func (r *randomSchemas) fail(c *candidate, format string, args ...any) {
	r.t.Helper()
	r.t.Errorf("%s: %s", c.name, fmt.Sprintf(format, args...))
}

// try tries a number of schemas, starting at a seed.
func (r *randomSchemas) try(seed uint64, count int) {
	candidates := make([]*candidate, count)
	for i := range candidates {
		c := &candidate{seed: seed + uint64(i)}
		c.definitions = r.mixer.Definitions(c.seed, fmt.Sprintf("S%dx", i))
		c.document = sample.DocumentOf(c.definitions)
		c.name = fmt.Sprintf("seed %d: %s", c.seed, c.document)
		c.files, c.err = generateOnce(c.document)
		candidates[i] = c
	}
	program := newBinary(r.t)
	accepted := slices.DeleteFunc(candidates, func(c *candidate) bool { return !r.acceptable(c) })
	for batch := range slices.Chunk(accepted, inPackage) {
		number := program.add(r.t, r.together(batch))
		for _, c := range batch {
			r.values(c, program, number)
		}
	}
	program.run(r.t)
}

// acceptable counts the candidate, and reports whether Go code was generated for it.
func (r *randomSchemas) acceptable(c *candidate) bool {
	if c.err != nil {
		if problem := misplaced(c.document, c.err); problem != nil {
			r.fail(c, "refused without its place: %v", problem)
		}
		r.count["refused"]++
		return false
	}
	if _, err := r.check.check(c.files); err != nil {
		r.fail(c, "it does not compile: %v", err)
		return false
	}
	r.count["accepted"]++
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

// values tries values of each definition of a candidate with the generated package of that number.
func (r *randomSchemas) values(c *candidate, program *binary, number int) {
	judge := must.Get(sample.Load(string(c.document)))(r.t)
	for _, definition := range slices.Sorted(maps.Keys(c.definitions)) {
		if err := judge.Check(definition); err != nil && strings.Contains(err.Error(), "infinite loop") {
			r.count["endless for the validator"]++
			return // a branch that contains itself has no values, but the validator does not notice this
		} else if err != nil {
			r.fail(c, "it was accepted, and is not a schema: %v", err)
			return
		}
		add := func(v any) {
			text := must.Get(json.Marshal(v))(r.t)
			value := &trial{c, judge, definition, text, judge.Valid(definition, v), judge.Tolerated(definition, v)}
			if value.valid && !value.tolerated {
				r.fail(c, "%s: %s is valid and not tolerated: the judge is wrong", definition, text)
			}
			r.count[fmt.Sprintf("values, valid %v, tolerated %v", value.valid, value.tolerated)]++
			program.try(c.name, task{number, definition, text}, value.compare)
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
}

// compare returns an error if the outcome for a value is wrong.
func (v *trial) compare(o outcome) error {
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
	mixer := sample.NewMixer(f, "testdata/constructs/*.json")
	for seed := range uint64(20) {
		f.Add(sample.DocumentOf(mixer.Definitions(seed, "")))
	}
	f.Add([]byte(`{"$defs":{"A":{"anyOf":true},"A":""}}`))
	check := newChecker(f)
	f.Fuzz(func(t *testing.T, document []byte) {
		files, err := generateOnce(document)
		if err != nil {
			if problem := misplaced(document, err); problem != nil {
				t.Errorf("refused without its place: %v", problem)
			}
			return
		}
		if _, err := check.check(files); err != nil {
			t.Errorf("it does not compile: %v", err)
		}
	})
}
