package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	m := NewTable[int](3)
	if !m.None() {
		t.Error("a new table is not empty")
	}
	for i, key := range []string{"a", "b", "c", "b"} {
		m.put(key, i)
	}
	keys := func() (all []string) {
		for key, v := range m.All {
			all = append(all, fmt.Sprintf("%s%d", key, v))
		}
		return all
	}
	if got, want := keys(), []string{"a0", "b3", "c2"}; !slices.Equal(got, want) || m.Forgot {
		t.Errorf("got %q, want %q; forgot: %v", got, want, m.Forgot)
	}
	m.drop("b")
	m.drop("never")
	m.put("d", 4)
	if got, want := keys(), []string{"a0", "c2", "d4"}; !slices.Equal(got, want) || m.Forgot {
		t.Errorf("got %q, want %q; forgot: %v", got, want, m.Forgot)
	}
	m.put("e", 5)
	if got, want := keys(), []string{"c2", "d4", "e5"}; !slices.Equal(got, want) || !m.Forgot || m.None() {
		t.Errorf("got %q, want %q; forgot: %v", got, want, m.Forgot)
	}
	if _, ok := m.Get("a"); ok {
		t.Error("a forgotten entry is still there")
	}
	for _, key := range []string{"c", "d", "e"} {
		m.drop(key)
	}
	if got := keys(); len(got) > 0 || m.None() {
		t.Errorf("got %q; none: %v", got, m.None())
	}
	for key := range m.All {
		t.Errorf("%s is left", key)
	}
}

// TestLongKeys shows that keys of any length take little memory and remain distinct.
func TestLongKeys(t *testing.T) {
	m := NewTable[int](10)
	long := strings.Repeat("x", 1<<20)
	m.put(long+"1", 1)
	m.put(long+"2", 2)
	if v, ok := m.Get(long + "1"); !ok || v != 1 {
		t.Errorf("got %d, %v", v, ok)
	}
	for key := range m.All {
		if len(key) > 256 {
			t.Errorf("a key of %d bytes", len(key))
		}
	}
}
