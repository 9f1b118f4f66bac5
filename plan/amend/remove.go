package amend

import (
	"fmt"
	"slices"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Removed is what a Remove has made the state forget.
type Removed struct {
	Jobs      []schema.Address
	Resources []schema.Address // namespaces, reservations and job groups
	// Slices are left as they are, with whatever runs on them; the state
	// lists them as unmanaged from now on.
	Slices []string
}

// Remove forgets addresses, with their instances and a group's jobs, without
// destroying anything: their slices become unmanaged, neither adopted nor deleted
// by any later plan. What is declared at such an address afterwards is made
// anew, on other slices; [Import] adopts unmanaged slices again.
//
// A reservation goes only together with the jobs that hold slices of it.
func Remove(doc *state.Document, addrs []schema.Address, at time.Time, by string) (*state.Document, Removed, error) {
	r := &remover{doc: doc, addrs: addrs, at: at, by: by}
	if err := r.check(); err != nil {
		return nil, Removed{}, err
	}
	r.next = doc.Clone()
	r.remove()
	return r.next, r.removed, nil
}

type remover struct {
	doc, next *state.Document
	addrs     []schema.Address
	at        time.Time
	by        string
	removed   Removed
}

func (r *remover) named(a schema.Address) bool {
	return slices.ContainsFunc(r.addrs, func(by schema.Address) bool { return by.Contains(a) })
}

func (r *remover) check() error {
	there := declared(&r.doc.Desired)
	for a := range r.doc.Jobs {
		there[a] = true
	}
	for a := range r.doc.Resources {
		there[a] = true
	}
	for _, by := range r.addrs {
		if !slices.ContainsFunc(sortedAddrs(there), by.Contains) {
			return fmt.Errorf("remove %s: there is no such address in the state; fray state list shows the addresses", by)
		}
		if by.Kind != schema.KindReservation {
			continue
		}
		if holders := r.holders(by.Scoped()); len(holders) > 0 {
			return fmt.Errorf("remove %s: %s holds slices of it; remove that as well, or stop it first", by, join(holders))
		}
	}
	return nil
}

// holders are the jobs with slices of a reservation that are to stay.
func (r *remover) holders(reservation string) []schema.Address {
	var holders []schema.Address
	for _, addr := range sortedAddrs(r.doc.Jobs) {
		j := r.doc.Jobs[addr]
		if j.Spec.Resources.Reservation == reservation && len(j.Slices) > 0 && !r.named(addr) {
			holders = append(holders, addr)
		}
	}
	return holders
}

func (r *remover) remove() {
	for _, addr := range sortedAddrs(r.doc.Jobs) {
		if !r.named(addr) {
			continue
		}
		j := r.doc.Jobs[addr]
		for _, name := range j.Slices {
			r.disown(name, j)
		}
		delete(r.next.Jobs, addr)
		r.removed.Jobs = append(r.removed.Jobs, addr)
	}
	for name, s := range r.doc.Slices {
		if r.named(s.Spec.Owner) {
			r.disown(name, nil)
		}
	}
	slices.Sort(r.removed.Slices)
	for _, addr := range sortedAddrs(r.doc.Resources) {
		if r.named(addr) {
			delete(r.next.Resources, addr)
			r.removed.Resources = append(r.removed.Resources, addr)
		}
	}
	d := &r.next.Desired
	d.Namespaces = without(d.Namespaces, namespaceAddr, r.named)
	d.Reservations = without(d.Reservations, reservationAddr, r.named)
	d.Groups = without(d.Groups, groupAddr, r.named)
	d.Notifications = without(d.Notifications, notificationAddr, r.named)
	d.Jobs = without(d.Jobs, jobAddr, r.named)
}

// disown lets go of a slice; one that was never asked for is forgotten. The
// holder, where there is one, tells what the state does not know of the slice.
func (r *remover) disown(name string, holder *state.Job) {
	s := r.next.Slices[name]
	if s == nil {
		if _, done := r.next.Unmanaged[name]; done || holder == nil {
			return
		}
		res := &holder.Spec.Resources
		s = &state.Slice{Listed: true, Spec: schema.SliceSpec{
			Name: name, Stack: r.doc.Stack(), Owner: holder.Spec.Addr, Provider: res.Provider, TPU: res.TPU, GPU: res.GPU,
			CPU: res.CPU, Memory: res.Memory, Disk: res.Disk, MachineType: res.MachineType, Preemptible: res.Preemptible,
		}}
	}
	delete(r.next.Slices, name)
	if s.PendingSince.IsZero() && !s.Listed {
		return
	}
	r.next.Unmanaged[name] = state.Unmanaged{Spec: s.Spec, At: r.at, By: r.by}
	r.removed.Slices = append(r.removed.Slices, name)
}

// without returns a list without the items that are to go.
func without[T any](list []T, addr func(*T) schema.Address, goes func(schema.Address) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(item T) bool { return goes(addr(&item)) })
}
