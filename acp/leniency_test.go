package acp

// This file owns the proof that decoding is lenient where the schema says so, and nowhere else.

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/acpgo/sdk/acp/codec"
	"github.com/acpgo/sdk/gen/sample"
)

// Each place of a valid value is spoilt in turn. What the schema marks is lost and reported, all else is
// refused at that place.
func TestLeniency(t *testing.T) {
	s := loadSchema(t)
	var survived, repaired, refused atomic.Int64
	t.Run("all", func(t *testing.T) {
		for seed, definition := range slices.Sorted(maps.Keys(definitions)) {
			t.Run(definition, func(t *testing.T) {
				t.Parallel()
				m := sample.NewFullMaker(s, uint64(seed))
				for range 2 {
					for mutation := range s.Mutations(definition, m.Value(definition)) {
						if ofID(mutation) {
							continue
						}
						if err := tryMutation(t, s, definition, mutation); err != nil {
							t.Errorf("%s: %v", mutation.What, err)
						}
						switch {
						case mutation.Fails:
							refused.Add(1)
						case mutation.Repairs:
							repaired.Add(1)
						default:
							survived.Add(1)
						}
					}
				}
			})
		}
	})
	t.Logf("%d changes that are no mistakes, %d repaired, %d refused", survived.Load(), repaired.Load(), refused.Load())
}

// ofID reports whether a request id was made a number that the schema does not allow: an id is kept as it
// came.
func ofID(m sample.Mutation) bool {
	return strings.HasSuffix(m.What, "/requestId := 1.5") || strings.HasSuffix(m.What, "/requestId := 18446744073709551616")
}

func tryMutation(t *testing.T, s *sample.Schema, definition string, m sample.Mutation) error {
	data := mustMarshal(t, m.Value)
	d := codec.NewDecoder(data)
	v := definitions[definition]()
	v.DecodeJSON(d)
	err := d.End()
	if m.Fails {
		failure, ok := errors.AsType[*codec.Error](err)
		switch {
		case !ok:
			return errors.New("it was accepted")
		case failure.Pointer != m.Pointer:
			return errors.New("want it refused at " + m.Pointer + ", got " + err.Error())
		case errors.Is(err, codec.ErrSyntax):
			return errors.New("it is taken for a syntax error: " + err.Error())
		}
		return nil
	}
	if err != nil {
		return err
	}
	repairs := d.Repairs()
	switch {
	case m.Repairs && (len(repairs) != 1 || repairs[0].Pointer != m.Pointer):
		return errors.New("want one repair at " + m.Pointer + ", got " + string(mustMarshal(t, repairs)))
	case !m.Repairs && len(repairs) > 0:
		return errors.New("want no repair, got " + string(mustMarshal(t, repairs)))
	}
	out, err := codec.Append(nil, v)
	if err != nil {
		return err
	}
	got, err := sample.Parse(out)
	if err != nil {
		return err
	}
	return s.Same(definition, m.Result, got)
}
