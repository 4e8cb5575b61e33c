package apitest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/acpgo/sdk/internal/gen/api"
	"github.com/acpgo/sdk/internal/test/must"
)

func TestLines(t *testing.T) {
	pkg := must.Get(api.Declarations("p", map[string][]byte{"p.go": []byte(`package p
type Level string
const (
	LevelLow Level = "low"
	Max = 10
	hidden = 1
)
var Err error
func Make[T any, P interface{ *T; Set(n int) }](n int, names ...string) (t T, err error) { return t, nil }
type Base struct{ ID string ` + "`json:\"id\"`" + ` }
func (b Base) Get() string
type S struct {
	Base
	A, B func(n int) error
	hidden int
	M map[Level][]*S ` + "`json:\"m,omitzero\"`" + `
}
func (s *S) Set(n int)
func (s *S) unset()
type Pair[K comparable, V any] struct { Key K; Value V }
func (p Pair[K, V]) Swap() Pair[K, V] { return p }
type Names = []string
type Opt[T any] = Pair[string, T]
type List []Level
type Open interface { Do(n int) string }
type Choice interface { isChoice() }
func (S) isChoice()
func (*Base) isChoice()
type unexported struct { A int }
`)}, nil))(t)
	want := []string{
		"const LevelLow Level = \"low\"",
		"const Max = 10",
		"func Make[T any, P interface{Set(n int); *T}](int, ...string) (T, error)",
		"method (*S) Set(int)",
		"method (Base) Get() string",
		"method (Pair) Swap() Pair[K, V]",
		"method (S) Get() string",
		"type Base struct",
		"type Base struct, ID string \"id\"",
		"type Choice interface",
		"type Choice interface, implemented by *Base",
		"type Choice interface, implemented by S",
		"type Choice interface, unexported methods",
		"type Level string",
		"type List []Level",
		"type Names = []string",
		"type Open interface",
		"type Open interface, Do(int) string",
		"type Opt[T any] = Pair[string, T]",
		"type Pair[K comparable, V any] struct",
		"type Pair[K comparable, V any] struct, Key K",
		"type Pair[K comparable, V any] struct, Value V",
		"type S struct",
		"type S struct, A func(int) error",
		"type S struct, B func(int) error",
		"type S struct, M map[Level][]*S \"m,omitzero\"",
		"type S struct, embedded Base",
		"var Err error",
	}
	if diff := cmp.Diff(want, Lines(pkg)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
