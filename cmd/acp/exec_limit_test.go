package main

import (
	"testing"
	"testing/synctest"
	"time"
)

// The time of --timeout stands still while a person is asked, even by several questions at once.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limit
		began, end := time.Now(), l.start(10*time.Second)
		time.Sleep(4 * time.Second)
		first := l.asking()
		time.Sleep(time.Hour)
		second := l.asking()
		first()
		time.Sleep(time.Hour)
		second()
		<-end
		if took := time.Since(began); took != 2*time.Hour+10*time.Second {
			t.Errorf("ended after %v", took)
		}
		l.asking()() // after the end, it changes nothing that is still watched
	})
	var none limit
	if none.start(0) != nil {
		t.Error("no limit has an end")
	}
	none.asking()()
}
