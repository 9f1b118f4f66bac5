package chaos

import (
	"context"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// fault is a closed set of what the nemesis does.
type fault string

const (
	faultKill     fault = "kill"     // and start again
	faultFreeze   fault = "freeze"   // SIGSTOP, for longer than the keepalive, and SIGCONT
	faultReplace  fault = "replace"  // SIGSTOP, another attempt elsewhere, and then SIGCONT of the old one
	faultMove     fault = "move"     // an actor to another server
	faultDrain    fault = "drain"    // SIGTERM, and start again
	faultCut      fault = "cut"      // connections
	faultMute     fault = "mute"     // a server's answers do not arrive, and its connections break
	faultStall    fault = "stall"    // connections, which then break or go on
	faultSlow     fault = "slow"     // connections
	faultRegistry fault = "registry" // restart
)

func faults() []fault {
	return []fault{faultKill, faultFreeze, faultReplace, faultMove, faultDrain, faultCut, faultMute, faultStall, faultSlow, faultRegistry}
}

// mute is how long a server is not heard at most before it is lost.
const mute = 300 * time.Millisecond

// often has the fault that comes next, those that are soon over more often.
func often() []fault {
	return append(faults(), faultCut, faultCut, faultMute, faultMute, faultMute, faultMove, faultMove, faultKill, faultKill, faultStall)
}

// nemesis does what a seed says, one event after another, though what takes long
// goes on meanwhile.
type nemesis struct {
	world   *world
	random  *rand.Rand
	running sync.WaitGroup
	done    map[fault]int
}

// rage goes on until the context ends, and waits for what has begun.
func (n *nemesis) rage(ctx context.Context) {
	n.done = map[fault]int{}
	first := faults()
	n.random.Shuffle(len(first), func(i, j int) { first[i], first[j] = first[j], first[i] })
	for i := 0; ; i++ {
		f := often()[n.random.IntN(len(often()))]
		if i < len(first) {
			f = first[i]
		}
		// All of an event is drawn at once, so that what follows does not depend on how it ends.
		event := &event{nemesis: n, random: rand.New(rand.NewPCG(n.random.Uint64(), 1)), slot: n.world.slots[n.random.IntN(len(n.world.slots))]}
		for !event.begin(f) {
			if !idle(ctx, 20*time.Millisecond) {
				break
			}
			if i >= len(first) { // else it is to happen
				break
			}
		}
		if !idle(ctx, time.Duration(n.random.IntN(700))*time.Millisecond) {
			break
		}
	}
	n.running.Wait()
}

// idle waits, and reports whether the context goes on.
func idle(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// event is one fault that happens to a slot.
type event struct {
	nemesis *nemesis
	random  *rand.Rand
	slot    *slot
}

func (e *event) upTo(d time.Duration) time.Duration { return time.Duration(e.random.Int64N(int64(d))) }

func (e *event) coin() bool { return e.random.IntN(2) == 0 }

// begin has a fault happen, unless the slot has one already.
func (e *event) begin(f fault) bool {
	w := e.nemesis.world
	lock, act := &e.slot.busy, func() {}
	switch f {
	case faultKill:
		act = e.kill
	case faultFreeze:
		act = e.freeze
	case faultReplace:
		act = e.replace
	case faultDrain:
		act = e.drain
	case faultMove:
		return e.move()
	case faultRegistry:
		lock, act = &w.registryBusy, e.registry
	case faultCut, faultMute, faultStall, faultSlow:
		e.count(f)
		e.nemesis.running.Go(func() { e.network(f) })
		return true
	}
	if !lock.TryLock() {
		return false
	}
	e.count(f)
	w.note("%s %s", f, e.slot.name)
	e.nemesis.running.Go(func() {
		defer lock.Unlock()
		act()
	})
	return true
}

func (e *event) count(f fault) { e.nemesis.done[f]++ }

// kill has the cluster notice after a while, or with the next attempt only.
func (e *event) kill() {
	w, v, inherit := e.nemesis.world, e.slot.server(), e.coin()
	if e.coin() { // calls that it ran are not answered
		v.front.stall(true)
		<-time.After(e.upTo(mute))
	}
	f := e.slot.kill(e.coin())
	f.resume()
	if e.coin() {
		<-time.After(e.upTo(time.Second))
	}
	w.registry.End(v.attempt)
	e.restart(f, inherit)
}

// restart starts a new attempt, at the old address or another.
func (e *event) restart(f *front, inherit bool) {
	<-time.After(e.upTo(500 * time.Millisecond))
	if inherit {
		e.slot.revive(f)
		return
	}
	e.slot.revive(nil)
	f.close()
}

func (e *event) drain() {
	inherit, v := e.coin(), e.slot.server()
	f := e.slot.drain()
	e.nemesis.world.registry.End(v.attempt)
	e.restart(f, inherit)
}

func (e *event) freeze() {
	v := e.slot.server()
	v.signal(syscall.SIGSTOP)
	<-time.After(e.upTo(2 * (keepalive + keepPatience)))
	v.signal(syscall.SIGCONT)
	e.nemesis.world.note("thaw %s", v.attempt)
}

// replace starts another attempt while the old one stands still, which then goes on for a while.
func (e *event) replace() {
	w, old := e.nemesis.world, e.slot.server()
	old.signal(syscall.SIGSTOP)
	<-time.After(e.upTo(keepalive + keepPatience))
	first := e.coin()
	if first {
		w.registry.End(old.attempt)
	}
	e.slot.revive(nil)
	if !first {
		<-time.After(e.upTo(2 * time.Second))
		w.registry.End(old.attempt)
	}
	<-time.After(e.upTo(keepalive + keepPatience))
	w.note("thaw %s, which was replaced", old.attempt)
	old.signal(syscall.SIGCONT)
	<-time.After(e.upTo(3 * time.Second))
	old.kill()
	old.front.close()
}

// move has an actor change servers; for a moment there are two of it, or none.
func (e *event) move() bool {
	w := e.nemesis.world
	to := w.slots[e.random.IntN(len(w.slots))]
	if to == e.slot || !e.slot.busy.TryLock() {
		return false
	}
	if !to.busy.TryLock() {
		e.slot.busy.Unlock()
		return false
	}
	names := e.slot.actors()
	if len(names) == 0 {
		to.busy.Unlock()
		e.slot.busy.Unlock()
		return false
	}
	name, dropFirst := names[e.random.IntN(len(names))], e.coin()
	e.count(faultMove)
	w.note("move %s from %s to %s", name, e.slot.name, to.name)
	w.mu.Lock()
	w.homes[name] = to
	w.mu.Unlock()
	e.nemesis.running.Go(func() {
		defer e.slot.busy.Unlock()
		defer to.busy.Unlock()
		if dropFirst {
			e.slot.drop(name)
		}
		to.host(name)
		if !dropFirst {
			e.slot.drop(name)
		}
	})
	return true
}

// network disturbs the connections of what is in the slot now.
func (e *event) network(f fault) {
	w := e.nemesis.world
	v := e.slot.server()
	switch f {
	case faultCut:
		after := e.random.IntN(3) * e.random.IntN(4000)
		w.note("cut %s after %d bytes", v.attempt, after)
		v.front.cut(after)
	case faultMute:
		w.note("mute %s", v.attempt)
		v.front.stall(true)
		<-time.After(e.upTo(mute))
		v.front.cut(0)
		v.front.resume()
	case faultStall:
		w.note("stall %s", v.attempt)
		v.front.stall(false)
		<-time.After(e.upTo(2 * (keepalive + keepPatience)))
		if e.coin() {
			v.front.cut(0)
		}
		v.front.resume()
		w.note("flow %s", v.attempt)
	case faultSlow:
		w.note("slow %s", v.attempt)
		v.front.slow(e.upTo(50 * time.Millisecond))
		<-time.After(e.upTo(3 * time.Second))
		v.front.slow(0)
	case faultKill, faultFreeze, faultReplace, faultMove, faultDrain, faultRegistry: // these are not the network's
	}
}

// registry restarts it.
func (e *event) registry() {
	w := e.nemesis.world
	w.registry.Stop()
	<-time.After(e.upTo(1500 * time.Millisecond))
	if err := w.registry.Restart(); err != nil {
		w.problem("the registry does not come back: %v", err)
	}
	w.note("registry up")
}
