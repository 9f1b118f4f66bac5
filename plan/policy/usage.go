package policy

import (
	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Usage is what a configuration takes, before and after a plan: of all, and by namespace.
// Reservations of no namespace count for the namespace "".
type Usage struct {
	Total       Taken
	ByNamespace map[string]Taken
}

// Taken is what is taken before and after a plan.
type Taken struct{ Before, After Amount }

// Amount is an amount of slices. A job that has ended takes none, and one on a
// reservation takes those of the reservation.
type Amount struct {
	Slices   int
	Chips    int                // TPU chips and GPUs
	OnDemand int                // chips in a cloud that are not preemptible
	Spot     int                // chips in a cloud that are preemptible
	PerHour  accelerators.Price // at list prices, of all slices whose price is known
	Unknown  int                // slices whose price is not known
}

// ChipsOf is how many chips a job or a reservation asks for.
func ChipsOf(spec any) int {
	switch s := spec.(type) {
	case *schema.Job:
		one := plan.UnnamedSlice("", s, 0)
		return s.Resources.Slices * accelerators.Chips(&one)
	case *schema.Reservation:
		one := plan.PoolSlice("", s, 0)
		return s.Min.Slices * accelerators.Chips(&one)
	}
	return 0
}

// usageOf counts what two states declare.
func usageOf(before, after *state.Document) Usage {
	u := Usage{ByNamespace: map[string]Taken{}}
	u.count(before, func(t *Taken) *Amount { return &t.Before })
	u.count(after, func(t *Taken) *Amount { return &t.After })
	return u
}

func (u *Usage) count(doc *state.Document, of func(*Taken) *Amount) {
	d := &doc.Desired
	add := func(namespace string, one *schema.SliceSpec, n int) {
		offers := offersOf(d, one.Provider)
		of(&u.Total).add(one, offers, n)
		t := u.ByNamespace[namespace]
		of(&t).add(one, offers, n)
		u.ByNamespace[namespace] = t
	}
	for i := range d.Namespaces {
		name := d.Namespaces[i].Addr.Name
		u.ByNamespace[name] = Taken{}
	}
	for i := range d.Reservations {
		r := &d.Reservations[i]
		one := plan.PoolSlice("", r, 0)
		add(r.Namespace, &one, r.Min.Slices)
	}
	for i := range d.Jobs {
		want := &d.Jobs[i]
		if j := doc.Jobs[want.Addr]; want.Resources.Reservation != "" || want.Resources.Packed || j != nil && j.Status.Ended() {
			continue
		}
		one := plan.UnnamedSlice("", want, 0)
		add(want.Namespace, &one, want.Resources.Slices)
	}
}

func offersOf(d *schema.Desired, name schema.ProviderName) []schema.Market {
	for i := range d.Providers {
		if d.Providers[i].Name == name {
			return d.Providers[i].Offers
		}
	}
	return nil
}

func (a *Amount) add(one *schema.SliceSpec, offers []schema.Market, n int) {
	chips := n * accelerators.Chips(one)
	a.Slices += n
	a.Chips += chips
	if one.Provider != schema.ProviderGCP {
		return
	}
	if one.Preemptible {
		a.Spot += chips
	} else {
		a.OnDemand += chips
	}
	price := accelerators.EstimateOf(one, offers).PerHour
	if !price.Known() {
		a.Unknown += n
		return
	}
	a.PerHour = a.PerHour.Plus(price.Times(float64(n)))
}
