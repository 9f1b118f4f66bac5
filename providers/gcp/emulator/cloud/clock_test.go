package cloud_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

func TestVirtualClock(t *testing.T) {
	v := cloud.NewVirtual(start())
	var ran []string
	at := func(d time.Duration, name string) func() {
		return v.AfterFunc(start().Add(d), func() {
			ran = append(ran, name+" at "+v.Now().Sub(start()).String())
			if name == "chain" {
				v.AfterFunc(v.Now().Add(time.Second), func() { ran = append(ran, "link at "+v.Now().Sub(start()).String()) })
				v.AfterFunc(start(), func() { ran = append(ran, "overdue at "+v.Now().Sub(start()).String()) })
			}
		})
	}
	at(3*time.Second, "third")
	at(time.Second, "chain")
	at(3*time.Second, "fourth") // the same time, set later
	withdrawn := at(2*time.Second, "withdrawn")
	at(time.Hour, "later")
	withdrawn()
	withdrawn() // twice is harmless
	if next, ok := v.Next(); !ok || next != start().Add(time.Second) {
		t.Errorf("the next timer is at %v, %v", next, ok)
	}
	v.Advance(10 * time.Second)
	want := []string{"chain at 1s", "overdue at 1s", "link at 2s", "third at 3s", "fourth at 3s"}
	if !slices.Equal(ran, want) {
		t.Errorf("ran  %q\nwant %q", ran, want)
	}
	if v.Now() != start().Add(10*time.Second) {
		t.Errorf("now is %v, want 10 s after the start", v.Now())
	}
	v.AdvanceTo(start())
	if v.Now() != start().Add(10*time.Second) {
		t.Errorf("the clock moved back to %v", v.Now())
	}
}

func TestFasterClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c := cloud.Faster(60)
		due := make(chan time.Time)
		c.AfterFunc(c.Now().Add(time.Hour), func() { due <- c.Now() })
		stop := c.AfterFunc(c.Now().Add(time.Minute), func() { t.Error("a withdrawn timer ran") })
		stop()
		if now := <-due; now.Sub(began) != time.Hour {
			t.Errorf("the timer of an hour ran at %v", now.Sub(began))
		}
		if took := time.Since(began); took != time.Minute {
			t.Errorf("an hour took %v at 60 times the speed, want a minute", took)
		}
	})
}
