package amend

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// ImportInput says what to take up and as what.
type ImportInput struct {
	Addr     schema.Address  // of a job instance, a service's replica or a reservation
	Desired  *schema.Desired // what the files declare
	Slices   []string
	Observed *plan.Observed // just looked up
	At       time.Time
}

const whyImported = "imported: it ran when its slices were taken up"

// Import binds slices that are there, unmanaged ones or ones that carry the
// stack's mark and belong to nothing, to a declared job or reservation that has
// none. They must have the shape that is declared. An attempt that runs on them
// is taken over with its number and the budgets spent before it; if none does,
// they are what the job starts on. With a reservation, the declared jobs that
// run on its slices come too.
//
// A job that runs is recorded with the spec it was started with; what the files
// say otherwise is for the next plan to show.
func Import(doc *state.Document, in ImportInput) (*state.Document, error) {
	m := &importer{ImportInput: in, doc: doc, listed: listed(in.Observed, doc.Stack())}
	m.binder = binder{next: doc.Clone(), obs: in.Observed, at: in.At}
	if err := m.run(); err != nil {
		return nil, fmt.Errorf("import %s: %w", in.Addr, err)
	}
	return m.next, nil
}

type importer struct {
	binder
	ImportInput
	doc    *state.Document
	listed map[string]*schema.SliceStatus
}

func (m *importer) run() error {
	if len(m.Slices) == 0 {
		return errors.New("no slice is named; name those to take up")
	}
	for i, name := range m.Slices {
		if slices.Contains(m.Slices[:i], name) {
			return fmt.Errorf("slice %s is named twice", name)
		}
		if err := m.checkSlice(name); err != nil {
			return err
		}
	}
	switch m.Addr.Kind {
	case schema.KindJob, schema.KindActorService:
		return m.importJob()
	case schema.KindReservation:
		return m.importReservation()
	case schema.KindNamespace, schema.KindJobGroup, schema.KindNotification:
	}
	return fmt.Errorf("a %s has no slices; name a job, a replica of a service, or a reservation", m.Addr.Kind)
}

// checkSlice rejects a slice that cannot be imported.
func (m *importer) checkSlice(name string) error {
	st := m.listed[name]
	switch {
	case st == nil && len(m.Observed.Unreachable) > 0:
		down := slices.Sorted(maps.Keys(m.Observed.Unreachable))[0]
		return fmt.Errorf("no provider that answered lists slice %s; provider %s did not: %s", name, down, m.Observed.Unreachable[down].Text)
	case st == nil:
		return fmt.Errorf("no provider lists a slice %s with this stack's mark, %s; fray status lists the unmanaged ones", name, m.doc.Stack())
	case st.Phase == schema.SliceDead || st.Phase == schema.SliceDeleting:
		return fmt.Errorf("slice %s is %s; only slices that live can be taken up", name, st.Phase)
	}
	return runUnread(m.Observed, name)
}

func (m *importer) importJob() error {
	want := find(m.Desired.Jobs, m.Addr, jobAddr)
	if want == nil {
		return errors.New("the files do not declare it; write it down first, an instance with its key")
	}
	if cur := m.doc.Jobs[m.Addr]; cur != nil && (len(cur.Slices) > 0 || cur.Running()) {
		return fmt.Errorf("it has slices already (%s); remove it from the state first", strings.Join(cur.Slices, ", "))
	} else if cur != nil && cur.Status.Ended() {
		return fmt.Errorf("it has ended (%s), so slices would be deleted at once; remove it from the state first", cur.Status)
	}
	if n := want.Resources.Slices; n != len(m.Slices) {
		return fmt.Errorf("it is declared with %d slices, and %d are named", n, len(m.Slices))
	}
	if want.Resources.Reservation != "" {
		if err := m.bindPooled(want); err != nil {
			return err
		}
	} else if err := m.bindOwn(want); err != nil {
		return err
	}
	if err := m.declare(m.Desired, want); err != nil {
		return err
	}
	found, err := m.attemptOn(m.Slices)
	if err != nil {
		return err
	}
	if found == nil {
		return m.bindIdle(want)
	}
	return m.bindAttempt(m.Addr, found, m.Desired, whyImported)
}

