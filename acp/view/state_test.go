package view_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/acp/view"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// someUpdates are the updates of testdata/conversations.txt: of every kind, with few ids and words, so that they meet in
// any order.
func someUpdates(t *testing.T) (updates []acp.SessionUpdate) {
	t.Helper()
	for line := range strings.Lines(string(must.Get(os.ReadFile(conversations))(t))) {
		if strings.HasPrefix(line, "{") {
			var update acp.SessionUpdate
			must.Do(t, json.Unmarshal([]byte(line), &update))
			updates = append(updates, update)
		}
	}
	return updates
}

// Snapshots stay what they were, and what changed between two of them is all that is different.
func TestRandomUpdates(t *testing.T) {
	updates := someUpdates(t)
	for seed := range tier.Pick[uint64](1, 4, 6, 200) {
		r, state := rand.New(rand.NewPCG(seed, 17)), view.New(nil)
		var old *view.Snapshot
		kept := map[*view.Snapshot]string{}
		for i := range 120 {
			switch {
			case i%30 == 29:
				state.Reset()
			case i%10 == 0:
				defer state.Prompt(acp.TextBlock("go")).End(nil, nil)
			default:
				state.Update(updates[r.IntN(len(updates))])
			}
			s := state.Snapshot()
			kept[s] = describe(s)
			checkChanged(t, old, s)
			old = s
		}
		for s, was := range kept {
			if is := describe(s); is != was {
				t.Fatalf("seed %d: a snapshot has changed:\n%s", seed, cmp.Diff(was, is))
			}
		}
	}
}

// checkChanged checks that a snapshot is an older one with the items that are said to have changed.
func checkChanged(t *testing.T, old, s *view.Snapshot) {
	t.Helper()
	known := map[int]*view.Item{}
	if s.SameHistory(old) {
		for item := range old.Items() {
			known[item.Index] = item
		}
	}
	for item := range s.Changed(old) {
		if known[item.Index] == item {
			t.Errorf("item %d has not changed", item.Index)
		}
		known[item.Index] = item
	}
	for item := range s.Items() {
		if known[item.Index] != item {
			t.Errorf("item %d has changed, which is not said", item.Index)
		}
		if s.Item(item.Index) != item {
			t.Errorf("item %d is another one by its index", item.Index)
		}
	}
}
