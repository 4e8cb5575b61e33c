package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	m := newTable[int](3)
	if !m.none() {
		t.Error("a new table has something")
	}
	for i, key := range []string{"a", "b", "c", "b"} {
		m.put(key, i)
	}
	keys := func() (all []string) {
		for key, v := range m.all {
			all = append(all, fmt.Sprintf("%s%d", key, v))
		}
		return all
	}
	if got, want := keys(), []string{"a0", "b3", "c2"}; !slices.Equal(got, want) || m.forgot {
		t.Errorf("got %q, want %q; forgot: %v", got, want, m.forgot)
	}
	m.drop("b")
	m.drop("never")
	m.put("d", 4)
	if got, want := keys(), []string{"a0", "c2", "d4"}; !slices.Equal(got, want) || m.forgot {
		t.Errorf("got %q, want %q; forgot: %v", got, want, m.forgot)
	}
	m.put("e", 5)
	if got, want := keys(), []string{"c2", "d4", "e5"}; !slices.Equal(got, want) || !m.forgot || m.none() {
		t.Errorf("got %q, want %q; forgot: %v", got, want, m.forgot)
	}
	if _, ok := m.get("a"); ok {
		t.Error("what was forgotten is there")
	}
	for _, key := range []string{"c", "d", "e"} {
		m.drop(key)
	}
	if got := keys(); len(got) > 0 || m.none() {
		t.Errorf("got %q; none: %v", got, m.none())
	}
	for key := range m.all {
		t.Errorf("%s is left", key)
	}
}

// TestLongKeys has keys of any length take little, and stay apart.
func TestLongKeys(t *testing.T) {
	m := newTable[int](10)
	long := strings.Repeat("x", 1<<20)
	m.put(long+"1", 1)
	m.put(long+"2", 2)
	if v, ok := m.get(long + "1"); !ok || v != 1 {
		t.Errorf("got %d, %v", v, ok)
	}
	for key := range m.all {
		if len(key) > 256 {
			t.Errorf("a key of %d bytes", len(key))
		}
	}
}
