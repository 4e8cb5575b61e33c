// This file owns what a connection leaves behind.

package wire

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stuckStream takes nothing, and gives nothing, until it is closed.
type stuckStream chan struct{}

func (s stuckStream) Read() ([]byte, error) {
	<-s
	return nil, io.EOF
}

func (s stuckStream) Write([]byte) error {
	<-s
	return errors.New("closed")
}

func (s stuckStream) Close() error {
	close(s)
	return nil
}

// What closing the stream makes fail does not outlive Close.
func TestNothingRunsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		h := &echoer{}
		c := NewConn(make(stuckStream), Config{
			Handler: h, Drain: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		})
		h.conn = c
		c.Run()
		if err := c.Post("m", nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Fatal(err)
		}
		before := log.String()
		time.Sleep(time.Hour)
		if after := log.String(); after != before {
			t.Errorf("logged after Close: %s", after[len(before):])
		}
	})
}
