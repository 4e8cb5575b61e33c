package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/acpgo/sdk/internal/test/attack/hostile"
)

func lines() map[string]attack {
	either := func(run func(a *agent) error) attack {
		return attack{run: func(a *agent, _ *session) error { return run(a) }}
	}
	return map[string]attack{
		"deep":               {run: deep},
		"long-lines":         {run: longLines},
		"bad-lines":          either(func(a *agent) error { return a.BadLines(a.size(1, 20)) }),
		"garbage":            either(func(a *agent) error { return a.Garbage(a.size(4, 200)) }),
		"answers-to-nothing": either(func(a *agent) error { return a.AnswersToNothing(a.size(50_000, 1_000_000)) }),
		"many-ids":           either(func(a *agent) error { return a.ManyIDs(a.size(50_000, 500_000), a.size(30, 500)) }),
		"duplicate-ids":      either(func(a *agent) error { return a.DuplicateIDs(a.size(500, 4000)) }),
		"slow":               {run: slow, ordinary: slow},
	}
}

// deep sends values of great depth wherever the protocol takes any value.
func deep(a *agent, s *session) error {
	id := hostile.Quote(s.id)
	return a.Deep(a.size(200_000, 20_000_000), func(value string) []string {
		begin := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + id + `,"update":`
		return []string{
			begin + `{"sessionUpdate":"tool_call","toolCallId":"d","title":"d","rawInput":` + value + `}}}`,
			begin + `{"sessionUpdate":"plan","entries":[],"_meta":{"m":` + value + `}}}}`,
			begin + value + `}}`,
		}
	})
}

// longLines sends lines that are longer than a message may be, also for a proxy, and lines that are just as long as they may be.
func longLines(a *agent, s *session) error {
	if err := a.LongLine(a.size(130, 4096)); err != nil {
		return err
	}
	for range a.size(2, 40) {
		if err := a.update(s, `{"sessionUpdate":"plan","entries":[],"_meta":{"m":"`+strings.Repeat("m", 63*mib)+`"}}`); err != nil {
			return err
		}
	}
	return a.LongLine(65)
}

// slow plays an ordinary turn byte by byte.
func slow(a *agent, s *session) error {
	pause := time.Duration(a.size(100, 5000)) * time.Microsecond
	update := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":` + hostile.Quote(s.id) + `,"update":` + chunk("still here") + "}}\n"
	if err := a.Trickle(update, pause); err != nil {
		return err
	}
	m, err := a.TrickleCall("session/request_permission", a.permission(s, "An ordinary question", ""), pause)
	if err != nil {
		return err
	}
	a.granted(m)
	if m.Error != nil {
		return fmt.Errorf("a request that comes slowly gets an %s", m)
	}
	return nil
}
