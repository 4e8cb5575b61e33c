package acp_test

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/acpgo/sdk/acp"
	"github.com/acpgo/sdk/conformance"
	"github.com/acpgo/sdk/internal/test/must"
	"github.com/acpgo/sdk/internal/test/tier"
)

// silent reads what comes and says nothing, until the client ends the connection.
func silent(t *testing.T, transport acp.Transport) {
	stream, err := transport.Connect(context.Background())
	if err != nil {
		t.Error(err)
		return
	}
	for err == nil {
		_, err = stream.Read()
	}
	must.Do(t, stream.Close())
}

func TestConnectToSilentAgent(t *testing.T) {
	for name, test := range map[string]struct {
		option, deadline, want time.Duration
		text                   string
	}{
		"default":     {0, 0, 2 * time.Minute, "no answer within 2m0s"},
		"option":      {time.Second, 0, time.Second, "no answer within 1s"},
		"deadline":    {time.Second, time.Hour, time.Hour, "initialize"},
		"no bound":    {-1, 3 * time.Hour, 3 * time.Hour, "initialize"},
		"much longer": {24 * time.Hour, 0, 24 * time.Hour, "no answer within 24h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.deadline)
					defer cancel()
				}
				ours, theirs := acp.Pipe()
				go silent(t, theirs)
				start := time.Now()
				_, err := acp.Connect(ctx, conformance.Tap(t, conformance.Client, ours, nil), acp.ClientHandlers{}, &acp.ClientOptions{ConnectTimeout: test.option})
				if d := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), test.text) || d != test.want {
					t.Errorf("after %v: %v, want %v: %s", d, err, test.want, test.text)
				}
			})
		})
	}
}

// The error says what a subprocess wrote in place of an answer.
func TestConnectSaysWhatTheAgentWrote(t *testing.T) {
	t.Parallel()
	tier.Need(t, tier.Normal)
	for patience := time.Second; ; patience *= 2 { // a busy machine may need longer to start it
		cmd := exec.Command("sh", "-c", `echo 'Press any key'; echo 'warning: not a terminal' >&2; cat >/dev/null`)
		tapped := conformance.Tap(t, conformance.Client, acp.Command(cmd), &conformance.TapOptions{
			Ignore: func(f conformance.Finding) bool { return true }, // it is not an agent
		})
		_, err := acp.Connect(t.Context(), tapped, acp.ClientHandlers{}, &acp.ClientOptions{ConnectTimeout: patience})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		missing := slices.DeleteFunc([]string{
			"initialize: no answer within " + patience.String(), "standard error: warning: not a terminal", `standard output had "Press any key"`, "silent for ",
		}, func(want string) bool { return strings.Contains(err.Error(), want) })
		if len(missing) == 0 {
			return
		}
		if patience > time.Minute {
			t.Fatalf("%v lacks %q", err, missing)
		}
	}
}
