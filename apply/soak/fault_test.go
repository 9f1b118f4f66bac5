package soak

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fray-ml/fray/state/store"
)

// judge decides what becomes of a call, and whether that happens now.
func (r *run) judge(k *call, d dice) (verdict, bool) {
	w := &r.conditions
	writes := k.verb == verbPut || k.verb == verbCreate || k.verb == verbDelete
	switch {
	case k.ended && !k.mayOverrun(d):
		return verdict{err: context.Canceled}, true
	case r.calm:
		return verdict{}, true
	case k.reply:
		return verdict{}, !k.hold(d, 500)
	case r.isCut(k.client):
		r.tally.add("call refused by a partition")
		return verdict{err: errRefused}, true
	case k.hold(d, w.slowSend):
		r.tally.add("call slow to be sent")
		return verdict{}, false
	case writes && !k.ended && d.chance(w.stopBefore):
		r.suspend(k.client, d.between(5*time.Second, time.Minute))
		r.tally.add("suspension before a write")
		return verdict{}, false
	}
	return r.networkVerdict(k, d), true
}

// networkVerdict is what the network makes of a call.
func (r *run) networkVerdict(k *call, d dice) verdict {
	w := &r.conditions
	switch {
	case d.chance(w.failBefore):
		r.tally.add("call refused")
		return verdict{err: errRefused}
	case d.chance(w.crashAfter):
		r.tally.add("crash right after a call")
		return verdict{crash: true}
	case k.verb != verbInventory && d.chance(w.lostReply):
		r.tally.add("reply lost")
		return verdict{reply: errLost, slow: d.chance(300)}
	case k.verb == verbPut && d.chance(w.conflictReply):
		r.tally.add("reply lost, then 412")
		return verdict{reply: store.ErrConflict}
	case (k.verb == verbPut || k.verb == verbCreate) && d.chance(w.lateLanding):
		r.tally.add("call timed out and lands later")
		return verdict{late: d.between(10*time.Millisecond, 25*time.Second)}
	case d.chance(w.slowReply):
		r.tally.add("reply slow")
		return verdict{slow: true}
	}
	return verdict{}
}

// hold keeps a call back once, so many times in a thousand, while others run.
func (k *call) hold(d dice, permille int) bool {
	if !k.held.IsZero() || !d.chance(permille) {
		return false
	}
	k.held = time.Now().Add(d.between(10*time.Millisecond, 3*time.Second))
	if d.chance(100) {
		k.held = time.Now().Add(d.between(3*time.Second, 25*time.Second))
	}
	return true
}

// mayOverrun lets some calls of a process that was suspended happen although
// their context has ended: it goes on before it notices. Only what is fenced by
// itself may; the others are asked for their context by whatever sends them.
func (k *call) mayOverrun(d dice) bool {
	fenced := k.verb == verbGet || k.verb == verbList || k.key == store.StateKey || k.key == store.LeaseKey
	return fenced && d.chance(500)
}

func (v verdict) String() string {
	var words []string
	if v.err != nil {
		words = append(words, "fails: "+v.err.Error())
	}
	if v.late > 0 {
		words = append(words, fmt.Sprintf("times out, lands after %v", v.late))
	}
	if v.reply != nil {
		words = append(words, "reply lost: "+v.reply.Error())
	}
	if v.slow {
		words = append(words, "reply waits")
	}
	if v.crash {
		words = append(words, "then it crashes")
	}
	if words == nil {
		return "ok"
	}
	return strings.Join(words, ", ")
}

// fault is something that happens to a machine, the lease or the cloud.
type fault struct {
	name   string
	splits bool // two may rightly hold the lease for a moment after it
	happen func(*run, dice)
}

func faults() []fault {
	cloud := func(kind string) fault {
		return fault{name: kind, happen: func(r *run, d dice) { r.cloud.lose(d, kind) }}
	}
	return []fault{
		{name: "crash", happen: crash},
		{name: "crash of the holder", happen: crashHolder},
		{name: "suspension", happen: suspend},
		{name: "suspension of the holder", happen: suspendHolder},
		{name: "partition", happen: partition},
		{name: "outage", happen: outage},
		{name: "lease object removed", splits: true, happen: removeLease},
		{name: "lease broken", splits: true, happen: breakLease},
		cloud("preempted"), cloud("vanished"), cloud("agent killed"), cloud("host killed"),
		cloud("notice"), cloud("muted"), cloud("task failed"),
	}
}

// suffer lets a fault happen, and brings back who has crashed.
func (r *run) suffer(d dice) {
	if d.chance(400) {
		r.revive()
		return
	}
	if len(r.conditions.faults) == 0 {
		return
	}
	m := r.conditions.faults[d.n(len(r.conditions.faults))]
	r.note("fault: %s", m.name)
	m.happen(r, d)
}

// revive starts a process again on every machine whose process has crashed.
func (r *run) revive() {
	for i, c := range r.clients {
		r.mu.Lock()
		dead := c.dead
		r.mu.Unlock()
		if dead && c.role != roleBreak {
			r.clients[i] = r.start(c.id, c.role, c)
			r.note("%s starts", r.clients[i])
		}
	}
}

func crash(r *run, d dice) { r.crash(r.clients[d.n(len(r.clients))]) }

func (r *run) crash(c *client) {
	r.mu.Lock()
	dead := c.dead
	r.mu.Unlock()
	if !dead {
		r.note("%s crashes", c)
		r.tally.add("crash")
		c.die()
	}
}

// holder is the client that wrote the lease last.
func (r *run) holder() *client {
	r.oracle.mu.Lock()
	defer r.oracle.mu.Unlock()
	return r.oracle.owner
}

func crashHolder(r *run, _ dice) {
	if c := r.holder(); c != nil {
		r.crash(c)
	}
}

func suspend(r *run, d dice) {
	r.suspend(r.clients[d.n(len(r.clients))], d.between(time.Second, 40*time.Second))
}

func suspendHolder(r *run, d dice) {
	if c := r.holder(); c != nil {
		r.suspend(c, d.between(time.Second, time.Minute))
	}
}

// partition cuts one machine off from store and provider.
func partition(r *run, d dice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clients[d.n(len(r.clients))].cut = time.Now().Add(d.between(time.Second, 40*time.Second))
	r.tally.add("partition")
}

func (r *run) isCut(c *client) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.cut.After(time.Now())
}

// suspend is SIGSTOP and, after some time, SIGCONT.
func (r *run) suspend(c *client, takes time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.dead || c.suspended {
		return
	}
	c.suspended, c.resumes = true, time.Now().Add(takes)
	r.tally.add("suspension")
}

func outage(r *run, d dice) {
	r.cloud.outage = !r.cloud.outage && d.chance(500)
	r.tally.add("outage begun or ended")
}

// removeLease is a user who thinks that this helps.
func removeLease(r *run, _ dice) {
	r.oracle.force()
	_ = r.objects.Delete(context.Background(), store.LeaseKey)
	r.tally.add("lease object removed")
}

// breakLease is `fray state lease --break --force`.
func breakLease(r *run, _ dice) {
	r.clients = append(r.clients, r.start(len(r.clients), roleBreak, nil))
}
