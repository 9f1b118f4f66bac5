// Package amend holds the transitions of a state that people make by hand, or
// by moved, removed and import blocks in their files: renaming what is in it,
// forgetting it without destroying it, taking it up again, and building a new
// state from the world when the old one is lost.
//
// It is pure: a document goes in, another one comes out, and the given one is
// never changed. Nothing here acts on the world; what follows from a document
// is plan.Diff's, and each of these transitions is such that nothing follows
// for what runs. Reading and writing documents, and asking people whether they
// are sure, is cmd/fray's.
//
// Start with [Move], [Remove], [Import] or [Rebuild]; amend.go is what they share.
// Of blocks, [Check] says what is wrong with them and [Blocks] carries them out.
package amend

import (
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

// binder puts what is found in the world into a document.
type binder struct {
	next *state.Document
	obs  *plan.Observed
	at   time.Time
}

// bindSlice records a listed slice as the index-th of an owner.
func (b *binder) bindSlice(st *schema.SliceStatus, owner schema.Address, index int) {
	s := state.Slice{Spec: st.Spec, PendingSince: b.at, Listed: true}
	s.Spec.Owner, s.Spec.Index = owner, index
	up := 0
	for _, h := range b.obs.Hosts[st.Spec.Name] {
		if h.Address != "" {
			up++
		}
	}
	if up == st.Spec.Hosts {
		s.UpAt = b.at
	}
	b.next.Slices[st.Spec.Name] = &s
	delete(b.next.Unmanaged, st.Spec.Name)
}

// bindAttempt records the job at an address with the attempt that an assignment
// names, the budgets spent before it, and what its hosts report. What the files
// declare, nil if that is unknown, tells what has been renamed since.
func (b *binder) bindAttempt(addr schema.Address, found *plan.Assigned, files *schema.Desired, why string) error {
	run := found.Run
	spec := renamed(run.Spec, addr, files)
	digest, err := schema.DigestOf(&spec)
	if err != nil {
		return fmt.Errorf("take over %s: %w", addr, err)
	}
	attempt := snapshot.AssignedAttempt(&found.Assignment)
	attempt.Why, attempt.StartedAt = why, b.at
	j := &state.Job{
		ID: run.JobID, Spec: &spec, Digest: digest, Status: schema.JobPending,
		Slices: slices.Clone(attempt.Slices), Attempt: run.Attempt,
		Failures: run.Failures, Preemptions: run.Preemptions, UnknownEnds: run.UnknownEnds,
	}
	ready := len(attempt.Tasks) > 0
	running := ready
	for i := range attempt.Tasks {
		up, healthy := b.fillIn(&attempt, &attempt.Tasks[i])
		running, ready = running && up, ready && healthy
	}
	if running {
		j.Status, j.Ready = schema.JobRunning, ready
	}
	if ready {
		attempt.ReadyAt = attempt.StartedAt
	}
	j.Attempts = []state.Attempt{attempt}
	b.next.Jobs[addr] = j
	b.desire(&spec)
	return nil
}

// renamed is the spec of an attempt with the present names of what it uses: it
// was written down before they were moved. A reservation or namespace counts as
// renamed where the files know the old one no more.
func renamed(spec schema.Job, addr schema.Address, files *schema.Desired) schema.Job {
	spec.Addr = addr
	if files == nil {
		return spec
	}
	want := find(files.Jobs, addr, jobAddr)
	if want == nil {
		return spec
	}
	spec.DependsOn, spec.Uses = want.DependsOn, want.Uses
	namespace := schema.ScopedAddress(schema.KindNamespace, spec.Namespace)
	if find(files.Namespaces, namespace, namespaceAddr) == nil {
		spec.Namespace = want.Namespace
	}
	pool := schema.ScopedAddress(schema.KindReservation, spec.Resources.Reservation)
	if pool.Name != "" && want.Resources.Reservation != "" && find(files.Reservations, pool, reservationAddr) == nil {
		spec.Resources.Reservation = want.Resources.Reservation
	}
	return spec
}

// fillIn copies what a task's host reports of it, and says whether the task is
// up, and whether it is ready besides.
func (b *binder) fillIn(a *state.Attempt, t *state.Task) (up, ready bool) {
	hosts := b.obs.Hosts[t.Slice]
	i := slices.IndexFunc(hosts, func(h plan.Host) bool { return h.Host == t.Host })
	if i < 0 || hosts[i].Task == nil {
		return false, false
	}
	r := hosts[i].Task
	if r.Attempt != a.Number || r.Generation != a.Generation {
		return false, false
	}
	t.State, t.Reason, t.ExitCode, t.Ports, t.Started, t.Tail = r.State, r.Reason, r.ExitCode, r.Ports, r.Started, r.Tail
	t.Termination = r.Termination
	if !r.StartedAt.IsZero() && r.StartedAt.Before(a.StartedAt) {
		a.StartedAt = r.StartedAt
	}
	done := r.State == schema.TaskSucceeded
	return done || r.State == schema.TaskRunning, done || r.Ready()
}

// desire puts a job into the desired snapshot as it is, in place of another
// spec for its address, so that nothing follows before a plan was shown.
func (b *binder) desire(spec *schema.Job) {
	b.next.Desired.Jobs = insert(b.next.Desired.Jobs, *spec, jobAddr)
}

// declare records what a job stands in, a group and a namespace, as the files
// declare it, where the state does not have it.
func (b *binder) declare(desired *schema.Desired, spec *schema.Job) error {
	for i := range desired.Groups {
		if g := desired.Groups[i]; g.Addr == spec.Addr.GroupAddress() {
			if err := b.declareGroup(g); err != nil {
				return err
			}
		}
	}
	for i := range desired.Namespaces {
		n := desired.Namespaces[i]
		if _, recorded := b.next.Resources[n.Addr]; recorded || n.Addr.Scoped() != spec.Namespace {
			continue
		}
		if err := b.record(n.Addr, &n, state.Resource{Namespace: &n}); err != nil {
			return err
		}
		b.next.Desired.Namespaces = insert(b.next.Desired.Namespaces, n, namespaceAddr)
	}
	return nil
}

func (b *binder) declareGroup(g schema.JobGroup) error {
	if _, recorded := b.next.Resources[g.Addr]; recorded {
		return nil
	}
	b.next.Desired.Groups = insert(b.next.Desired.Groups, g, groupAddr)
	return b.record(g.Addr, &g, state.Resource{Group: &g})
}

func (b *binder) declareReservation(r schema.Reservation) error {
	b.next.Desired.Reservations = insert(b.next.Desired.Reservations, r, reservationAddr)
	return b.record(r.Addr, &r, state.Resource{Reservation: &r})
}

func (b *binder) record(addr schema.Address, spec any, r state.Resource) error {
	digest, err := schema.DigestOf(spec)
	if err != nil {
		return fmt.Errorf("record %s: %w", addr, err)
	}
	r.Digest = digest
	b.next.Resources[addr] = r
	return nil
}

// insert returns a sorted list with an item, in place of one of its address.
func insert[T any](list []T, item T, addr func(*T) schema.Address) []T {
	out := slices.Clone(list)
	at, found := slices.BinarySearchFunc(out, addr(&item), func(e T, a schema.Address) int { return addr(&e).Compare(a) })
	if found {
		out[at] = item
		return out
	}
	return slices.Insert(out, at, item)
}

// find returns the item of an address, nil if there is none.
func find[T any](list []T, of schema.Address, addr func(*T) schema.Address) *T {
	for i := range list {
		if addr(&list[i]) == of {
			return &list[i]
		}
	}
	return nil
}

func jobAddr(j *schema.Job) schema.Address                 { return j.Addr }
func groupAddr(g *schema.JobGroup) schema.Address          { return g.Addr }
func namespaceAddr(n *schema.Namespace) schema.Address     { return n.Addr }
func reservationAddr(r *schema.Reservation) schema.Address { return r.Addr }

// listed is every slice of every inventory that carries a mark, by name.
func listed(obs *plan.Observed, mark string) map[string]*schema.SliceStatus {
	found := map[string]*schema.SliceStatus{}
	for _, inv := range obs.Inventories {
		for i := range inv.Slices {
			if st := &inv.Slices[i]; st.Spec.Stack == mark {
				found[st.Spec.Name] = st
			}
		}
	}
	return found
}

// sameShape reports whether two slices are alike but for whose they are.
func sameShape(a, b schema.SliceSpec) bool {
	a.Name, a.Stack, a.Owner, a.Index, a.Zone = b.Name, b.Stack, b.Owner, b.Index, b.Zone
	if b.Cloud.Engine == "" {
		a.Cloud.Engine = ""
	}
	return a.Fixed() == b.Fixed()
}

// asSlice is a job as it is on the alternative that a slice has, if it may run on that.
func asSlice(want *schema.Job, s schema.SliceSpec) *schema.Job {
	if a := s.Accelerator(); want.Resources.IsAlternative(a) {
		return want.As(a)
	}
	return want
}

// shapeOf is a slice's shape in words.
func shapeOf(s schema.SliceSpec) string {
	what := s.TPU
	if what == "" {
		what = fmt.Sprintf("cpu %g, memory %s, disk %s", s.CPU, s.Memory, s.Disk)
		if s.MachineType != "" {
			what = "machine type " + s.MachineType
		}
		if s.GPU.Count > 0 {
			what = s.GPU.String() + ", " + what
		}
	}
	preemptible := ""
	if s.Preemptible {
		preemptible = ", preemptible"
	}
	return fmt.Sprintf("%s, %d hosts, provider %s%s", what, s.Hosts, s.Provider, preemptible)
}

func sortedAddrs[T any](m map[schema.Address]T) []schema.Address {
	return slices.SortedFunc(maps.Keys(m), schema.Address.Compare)
}

func join[T fmt.Stringer](items []T) string {
	words := make([]string, 0, len(items))
	for _, each := range items {
		words = append(words, each.String())
	}
	return strings.Join(words, ", ")
}