// bindOwn gives a job its slices; they may have been made for another one.
func (m *importer) bindOwn(want *schema.Job) error {
	indices := m.indices()
	for i, name := range m.Slices {
		st := m.listed[name]
		if s := m.doc.Slices[name]; s != nil {
			return fmt.Errorf("slice %s belongs to %s; remove that from the state first", name, s.Spec.Owner)
		}
		if shape := plan.OwnSlice("", asSlice(want, st.Spec), 0); !sameShape(st.Spec, shape) {
			return fmt.Errorf("slice %s has another shape (%s) than is declared (%s)", name, shapeOf(st.Spec), shapeOf(shape))
		}
		if first := m.listed[m.Slices[0]].Spec.Accelerator(); st.Spec.Accelerator() != first {
			return fmt.Errorf("slice %s is of %s and slice %s of %s; a job has slices of one of its alternatives", m.Slices[0], first, name, st.Spec.Accelerator())
		}
		m.bindSlice(st, m.Addr, indices[i])
	}
	return nil
}

// indices are the places that the named slices had among those of their owner,
// or their order where two of them had the same.
func (m *importer) indices() []int {
	kept, order := make([]int, 0, len(m.Slices)), make([]int, 0, len(m.Slices))
	for i, name := range m.Slices {
		index := m.listed[name].Spec.Index
		if given, ok := m.doc.Unmanaged[name]; ok {
			index = given.Spec.Index
		}
		if !slices.Contains(kept, index) {
			kept = append(kept, index)
		}
		order = append(order, i)
	}
	if len(kept) < len(order) {
		return order
	}
	return kept
}

// bindPooled sees to it that a reservation has the slices that a job is to
// hold: they are free in it, or became unmanaged or orphaned from it.
func (m *importer) bindPooled(want *schema.Job) error {
	pool := schema.ScopedAddress(schema.KindReservation, want.Resources.Reservation)
	r := m.doc.Resources[pool].Reservation
	if r == nil {
		return fmt.Errorf("it draws from %s, which the state does not have; import that, and the jobs that run on it come too", pool)
	}
	used := map[int]bool{}
	for _, s := range m.doc.Slices {
		if s.Spec.Owner == pool {
			used[s.Spec.Index] = true
		}
	}
	for _, name := range m.Slices {
		if holder, held := m.holder(name); held {
			return fmt.Errorf("slice %s is held by %s", name, holder)
		}
		st := m.listed[name]
		if s := m.doc.Slices[name]; s != nil && s.Spec.Owner == pool {
			continue
		} else if s != nil {
			return fmt.Errorf("slice %s belongs to %s, not to %s", name, s.Spec.Owner, pool)
		}
		if shape := plan.PoolSlice("", r, 0); !sameShape(st.Spec, shape) {
			return fmt.Errorf("slice %s has another shape (%s) than those of %s (%s)", name, shapeOf(st.Spec), pool, shapeOf(shape))
		}
		index := st.Spec.Index
		for used[index] {
			index++
		}
		used[index] = true
		m.bindSlice(st, pool, index)
	}
	return nil
}

func (m *importer) holder(slice string) (schema.Address, bool) {
	for _, addr := range sortedAddrs(m.next.Jobs) {
		if slices.Contains(m.next.Jobs[addr].Slices, slice) {
			return addr, true
		}
	}
	return schema.Address{}, false
}

// bindIdle gives a job slices to start on.
func (m *importer) bindIdle(want *schema.Job) error {
	j := state.Job{Status: schema.JobPending}
	if cur := m.doc.Jobs[m.Addr]; cur != nil {
		j = *cur
	} else {
		digest, err := schema.DigestOf(want)
		if err != nil {
			return err
		}
		// A new revision: another job had this address in the present one and may
		// have left logs under its id.
		m.next.Revision++
		j.ID, j.Spec, j.Digest = plan.JobID(m.next.Lineage, m.Addr, m.next.Revision), want, digest
	}
	j.Slices = slices.Clone(m.Slices)
	m.next.Jobs[m.Addr] = &j
	m.desire(j.Spec)
	return nil
}

