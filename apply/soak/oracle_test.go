package soak

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

// oracle knows nothing of how leases, saving and planning work. It sees every
// write that was committed and every provider call that was made, with the true
// time, and that certain events never happen.
type oracle struct {
	run *run

	mu     sync.Mutex
	state  state.Document              // as committed last
	writer *client                     // of the state
	lease  store.Lease                 // as committed last
	owner  *client                     // of the lease
	leases map[*client]own             // what each process wrote last
	read   map[*client]uint64          // epoch of the state that each process read last
	told   map[string]state.Assignment // by slice, as committed last
	forced bool                        // the lease's object was removed, and no client has taken it since
}

// own is the lease that a client itself has written.
type own struct {
	lease store.Lease
	held  bool
}

// standing is a client's right to act at one moment.
type standing struct {
	at     time.Time
	epoch  uint64 // of its own lease, 0 without one
	valid  bool   // it is not released and, by the client's own clock, not expired
	latest bool   // and no client has taken it over
}

// tolerance is by how much a timer may be late on a clock that drifts.
const tolerance = 100 * time.Millisecond

func newOracle(r *run, doc state.Document) *oracle {
	return &oracle{run: r, state: doc, leases: map[*client]own{}, read: map[*client]uint64{}, told: map[string]state.Assignment{}}
}

func (o *oracle) standing(c *client) standing {
	o.mu.Lock()
	defer o.mu.Unlock()
	mine := o.leases[c]
	return standing{
		at: time.Now(), epoch: mine.lease.Epoch,
		valid:  mine.held && c.clock().Before(mine.lease.ExpiresAt.Add(tolerance)),
		latest: mine.held && mine.lease.Holder == o.lease.Holder && !o.lease.Released,
	}
}

// written sees a committed write.
func (o *oracle) written(k *call, data []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case k.key == store.LeaseKey:
		o.leaseWritten(k, data)
	case k.key == store.StateKey:
		o.stateWritten(k, data)
	case strings.HasPrefix(k.key, store.AssignPrefix):
		o.assigned(k, data)
	}
}

func (o *oracle) leaseWritten(k *call, data []byte) {
	var l store.Lease
	if err := json.Unmarshal(data, &l); err != nil {
		o.run.fail("format", "%s wrote a lease that is none: %v", k.client, err)
		return
	}
	o.run.note("%s commits lease: epoch %d, expires %s, released %t", k.client, l.Epoch, o.run.stamp(l.ExpiresAt), l.Released)
	if k.client.role == roleBreak {
		o.run.tally.add("lease broken")
		o.lease = l
		return
	}
	old, other := o.lease, o.owner
	if l.Epoch < old.Epoch && !o.forced {
		o.run.fail("epochs rise", "%s wrote lease epoch %d over %d", k.client, l.Epoch, old.Epoch)
	}
	if l.Holder != old.Holder {
		o.run.tally.add("lease taken")
		if l.Epoch <= o.read[k.client] {
			o.run.fail("epochs rise", "%s took the lease with epoch %d, having read a state of epoch %d", k.client, l.Epoch, o.read[k.client])
		}
		if l.Epoch <= old.Epoch && !o.forced {
			o.run.fail("epochs rise", "%s took the lease with epoch %d over %d", k.client, l.Epoch, old.Epoch)
		}
		if other != nil && !old.Released {
			o.takenOver(k, old)
		}
		o.forced = false
	}
	o.lease, o.owner = l, k.client
	o.leases[k.client] = own{lease: l, held: !l.Released}
}

// takenOver sees a lease change hands that was not given back: its holder must
// have let it lapse, by the taker's clock or by having been silent for its term.
func (o *oracle) takenOver(k *call, old store.Lease) {
	o.run.tally.add("lease taken over after expiry")
	expired := !k.client.clock().Before(old.ExpiresAt)
	term := old.ExpiresAt.Sub(old.RenewedAt)
	silent := time.Since(o.run.truly(o.owner, old.RenewedAt)) >= term-term/50
	if !expired && !silent && !o.forced {
		o.run.fail("lease respected", "%s took over the live lease of %s", k.client, o.owner)
	}
}

// mayAct checks that a client acted under its own, unexpired lease.
func (o *oracle) mayAct(k *call, what string) {
	s := k.sent
	if !k.client.bound { // nothing of it ends while it is suspended between asking its lease and the call
		s = k.begun
	}
	switch {
	case !k.begun.valid || !s.valid:
		o.run.fail("acts under its lease", "%s %s, but its lease (epoch %d) has expired or was released", k.client, what, s.epoch)
	case !s.latest:
		o.run.tally.add("two holders for a moment")
		if !o.run.conditions.splits() {
			o.run.fail("one holder", "%s %s under epoch %d while %d leads", k.client, what, s.epoch, o.lease.Epoch)
		}
	}
}

