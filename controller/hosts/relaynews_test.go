package hosts

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/schema"
)

// After a takeover hosts come back over seconds. One with a task that has ended meanwhile does not
// wait for its turn, and neither does the host through which it speaks.
func TestHostsWithNewsComeBackFirst(t *testing.T) {
	const noHost = -1
	for _, test := range []struct {
		host int
		at   time.Duration // when it has news after the controller has gone
	}{
		{noHost, 0}, {0, 0}, {0, 700 * time.Millisecond}, {2, 0}, {2, 700 * time.Millisecond},
	} {
		t.Run(fmt.Sprint(test.host, " ", test.at), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3)
				c.spread = true
				defer c.close()
				for _, h := range c.hosts {
					h.run()
				}
				synctest.Wait()
				c.hosts[0].report(schema.TaskRunning) // which the first controller knows
				c.beat(20 * time.Second)
				c.want("at first", map[int]int{0: 3})
				c.wire.stop("controller")
				c.lead()
				time.Sleep(test.at)
				synctest.Wait()
				if test.host != noHost {
					c.hosts[test.host].report(schema.TaskFailed)
				}
				time.Sleep(1999*time.Millisecond - test.at)
				synctest.Wait()
				var known bool
				if e := c.table.hosts[key{"a", max(test.host, 0)}]; e != nil {
					known = e.report.Task != nil && e.report.Task.State == schema.TaskFailed
				}
				if known != (test.host != noHost) {
					t.Errorf("the task's end is known after 2 s: %t; streams: %v", known, c.streams())
				}
				if test.host == noHost && len(c.streams()) > 0 {
					t.Errorf("hosts without news are back after 2 s: %v, want them to come over 8 s", c.streams())
				}
				c.beat(11 * time.Second)
				c.want("at last", map[int]int{0: 3})
			})
		})
	}
}
