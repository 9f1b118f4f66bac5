package plan

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// ScheduledRuns are the next runs of a job with a schedule.
type ScheduledRuns struct {
	Addr     schema.Address `json:"address"`
	Cron     string         `json:"cron"`
	Timezone string         `json:"timezone"`
	Suspend  bool           `json:"suspend,omitempty"`
	Next     []time.Time    `json:"next,omitempty"` // in the time zone
	// Changed says that the plan makes the job or changes its schedule.
	Changed bool `json:"changed,omitempty"`
}
