package rehearse

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fray-ml/fray/accelerators"
	"github.com/fray-ml/fray/providers/gcp/emulator/cloud"
	"github.com/fray-ml/fray/schema"
)

// JobEvent is something that happens to a slice of a job at its time: a scenario names the
// job, since it cannot know the slice's name.
type JobEvent struct {
	At     time.Duration // since the start
	Action cloud.Action  // ActionPreempt or ActionKillHost
	Job    schema.Address
	Index  int    // of the slice
	Zone   string // where it happened; "": wherever the slice is
	Type   string // generation of TPU, type of GPUs, or machine family: of another slice in its place; "": of none
	Silent bool   // without notice
}

// jobEvents takes the events out of a scenario whose target is a job's address.
func jobEvents(s *cloud.Scenario) []JobEvent {
	var found []JobEvent
	s.Events = slices.DeleteFunc(s.Events, func(e cloud.Scripted) bool {
		if e.Action != cloud.ActionPreempt && e.Action != cloud.ActionKillHost || !strings.Contains(e.Target, ".") {
			return false
		}
		address, index := e.Target, 0
		if at := strings.LastIndexByte(e.Target, '/'); at >= 0 {
			if n, ok := number(e.Target[at+1:]); ok {
				address, index = e.Target[:at], n
			}
		}
		addr, err := schema.ParseAddress(address)
		if err == nil {
			found = append(found, JobEvent{At: e.At, Action: e.Action, Job: addr, Index: index, Zone: e.Zone, Type: e.Type, Silent: e.Silent})
		}
		return err == nil
	})
	return found
}

func number(text string) (n int, ok bool) {
	for _, digit := range text {
		if digit < '0' || digit > '9' || n > 1<<20 {
			return 0, false
		}
		n = 10*n + int(digit-'0')
	}
	return n, text != ""
}

// schedule sets the timers of what happens to slices of jobs.
func (r *rehearsal) schedule() {
	for _, e := range r.cfg.JobEvents {
		r.clock.AfterFunc(r.start.Add(e.At), func() {
			if !r.settling {
				r.happen(e)
			}
		})
	}
}

// happen carries an event out.
func (r *rehearsal) happen(e JobEvent) {
	m, found := r.fleet.target(e)
	if !found {
		r.missed++
		return
	}
	key := cloud.Key{Project: m.Project, Zone: m.Zone, Kind: m.Kind, Name: m.Name}
	var err error
	if e.Action == cloud.ActionKillHost {
		err = r.cloud.KillHost(key, m.Worker)
	} else {
		err = r.cloud.Preempt(key, !e.Silent)
	}
	if err != nil {
		r.missed++
	}
}

// target is the first machine of the slice to which an event happens: the job's with that
// index, if it is in the zone, or else another one of the job there, or else another one of
// that type there that may be preempted.
func (f *fleet) target(e JobEvent) (cloud.Machine, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	rank := func(h *host) int {
		switch {
		case !h.on || h.spec.On != "" || e.Zone != "" && h.machine.Zone != e.Zone:
			return 0
		case h.spec.Owner == e.Job && h.spec.Index == e.Index:
			return 3
		case h.spec.Owner == e.Job:
			return 2
		case e.Type != "" && h.spec.Preemptible && typeOf(h) == e.Type:
			return 1
		}
		return 0
	}
	best, most := cloud.Machine{}, 0
	for _, name := range slices.Sorted(maps.Keys(f.slices)) {
		if hosts := f.slices[name]; len(hosts) > 0 {
			if n := rank(hosts[0]); n > most {
				best, most = hosts[0].machine, n
			}
		}
	}
	return best, most > 0
}

// typeOf is the generation of a machine's TPU, or else its type of GPUs or machine family.
func typeOf(h *host) string {
	if h.spec.GPU.Count > 0 {
		return h.spec.GPU.Type
	}
	if shape, err := accelerators.Parse(h.spec.TPU); err == nil {
		return shape.Generation
	}
	family, _, _ := strings.Cut(h.machine.MachineType, "-")
	return family
}
