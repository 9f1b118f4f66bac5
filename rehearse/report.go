package rehearse

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/schema"
)

// FormatVersion is that of the report as JSON (docs/rehearsal-json.md).
const FormatVersion = "1.1"

// Report is what came of a rehearsal. Durations are in hours.
type Report struct {
	FormatVersion string  `json:"format_version"`
	Scenario      string  `json:"scenario"`
	Seed          uint64  `json:"seed"`
	Hours         float64 `json:"hours"` // that were rehearsed
	Requested     float64 `json:"requested_hours"`
	// Goodput is the useful part of the time that all jobs wanted, each weighed by
	// its chips; 0 to 1.
	Goodput    float64            `json:"goodput"`
	Jobs       []JobReport        `json:"jobs"` // by address
	Lost       []Loss             `json:"lost"` // of all jobs, the longest first
	Capacity   []Usage            `json:"capacity"`
	Slices     int                `json:"slices_created"`
	ChipHours  float64            `json:"chip_hours"`
	Cost       accelerators.Price `json:"cost"`
	Unpriced   bool               `json:"unpriced"` // the cost leaves out what has no price
	Unplaced   []Unplaced         `json:"unplaced"` // by address
	Violations []Violation        `json:"violations"`
	Steps      int                `json:"steps"`
	// Missed are events of a history for which there was no slice.
	Missed int `json:"missed_events"`
}

// JobReport is how one job fared.
type JobReport struct {
	Job      string  `json:"job"`
	Status   string  `json:"status"`
	Goodput  float64 `json:"goodput"`      // 0 to 1
	Wanted   float64 `json:"wanted_hours"` // from its declaration to its end
	Useful   float64 `json:"useful_hours"`
	Restarts int     `json:"restarts"`
	Lost     []Loss  `json:"lost"` // the longest first
	// Ended is when it ended, in hours since the start; 0: it did not.
	Ended float64 `json:"ended_hours,omitempty"`
	// Spent is the budget that its end is due to; nil: it ended otherwise, or not.
	Spent *Spent `json:"spent,omitempty"`
}

// Spent is a budget of a job of which nothing is left.
type Spent struct {
	Budget Budget `json:"budget"`
	Limit  int    `json:"limit"`
}

// Budget is a closed set of what bounds how often a job is tried again.
type Budget string

// The budgets.
const (
	BudgetPreemption Budget = "preemption"
	BudgetFailure    Budget = "failure"
)

// Loss is time that was not useful.
type Loss struct {
	Cause Cause   `json:"cause"`
	Zone  string  `json:"zone,omitempty"` // of a wait for capacity
	Hours float64 `json:"hours"`
}

// Usage is capacity that was used in one zone, of one type and tier.
type Usage struct {
	Zone        string             `json:"zone"`
	Type        string             `json:"type"`
	Preemptible bool               `json:"preemptible"`
	HostHours   float64            `json:"host_hours"`
	ChipHours   float64            `json:"chip_hours"`
	Cost        accelerators.Price `json:"cost"` // zero: no price is known
}

// Unplaced is a job that never ran.
type Unplaced struct {
	Job    string `json:"job"`
	Reason string `json:"reason"`
}

func (r *rehearsal) report() *Report {
	out := &Report{
		FormatVersion: FormatVersion, Seed: r.cfg.Seed, Hours: inHours(r.clock.Now().Sub(r.start)), Requested: inHours(r.cfg.For), Missed: r.missed,
		Slices: r.books.made, Capacity: []Usage{}, Unplaced: []Unplaced{}, Violations: []Violation{},
	}
	doc := r.stepper.Document()
	all := map[entry]time.Duration{}
	var useful, wanted float64
	for _, addr := range slices.SortedFunc(maps.Keys(r.books.accounts), schema.Address.Compare) {
		a := r.books.accounts[addr]
		line := a.report()
		if j := doc.Jobs[addr]; j != nil {
			line.Status = string(j.Status)
			if j.Status.Ended() {
				line.Ended, line.Spent = inHours(a.endedAt.Sub(r.start)), a.spentOn
			}
		}
		out.Jobs = append(out.Jobs, line)
		if a.attempts == 0 {
			out.Unplaced = append(out.Unplaced, Unplaced{Job: line.Job, Reason: a.reason})
		}
		weight := r.books.weights[addr]
		useful, wanted = useful+line.Useful*weight, wanted+line.Wanted*weight
		for e, d := range a.spent {
			all[e] += d
		}
	}
	out.Goodput = rounded(share(useful, wanted))
	out.Lost = losses(all)
	r.books.sum(out)
	return out
}

func (a *account) report() JobReport {
	useful, total := a.useful(), a.total()
	return JobReport{
		Job: a.addr.String(), Goodput: rounded(share(useful.Hours(), total.Hours())), Wanted: inHours(total),
		Useful: inHours(useful), Restarts: max(0, a.attempts-1), Lost: losses(a.spent),
	}
}

func inHours(d time.Duration) float64 { return rounded(d.Hours()) }

// rounded leaves three digits: the rest is not worth reading.
func rounded(x float64) float64 { return math.Round(x*1000) / 1000 }

func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return part / whole
}

// losses are the entries that were not useful.
func losses(spent map[entry]time.Duration) []Loss {
	list := []Loss{}
	for e, d := range spent {
		if e.cause != CauseUseful {
			list = append(list, Loss{Cause: e.cause, Zone: e.zone, Hours: inHours(d)})
		}
	}
	slices.SortFunc(list, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(b.Hours, a.Hours), strings.Compare(string(a.Cause), string(b.Cause)), strings.Compare(a.Zone, b.Zone))
	})
	return list
}

// sum adds what capacity was used to a report.
func (b *accounts) sum(out *Report) {
	for key, u := range b.used {
		out.Capacity = append(out.Capacity, Usage{
			Zone: key.zone, Type: key.kind, Preemptible: key.preemptible, HostHours: rounded(u.hostHours), ChipHours: rounded(u.chipHours),
			Cost: accelerators.Price{Low: rounded(u.low), High: rounded(u.high)},
		})
	}
	slices.SortFunc(out.Capacity, func(a, b Usage) int {
		tier := cmp.Compare(a.HostHours, b.HostHours)
		if a.Preemptible != b.Preemptible {
			tier = 1
			if b.Preemptible {
				tier = -1
			}
		}
		return cmp.Or(strings.Compare(a.Zone, b.Zone), strings.Compare(a.Type, b.Type), tier)
	})
	for i := range out.Capacity {
		u := &out.Capacity[i]
		out.ChipHours += u.ChipHours
		out.Cost = out.Cost.Plus(u.Cost)
		out.Unpriced = out.Unpriced || !u.Cost.Known()
	}
	out.ChipHours, out.Cost.Low, out.Cost.High = rounded(out.ChipHours), rounded(out.Cost.Low), rounded(out.Cost.High)
}
