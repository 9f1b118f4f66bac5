package rehearse

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// Cause is a closed set of what a job's time goes into.
type Cause string

// The causes. Every moment between a job's declaration and its end, or that of
// the rehearsal, counts for exactly one.
const (
	CauseUseful      Cause = "useful"      // work that was kept
	CauseRedone      Cause = "redone"      // work since the last checkpoint, lost by a restart
	CauseStartup     Cause = "startup"     // tasks run and get going
	CauseBooting     Cause = "booting"     // slices were asked for and come up
	CausePreempted   Cause = "preempted"   // slices were taken away and are not asked for again yet
	CauseLost        Cause = "lost"        // hosts died, until their slices are asked for again
	CauseCapacity    Cause = "capacity"    // none to be had
	CauseQuota       Cause = "quota"       // not allowed more
	CauseRate        Cause = "rate"        // waits for its turn to be asked for
	CauseReservation Cause = "reservation" // what was reserved is used up
	CauseOther       Cause = "other"       // dependencies, backoff, calls that fail
)

// account is where the time of one job goes.
type account struct {
	addr     schema.Address
	workload Workload

	cause Cause
	zone  string // of a wait for capacity
	since time.Time
	ended bool

	gang     *gang // that runs
	saved    time.Duration
	spent    map[entry]time.Duration
	attempts int
	reason   string // why it waits, in the plan's words
	endedAt  time.Time
	spentOn  *Spent // the budget that its end is due to, nil: none
}

// entry is what time is accounted for under.
type entry struct {
	cause Cause
	zone  string
}

func newAccount(addr schema.Address, w Workload, now time.Time) *account {
	return &account{addr: addr, workload: w, cause: CauseOther, since: now, spent: map[entry]time.Duration{}}
}

// turn closes what the time was spent on until now and opens another cause.
func (a *account) turn(now time.Time, cause Cause, zone string) {
	if a.ended {
		return
	}
	if a.gang == nil {
		a.spend(a.cause, a.zone, now.Sub(a.since))
	}
	a.cause, a.zone, a.since = cause, zone, now
}

func (a *account) spend(cause Cause, zone string, d time.Duration) {
	if d > 0 {
		a.spent[entry{cause, zone}] += d
	}
}

// begin states that all tasks run.
func (a *account) begin(now time.Time, g *gang) {
	if a.ended || a.gang != nil {
		return
	}
	a.turn(now, CauseUseful, "")
	a.gang = g
	a.attempts++
}

// left is how long the attempt that has just begun runs until the work is done;
// false if it never is.
func (a *account) left() (time.Duration, bool) {
	return a.workload.Startup + a.workload.Work - a.saved, a.workload.Work > 0
}

// stop states that they do not any more. Work since the last checkpoint is lost
// unless it was kept by a proper end.
func (a *account) stop(now time.Time, kept bool) {
	if a.ended || a.gang == nil {
		return
	}
	ran := now.Sub(a.since)
	startup := min(ran, a.workload.Startup)
	a.spend(CauseStartup, "", startup)
	done := ran - startup
	safe := done
	if !kept {
		safe = 0
		if every := a.workload.CheckpointEvery; every > 0 {
			safe = done.Truncate(every)
		}
	}
	a.saved += safe
	a.spend(CauseUseful, "", safe)
	a.spend(CauseRedone, "", done-safe)
	a.gang, a.since = nil, now
	a.cause, a.zone = CauseOther, ""
}

// complete reports whether all work is done.
func (a *account) complete() bool {
	return a.gang == nil && a.workload.Work > 0 && a.saved >= a.workload.Work
}

// end closes the account: the job has ended, or the rehearsal has.
func (a *account) end(now time.Time) {
	if a.gang != nil {
		a.stop(now, true)
	}
	a.turn(now, CauseOther, "")
	if !a.ended {
		a.endedAt = now
	}
	a.ended = true
}

// total is all time that was accounted for.
func (a *account) total() time.Duration {
	var sum time.Duration
	for _, d := range a.spent {
		sum += d
	}
	return sum
}

func (a *account) useful() time.Duration { return a.spent[entry{cause: CauseUseful}] }
