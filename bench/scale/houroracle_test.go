package scale

import (
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/plan"
)

// What must hold at each moment, beside what the machines see themselves.

// observed sees what a controller decides on: of no host an older report than before in its term,
// however late that comes.
func (w *world) observed(controller string, newest map[string]uint64, obs *plan.Observed) {
	if obs == nil {
		return
	}
	for _, hosts := range obs.Hosts {
		for i := range hosts {
			h := &hosts[i]
			of, _, _ := strings.Cut(h.Boot, ".") // a slice of the same name may be another one
			at := of + "/" + h.API
			if h.Seq < newest[at] {
				w.mu.Lock()
				w.fail("%s decides on report %d of %s after it had report %d", controller, h.Seq, h.API, newest[at])
				w.mu.Unlock()
			}
			newest[at] = h.Seq
		}
	}
}

func isController(machine string) bool { return strings.HasPrefix(machine, "controller-") }

// inspect sees who speaks for whom, once all that has just happened has had its effect. A relay
// whose stream to the controller has ended serves no other host by it, and a controller counts no host as
// live of a slice from which no stream comes.
func (w *world) inspect() {
	w.wire.mu.Lock()
	speak := map[string]map[string]bool{} // slices by controller
	for o := range w.wire.streams {
		if isController(o.to) {
			if speak[o.to] == nil {
				speak[o.to] = map[string]bool{}
			}
			slice, _, _ := strings.Cut(o.from, "/")
			_, number, _ := strings.Cut(o.from, "#")
			speak[o.to][slice+"#"+number] = true
		}
		goesOn := func(up *begun) bool { return w.wire.streams[up] }
		if len(o.through) > 0 && !slices.ContainsFunc(o.through, goesOn) {
			w.mu.Lock()
			w.fail("%s speaks through %s, whose stream has ended", o.from, o.to)
			w.mu.Unlock()
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
