// Package gentest has the tests that every generated package must pass, against the schema from which it was generated:
// values are decoded and encoded without loss, repairs are reported, and sent messages are valid.
package gentest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/acpgo/sdk/codec"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

// Package is a generated package.
type Package struct {
	Schema      string                // its schema, as JSON
	Definitions map[string]func() any // makes a new value of each definition that is a type; see Types
	LeftOut     []string              // definitions that are no types, beside the envelopes
	Handlers    map[string]string     // names of handlers that do not follow from the definitions of parameters
	Sides       map[string]Side       // that handle methods, as the schema names them

	// What only Test looks at.
	Version      int // of the protocol
	LeastTypes   int // how many definitions are types, at least
	LeastMethods int // and how many methods there are
}

// A Side has the handlers of a side of a connection, and a pointer to what calls them.
type Side struct{ Handlers, Calls any }

// Test runs all tests of the package whose working folder it runs in. The race detector has nothing to find in values,
// and would make the tests ten times slower.
func (p *Package) Test(t *testing.T) {
	t.Helper()
	if Race {
		t.Skip("values have no goroutines")
	}
	t.Run("EveryDefinitionIsAType", p.hasDefinitions)
	t.Run("EveryMethodIsThere", p.hasMethods)
	t.Run("Documented", p.documented)
	t.Run("Memory", func(t *testing.T) { tier.Need(t, tier.Normal); p.memory(t) }) // while the heap is small, which it collects again and again
	t.Run("RoundTrip", func(t *testing.T) { p.RoundTrips(t, tier.Pick(1, 4, 100, 1300)) })
	if tier.Current() == tier.Short {
		return
	}
	t.Run("Incomplete", p.incomplete)
	t.Run("Leniency", func(t *testing.T) { p.Mutations(t, tier.Pick(1, 1, 1, 10)) })
}

// loaded are the schemas that were read, by their texts: what their judges have compiled serves all tests.
var loaded sync.Map

// schema returns what judges values of the package.
func (p *Package) schema(t *testing.T) *sample.Schema {
	t.Helper()
	if s, ok := loaded.Load(p.Schema); ok {
		return s.(*sample.Schema)
	}
	s := must.Get(sample.Load(p.Schema))(t)
	loaded.Store(p.Schema, s)
	return s
}

// each runs do for every step-th definition, in parallel. Each definition has its own seed, the same in every run.
func (p *Package) each(t *testing.T, step int, do func(t *testing.T, s *sample.Schema, definition string, seed uint64)) {
	t.Helper()
	s := p.schema(t)
	t.Run("definitions", func(t *testing.T) {
		for i, definition := range slices.Sorted(maps.Keys(p.Definitions)) {
			if i%step != 0 {
				continue
			}
			t.Run(definition, func(t *testing.T) {
				t.Parallel()
				do(t, s, definition, uint64(i))
			})
		}
	})
}

// mutated is the distance between two definitions whose values are mutated, which takes longest.
func mutated() int { return tier.Pick(16, 8, 1, 1) }

// tooMany is how many failures of one definition are shp.
const tooMany = 5

// RoundTrips decodes and encodes n values of each definition: every variant, optional members that are
// absent, null or present, the limits of numbers, unknown members, variants and enum values. The result
// must be equal, except for members that have their default, and as valid. It logs how many values there were.
func (p *Package) RoundTrips(t *testing.T, n int) {
	t.Helper()
	var total atomic.Int64
	p.each(t, 1, func(t *testing.T, s *sample.Schema, definition string, seed uint64) {
		m := sample.NewMaker(s, seed)
		failures := 0
		for range n {
			want := m.Value(definition)
			total.Add(1)
			if err := p.survives(s, definition, want); err != nil {
				t.Errorf("%s\n\t%v", marshal(want), err)
				if failures++; failures == tooMany {
					return
				}
			}
		}
	})
	t.Logf("%d values of %d definitions", total.Load(), len(p.Definitions))
}

func (p *Package) survives(s *sample.Schema, definition string, want any) error {
	v := p.Definitions[definition]()
	if err := codec.Unmarshal(marshal(want), v); err != nil {
		return err
	}
	return encodesAs(s, definition, v, want)
}

// encodesAs requires that v is encoded to the same value as want, which is valid if want is.
func encodesAs(s *sample.Schema, definition string, v any, want any) error {
	got, err := encoded(v)
	if err != nil {
		return err
	}
	if s.Valid(definition, want) && !s.Valid(definition, got) {
		return fmt.Errorf("what is encoded is invalid: %s", marshal(got))
	}
	return s.Same(definition, want, got)
}

func encoded(v any) (any, error) {
	out, err := codec.Append(nil, v)
	if err != nil {
		return nil, err
	}
	return sample.Parse(out)
}

