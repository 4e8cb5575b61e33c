package await

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A call ends with its context, also if the system does not respond.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("cancelled")
		ctx, cancel := context.WithCancelCause(t.Context())
		hang, begin := make(chan struct{}), time.Now()
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		_, err := Do(ctx, time.Second, func() (int, error) {
			<-hang
			return 1, nil
		})
		if !errors.Is(err, cause) || time.Since(begin) != time.Minute+time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		close(hang)
		if n, err := Do(ctx, time.Second, func() (int, error) {
			time.Sleep(time.Second / 2) // it ends in time
			return 2, nil
		}); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}
