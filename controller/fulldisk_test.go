package controller_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fray-ml/fray/state/store/storetest"
)

// A controller whose store took no writes, however long, leads again within ten
// seconds once it does.
func TestLeadsSoonAfterAFullDisk(t *testing.T) {
	for name, outage := range map[string]time.Duration{
		"from the start for a minute": time.Minute, "for an hour": time.Hour, "for an hour and a bit": time.Hour + 1300*time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var full atomic.Bool
				s := &storetest.Faulty{Store: storetest.NewMemory(), Before: func(op storetest.Op, _ string) error {
					if full.Load() && op == storetest.OpPut {
						return unix.ENOSPC
					}
					return nil
				}}
				full.Store(name == "from the start for a minute")
				ended, stop := run(t, s, false)
				time.Sleep(10 * time.Second)
				full.Store(true)
				time.Sleep(outage)
				full.Store(false)
				time.Sleep(10 * time.Second)
				if l := leader(t, s); l.Command != "fray watch" || !l.Live(time.Now()) {
					t.Errorf("ten seconds after there was space again the lease is %+v", l)
				}
				stop()
				if err := <-ended; err != nil {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
}
