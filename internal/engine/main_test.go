package engine_test

import (
	"log/slog"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the tests' handlers fail on purpose
	goleak.VerifyTestMain(m)
}
