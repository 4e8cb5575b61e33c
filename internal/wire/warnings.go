package wire

import (
	"context"
	"log/slog"
)

// DefaultLogger returns the logger of options without one: warnings and errors go to slog.Default.
func DefaultLogger() *slog.Logger { return slog.New(warnings{}) }

// warnings is a handler that passes warnings and errors on to slog.Default.
type warnings struct {
	with []func(slog.Handler) slog.Handler
}

func (w warnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && slog.Default().Enabled(ctx, level)
}

func (w warnings) Handle(ctx context.Context, r slog.Record) error {
	h := slog.Default().Handler()
	for _, with := range w.with {
		h = with(h)
	}
	return h.Handle(ctx, r)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return w.and(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

func (w warnings) WithGroup(name string) slog.Handler {
	return w.and(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (w warnings) and(with func(slog.Handler) slog.Handler) warnings {
	return warnings{append(w.with[:len(w.with):len(w.with)], with)}
}
