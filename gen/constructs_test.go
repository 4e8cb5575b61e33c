package gen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

// A construct is a small schema with its expected result. Each file of testdata/constructs contains the constructs of
// one topic.
type construct struct {
	// Name is unique in its topic. Why explains the construct.
	Name, Why string
	// Defs are the definitions, or Schema the whole document.
	Defs, Schema json.RawMessage
	// Tried constructs are compiled and tried in every tier, not only in a sample.
	Tried bool
	// Def is the definition of the values, T by default.
	Def string
	// Want is "right", "refused", or "either" if both are acceptable.
	Want string
	// At is the place where a refusal must be: there or below.
	At string
	// Unlabelled explains why the labels of values differ from those of the validator.
	Unlabelled string
	// Valid values are read without error or repair and written unchanged, or as the value in As with the same
	// index if that is not null.
	Valid, As []json.RawMessage
	// Invalid values are refused or reported, and are not written unchanged. Kept values are also invalid, but
	// documented leniency may read them without a report; then they are written unchanged.
	Invalid, Kept []json.RawMessage
	// Repaired values are valid, and are read with repairs by documented leniency.
	Repaired []json.RawMessage
	// Unsent values are invalid. They are read without a report by documented leniency, but not written again.
	Unsent []json.RawMessage
}

func (c *construct) document() []byte {
	if c.Schema != nil {
		return c.Schema
	}
	return fmt.Appendf(nil, `{"$defs":%s}`, c.Defs)
}

// TestConstructs generates code for each construct, type-checks a sample of it, and compiles and tries a smaller
// sample; in tier Nightly it does so for all code.
func TestConstructs(t *testing.T) {
	tier.Need(t, tier.Normal)
	check, program := newChecker(t), newBinary(t)
	accepted, checked, every := 0, tier.Pick(0, 48, 16, 1), tier.Pick(0, 160, 48, 1)
	for _, c := range constructs(t) {
		t.Run(c.Name, func(t *testing.T) {
			files, err := generateOnce(c.document())
			if err != nil || c.Want == "refused" {
				if err := c.judge(err); err != nil {
					t.Errorf("%v\n%s", err, c.document())
				}
				return
			}
			if accepted++; accepted%checked == 0 {
				if _, err := check.check(files); err != nil {
					t.Fatalf("it does not compile: %v\n%s", err, c.document())
				}
			}
			if accepted%every == 0 || c.Tried {
				c.try(program, program.add(t, files))
			}
		})
	}
	program.run(t)
	t.Logf("%d of %d accepted constructs are compiled and tried", program.count, accepted)
}

// constructs reads the table, and checks the labels of the values.
func constructs(t *testing.T) (out []*construct) {
	t.Helper()
	paths, err := filepath.Glob("testdata/constructs/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no constructs: %v", err)
	}
	for _, path := range paths {
		text := must.Get(os.ReadFile(path))(t)
		topic := strings.TrimSuffix(filepath.Base(path), ".json")
		var list []*construct
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&list); err != nil {
			t.Fatalf("%s: byte %d: %v", path, dec.InputOffset(), err)
		}
		seen := map[string]bool{}
		for _, c := range list {
			if c.Def == "" {
				c.Def = "T"
			}
			if c.Name == "" || seen[c.Name] {
				t.Errorf("%s: the name %q is empty or not unique", path, c.Name)
			}
			seen[c.Name] = true
			if err := c.check(); err != nil {
				t.Errorf("%s: %s: %v", path, c.Name, err)
			}
			c.Name = topic + "/" + c.Name
		}
		out = append(out, list...)
	}
	return out
}

// check requires that the construct agrees with a validator.
func (c *construct) check() error {
	if !slices.Contains([]string{"right", "refused", "either"}, c.Want) {
		return fmt.Errorf("it must not want %q", c.Want)
	}
	if c.Want == "refused" {
		return nil
	}
	if len(c.Valid)+len(c.Invalid) == 0 {
		return fmt.Errorf("it has no values")
	}
	if c.Unlabelled != "" {
		return nil
	}
	judge, err := sample.Load(string(c.document()))
	if err != nil {
		return err
	}
	if err := judge.Check(c.Def); err != nil {
		return err
	}
	for _, list := range []struct {
		name             string
		values           []json.RawMessage
		valid, tolerated bool
	}{{"valid", c.Valid, true, true}, {"invalid", c.Invalid, false, false}, {"kept", c.Kept, false, true}, {"repaired", c.Repaired, true, true}, {"unsent", c.Unsent, false, true}} {
		for _, text := range list.values {
			v, err := sample.Parse(text)
			if err != nil {
				return err
			}
			if valid := judge.Valid(c.Def, v); valid != list.valid {
				return fmt.Errorf("%s is listed as %s, the validator's valid is %v", text, list.name, valid)
			}
			if tolerated := judge.Tolerated(c.Def, v); tolerated != list.tolerated {
				return fmt.Errorf("%s is listed as %s, tolerated is %v", text, list.name, tolerated)
			}
		}
	}
	return nil
}

