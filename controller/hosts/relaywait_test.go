package hosts

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/clusterapi/hostlink"
)

// Hosts that cannot look into the store wait for their relay: the controller would have to serve
// each of them, and they need the store for that, too. After a while they try it all the same.
func TestHostsWaitWhileTheStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4)
		defer c.close()
		for _, h := range c.hosts {
			h.blind.Store(21) // one look into the lease or a report, and then one for the key
			h.run()
		}
		c.beat(3 * time.Second)
		if got := c.streams(); fmt.Sprint(got) != "map[0:1]" {
			t.Errorf("the streams are %v while members cannot look into the store, want that of the relay", got)
		}
		c.beat(20 * time.Second)
		c.want("once they can", map[int]int{0: 4})
		for _, h := range c.hosts[1:] {
			if h.blind.Load() > 0 || !slices.Contains(h.outcomes, hostlink.Waited) || slices.Contains(h.outcomes, hostlink.Failed) {
				t.Errorf("host %d fails %d times still; its routes did %v", h.number, h.blind.Load(), h.outcomes)
			}
		}
		c.hosts[3].blind.Store(1<<40 + 1)
		c.hosts[3].stop()
		c.hosts[3].run()
		c.beat(longestRelayWait)
		c.want("when one cannot look for long", map[int]int{0: 3, 3: 1})
	})
}

// longestRelayWait is more than a host waits for its relay before it speaks for itself.
const longestRelayWait = 70 * time.Second
