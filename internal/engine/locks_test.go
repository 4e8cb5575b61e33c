package engine_test

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/acpgo/sdk/internal/test/gentest"
	"github.com/acpgo/sdk/internal/test/tier"
)

// The schedules are run again by a process that checks every lock which is taken.
func TestLockOrder(t *testing.T) {
	if !gentest.Race {
		t.Skip("only with -race can locks be watched")
	}
	if os.Getenv("ACP_TEST_LOCKS") != "" {
		t.Skip("once is enough")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the check does not notice the wrong order")
			}
		}()
		var order lockOrder
		order.check(2, true)
		order.check(1, true)
	}()
	cmd := exec.CommandContext(t.Context(), os.Args[0],
		"-test.run", "^(TestScheduleProperties|Test.*Overflow.*|Test.*Cancel.*|TestKeepTurn.*)$", "-schedules", strconv.Itoa(tier.Pick(10, 10, 100, 1000)))
	cmd.Env = append(os.Environ(), "ACP_TEST_LOCKS=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%.3000s", err, out)
	}
}
