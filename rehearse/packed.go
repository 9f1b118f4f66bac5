package rehearse

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Packed tasks: slices of one host that have a part of a machine, whose agent serves them
// beside the machine's own slice. Each has an assignment and reports of its own, and is a
// host of its own here.

// servePacked has a machine serve the packed tasks that it is assigned, and end the others.
func (f *fleet) servePacked(h *host) {
	wanted := map[string]state.PackedTask{}
	if h.want != nil {
		for _, task := range h.want.PackedTasks {
			if task.Host == h.machine.Worker {
				wanted[task.Slice] = task
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.packed)) {
		if _, stays := wanted[name]; !stays && !h.packed[name].leaving {
			f.endPacked(h, h.packed[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if h.packed[name] == nil {
			f.startPacked(h, wanted[name])
		}
	}
}

// startPacked begins to serve a packed task: its agent reports, and obeys its assignment.
func (f *fleet) startPacked(h *host, task state.PackedTask) {
	if h.packed == nil {
		h.packed = map[string]*host{}
	}
	machine := h.machine
	machine.ID, machine.Worker = h.machine.ID+"/"+task.Slice, 0
	h.packedStarts++
	p := &host{
		machine: machine, mine: true, on: true, up: true, boots: 1,
		spec: schema.SliceSpec{Name: task.Slice, Stack: f.stack, Owner: task.Owner, Index: task.Index, Hosts: 1, On: h.spec.Name, OnHost: h.machine.Worker},
		report: state.HostReport{
			Slice: task.Slice, Boot: fmt.Sprintf("%s-%d-%d", h.machine.ID, h.boots, h.packedStarts), Version: "rehearsal",
			Address: h.machine.Addresses[h.machine.Worker], CoordinatorPort: 8476, MegascalePort: 8081, Notice: h.report.Notice,
		},
	}
	h.packed[task.Slice], f.slices[task.Slice] = p, []*host{p}
	f.store.report(p.report)
	if p.want = f.store.assignment(task.Slice); p.want != nil {
		f.later(p, obeyTakes, f.reconcile)
	}
	f.reportPacked(h)
}

// endPacked ends what a packed task runs, and then stops serving it.
func (f *fleet) endPacked(h, p *host) {
	p.leaving = true
	if p.gang == nil {
		f.dropPacked(h, p)
		return
	}
	f.later(p, stopTakes, func(p *host) {
		if p.gang != nil {
			f.end(p, schema.TaskKilled, "its packed task is to leave the host")
			f.store.report(p.report)
		}
		f.dropPacked(h, p)
		f.servePacked(h) // it may be wanted again
	})
}

// dropPacked stops serving a packed task.
func (f *fleet) dropPacked(h, p *host) {
	p.on, p.up = false, false
	f.leave(p)
	f.store.silence(p.spec.Name, 0)
	delete(h.packed, p.spec.Name)
	if all := f.slices[p.spec.Name]; len(all) == 1 && all[0] == p {
		delete(f.slices, p.spec.Name)
	}
	if h.up {
		f.reportPacked(h)
	}
}

// losePacked takes the packed tasks of a machine that is powered off.
func (f *fleet) losePacked(h *host) {
	for _, name := range slices.Sorted(maps.Keys(h.packed)) {
		f.dropPacked(h, h.packed[name])
	}
}

// noticePacked hands a notice of the machine on to its packed tasks.
func (f *fleet) noticePacked(h *host) {
	for _, name := range slices.Sorted(maps.Keys(h.packed)) {
		p := h.packed[name]
		p.report.Notice = h.report.Notice
		f.store.report(p.report)
		if p.gang != nil {
			f.stop(p, schema.TaskPreempted, p.report.Notice)
		}
	}
}

// reportPacked puts the packed tasks that a machine serves into its report.
func (f *fleet) reportPacked(h *host) {
	h.report.PackedTasks = slices.Sorted(maps.Keys(h.packed))
	f.store.report(h.report)
}
