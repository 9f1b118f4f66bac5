package render

import (
	"fmt"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
)

// maxSchedules is how many jobs with a schedule a plan lists, unless all are to be shown.
const maxSchedules = 8

// schedules writes when the jobs run whose schedules the plan makes or changes.
func (p *printer) schedules(all []plan.ScheduledRuns) {
	var shown []*plan.ScheduledRuns
	for i := range all {
		if all[i].Changed || p.verbose {
			shown = append(shown, &all[i])
		}
	}
	if len(shown) == 0 {
		return
	}
	p.print(p.paint(bold, "Scheduled runs:"), " they begin while a controller serves the stack: fray watch.\n")
	rest := 0
	if len(shown) > maxSchedules+1 && !p.verbose {
		shown, rest = shown[:maxSchedules], len(shown)-maxSchedules
	}
	for _, s := range shown {
		p.print("  ", s.Addr.String(), ": ", scheduleLine(s), "\n")
	}
	if rest > 0 {
		p.print("  ", plural(rest, "more job"), " with a schedule.\n")
	}
}

// scheduleLine is "next at 2026-11-27 03:00 CET, 2026-11-28 03:00 CET, …".
func scheduleLine(s *plan.ScheduledRuns) string {
	if s.Suspend {
		return "suspended, no run begins."
	}
	times := make([]string, 0, len(s.Next))
	for _, at := range s.Next {
		times = append(times, at.Format("Mon "+time.DateOnly+" 15:04 MST"))
	}
	return fmt.Sprintf("%s (%s).", strings.Join(times, ", "), s.Timezone)
}
