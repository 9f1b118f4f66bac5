package amend

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Move renames an address: an instance, a whole job or service with all its
// instances, a job group with its jobs, a reservation, a namespace, or a module
// with all that is in it; and what names it, in the specs carried out and in
// those desired. Nothing restarts if the files then declare the new address as
// they did the old one. Slices keep the names they were given, and logs lie
// under the job's id, which stays.
//
// A namespace that a job or group has for want of another follows its name.
func Move(doc *state.Document, from, to schema.Address) (*state.Document, error) {
	fail := func(err error) (*state.Document, error) {
		return nil, fmt.Errorf("move %s to %s: %w", from, to, err)
	}
	if err := checkKinds(from, to); err != nil {
		return fail(err)
	}
	s := newStatement(from, to)
	r := newRelocation(doc)
	moved, stays := r.carryOut(&s)
	switch {
	case len(stays) > 0:
		return fail(conflictError(&s, stays[0]))
	case moved == 0 && len(r.families[from]) > 0:
		return fail(fmt.Errorf("%s has instances; name one of them, or an address without a key to move them to", from))
	case moved == 0:
		return fail(fmt.Errorf("there is no %s in the state; fray state list shows what there is", from))
	}
	next, err := relocated(doc, newNames(doc, r.result(), s))
	if err != nil {
		return fail(err)
	}
	return next, nil
}

func conflictError(s *statement, c conflict) error {
	if s.from.Kind == schema.KindJobGroup && c.place == s.from {
		return fmt.Errorf("%s is there already; move the jobs of %s one by one", c.target, s.from)
	}
	return fmt.Errorf("%s is there already; move or remove it first", c.target)
}

// checkKinds refuses addresses of which one cannot become the other.
func checkKinds(from, to schema.Address) error {
	s := newStatement(from, to)
	switch {
	case from.IsZero() || to.IsZero():
		return errors.New("an address is missing; name the old and the new one")
	case from == to:
		return errors.New("these are the same; name another address")
	case from.IsModule() != to.IsModule():
		return errors.New("a module can only become a module; name what is in it, or two modules")
	case from.Kind != to.Kind:
		return fmt.Errorf("%s cannot become %s; declare the new one and remove the old one", article(from.Kind), article(to.Kind))
	case s.origin().reaches(to):
		return fmt.Errorf("%s is in %s itself; move it out first", to, from)
	}
	switch from.Kind {
	case schema.KindNamespace, schema.KindReservation, schema.KindJobGroup, schema.KindNotification:
		if !from.Key.IsZero() || !to.Key.IsZero() {
			return fmt.Errorf("a %s has no instances; leave the key out", from.Kind)
		}
	case schema.KindJob, schema.KindActorService:
	}
	return nil
}

// article is a kind with "a" or "an" before it.
func article(k schema.Kind) string {
	if k == schema.KindActorService {
		return "an " + string(k)
	}
	return "a " + string(k)
}

// relocated is a document after addresses have changed.
func relocated(doc *state.Document, n *names) (*state.Document, error) {
	m := &mover{names: n, doc: doc, next: doc.Clone()}
	if err := m.move(); err != nil {
		return nil, err
	}
	return m.next, nil
}

// mover gives what is in a document other addresses.
type mover struct {
	*names
	doc, next *state.Document
}

func (m *mover) move() error {
	if err := m.moveResources(); err != nil {
		return err
	}
	m.moveDesired()
	triggers := m.retrigger()
	for i := range m.next.Desired.Jobs { // a new list, shared with no other document
		j := &m.next.Desired.Jobs[i]
		j.Lifecycle, _ = triggers.lifecycle(j.Lifecycle)
	}
	if err := m.moveJobs(&triggers); err != nil {
		return err
	}
	for name, s := range m.doc.Slices {
		if owner, moves := m.rename(s.Spec.Owner); moves {
			moved := *s
			moved.Spec.Owner = owner
			m.next.Slices[name] = &moved
		}
	}
	return nil
}

func (m *mover) moveResources() error {
	for addr := range m.doc.Resources {
		if _, moves := m.rename(addr); moves {
			delete(m.next.Resources, addr)
		}
	}
	b := binder{next: m.next}
	for addr, r := range m.doc.Resources {
		moved, changed := m.resource(r)
		if !changed {
			continue
		}
		renamed, _ := m.rename(addr)
		if err := b.record(renamed, specOf(moved), moved); err != nil {
			return err
		}
	}
	return nil
}

func specOf(r state.Resource) any {
	switch {
	case r.Namespace != nil:
		return r.Namespace
	case r.Reservation != nil:
		return r.Reservation
	case r.Notification != nil:
		return r.Notification
	}
	return r.Group
}