// judge returns an error if the construct must not be refused, or not with this error. The error may be nil.
func (c *construct) judge(err error) error {
	if err == nil {
		return errors.New("it was accepted")
	}
	if problem := misplaced(c.document(), err); problem != nil {
		return fmt.Errorf("refused without its place: %w", problem)
	}
	at := c.At
	if at == "" && c.Schema == nil {
		at = "/$defs"
	}
	inside := slices.ContainsFunc(Problems(err), func(problem error) bool {
		failure, _ := errors.AsType[*Error](problem)
		return failure.Pointer == at || strings.HasPrefix(failure.Pointer, at+"/")
	})
	switch {
	case c.Want == "right":
		return fmt.Errorf("it must be right, and was refused: %w", err)
	case !inside:
		return fmt.Errorf("not refused at %s: %w", at, err)
	}
	return nil
}

// hasPlace reports whether a JSON pointer leads to a value of a document. A document that is not JSON may fail anywhere,
// and one with a duplicate name where the first one leads.
func hasPlace(document []byte, pointer string) bool {
	v, err := sample.Parse(document)
	if err != nil {
		return true
	}
	once, err := json.Marshal(v)
	return err != nil || tokens(once) != tokens(document) || leads(v, pointer)
}

func leads(v any, pointer string) bool {
	if pointer == "" {
		return true
	}
	token, rest, more := strings.Cut(pointer[1:], "/")
	if more {
		rest = "/" + rest
	}
	switch v := v.(type) {
	case map[string]any:
		below, ok := v[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
		return ok && leads(below, rest)
	case []any:
		i, err := strconv.Atoi(token)
		return err == nil && i >= 0 && i < len(v) && leads(v[i], rest)
	}
	return false
}

// tokens counts the tokens of a JSON text.
func tokens(text []byte) (n int) {
	for dec := json.NewDecoder(bytes.NewReader(text)); ; n++ {
		if _, err := dec.Token(); err != nil {
			return n
		}
	}
}

// try tries the values of the construct with the generated package of that number.
func (c *construct) try(program *binary, number int) {
	try := func(list []json.RawMessage, check func(i int, o outcome, read bool) error) {
		for i, text := range list {
			program.try(c.Name, task{number, c.Def, text}, func(o outcome) error {
				return check(i, o, o.Error == "" && len(o.Repairs) == 0)
			})
		}
	}
	try(c.Valid, func(i int, o outcome, read bool) error {
		switch {
		case o.Error != "":
			return fmt.Errorf("it is valid and was refused: %s", o.Error)
		case !read:
			return fmt.Errorf("it is valid and was repaired: %q", o.Repairs)
		case i < len(c.As) && string(c.As[i]) != "null":
			return o.writes(c.As[i])
		}
		return o.writes(c.Valid[i])
	})
	try(c.Invalid, func(i int, o outcome, read bool) error {
		if read {
			return errors.New("it is invalid and was read")
		}
		if o.Value != nil && o.writes(c.Invalid[i]) == nil {
			return fmt.Errorf("it is invalid and was written: %s", o.Value)
		}
		return nil
	})
	try(c.Kept, func(i int, o outcome, read bool) error {
		if read {
			return o.writes(c.Kept[i])
		}
		return nil
	})
	try(c.Repaired, func(_ int, o outcome, read bool) error {
		if o.Error != "" || read {
			return fmt.Errorf("it must be repaired: refused with %q, repairs %q", o.Error, o.Repairs)
		}
		return nil
	})
	try(c.Unsent, func(_ int, o outcome, read bool) error {
		if !read || o.Value != nil {
			return fmt.Errorf("it must be read and not written: refused with %q, repairs %q, written %s", o.Error, o.Repairs,
				o.Value)
		}
		return nil
	})
}
