package gen

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/sample"
	"github.com/acpgo/sdk/internal/test/tier"
)

var failing = flag.String("failing", "", "the file to which TestConstructs writes a line for each case that is not as it must be")

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

// values are all values of the construct.
func (c *construct) values() []json.RawMessage {
	return slices.Concat(c.Valid, c.Invalid, c.Kept, c.Repaired, c.Unsent)
}

// A verdict is the result for a construct.
type verdict int

const (
	asRight      verdict = iota
	asRefused            // refused as allowed, with its place
	overlyStrict         // refused, though it must be right
	without              // refused without a place, or at another one, or a panic
	wrong                // a value was lost, corrupted or accepted by mistake
	uncompiled
	verdicts
)

var verdictNames = [verdicts]string{"right", "refused", "refused, must be right", "wrong pointer", "WRONG", "does not compile"}

// TestConstructs generates code for each construct, type-checks a sample of it, and compiles and tries a smaller
// sample; in tier Nightly it does so for all code. It prints a table of the results for each topic.
func TestConstructs(t *testing.T) {
	tier.Need(t, tier.Normal)
	topics := constructs(t)
	results := tryConstructs(t, topics)

	var table, failures strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "topic\tconstructs\t%s\n", strings.Join(verdictNames[:], "\t"))
	var total [verdicts]int
	line := func(name string, counts [verdicts]int) {
		sum := 0
		for _, n := range counts {
			sum += n
		}
		fmt.Fprintf(w, "%s\t%d", name, sum)
		for _, n := range counts {
			fmt.Fprintf(w, "\t%d", n)
		}
		fmt.Fprintln(w)
	}
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		var counts [verdicts]int
		for i, c := range topics[topic] {
			r := results[topic][i]
			counts[r.verdict]++
			total[r.verdict]++
			if r.verdict > asRefused {
				fmt.Fprintf(&failures, "%s: %s:%s: %s\n", verdictNames[r.verdict], topic, c.Name, strings.ReplaceAll(r.why, "\n", " | "))
			}
			t.Run(topic+"/"+c.Name, func(t *testing.T) {
				if r.verdict > asRefused {
					t.Errorf("%s: %s\n%s", verdictNames[r.verdict], r.why, c.document())
				}
			})
		}
		line(topic, counts)
	}
	line("all", total)
	w.Flush()
	t.Logf("\n%s", table.String())
	if *failing != "" {
		must.Do(t, os.WriteFile(*failing, []byte(table.String()+"\n"+failures.String()), 0o644))
	}
}

// constructs reads the table, and checks the labels of the values.
func constructs(t *testing.T) map[string][]*construct {
	t.Helper()
	paths, err := filepath.Glob("testdata/constructs/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no constructs: %v", err)
	}
	out := map[string][]*construct{}
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
		}
		out[topic] = list
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

type result struct {
	verdict verdict
	why     string
}

func tryConstructs(t *testing.T, topics map[string][]*construct) map[string][]result {
	t.Helper()
	results := map[string][]result{}
	check := newChecker(t)
	program := newBinary(t)
	type attempt struct {
		construct *construct
		result    *result
		tasks     []task
	}
	var attempts []attempt
	accepted, checked, every := 0, tier.Pick(0, 48, 16, 1), tier.Pick(0, 160, 48, 1)
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		results[topic] = make([]result, len(topics[topic]))
		for i, c := range topics[topic] {
			r := &results[topic][i]
			files, err := generateOnce(c.document())
			if r.verdict, r.why = c.judge(err); r.verdict != asRight {
				continue
			}
			if accepted++; accepted%checked == 0 {
				if _, err := check.check(files); err != nil {
					*r = result{uncompiled, err.Error()}
					continue
				}
			}
			if accepted%every != 0 && !c.Tried {
				continue
			}
			a := attempt{construct: c, result: r}
			number := program.add(t, files)
			for _, text := range c.values() {
				a.tasks = append(a.tasks, task{number, c.Def, text})
			}
			attempts = append(attempts, a)
		}
	}
	program.compile(t)
	var tasks []task
	for _, a := range attempts {
		tasks = append(tasks, a.tasks...)
	}
	outcomes := program.run(t, tasks)
	t.Logf("%d of %d accepted constructs are compiled and tried", len(attempts), accepted)
	for _, a := range attempts {
		var problems []string
		for i, o := range outcomes[:len(a.tasks)] {
			if err := a.construct.compare(i, o); err != nil {
				problems = append(problems, fmt.Sprintf("%s: %v", a.tasks[i].Value, err))
			}
		}
		outcomes = outcomes[len(a.tasks):]
		if len(problems) > 0 {
			*a.result = result{wrong, strings.Join(problems, "\n")}
		}
	}
	return results
}