// Mutations replaces each member and element of a valid value, n times for each definition, by a value of
// every JSON type, and removes each required member. Where the schema marks leniency, that value alone must
// be lost, and reported; anywhere else decoding must fail with the right pointer. It logs the numbers.
func (p *Package) Mutations(t *testing.T, n int) {
	t.Helper()
	var fine, repaired, refused atomic.Int64
	p.each(t, mutated(), func(t *testing.T, s *sample.Schema, definition string, seed uint64) {
		m := sample.NewFullMaker(s, seed)
		failures := 0
		for range n {
			for mutation := range s.Mutations(definition, m.Value(definition)) {
				if err := p.judge(s, definition, mutation); err != nil {
					t.Errorf("%s: %v", mutation.What, err)
					if failures++; failures == tooMany {
						return
					}
				}
				switch {
				case mutation.Fails:
					refused.Add(1)
				case mutation.Repairs:
					repaired.Add(1)
				default:
					fine.Add(1)
				}
			}
		}
	})
	t.Logf("%d mutations of %d definitions: %d repaired and reported, %d refused at the right place, %d that are no mistakes",
		fine.Load()+repaired.Load()+refused.Load(), len(p.Definitions), repaired.Load(), refused.Load(), fine.Load())
}

// judge decodes the mutation and encodes the result.
func (p *Package) judge(s *sample.Schema, definition string, m sample.Mutation) error {
	d := codec.NewDecoder(marshal(m.Value))
	v := p.Definitions[definition]()
	codec.Decode(d, v)
	err := d.End()
	if m.Fails {
		failure, ok := errors.AsType[*codec.Error](err)
		switch {
		case !ok:
			return errors.New("it was accepted")
		case failure.Pointer != m.Pointer && !(m.Inside && strings.HasPrefix(failure.Pointer, m.Pointer+"/")):
			return fmt.Errorf("want it refused at %s, got %w", m.Pointer, err)
		case errors.Is(err, codec.ErrSyntax):
			return fmt.Errorf("it is taken for a syntax error: %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	repairs := d.Repairs()
	if !m.Repairs { // a valid value, in which the tag of another variant can be a member that nothing describes
		repairs = slices.DeleteFunc(repairs, func(r codec.Repair) bool { return strings.HasSuffix(r.Msg, " variant is dropped") })
	}
	switch {
	case m.Repairs && (len(repairs) != 1 || repairs[0].Pointer != m.Pointer):
		return fmt.Errorf("want one repair at %s, got %q", m.Pointer, repairs)
	case !m.Repairs && len(repairs) > 0:
		return fmt.Errorf("want no repair, got %q", repairs)
	}
	err = encodesAs(s, definition, v, m.Result)
	if m.Unsendable {
		if _, ok := errors.AsType[*codec.Error](err); !ok {
			return errors.New("the schema forbids what was read, and it was encoded")
		}
		return nil
	}
	if failure, ok := errors.AsType[*codec.Error](err); ok && strings.Contains(failure.Msg, "an unknown variant must have the member") {
		return nil // it was read, as variants of other versions are, but is not sent
	}
	return err
}

// incomplete encodes the zero value of each definition, and each union without a variant. What is encoded must be
// valid; otherwise, encoding must fail with an error that has a pointer, which for a union is the whole, whatever its
// other members are. It logs how many of each there were.
func (p *Package) incomplete(t *testing.T) {
	var zeros, unions atomic.Int64
	p.each(t, 1, func(t *testing.T, s *sample.Schema, definition string, seed uint64) {
		v, err := encoded(p.Definitions[definition]())
		if failure, ok := errors.AsType[*codec.Error](err); ok && (failure.Pointer == "" || strings.HasPrefix(failure.Pointer, "/")) {
			zeros.Add(1)
		} else if err != nil || !s.Valid(definition, v) {
			t.Errorf("the zero value: %s, %v", marshal(v), err)
		}
		full := p.Definitions[definition]()
		must.Do(t, codec.Unmarshal(marshal(sample.NewFullMaker(s, seed).Value(definition)), full))
		whole := reflect.ValueOf(full).Elem()
		if whole.Kind() != reflect.Struct || !whole.FieldByName("Variant").IsValid() {
			return
		}
		variant := whole.FieldByName("Variant")
		for _, empty := range []reflect.Value{reflect.Zero(variant.Type()), reflect.Zero(variant.Elem().Type())} {
			if empty.Kind() != reflect.Interface && empty.Kind() != reflect.Pointer {
				continue
			}
			variant.Set(empty)
			unions.Add(1)
			out, err := codec.Append(nil, full)
			if failure, ok := errors.AsType[*codec.Error](err); !ok || failure.Pointer != "" {
				t.Errorf("variant %s: got %s, %v, want an error at \"\"", empty.Type(), out, err)
			}
		}
	})
	t.Logf("%d of %d zero values were refused, and %d unions without a variant", zeros.Load(), len(p.Definitions), unions.Load())
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // made of JSON values
	}
	return b
}
