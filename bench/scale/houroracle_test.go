package scale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/apply"
	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state/store"
)

// What must hold at each moment, beside what the machines see themselves.

// wholeLooks is of how many observations one is looked at whole; of the others what they say that has
// changed.
const wholeLooks = 16

// observed sees what a controller decides on: of no host an older report than before in its term,
// however late that comes.
func (w *world) observed(c *controlling, newest map[string]uint64, obs *plan.Observed) {
	follows := c.saw != nil && obs != nil && obs.Look == c.saw.Look+1 && obs.Look%wholeLooks != 0
	c.saw = obs
	if obs == nil {
		return
	}
	changed := maps.Keys(obs.Hosts)
	if follows {
		changed = maps.Keys(obs.Changed)
	}
	for slice := range changed {
		hosts := obs.Hosts[slice]
		for i := range hosts {
			h := &hosts[i]
			before := newest[h.API] // a slice of the same name that is another one has other addresses
			if h.Seq == before {
				continue
			}
			if h.Seq < before {
				w.mu.Lock()
				w.fail("%s decides on report %d of %s after it had report %d", c.name, h.Seq, h.API, before)
				w.mu.Unlock()
			}
			newest[h.API] = h.Seq
		}
	}
}

// assigned is what was assigned to a slice.
type assigned struct {
	object store.Generation
	at     time.Time
}