// resource is a resource as it is after the move, and whether it changes.
func (m *mover) resource(r state.Resource) (state.Resource, bool) {
	switch {
	case r.Namespace != nil:
		n := *r.Namespace
		var moves bool
		n.Addr, moves = m.rename(n.Addr)
		return state.Resource{Since: r.Since, Launch: r.Launch, Namespace: &n}, moves
	case r.Reservation != nil:
		v := *r.Reservation
		var moves bool
		v.Addr, moves = m.rename(v.Addr)
		return state.Resource{Since: r.Since, Launch: r.Launch, Reservation: &v}, moves
	case r.Group != nil:
		g := m.group(*r.Group)
		return state.Resource{Since: r.Since, Launch: r.Launch, Group: &g}, g != *r.Group
	case r.Notification != nil:
		n, moves := m.notification(*r.Notification)
		return state.Resource{Since: r.Since, Notification: &n}, moves
	}
	return r, false
}

func (m *mover) group(g schema.JobGroup) schema.JobGroup {
	implicit := !m.isDeclared(g.Namespace) && g.Namespace == g.Addr.Scoped()
	g.Addr, _ = m.rename(g.Addr)
	g.Namespace = m.namespace(g.Namespace)
	if implicit {
		g.Namespace = g.Addr.Scoped()
	}
	return g
}

// isDeclared reports whether a namespace is declared; others are those that
// jobs and groups have by default.
func (m *mover) isDeclared(name string) bool {
	addr := schema.ScopedAddress(schema.KindNamespace, name)
	_, recorded := m.doc.Resources[addr]
	return recorded || find(m.doc.Desired.Namespaces, addr, namespaceAddr) != nil
}

// defaultNamespace is what a job of an address is in if it does not say.
func (m *mover) defaultNamespace(addr schema.Address, doc *state.Document) string {
	group := addr.GroupAddress()
	if group.IsZero() {
		return addr.Scoped()
	}
	if r := doc.Resources[group]; r.Group != nil {
		return r.Group.Namespace
	}
	if g := find(doc.Desired.Groups, group, groupAddr); g != nil {
		return g.Namespace
	}
	return group.Scoped()
}

func (m *mover) moveJobs(triggers *retrigger) error {
	for addr, j := range m.doc.Jobs {
		spec, changed := m.job(j.Spec)
		var triggered bool
		spec.Lifecycle, triggered = triggers.lifecycle(spec.Lifecycle)
		if !changed && !triggered {
			continue
		}
		digest, err := schema.DigestOf(&spec)
		if err != nil {
			return err
		}
		moved := *j
		moved.Spec, moved.Digest = &spec, digest
		if spec.Addr != addr && m.next.Jobs[addr] == j {
			delete(m.next.Jobs, addr)
		}
		m.next.Jobs[spec.Addr] = &moved
	}
	return nil
}

// job is a spec as it is after the move, and whether it changes. The resources
// of next have moved already.
func (m *mover) job(spec *schema.Job) (schema.Job, bool) {
	j := *spec
	var moves, changed bool
	j.Addr, moves = m.rename(spec.Addr)
	j.Namespace = m.namespace(spec.Namespace)
	if moves && !m.isDeclared(spec.Namespace) && spec.Namespace == m.defaultNamespace(spec.Addr, m.doc) {
		j.Namespace = m.defaultNamespace(j.Addr, m.next)
	}
	if pool := m.reservation(spec.Resources.Reservation); pool != spec.Resources.Reservation {
		j.Resources.Reservation, changed = pool, true
	}
	var on, uses bool
	j.DependsOn, on = m.references(spec.DependsOn)
	j.Uses, uses = m.references(spec.Uses)
	return j, moves || changed || on || uses || j.Namespace != spec.Namespace
}

// moveDesired renames in the desired snapshot; what is desired at the new
// address already stays as it is. The groups move first: jobs have their
// namespaces from them.
func (m *mover) moveDesired() {
	d := &m.next.Desired
	d.Namespaces = moved(d.Namespaces, namespaceAddr, func(n schema.Namespace) schema.Namespace {
		n.Addr, _ = m.rename(n.Addr)
		return n
	})
	d.Reservations = moved(d.Reservations, reservationAddr, func(r schema.Reservation) schema.Reservation {
		r.Addr, _ = m.rename(r.Addr)
		return r
	})
	d.Groups = moved(d.Groups, groupAddr, m.group)
	d.Notifications = moved(d.Notifications, notificationAddr, func(n schema.Notification) schema.Notification {
		renamed, _ := m.notification(n)
		return renamed
	})
	d.Jobs = moved(d.Jobs, jobAddr, func(j schema.Job) schema.Job {
		renamed, _ := m.job(&j)
		return renamed
	})
}

// moved applies a renaming to a list and sorts it again.
func moved[T any](list []T, addr func(*T) schema.Address, rename func(T) T) []T {
	if len(list) == 0 {
		return list
	}
	out := make([]T, 0, len(list))
	for _, item := range list {
		out = append(out, rename(item))
	}
	slices.SortFunc(out, func(a, b T) int { return addr(&a).Compare(addr(&b)) })
	return out
}
