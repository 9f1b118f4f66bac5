package amend

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/lifecycle"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// RebuildInput is what is left of a stack whose state was lost.
type RebuildInput struct {
	// Observed must hold the inventory of every provider, for the mark in
	// question: what is not listed is gone.
	Observed *plan.Observed
	// Logs are the names below store.LogsPrefix, ids of jobs.
	Logs []string
	// Jobs are the records of the jobs that have run, by id; Kept says that such
	// records were kept at all, so that a job without one has never run.
	Jobs map[string]state.JobRecord
	Kept bool
	// Desired is what the files declare, nil if they cannot be read.
	Desired *schema.Desired
	// Stack is the mark to rebuild from, "" if there is only one.
	Stack string
	// Addrs are the addresses of jobs by id, for those that were moved after
	// they were started.
	Addrs map[string]schema.Address
	// Random is the rest of the new lineage, after the mark.
	Random string
	At     time.Time
}

// Report is what a Rebuild found.
type Report struct {
	Recovered []Finding // runs, or is held for what is to run
	Ended     []Finding // has ended, as was recorded
	Unknown   []Finding // may have run, and it is not known how that ended
	LeftOver  []Finding // is there, and nothing is known that it is for
	New       []Finding // declared, and has never run
}

// Finding is one entry of a Report.
type Finding struct {
	Addr  schema.Address `json:"address,omitzero"`
	Slice string         `json:"slice,omitempty"`
	Job   string         `json:"job,omitempty"` // id
	Text  string         `json:"text"`
}

// Marks are the stacks whose slices or assignments were observed.
func Marks(obs *plan.Observed) []string {
	marks := map[string]bool{}
	for _, inv := range obs.Inventories {
		for i := range inv.Slices {
			marks[inv.Slices[i].Spec.Stack] = true
		}
	}
	for _, a := range obs.Assignments {
		marks[a.Stack] = true
	}
	delete(marks, "")
	return slices.Sorted(maps.Keys(marks))
}

// Rebuild makes a new state from the world. Jobs come from the assignments of
// their running attempts, with the specs, numbers and budgets that these name;
// slices come from the inventories. The desired snapshot is what was found, so
// that nothing follows from the new state until the files are applied.
//
// A job that has ended is as it was recorded. One that is declared, of which no
// attempt is assigned and nothing says that it never ran, is recorded as stopped:
// it is better not run than run twice. Slices of which is
// purpose is not known become unmanaged.
func Rebuild(in RebuildInput) (*state.Document, Report, error) {
	r := &rebuilder{RebuildInput: in, pools: map[schema.Address]schema.Address{}}
	if err := r.choose(); err != nil {
		return nil, Report{}, fmt.Errorf("rebuild state: %w", err)
	}
	r.binder = binder{next: r.blank(), obs: in.Observed, at: in.At}
	if in.Desired != nil {
		r.next.Desired.Providers, r.next.Desired.Controller = in.Desired.Providers, in.Desired.Controller
		r.next.Desired.Local = in.Desired.Local
	}
	for _, part := range []func() error{r.findRuns, r.findTraces, r.bindRuns, r.bindPools, r.bindWaiting, r.stopOthers} {
		if err := part(); err != nil {
			return nil, Report{}, fmt.Errorf("rebuild state: %w", err)
		}
	}
	r.leaveRest()
	return r.next, r.report, nil
}

type rebuilder struct {
	binder
	RebuildInput
	listed map[string]*schema.SliceStatus
	past   map[schema.Address]state.JobRecord // the newest of each address
	live   map[schema.Address]*plan.Assigned  // newest attempts of which it is known how they stand
	pools  map[schema.Address]schema.Address  // reservations that have other names by now

	stems    map[string]bool         // of the ids of jobs that left logs
	reported map[schema.Address]bool // whose tasks hosts remember
	report   Report
}

// choose settles which stack it is, and that enough is known of it.
func (r *rebuilder) choose() error {
	for _, name := range slices.Sorted(maps.Keys(r.Observed.Unreachable)) {
		return fmt.Errorf("provider %s cannot be asked for its slices (%s); what runs there would be forgotten, so try again when it answers",
			name, r.Observed.Unreachable[name].Text)
	}
	marks := Marks(r.Observed)
	switch {
	case len(marks) == 0:
		return errors.New("neither a slice nor an assignment carries a stack's mark, so there is nothing to rebuild from; fray apply starts anew")
	case r.Stack == "" && len(marks) > 1:
		return fmt.Errorf("there are slices and mailboxes of more than one stack, %s; name the one to rebuild", strings.Join(marks, " and "))
	case r.Stack == "":
		r.Stack = marks[0]
	case !slices.Contains(marks, r.Stack):
		return fmt.Errorf("nothing carries the mark %s; there is %s", r.Stack, strings.Join(marks, ", "))
	}
	if r.blank().Stack() != r.Stack {
		return fmt.Errorf("%q is not the mark of a stack", r.Stack)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Observed.Assignments)) {
		if a := r.Observed.Assignments[name]; a.MovedTo != "" && (a.Stack == r.Stack || a.Stack == "") {
			return fmt.Errorf("slice %s was told that its stack is kept in %s now; rebuild it there", name, a.MovedTo)
		}
	}
	r.listed = listed(r.Observed, r.Stack)
	for _, st := range lifecycle.ListedPacked(r.Observed, r.listed) {
		r.listed[st.Spec.Name] = st
	}
	for _, name := range slices.Sorted(maps.Keys(r.listed)) {
		if err := runUnread(r.Observed, name); err != nil {
			return err
		}
	}
	return nil
}

