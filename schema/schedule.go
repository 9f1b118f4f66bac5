package schema

// Schedule says when the runs of a job begin.
type Schedule struct {
	Cron     string  `json:"cron"`               // five fields, or a name such as @daily
	Timezone string  `json:"timezone,omitempty"` // IANA name, "": UTC
	Overlap  Overlap `json:"overlap"`
	Missed   Missed  `json:"missed"`
	// StartingDeadline is how late a run may begin; 0: as late as Missed allows.
	StartingDeadline Duration `json:"starting_deadline,omitempty"`
	Suspend          bool     `json:"suspend,omitempty"`
}

// Rule is the text of what the times of runs follow from, "" while there are none.
func (s *Schedule) Rule() string {
	if s.Suspend {
		return ""
	}
	return s.Cron + " " + s.Timezone
}

// Overlap is a closed set of what becomes of a run that is due while the one before it goes on.
type Overlap string

// What becomes of such a run.
const (
	OverlapSkip    Overlap = "skip"    // it does not begin
	OverlapWait    Overlap = "wait"    // it begins after that one; one run waits at most
	OverlapReplace Overlap = "replace" // that one is stopped
)

// Missed is a closed set of what becomes of runs that were due while no controller served.
type Missed string

// What becomes of missed runs.
const (
	MissedSkip Missed = "skip" // none of them begins
	MissedOnce Missed = "once" // the last of them begins
	MissedAll  Missed = "all"  // all of them begin, one after another
)

// RunSkip is a closed set of why a run that was due did not begin.
type RunSkip string

// Why a run did not begin.
const (
	SkippedOverlap  RunSkip = "overlap"  // the run before it went on
	SkippedWaiting  RunSkip = "waiting"  // another one waited already
	SkippedMissed   RunSkip = "missed"   // no controller served
	SkippedDeadline RunSkip = "deadline" // it would have begun too late
)

// EqualSchedules reports whether two schedules are the same; nil is none.
func EqualSchedules(a, b *Schedule) bool { return a == b || a != nil && b != nil && *a == *b }
