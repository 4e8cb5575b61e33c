package engine_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/acpgo/sdk/internal/engine"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the tests' handlers fail on purpose
	engine.CheckLocks(new(lockOrder).check)        // under the race detector
	goleak.VerifyTestMain(m)
}

// lockOrder checks that every goroutine takes locks in the order of their ranks.
type lockOrder struct{ held sync.Map } // ranks, by goroutine

func (o *lockOrder) check(rank int, taken bool) {
	id := goroutine()
	v, _ := o.held.Load(id)
	held, _ := v.([]int)
	last := len(held) - 1
	switch {
	case taken && last >= 0 && held[last] >= rank:
		panic(fmt.Sprintf("a lock of rank %d is taken by who holds %v", rank, held))
	case taken:
		held = append(held, rank)
	default:
		for held[last] != rank {
			last--
		}
		held = append(held[:last:last], held[last+1:]...)
	}
	if len(held) == 0 {
		o.held.Delete(id)
		return
	}
	o.held.Store(id, held)
}

// goroutine is the number of the goroutine that calls it.
func goroutine() int {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)])
	n, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		panic(err)
	}
	return n
}