// attemptOn finds the attempt that runs on slices, nil if none does; it must be
// one, and on all of them.
func (m *importer) attemptOn(names []string) (*plan.Assigned, error) {
	var found *plan.Assigned
	for _, name := range names {
		a, ok := m.Observed.Assignments[name]
		switch {
		case !ok || a.Run == nil:
			continue
		case found != nil && a.Run.JobID != found.Run.JobID:
			return nil, fmt.Errorf("slice %s runs %s (id %s) and slice %s runs %s (id %s); they cannot be one job's",
				found.Slice, found.Run.Job, found.Run.JobID, a.Slice, a.Run.Job, a.Run.JobID)
		case found == nil || a.Run.Attempt > found.Run.Attempt:
			found = &a
		}
	}
	if found == nil {
		return nil, nil
	}
	for addr, j := range m.next.Jobs {
		if j.ID == found.Run.JobID {
			return nil, fmt.Errorf("slice %s runs %s, which the state has as %s", found.Slice, found.Run.Job, addr)
		}
	}
	want := snapshot.AssignedAttempt(&found.Assignment).Slices
	for _, name := range want {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("attempt %d of %s also runs on slice %s; take up all of its slices: %s",
				found.Run.Attempt, found.Run.Job, name, strings.Join(want, " "))
		}
	}
	for _, name := range names {
		if !slices.Contains(want, name) {
			return nil, fmt.Errorf("attempt %d of %s runs on %s only, not on slice %s",
				found.Run.Attempt, found.Run.Job, strings.Join(want, " "), name)
		}
	}
	return found, nil
}

func (m *importer) importReservation() error {
	r := find(m.Desired.Reservations, m.Addr, reservationAddr)
	if r == nil {
		return errors.New("the files do not declare it; write it down first")
	}
	for _, name := range slices.Sorted(maps.Keys(m.doc.Slices)) {
		if m.doc.Slices[name].Spec.Owner == m.Addr {
			return fmt.Errorf("it has slices already (%s among them); remove it from the state first", name)
		}
	}
	if n := max(r.Min.Slices, r.Max.Slices); len(m.Slices) > n {
		return fmt.Errorf("%d slices are named and it may have %d (its max), so the others would be deleted; raise max.slices first", len(m.Slices), n)
	}
	indices := m.indices()
	for i, name := range m.Slices {
		st := m.listed[name]
		if s := m.doc.Slices[name]; s != nil {
			return fmt.Errorf("slice %s belongs to %s; remove that from the state first", name, s.Spec.Owner)
		}
		if shape := plan.PoolSlice("", r, 0); !sameShape(st.Spec, shape) {
			return fmt.Errorf("slice %s has another shape (%s) than is declared (%s)", name, shapeOf(st.Spec), shapeOf(shape))
		}
		m.bindSlice(st, m.Addr, indices[i])
	}
	if err := m.declareReservation(*r); err != nil {
		return err
	}
	return m.importUsers()
}

// importUsers takes over the jobs that run on a reservation's slices: those
// would be stopped for the next one otherwise.
func (m *importer) importUsers() error {
	for _, name := range m.Slices {
		a := m.Observed.Assignments[name]
		if _, held := m.holder(name); held || a.Run == nil {
			continue
		}
		want := find(m.Desired.Jobs, a.Run.Job, jobAddr)
		switch cur := m.next.Jobs[a.Run.Job]; {
		case want == nil || want.Resources.Reservation != m.Addr.Scoped():
			return fmt.Errorf("slice %s runs %s, which the files do not declare on this reservation; declare it, or it would be stopped", name, a.Run.Job)
		case cur != nil && (len(cur.Slices) > 0 || cur.Status.Ended()):
			return fmt.Errorf("slice %s runs %s, which the state has elsewhere; remove that from the state first", name, a.Run.Job)
		}
		names := snapshot.AssignedAttempt(&a.Assignment).Slices
		for _, each := range names {
			if !slices.Contains(m.Slices, each) {
				return fmt.Errorf("%s also runs on slice %s; take that up too", a.Run.Job, each)
			}
		}
		found, err := m.attemptOn(names)
		if err != nil {
			return err
		}
		if err := m.bindAttempt(a.Run.Job, found, m.Desired, whyImported); err != nil {
			return err
		}
		if err := m.declare(m.Desired, want); err != nil {
			return err
		}
	}
	return nil
}
