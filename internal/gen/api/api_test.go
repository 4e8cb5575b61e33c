package api

// These tests use packages that are written for them. The tests of package gen compare packages generated from
// schemas.

import (
	"fmt"
	"go/types"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/internal/test/must"
)

func parse(t *testing.T, source string) *types.Package {
	t.Helper()
	return must.Get(Declarations("p", map[string][]byte{"p.go": []byte("package p\n" + source)}, nil))(t)
}

// Declarations that generated packages do not have, or that do not change in them, are compared as well.
func TestCompare(t *testing.T) {
	tests := []struct {
		name, old, new string
		want           []string
	}{
		{"variable", "var A int", "var A string", []string{"0 A: `int` became `string`"}},
		{"function", "func F(a int)", "func F(b int)", nil},
		{"parameters", "func F(a int)", "func F(a ...int)", []string{"0 F: `func(int)` became `func(...int)`"}},
		{"kind", "func F()", "type F func()", []string{"0 F: `func()` became `type`"}},
		{"value", "const A = 1", "const A = 2", []string{"0 A: `const = 1` became `const = 2`"}},
		{"alias", "type A = int", "type A = string", []string{"0 A: `type A = int` became `type A = string`"}},
		{"alias and type", "type A = int", "type A int", []string{"0 A: `type A = int` became `type A int`"}},
		{"type parameters", "type A[T any] struct{}", "type A[T comparable] struct{}", []string{"0 A: `A[T any]` became `A[T comparable]`"}},
		{"underlying", "type A []int", "type A []string", []string{"0 A: `[]int` became `[]string`"}},
		{"unexported field", "type A struct { a int }", "type A struct { b []int }", []string{"0 A: its values cannot be compared by == any more"}},
		{"embedded field", "type A struct{}; type B struct { A }", "type A struct{}; type B struct{}", []string{"0 B.A: field `A` is gone"}},
		{"method of a pointer", "type A int; func (A) M()", "type A int; func (*A) M()", []string{"0 A.M: only pointers have this method now"}},
		{"method of a value", "type A int; func (*A) M()", "type A int; func (A) M()", nil},
		{"method's type", "type A int; func (A) M()", "type A int; func (A) M() int", []string{"0 A.M: `func()` became `func() int`"}},
		{"interface", "type I interface { A(); B() }", "type I interface { A() int; C() }", []string{
			"0 I.A: `func()` became `func() int`", "0 I.B: method `func()` is gone", "0 I.C: new method `func()`"}},
		{"sealed interface", "type I interface { i(); A() }", "type I interface { i(); A(); B() }", []string{"4 I.B: new method `func()`"}},
		{"variant", "type I interface { i() }; type V int; func (*V) i()", "type I interface { i() }; type V int; func (V) i()", []string{
			"1 I: the variant `*V` became `V`; a case of the pointer matches nothing any more"}},
		{"sealing", "type I interface { A() }", "type I interface { A(); i() }", []string{"0 I: other packages cannot implement it any more"}},
		{"constructor of a type that goes", "type A struct{}; func NewA() *A; const C = 1", "const C = 1", []string{"0 A: struct is gone"}},
		{"unexported", "type a struct { B int }", "", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, c := range compare(parse(t, test.old), parse(t, test.new), nil, nil) {
				got = append(got, fmt.Sprintf("%d %s: %s", c.Level, c.Subject, c.Text))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestImporter(t *testing.T) {
	imports := must.Get(Importer(".", "github.com/acpgo/sdk/codec"))(t)
	pkg, err := imports.Import("github.com/acpgo/sdk/codec")
	if err != nil || pkg.Scope().Lookup("Decoder") == nil {
		t.Errorf("got %v, %v", pkg, err)
	}
	if _, err := imports.Import("unicode/utf8"); err != nil {
		t.Errorf("what the package imports: %v", err)
	}
	if _, err := imports.Import("net/http"); err == nil {
		t.Error("a package was imported that nothing imports")
	}
	if _, err := Importer(".", "example.com/none"); err == nil {
		t.Error("a package was found that does not exist")
	}
}
