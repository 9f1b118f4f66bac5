package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing/synctest"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// patience bounds how long the world may take to be as desired once nothing
// goes wrong any more: hosts that never came up are given up after an hour, and
// backoffs reach five minutes.
const (
	patience     = 3 * time.Hour
	patienceStep = 200_000
)

// settle ends all faults and then all changes, and sees the world become as desired.
func (r *run) settle() {
	r.ceaseFire()
	end, budget := time.Now().Add(patience), r.steps+patienceStep
	for i := uint64(0); r.violated() == nil; i++ {
		r.step(roll(r.seed, 1000+i))
		if i%50 != 0 {
			continue
		}
		wrong := r.discrepancy()
		if wrong == "" {
			break
		}
		if time.Now().After(end) || r.steps > budget {
			r.fail("converges", "after %v without faults: %s\n%s", patience, wrong, r.cloud)
		}
	}
	if r.violated() != nil {
		return
	}
	r.tally.add("converged")
	r.leave()
}

// ceaseFire ends all faults; clients that crashed or sleep come back, and
// one of them keeps the stack.
func (r *run) ceaseFire() {
	r.mu.Lock()
	r.calm, r.ebb, r.calmed = true, true, time.Now()
	for _, c := range r.clients {
		c.suspended = false
	}
	r.mu.Unlock()
	r.cloud.outage = false
	r.note("calm")
	r.revive()
	if r.conditions.watches == 0 {
		r.clients = append(r.clients, r.start(len(r.clients), roleWatch, nil))
	}
}

// discrepancy says in what the world is not as desired, "" if it is.
func (r *run) discrepancy() string {
	r.oracle.mu.Lock()
	defer r.oracle.mu.Unlock()
	doc, c := &r.oracle.state, r.cloud
	want := expected(doc)
	for _, name := range c.names() {
		if want[name] == nil {
			return fmt.Sprintf("slice %s is there and belongs to no job", name)
		}
	}
	for name, j := range want {
		s := c.slices[name]
		if s == nil {
			return fmt.Sprintf("slice %s of %s is not there", name, j.Addr)
		}
		for n, h := range s.hosts {
			if !h.live || h.task.Job != j.Addr {
				return fmt.Sprintf("%s does not run on %s", j.Addr, s.where(n))
			}
			if !h.endsAt.IsZero() {
				return fmt.Sprintf("%s will end", s.where(n))
			}
			if got, want := encode(h.spec.Spec.Environment), encode(j.Environment); got != want {
				return fmt.Sprintf("%s on %s runs with %s, want %s", j.Addr, s.where(n), got, want)
			}
		}
		if doc.Jobs[j.Addr] == nil || doc.Jobs[j.Addr].Status != schema.JobRunning {
			return fmt.Sprintf("%s is not recorded as running", j.Addr)
		}
	}
	return r.leftovers(want)
}

// leftovers finds mailboxes of slices that are gone.
func (r *run) leftovers(want map[string]*schema.Job) string {
	assigned, err := r.objects.List(context.Background(), store.AssignPrefix)
	if err != nil {
		return err.Error()
	}
	for _, a := range assigned {
		if !slices.ContainsFunc(r.cloud.names(), func(name string) bool { return store.AssignKey(name) == a.Key }) {
			return fmt.Sprintf("%s is left of a slice that is gone", a.Key)
		}
	}
	if len(terminatingIn(r)) > 0 {
		return fmt.Sprintf("slices %v are still to be deleted", terminatingIn(r))
	}
	return ""
}

func terminatingIn(r *run) []string {
	var names []string
	for name, s := range r.oracle.state.Slices {
		if !s.Terminating.IsZero() {
			names = append(names, name)
		}
	}
	return names
}

// leave ends all clients as Ctrl-C does, after which the lease is free. No call
// waits while time passes: a leader whose writes get no answer until its lease
// expires rightly lets it lapse.
func (r *run) leave() {
	r.left = time.Now()
	for _, c := range r.clients {
		c.cancel()
	}
	for i := uint64(0); i < 20_000 && r.violated() == nil; i++ {
		r.step(roll(r.seed, 5_000_000+i))
		if len(r.pending) == 0 && r.free() {
			r.tally.add("lease free at the end")
			return
		}
	}
	r.fail("the lease is free", "everybody has left and %+v is not free", r.oracle.lease)
}

func (r *run) free() bool {
	synctest.Wait()
	object, err := r.objects.Get(context.Background(), store.LeaseKey)
	if err != nil {
		return true
	}
	var l store.Lease
	if json.Unmarshal(object.Data, &l) != nil {
		return false
	}
	// Only what a client took that then crashed, or never learned that it had it,
	// may be left to lapse, and what it had lost before it was to end.
	early := r.truly(r.oracle.owner, l.RenewedAt).Before(r.calmed)
	lost := r.truly(r.oracle.owner, l.ExpiresAt).Before(r.left)
	return l.Released || (early || lost) && !l.Live(time.Now())
}

// expected is what must be there in the end: the slices of every job that has not ended.
func expected(doc *state.Document) map[string]*schema.Job {
	want := map[string]*schema.Job{}
	for i := range doc.Desired.Jobs {
		j := &doc.Desired.Jobs[i]
		if recorded := doc.Jobs[j.Addr]; recorded != nil && recorded.Status == schema.JobSucceeded {
			continue
		}
		recorded := doc.Jobs[j.Addr]
		for n := range j.Resources.Slices {
			if recorded != nil && len(recorded.Slices) == j.Resources.Slices { // which may be others than the first ones
				want[recorded.Slices[n]] = j
			} else {
				want[plan.SliceName(doc.Stack(), j.Addr, n)] = j
			}
		}
	}
	return want
}