func (o *oracle) stateWritten(k *call, data []byte) {
	doc, err := state.Decode(data)
	if err != nil {
		o.run.fail("format", "%s wrote a state that is none: %v", k.client, err)
		return
	}
	before := o.state
	o.state, o.writer = doc, k.client
	k.client.blind.Store(false)
	o.run.tally.add("state written")
	changes := ledgerIn(&doc.Desired)
	o.run.note("%s commits state: serial %d, epoch %d, changes %v", k.client, doc.Serial, doc.Epoch, changes)
	switch {
	case doc.Serial != before.Serial+1:
		o.run.fail("serials rise by one", "%s wrote serial %d after %d", k.client, doc.Serial, before.Serial)
	case doc.Lineage != before.Lineage:
		o.run.fail("one lineage", "%s wrote lineage %s after %s", k.client, doc.Lineage, before.Lineage)
	case doc.Epoch < before.Epoch:
		o.run.fail("epochs rise", "%s wrote state of epoch %d after %d", k.client, doc.Epoch, before.Epoch)
	case doc.Epoch != k.sent.epoch:
		o.run.fail("acts under its lease", "%s wrote state of epoch %d, its lease has %d", k.client, doc.Epoch, k.sent.epoch)
	case !k.begun.valid:
		o.run.fail("acts under its lease", "%s set out to write state after its lease (epoch %d) had ended", k.client, k.sent.epoch)
	case !k.sent.valid: // no other was written, or it would have failed
		o.run.tally.add("state write that outlasted its lease")
	}
	o.descends(k, &before, &doc)
	o.jobsGoOn(k, &before, &doc)
	o.terminating(k, &before, &doc)
}

// descends checks that a document is the one before with at most one more
// change, made whole.
func (o *oracle) descends(k *call, before, doc *state.Document) {
	was, is := ledgerIn(&before.Desired), ledgerIn(&doc.Desired)
	want := before.Desired
	switch {
	case len(is) == len(was)+1 && slices.Equal(is[:len(was)], was):
		id := is[len(was)]
		if slices.Contains(was, id) {
			o.run.fail("applied once", "%s made change %s again", k.client, id)
			return
		}
		o.run.tally.add("change committed")
		want = ignoring(o.run.changeOf(id).on(before.Desired), before)
	case !slices.Equal(is, was):
		o.run.fail("no update is lost", "%s wrote changes %v over %v", k.client, is, was)
		return
	}
	if got, want := encode(doc.Desired), encode(want); got != want {
		o.run.fail("changes are whole", "%s wrote another configuration than follows from changes %v:\ngot  %s\nwant %s", k.client, is, got, want)
	}
}

// ignoring is a configuration in which the variables of jobs that ignore changes
// of them are as recorded.
func ignoring(desired schema.Desired, doc *state.Document) schema.Desired {
	desired.Jobs = slices.Clone(desired.Jobs)
	for i := range desired.Jobs {
		j := &desired.Jobs[i]
		if recorded := doc.Jobs[j.Addr]; recorded != nil && len(j.Lifecycle.Ignore) > 0 {
			j.Environment.Env = recorded.Spec.Environment.Env
		}
	}
	return desired
}

// jobsGoOn checks that what is known of a job is never forgotten.
func (o *oracle) jobsGoOn(k *call, before, doc *state.Document) {
	for addr, was := range before.Jobs {
		is := doc.Jobs[addr]
		if is != nil && is.ID == was.ID && is.Attempt < was.Attempt {
			o.run.fail("no update is lost", "%s forgot attempts of %s: %d after %d", k.client, addr, is.Attempt, was.Attempt)
		}
	}
}

// terminating checks that no slice is given up that is wanted, alive and well.
func (o *oracle) terminating(k *call, before, doc *state.Document) {
	for name, s := range doc.Slices {
		if s.Terminating.IsZero() || before.Slices[name] != nil && !before.Slices[name].Terminating.IsZero() {
			continue
		}
		o.run.tally.add("slice given up")
		why, ok := o.wanted(doc, name)
		if ok && s.Terminating.Decided() != state.CauseNotPlaced {
			o.run.fail("what is wanted stays", "%s gives up slice %s (%s) though it is well and %s", k.client, name, s.Terminating.Text, why)
		}
	}
}