// runUnread is an error where the assignment of a slice cannot be read: that is not as if the
// slice had none.
func runUnread(obs *plan.Observed, name string) error {
	why, damaged := obs.Damaged[name]
	if !damaged {
		return nil
	}
	return fmt.Errorf("what slice %s is to run cannot be read (%s), and what runs there would be forgotten; restore the object assign/%s.json from a copy, or delete it and nothing is known to run there", name, why, name)
}

// blank is a document with generations above all that any host has seen.
func (r *rebuilder) blank() *state.Document {
	doc := &state.Document{FormatVersion: state.FormatVersion, Lineage: r.Stack + r.Random, Revision: 1}
	for _, a := range r.Observed.Assignments {
		doc.Epoch = max(doc.Epoch, a.Epoch)
	}
	for _, hosts := range r.Observed.Hosts {
		for i := range hosts {
			doc.Epoch = max(doc.Epoch, hosts[i].Epoch)
		}
	}
	doc.Epoch++
	return doc.Clone()
}

// bindPools records the reservations of which slices are there and that are
// declared or in use.
func (r *rebuilder) bindPools() error {
	found := map[schema.Address][]*schema.SliceStatus{}
	for _, name := range slices.Sorted(maps.Keys(r.listed)) {
		if st := r.listed[name]; st.Spec.Owner.Kind == schema.KindReservation && st.Phase != schema.SliceDeleting {
			pool := r.poolOf(st.Spec.Owner)
			found[pool] = append(found[pool], st)
		}
	}
	inUse := map[schema.Address]bool{}
	for _, pool := range r.pools {
		inUse[pool] = true
	}
	for _, pool := range sortedAddrs(found) {
		var want *schema.Reservation
		if r.Desired != nil {
			want = find(r.Desired.Reservations, pool, reservationAddr)
		}
		if want == nil && r.Desired != nil && !inUse[pool] {
			continue
		}
		if want == nil {
			want = reconstructed(pool, found[pool])
		}
		if err := r.declareReservation(*want); err != nil {
			return err
		}
		renamed := slices.ContainsFunc(found[pool], func(st *schema.SliceStatus) bool { return st.Spec.Owner != pool })
		for i, st := range found[pool] {
			index := st.Spec.Index
			if renamed {
				index = i
			}
			r.bindSlice(st, pool, index)
		}
		r.report.Recovered = append(r.report.Recovered, Finding{Addr: pool, Text: fmt.Sprintf("%d of its slices are there", len(found[pool]))})
	}
	return nil
}

// poolOf is what a reservation is called now, by the jobs that draw from it.
func (r *rebuilder) poolOf(owner schema.Address) schema.Address {
	if pool, ok := r.pools[owner]; ok {
		return pool
	}
	return owner
}

// reconstructed is a reservation of just the slices that are there.
func reconstructed(addr schema.Address, found []*schema.SliceStatus) *schema.Reservation {
	s := &found[0].Spec
	c := schema.Capacity{TPU: s.TPU, GPU: s.GPU, CPU: s.CPU, Memory: s.Memory, Slices: len(found)}
	return &schema.Reservation{Addr: addr, Provider: s.Provider, Min: c, Max: c, Preemptible: s.Preemptible}
}

// leaveRest marks slices without an owner as unmanaged, and lists what else is left.
// What is dead or being deleted is for the next plan to clear away.
func (r *rebuilder) leaveRest() {
	for _, name := range slices.Sorted(maps.Keys(r.listed)) {
		st := r.listed[name]
		if r.next.Slices[name] != nil || st.Spec.On != "" || st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting {
			continue
		}
		r.next.Unmanaged[name] = state.Unmanaged{Spec: st.Spec, At: r.at, By: "rebuild"}
		r.report.LeftOver = append(r.report.LeftOver, Finding{Addr: st.Spec.Owner, Slice: name,
			Text: "its owner is not known; it is unmanaged (fray state import adopts it)"})
	}
	known := map[string]bool{}
	for addr, j := range r.next.Jobs {
		known[j.ID], known[plan.JobStem(addr)] = true, true
	}
	for _, id := range slices.Sorted(slices.Values(r.Logs)) {
		if !known[id] && !known[plan.StemOf(id)] {
			r.report.LeftOver = append(r.report.LeftOver, Finding{Job: id, Text: "logs of a job that is neither running nor declared"})
		}
	}
	for _, list := range []*[]Finding{&r.report.Recovered, &r.report.Ended, &r.report.Unknown, &r.report.LeftOver, &r.report.New} {
		slices.SortStableFunc(*list, func(a, b Finding) int { return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Slice, b.Slice)) })
	}
}
