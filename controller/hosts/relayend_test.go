package hosts

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/clusterapi/hostlink"
)

// A relay that looks for another one ends the streams of its members as soon as its own has ended,
// however long that takes to answer.
func TestRelaysThatLookForOthersEndWithTheirStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		defer c.close()
		c.hosts[1].run()
		c.beat(time.Second)
		c.hosts[2].run()
		c.beat(5 * time.Second)
		c.want("without the first host", map[int]int{1: 2})
		c.wire.serve("0", deaf{})
		defer c.wire.stop("0")
		c.beat(c.hosts[1].Again() - 3*time.Second) // it asks the first one now
		before := c.outcomes()[2]
		c.wire.stop("controller")
		synctest.Wait()
		if got := c.outcomes()[2]; len(got) != len(before)+1 || got[len(before)] != hostlink.Served {
			t.Errorf("once the relay's stream has ended, the routes of a member did %v, want %v and one that served", got, before)
		}
	})
}
