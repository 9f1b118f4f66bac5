package apply

import (
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/state"
)

// maxGap is the most that the time between two looks counts for silence.
const maxGap = 5 * time.Second

// presence is a store that knows since when a host is silent, zero while it lives: hosts
// need not write again and again that they do.
type presence interface {
	SilentSince(slice string, host int) time.Time
}

// passed is how much of the time since the last look counts for silence.
func (o *Observer) passed(now time.Time) time.Duration {
	passed := now.Sub(o.looked)
	if _, knows := o.Store.(presence); knows {
		return passed
	}
	return min(passed, maxGap)
}

// heartbeat is that of a host whose report was just read.
func (o *Observer) heartbeat(r *state.HostReport) *plan.Heartbeat {
	if o.live.hosts[liveKey{r.Slice, r.Host}] {
		return nil
	}
	known, knows := o.Store.(presence)
	if !knows {
		return plan.NewHeartbeat(o.monitored)
	}
	since := known.SilentSince(r.Slice, r.Host)
	if since.IsZero() {
		return nil
	}
	return plan.NewHeartbeat(max(0, o.monitored-o.looked.Sub(since)))
}