// judge returns the verdict on what the generator says, before the code is tried.
func (c *construct) judge(err error) (verdict, string) {
	switch {
	case err == nil && c.Want == "refused":
		return wrong, "it was accepted"
	case err == nil:
		return asRight, ""
	}
	at := c.At
	if at == "" && c.Schema == nil {
		at = "/$defs"
	}
	if problem := misplaced(c.document(), err); problem != nil {
		return without, problem.Error()
	}
	inside := slices.ContainsFunc(Problems(err), func(problem error) bool {
		failure, _ := errors.AsType[*Error](problem)
		return failure.Pointer == at || strings.HasPrefix(failure.Pointer, at+"/")
	})
	switch {
	case c.Want == "right":
		return overlyStrict, err.Error()
	case !inside:
		return without, fmt.Sprintf("not at %s: %v", at, err)
	}
	return asRefused, err.Error()
}

// pointers knows which JSON pointers lead to a value of a document. A document that is not JSON may fail anywhere, and
// one with a duplicate name where the first one leads.
type pointers struct {
	root     any
	anywhere bool
}

func pointersOf(document []byte) pointers {
	v, err := sample.Parse(document)
	if err != nil {
		return pointers{anywhere: true}
	}
	once, err := json.Marshal(v)
	return pointers{v, err != nil || tokens(once) != tokens(document)}
}

func (p pointers) has(pointer string) bool {
	if p.anywhere || pointer == "" {
		return true
	}
	v := p.root
	for _, token := range strings.Split(pointer, "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch parent := v.(type) {
		case map[string]any:
			below, ok := parent[token]
			if !ok {
				return false
			}
			v = below
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(parent) {
				return false
			}
			v = parent[i]
		default:
			return false
		}
	}
	return true
}

// tokens counts the tokens of a JSON text.
func tokens(text []byte) (n int) {
	for dec := json.NewDecoder(bytes.NewReader(text)); ; n++ {
		if _, err := dec.Token(); err != nil {
			return n
		}
	}
}

// compare returns an error if the outcome for value i of all values is wrong.
func (c *construct) compare(i int, o outcome) error {
	values := c.values()
	if err := o.broken(); err != nil {
		return err
	}
	survives := func(want json.RawMessage) error {
		if o.Value == nil {
			return fmt.Errorf("not sent: %s", o.Unsent)
		}
		a, err := sample.Parse(want)
		if err != nil {
			return err
		}
		b, err := sample.Parse(o.Value)
		if err != nil {
			return err
		}
		return sample.Equal(a, b)
	}
	read := o.Error == "" && len(o.Repairs) == 0
	switch {
	case i < len(c.Valid):
		if o.Error != "" {
			return fmt.Errorf("it is valid and was refused: %s", o.Error)
		}
		if !read {
			return fmt.Errorf("it is valid and was repaired: %q", o.Repairs)
		}
		if i < len(c.As) && string(c.As[i]) != "null" {
			return survives(c.As[i])
		}
		return survives(values[i])
	case i < len(c.Valid)+len(c.Invalid):
		if read {
			return fmt.Errorf("it is invalid and was read")
		}
		if o.Value != nil && survives(values[i]) == nil {
			return fmt.Errorf("it is invalid and was written: %s", o.Value)
		}
	case i >= len(values)-len(c.Unsent):
		if !read || o.Value != nil {
			return fmt.Errorf("it must be read and not written: refused with %q, repairs %q, written %s", o.Error, o.Repairs, o.Value)
		}
	case i >= len(c.Valid)+len(c.Invalid)+len(c.Kept):
		if o.Error != "" || read {
			return fmt.Errorf("it must be repaired: refused with %q, repairs %q", o.Error, o.Repairs)
		}
	case read:
		return survives(values[i])
	}
	return nil
}