// wanted says why a slice must not be deleted, if it must not.
func (o *oracle) wanted(doc *state.Document, name string) (string, bool) {
	s := o.run.cloud.slices[name]
	if s == nil || !o.run.cloud.well(s) {
		return "", false
	}
	for i := range doc.Desired.Jobs {
		j := &doc.Desired.Jobs[i]
		if j.Addr != s.spec.Owner {
			continue
		}
		recorded := doc.Jobs[j.Addr]
		same := s.spec.TPU == j.Resources.TPU && s.spec.CPU == j.Resources.CPU && s.spec.Preemptible == j.Resources.Preemptible
		if !same || recorded == nil || !slices.Contains(recorded.Slices, name) || recorded.Status.Ended() || recorded.Replace || recorded.Stop {
			return "", false
		}
		if !reflect.DeepEqual(recorded.Spec.Resources, j.Resources) {
			return "", false // it is being replaced, which takes all its slices
		}
		if was, is := recorded.Spec.Lifecycle.Trigger, j.Lifecycle.Trigger; was != is && was != "" && is != "" {
			return "", false // so it is by what triggers it
		}
		if len(recorded.Slices) == 0 {
			return "", false // it could not be placed and waits; another client made a slice of its name late
		}
		return j.Addr.String() + " wants it", true
	}
	return "", false
}

// assigned sees an assignment committed.
func (o *oracle) assigned(k *call, data []byte) {
	var a state.Assignment
	if err := json.Unmarshal(data, &a); err != nil {
		o.run.fail("format", "%s wrote an assignment that is none: %v", k.client, err)
		return
	}
	o.run.note("%s commits assignment of %s: epoch %d, generation %d, run %t", k.client, a.Slice, a.Epoch, a.Generation, a.Run != nil)
	o.run.tally.add("assignment written")
	if a.Epoch != k.sent.epoch {
		o.run.fail("acts under its lease", "%s wrote an assignment of epoch %d, its lease has %d", k.client, a.Epoch, k.sent.epoch)
	}
	o.mayAct(k, "wrote an assignment of "+a.Slice)
	if was, ok := o.told[a.Slice]; ok && (a.Epoch < was.Epoch || a.Generation <= was.Generation) {
		o.run.fail("assignments rise", "%s wrote epoch %d generation %d over epoch %d generation %d of %s",
			k.client, a.Epoch, a.Generation, was.Epoch, was.Generation, a.Slice)
	}
	o.told[a.Slice] = a
}

// calling sees a provider call that is about to happen.
func (o *oracle) calling(k *call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.run.note("%s calls %s %s", k.client, k.verb, k.key)
	o.mayAct(k, "called "+string(k.verb)+" "+k.key)
	if k.verb != verbDelete || !k.sent.latest {
		return
	}
	o.destroying(k)
	why, ok := o.wanted(&o.state, k.key)
	recorded := o.state.Slices[k.key]
	if ok && (recorded == nil || recorded.Terminating.IsZero()) {
		o.run.fail("what is wanted stays", "%s deletes slice %s though it is well and %s", k.client, k.key, why)
	}
}

// destroying sees to it that nothing protected is lost: no slice of a job that has
// run on it is deleted while it is well.
func (o *oracle) destroying(k *call) {
	s := o.run.cloud.slices[k.key]
	if s == nil || !o.run.cloud.well(s) {
		return
	}
	j := o.state.Jobs[s.spec.Owner]
	if j != nil && j.Attempt > 0 && j.Spec.Lifecycle.PreventDestroy && !j.Status.Ended() && slices.Contains(j.Slices, k.key) {
		o.run.fail("what is protected stays", "%s deletes slice %s of %s, which is well and protected: %+v", k.client, k.key, s.spec.Owner, *o.state.Slices[k.key])
	}
}

// starting sees a task about to start on a host.
func (o *oracle) starting(s *slice, n int, run *state.Run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.run.cloud
	key := fmt.Sprintf("%s attempt %d on %s", run.JobID, run.Attempt, s.where(n))
	o.run.note("task starts: %s", key)
	c.starts[key]++
	if c.starts[key] > 1 {
		o.run.fail("a task starts once", "started twice: %s", key)
	}
	if s.hosts[n].live {
		o.run.fail("one gang on a host", "%s starts where %s attempt %d still runs", key, s.hosts[n].task.Job, s.hosts[n].task.Attempt)
	}
	for _, name := range c.names() {
		for m, h := range c.slices[name].hosts {
			if h.live && h.task.Job == run.Job && (h.spec.JobID != run.JobID || h.task.Attempt != run.Attempt) {
				o.run.fail("one gang of a job", "%s starts while attempt %d runs on %s", key, h.task.Attempt, c.slices[name].where(m))
			}
		}
	}
}

func encode(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
