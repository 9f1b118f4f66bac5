package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/progress"
	"github.com/fray-ml/fray/rehearse"
	"github.com/fray-ml/fray/terminal"
)

// Text prints a report for people.
type Text struct{ Out io.Writer }

// fewLosses is how many causes of lost time a job's line names.
const fewLosses = 3

// shownHours is the least time that is worth a word.
const shownHours = 0.05

func (t Text) Write(r *rehearse.Report, took time.Duration) {
	t.ended(r)
	fmt.Fprintf(t.Out, "Rehearsed %s of scenario %s (seed %d) in %s.\n\n", hours(r.Hours), r.Scenario, r.Seed, took.Round(100*time.Millisecond))
	t.jobs(r)
	t.lost(r)
	t.capacity(r)
	if len(r.Violations) == 0 {
		fmt.Fprintln(t.Out, "The oracle found no mistake of fray.")
	} else {
		fmt.Fprintf(t.Out, "The oracle found %s of fray.\n", terminal.Counted(len(r.Violations), "mistake", "mistakes"))
	}
	if r.Missed > 0 {
		fmt.Fprintf(t.Out, "%s of the history found no slice of the job, nor another one of the same type in that zone.\n", terminal.Counted(r.Missed, "event", "events"))
	}
	if len(r.Unplaced) > 0 {
		fmt.Fprintln(t.Out, "\nNever ran:")
	}
	for _, u := range r.Unplaced {
		fmt.Fprintf(t.Out, "  %s%s\n", u.Job, progress.Because(u.Reason))
	}
}

// fewEnded is how many jobs are named that a budget ended.
const fewEnded = 3

// ended says first which jobs a budget ended: what follows is of less than was asked for.
func (t Text) ended(r *rehearse.Report) {
	n := 0
	for _, j := range r.Jobs {
		if j.Spent == nil {
			continue
		}
		if n++; n > fewEnded {
			continue
		}
		how := fmt.Sprintf("it used its %s", budget(j.Spent))
		if r.Hours < r.Requested && n == 1 {
			fmt.Fprintf(t.Out, "Ended after %s of %s: %s used its %s.\n", hours(r.Hours), hours(r.Requested), j.Job, budget(j.Spent))
			continue
		}
		fmt.Fprintf(t.Out, "%s ended after %s of %s: %s.\n", j.Job, hours(j.Ended), hours(r.Requested), how)
	}
	if n > fewEnded {
		fmt.Fprintf(t.Out, "So did %d more jobs.\n", n-fewEnded)
	}
	if n > 0 {
		fmt.Fprintln(t.Out)
	}
}

// budget names a budget and its limit.
func budget(s *rehearse.Spent) string {
	switch s.Budget {
	case rehearse.BudgetPreemption:
		return terminal.Counted(s.Limit, "preemption", "preemptions")
	case rehearse.BudgetFailure:
		return terminal.Counted(s.Limit, "retry after failures", "retries after failures")
	}
	return string(s.Budget)
}

func (t Text) table(write func(w io.Writer)) {
	w := tabwriter.NewWriter(t.Out, 0, 4, 2, ' ', 0)
	write(w)
	w.Flush()
}

func (t Text) jobs(r *rehearse.Report) {
	t.table(func(w io.Writer) {
		fmt.Fprintln(w, "JOB\tSTATUS\tGOODPUT\tUSEFUL\tOF\tRESTARTS\tMOST LOST TO")
		for _, j := range r.Jobs {
			var most []string
			for _, l := range j.Lost[:min(fewLosses, len(j.Lost))] {
				if l.Hours >= shownHours {
					most = append(most, lostTo(l)+" "+hours(l.Hours))
				}
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n",
				j.Job, j.Status, percent(j.Goodput), hours(j.Useful), hours(j.Wanted), j.Restarts, strings.Join(most, ", "))
		}
	})
	fmt.Fprintf(t.Out, "\nGoodput of all jobs, weighed by their chips: %s\n", percent(r.Goodput))
}

func (t Text) lost(r *rehearse.Report) {
	if len(r.Lost) == 0 {
		return
	}
	fmt.Fprintln(t.Out, "\nTime lost by all jobs:")
	t.table(func(w io.Writer) {
		for _, l := range r.Lost {
			if l.Hours >= shownHours {
				fmt.Fprintf(w, "  %s\t%s\n", lostTo(l), hours(l.Hours))
			}
		}
	})
}

func (t Text) capacity(r *rehearse.Report) {
	if len(r.Capacity) > 0 {
		fmt.Fprintln(t.Out)
		t.table(func(w io.Writer) {
			fmt.Fprintln(w, "ZONE\tTYPE\tTIER\tHOST-HOURS\tCHIP-HOURS\tESTIMATED COST")
			for _, u := range r.Capacity {
				tier := "on demand"
				if u.Preemptible {
					tier = "spot"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%.0f\t%.0f\t%s\n", u.Zone, u.Type, tier, u.HostHours, u.ChipHours, dollars(u.Cost))
			}
		})
	}
	note := ""
	if r.Unpriced {
		note = ", without what has no known price"
	}
	fmt.Fprintf(t.Out, "\n%s created, %.0f chip-hours, estimated cost %s%s.\n", terminal.Counted(r.Slices, "slice", "slices"), r.ChipHours, dollars(r.Cost), note)
}

// lostTo is what time went into, in words.
func lostTo(l rehearse.Loss) string {
	words := ""
	switch l.Cause {
	case rehearse.CauseUseful:
		words = "useful work"
	case rehearse.CauseRedone:
		words = "work since the last checkpoint"
	case rehearse.CauseStartup:
		words = "getting going"
	case rehearse.CauseBooting:
		words = "slices coming up"
	case rehearse.CausePreempted:
		words = "preempted slices, until replaced"
	case rehearse.CauseLost:
		words = "lost hosts, until replaced"
	case rehearse.CauseCapacity:
		words = "no capacity"
	case rehearse.CauseQuota:
		words = "quota used up"
	case rehearse.CauseRate:
		words = "waiting for a turn to create"
	case rehearse.CauseReservation:
		words = "reservation used up"
	case rehearse.CauseOther:
		words = "other waits"
	}
	if l.Zone != "" {
		words += " in " + l.Zone
	}
	return words
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func hours(h float64) string {
	if h >= 100 {
		return fmt.Sprintf("%.0f h", h)
	}
	return fmt.Sprintf("%.1f h", h)
}

func dollars(p accelerators.Price) string {
	switch {
	case !p.Known():
		return "not known"
	case p.High-p.Low < 0.005:
		return fmt.Sprintf("$%.2f", p.Low)
	}
	return fmt.Sprintf("$%.0f to $%.0f", p.Low, p.High)
}
