package change

import (
	"cmp"
	"strings"
	"time"

	"github.com/fray-ml/fray/cron"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// shownRuns is how many of the next runs a plan has of each job.
const shownRuns = 3

// Schedules are the next runs after now of the jobs with a schedule, in address order.
func Schedules(desired *schema.Desired, p *plan.Plan, now time.Time) []plan.ScheduledRuns {
	changed := map[schema.Address]bool{}
	for i := range p.Changes {
		c := &p.Changes[i]
		for k := range c.Attrs {
			if c.Attrs[k].Verb != plan.VerbNone && strings.HasPrefix(c.Attrs[k].Path, "schedule.") {
				changed[c.Addr] = true
			}
		}
	}
	var all []plan.ScheduledRuns
	for i := range desired.Jobs {
		want := &desired.Jobs[i]
		s := want.Schedule
		if s == nil {
			continue
		}
		runs := plan.ScheduledRuns{Addr: want.Addr, Cron: s.Cron, Timezone: cmp.Or(s.Timezone, "UTC"), Suspend: s.Suspend, Changed: changed[want.Addr]}
		zone, err := cron.Zone(s.Timezone)
		if times, unread := cron.Of(s); err == nil && unread == nil && !s.Suspend {
			for _, at := range times.Following(now, shownRuns) {
				runs.Next = append(runs.Next, at.In(zone))
			}
		}
		all = append(all, runs)
	}
	return all
}