// assign notes that an object was written, if it is an assignment; store.Absent: it is removed.
func (w *world) assign(key string, object store.Generation) {
	slice, is := strings.CutPrefix(key, store.AssignPrefix)
	if !is {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.assigned[strings.TrimSuffix(slice, ".json")] = assigned{object, time.Now()}
}

// informed is until when a machine that reaches others knows what is assigned to it.
const informed = time.Minute

// inform sees that machines know what is assigned to them.
func (w *world) inform() {
	w.cloud.mu.Lock()
	defer w.cloud.mu.Unlock()
	now := time.Now()
	for name, s := range w.cloud.slices {
		w.mu.Lock()
		of := w.assigned[name]
		w.mu.Unlock()
		s.mu.Lock()
		for _, m := range s.hosts {
			switch {
			case !w.reaches(m.address()):
				m.since = now
			case m.stop == nil || m.object >= of.object || now.Sub(of.at) < informed || now.Sub(m.since) < informed || s.phase != schema.SliceReady:
			default:
				m.since = now // it is told once
				w.mu.Lock()
				w.fail("%s has assignment %d for %s, not %d, which was written at %s", m.address(), m.object, informed, of.object, of.at.Format(time.TimeOnly))
				w.mu.Unlock()
			}
		}
		s.mu.Unlock()
	}
}

func isController(machine string) bool { return strings.HasPrefix(machine, "controller-") }

// speakerOf is the slice of a machine, by its address.
func speakerOf(address string) string {
	name, _, _ := strings.Cut(address, "/")
	_, number, _ := strings.Cut(address, "#")
	return name + "#" + number
}

// inspect sees who speaks for whom, once all that has just happened has had its effect. A relay
// whose stream to the controller has ended serves no other host by it, and a controller counts no host as
// live of a slice from which no stream comes.
func (w *world) inspect() {
	w.wire.mu.Lock()
	speak := map[string]map[string]bool{} // slices by controller
	for to, streams := range w.wire.to {
		if isController(to) {
			speak[to] = make(map[string]bool, len(streams))
		}
		for o := range streams {
			if isController(to) {
				speak[to][o.speaker] = true
			}
			goesOn := func(up *begun) bool { return !up.over }
			if len(o.through) > 0 && !slices.ContainsFunc(o.through, goesOn) {
				w.mu.Lock()
				w.fail("%s speaks through %s, whose stream has ended", o.from, o.to)
				w.mu.Unlock()
			}
		}
	}
	w.wire.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, number := range slices.Sorted(maps.Keys(w.controllers)) {
		c := w.controllers[number]
		if !c.leads {
			continue
		}
		if live, most := c.hub.Live(), len(speak[c.name])*Hosts; live > most {
			w.fail("%s counts %d hosts as live, and streams come from slices of %d hosts", c.name, live, most)
		}
	}
}

const mayHaveTwo = 10 // one of so many slices may have a second stream

// discrepancy is in what the world is not as desired, "" if it is.
func (w *world) discrepancy() string {
	doc, _, err := apply.LoadState(w.t.Context(), w.objects)
	if err != nil {
		return err.Error()
	}
	all := w.cloud.ready()
	if len(all) != w.jobs || len(doc.Slices) != w.jobs || len(doc.Jobs) != w.jobs {
		return fmt.Sprintf("%d slices are ready, and the state has %d and %d jobs, want %d", len(all), len(doc.Slices), len(doc.Jobs), w.jobs)
	}
	for _, s := range all {
		of := doc.Jobs[s.spec.Owner]
		if of == nil || of.Status != schema.JobRunning || !slices.Equal(of.Slices, []string{s.spec.Name}) {
			return fmt.Sprintf("%s belongs to %s, of which the state has %+v", s.spec.Name, s.spec.Owner, of)
		}
		w.mu.Lock()
		running, failures := maps.Clone(w.running[of.Spec.Addr]), w.failures[of.Spec.Addr]
		w.mu.Unlock()
		for _, m := range s.hosts {
			if running[m] != of.Attempt {
				return fmt.Sprintf("%s runs attempt %d of %s, want %d: %s", m.name(), running[m], of.Spec.Addr, of.Attempt, w.known(m))
			}
		}
		if len(running) != len(s.hosts) || of.Failures > failures {
			return fmt.Sprintf("%s runs on %d hosts and has failed %d times, want %d hosts and at most %d", of.Spec.Addr, len(running), of.Failures, len(s.hosts), failures)
		}
	}
	leader := w.anyController()
	if leader == nil || !leader.leads {
		return "no controller leads"
	}
	// A relay that was away for long is not looked for by the members of its slice for as long.
	if live, streams := leader.hub.Live(), leader.hub.Streams(); live != w.jobs*Hosts || streams < w.jobs || streams > w.jobs+w.jobs/mayHaveTwo+1 {
		return fmt.Sprintf("the controller that leads has %d hosts by %d streams, want %d and hardly more than %d", live, streams, w.jobs*Hosts, w.jobs)
	}
	return ""
}

// known is what is known of a machine: by itself, in the bucket, and to the controller that leads.
func (w *world) known(m *machine) string {
	m.of.mu.Lock()
	self := ""
	for _, h := range m.of.hosts {
		self += fmt.Sprintf("\n%s: agent %t, boot %d, report %d, assignment %d: generation %d.%d, done %d, process %t", h.address(),
			h.stop != nil, h.boots, h.seq, h.object, h.epoch, h.generation, h.done, h.runs)
		if h.task != nil {
			self += fmt.Sprintf(", task %+v", *h.task)
		}
	}
	m.of.mu.Unlock()
	text := func(key string) string {
		o, err := w.objects.Get(w.t.Context(), key)
		return fmt.Sprintf("%d %s %v", o.Generation, o.Data, err)
	}
	seen := ""
	if leader := w.anyController(); leader != nil && leader.saw != nil {
		for _, h := range leader.saw.Hosts[m.of.spec.Name] {
			seen += fmt.Sprintf("\n%d: report %d of %s, which lives: %t, generation %d.%d, task %+v", h.Host, h.Seq, h.Boot, h.Heartbeat == nil, h.Epoch, h.Generation, h.Task)
		}
	}
	return fmt.Sprintf("%s\nassignment %s\nreport %s\nobserved %s", self, text(store.AssignKey(m.of.spec.Name)), text(store.HostKey(m.of.spec.Name, m.number)), seen)
}
