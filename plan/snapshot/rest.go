package snapshot

import (
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
)

// Rest is what a part of a stack leaves out: sums of what the others hold. A stage that
// would have to know more of them than that reports it, see [NeedWhole], and its plan
// is made on all.
type Rest struct {
	Holders map[Holder]Load                     // of slices
	Load    Load                                // of slices, but for packed ones
	Spent   map[schema.ProviderName]plan.Amount // of slices that are listed
	Living  map[string]int                      // slices that are up, by the place where their capacity comes from
	Zoned   int                                 // slices that are up in zones; none of their hosts is silent
	Held    func(addr schema.Address) bool      // jobs whose records are in the part, and what they hold in Holders
}

// Holder is what jobs have in common that count alike wherever capacity is shared.
type Holder struct {
	Space       string // see [capacity.SpaceOf]
	User        string
	Band        int
	Provider    schema.ProviderName
	Reservation string
	Endures     bool
}

// NeedWhole notes that more is to be known of what a part leaves out than its sums.
func NeedWhole(d *Draft) { d.Incomplete = d.Incomplete || d.Rest != nil }

// Counts reports whether what a job holds is in the sums.
func (r *Rest) Counts(addr schema.Address) bool { return r != nil && r.Held(addr) }
