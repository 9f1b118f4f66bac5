package state

import (
	"time"

	"github.com/fray-ml/fray/schema"
)

// Metering is what a document knows of the time that its slices are paid for. It is
// replaced as a whole and never changed in place.
type Metering struct {
	// At is when it was brought up to date last: all slices of Open were known until then.
	At time.Time `json:"at"`
	// Open are the intervals that have begun and go on, by slice. They have no end yet.
	Open map[string]*UsageInterval `json:"open,omitempty"`
	// Closed are intervals that may not be in the ledger yet, in the order of their ends.
	Closed []UsageInterval `json:"closed,omitempty"`
	// Month is the calendar month of Spent, in UTC ("2026-11").
	Month string `json:"month,omitempty"`
	// Spent is the use of Month by namespace; "" is that of jobs without one.
	Spent map[string]MonthSpend `json:"spent,omitempty"`
	// Levels are the levels of budgets that were found last, without those that are well.
	Levels map[string]BudgetLevel `json:"levels,omitempty"`
}

// MonthSpend is what a namespace has used in a month, and uses.
type MonthSpend struct {
	// Closed is an estimate of what the month's closed intervals cost, Used of those and of the
	// open ones until Metering.At, and PerHour of an hour from then on.
	Closed  Dollars `json:"closed,omitzero"`
	Used    Dollars `json:"used"`
	PerHour Dollars `json:"per_hour,omitzero"`
	// ClosedUnpriced and Unpriced are the same in hours of slices whose price is not known, and
	// UnpricedSlices is how many there are now. They are in no sum of dollars.
	ClosedUnpriced float64 `json:"closed_unpriced_hours,omitempty"`
	Unpriced       float64 `json:"unpriced_hours,omitempty"`
	UnpricedSlices int     `json:"unpriced_slices,omitempty"`
}

// Dollars are an estimate in US dollars, between its ends.
type Dollars struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// BudgetLevel is a closed set of how a budget of money stands.
type BudgetLevel string

// The levels.
const (
	BudgetWithin    BudgetLevel = ""
	BudgetNearly    BudgetLevel = "nearly"    // warn_at of it is used
	BudgetExhausted BudgetLevel = "exhausted" // all of it is used
)

// UsageInterval is a time in which one slice was used for one purpose. Slice and From
// identify it: two of the same are one, of which the later end counts.
type UsageInterval struct {
	Slice string    `json:"slice"`
	From  time.Time `json:"from"`
	To    time.Time `json:"to,omitzero"` // zero: it goes on
	Use   SliceUse  `json:"use"`
	UsageOwner
	UsageShape
	// PerHour is what the slice was estimated to cost an hour when the interval began;
	// zero: not known, or free.
	PerHour Dollars `json:"per_hour,omitzero"`
	// Outcome is how the attempt ended, in the last interval of it.
	Outcome schema.TaskState `json:"outcome,omitempty"`
	// Estimated says that no controller saw whether the slice was there: it was before and was
	// gone when one looked again.
	Estimated bool `json:"estimated,omitempty"`
	// UnseenSince is, while it goes on, since when its provider has not listed the slice,
	// zero: it does.
	UnseenSince time.Time `json:"unseen_since,omitzero"`
}

// UsageOwner is who used a slice.
type UsageOwner struct {
	// Owner is the job that held it, else the reservation or job that it was made for.
	Owner     schema.Address `json:"owner"`
	JobID     string         `json:"job_id,omitempty"`
	Attempt   int            `json:"attempt,omitempty"`
	Namespace string         `json:"namespace,omitempty"` // "": none
	User      string         `json:"user,omitempty"`
}

// UsageShape is what a slice is.
type UsageShape struct {
	Provider    schema.ProviderName `json:"provider"`
	Zone        string              `json:"zone,omitempty"`
	Type        string              `json:"type"` // what is paid for
	Preemptible bool                `json:"preemptible,omitempty"`
	Hosts       int                 `json:"hosts"`
	Chips       int                 `json:"chips,omitempty"` // of TPUs
	GPUs        int                 `json:"gpus,omitempty"`
	Cores       float64             `json:"cores,omitempty"` // of slices without TPUs
}

// SliceUse is a closed set of what a slice is used for.
type SliceUse string

// The uses of slices.
const (
	UseStarting SliceUse = "starting" // its machines come up, or the attempt on it is not ready yet
	UseRunning  SliceUse = "running"  // an attempt on it is ready
	UseStopping SliceUse = "stopping" // an attempt on it is being stopped
	UseWaiting  SliceUse = "waiting"  // its job has no attempt that goes on
	UseIdle     SliceUse = "idle"     // no job holds it
	UseDeleting SliceUse = "deleting" // it is to be deleted
)

// SliceUses are all of them.
func SliceUses() []SliceUse {
	return []SliceUse{UseStarting, UseRunning, UseStopping, UseWaiting, UseIdle, UseDeleting}
}

// Hours is how long it took; zero while it goes on.
func (i *UsageInterval) Hours() float64 {
	if i.To.IsZero() {
		return 0
	}
	return i.To.Sub(i.From).Hours()
}

// Plus is both together.
func (d Dollars) Plus(o Dollars) Dollars { return Dollars{Low: d.Low + o.Low, High: d.High + o.High} }
