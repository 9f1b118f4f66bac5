package amend

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Move renames an address: an instance, a whole job or service with all its
// instances, a job group with its jobs, a reservation, a namespace; and what
// names it, in the specs carried out and in those desired. Nothing restarts if
// the files then declare the new address as they did the old one. Slices keep
// the names they were given, and logs lie under the job's id, which stays.
//
// A namespace that a job or group has for want of another follows its name.
func Move(doc *state.Document, from, to schema.Address) (*state.Document, error) {
	m := &mover{doc: doc, from: from, to: to}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("move %s to %s: %w", from, to, err)
	}
	m.next = doc.Clone()
	if err := m.move(); err != nil {
		return nil, fmt.Errorf("move %s to %s: %w", from, to, err)
	}
	return m.next, nil
}

type mover struct {
	doc, next *state.Document
	from, to  schema.Address
	family    bool // from stands for several instances
	only      bool // no other instance of from's job remains
}

func (m *mover) check() error {
	if err := m.checkKinds(); err != nil {
		return err
	}
	there := m.addresses()
	m.family = m.from.Key.IsZero() && !slices.Contains(there, m.from)
	m.only = !slices.ContainsFunc(there, func(a schema.Address) bool { return a != m.from && a.Base() == m.from.Base() })
	moved := map[schema.Address]schema.Address{}
	for _, a := range there {
		if renamed, ok := m.rename(a); ok {
			moved[a] = renamed
		}
	}
	switch {
	case len(moved) == 0:
		return fmt.Errorf("there is no %s in the state; fray state list shows what there is", m.from)
	case m.family && !m.to.Key.IsZero():
		return fmt.Errorf("%s has instances; name one of them, or an address without a key to move them to", m.from)
	}
	for _, a := range sortedAddrs(moved) {
		target := moved[a]
		if _, leaves := moved[target]; leaves || !m.occupied(a, target) {
			continue
		}
		if m.from.Kind == schema.KindJobGroup && a == m.from {
			return fmt.Errorf("%s is there already; move the jobs of %s one by one", target, m.from)
		}
		return fmt.Errorf("%s is there already; move or remove it first", target)
	}
	return nil
}

func (m *mover) checkKinds() error {
	switch {
	case m.from.IsZero() || m.to.IsZero():
		return errors.New("an address is missing; name the old and the new one")
	case m.from == m.to:
		return errors.New("these are the same; name another address")
	case m.from.Kind != m.to.Kind:
		return fmt.Errorf("a %s cannot become a %s; declare the new one and remove the old one", m.from.Kind, m.to.Kind)
	}
	switch m.from.Kind {
	case schema.KindNamespace, schema.KindReservation, schema.KindJobGroup:
		if !m.from.Key.IsZero() || !m.to.Key.IsZero() {
			return fmt.Errorf("a %s has no instances; leave the key out", m.from.Kind)
		}
	case schema.KindJob, schema.KindActorService:
	}
	return nil
}

// addresses is everything that the state records or desires.
func (m *mover) addresses() []schema.Address {
	seen := map[schema.Address]bool{}
	for a := range m.doc.Jobs {
		seen[a] = true
	}
	for a := range m.doc.Resources {
		seen[a] = true
	}
	for a := range declared(&m.doc.Desired) {
		seen[a] = true
	}
	return sortedAddrs(seen)
}

// occupied reports whether something else has the target's place. What is
// desired there is no obstacle for what is desired nowhere else: the files were
// changed and accepted before the state was.
func (m *mover) occupied(a, target schema.Address) bool {
	_, job := m.doc.Jobs[target]
	_, resource := m.doc.Resources[target]
	desired := declared(&m.doc.Desired)
	return job || resource || desired[a] && desired[target]
}

func declared(d *schema.Desired) map[schema.Address]bool {
	addrs := map[schema.Address]bool{}
	for i := range d.Namespaces {
		addrs[d.Namespaces[i].Addr] = true
	}
	for i := range d.Reservations {
		addrs[d.Reservations[i].Addr] = true
	}
	for i := range d.Groups {
		addrs[d.Groups[i].Addr] = true
	}
	for i := range d.Jobs {
		addrs[d.Jobs[i].Addr] = true
	}
	return addrs
}

// rename returns where an address or a reference goes, and whether it moves.
func (m *mover) rename(a schema.Address) (schema.Address, bool) {
	switch {
	case a == m.from:
		return m.to, true
	case m.from.Kind == schema.KindJobGroup && a.Kind == schema.KindJob && a.GroupAddress() == m.from:
		a.Group, a.Module = m.to.Name, m.to.Module
		return a, true
	case m.family && a.Base() == m.from:
		moved := m.to
		moved.Key = a.Key
		return moved, true
	case m.only && a == m.from.Base(): // a reference to all instances, of which there is this one
		return m.to.Base(), true
	}
	return a, false
}

func (m *mover) move() error {
	if err := m.moveResources(); err != nil {
		return err
	}
	if err := m.moveJobs(); err != nil {
		return err
	}
	for name, s := range m.doc.Slices {
		if owner, moves := m.rename(s.Spec.Owner); moves {
			moved := *s
			moved.Spec.Owner = owner
			m.next.Slices[name] = &moved
		}
	}
	m.moveDesired()
	return nil
}

func (m *mover) moveResources() error {
	for addr, r := range m.doc.Resources {
		moved, changed := m.resource(r)
		if !changed {
			continue
		}
		delete(m.next.Resources, addr)
		b := binder{next: m.next}
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
		return state.Resource{Namespace: &n}, moves
	case r.Reservation != nil:
		v := *r.Reservation
		var moves bool
		v.Addr, moves = m.rename(v.Addr)
		return state.Resource{Reservation: &v}, moves
	case r.Group != nil:
		g := m.group(*r.Group)
		return state.Resource{Group: &g}, g != *r.Group
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

// namespace is a namespace's name after the move.
func (m *mover) namespace(name string) string {
	if m.from.Kind == schema.KindNamespace && name == m.from.Scoped() {
		return m.to.Scoped()
	}
	return name
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

func (m *mover) moveJobs() error {
	for addr, j := range m.doc.Jobs {
		spec, changed := m.job(j.Spec)
		if !changed {
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
	if m.from.Kind == schema.KindReservation && spec.Resources.Reservation == m.from.Scoped() {
		j.Resources.Reservation, changed = m.to.Scoped(), true
	}
	var on, uses bool
	j.DependsOn, on = m.renameAll(spec.DependsOn)
	j.Uses, uses = m.renameAll(spec.Uses)
	return j, moves || changed || on || uses || j.Namespace != spec.Namespace
}

func (m *mover) renameAll(addrs []schema.Address) ([]schema.Address, bool) {
	var out []schema.Address
	for i, a := range addrs {
		if renamed, moves := m.rename(a); moves {
			if out == nil {
				out = slices.Clone(addrs)
			}
			out[i] = renamed
		}
	}
	if out == nil {
		return addrs, false
	}
	slices.SortFunc(out, schema.Address.Compare)
	return slices.Compact(out), true
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
