package cloud_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
)

// TestConcurrentCalls has the accounts add up under calls from everywhere while
// timers run, on the real clock.
func TestConcurrentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloud.New(cloud.Config{Scenario: badConditions(5), Clock: cloud.Real()})
		var all sync.WaitGroup
		for client := range 6 {
			all.Go(func() {
				for i := range 200 {
					name := fmt.Sprintf("n%d", (i+client)%6)
					switch (i*7 + client) % 6 {
					case 0, 1:
						_, _ = c.Allocate(spot(name))
					case 2:
						_, _ = c.Delete(node(name))
					case 3:
						_, _ = c.Enqueue(cloud.RequestSpec{Key: queued(name), Groups: []cloud.Spec{spot(name + "q")}})
					case 4:
						_, _ = c.DeleteRequest(queued(name), true)
					case 5:
						_ = c.Preempt(node(name), i%2 == 0)
						_, _ = c.Admit(t.Context(), cloud.Call{Project: project, Method: "m", Creates: true})
					}
					time.Sleep(time.Duration(client*i%90) * time.Second)
				}
			})
		}
		all.Wait()
		if err := c.Audit(); err != nil {
			t.Error(err)
		}
		for _, r := range c.AllRequests() {
			_, _ = c.DeleteRequest(r.Key, true)
		}
		for _, g := range c.All() {
			_, _ = c.Delete(g.Key)
		}
		time.Sleep(24 * time.Hour)
		if err := c.Empty(); err != nil {
			t.Error(err)
		}
	})
}
