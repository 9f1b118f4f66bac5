package incremental

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/fray-ml/fray/plan"
	"github.com/fray-ml/fray/plan/capacity"
	"github.com/fray-ml/fray/plan/snapshot"
	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
	"github.com/fray-ml/fray/state/store"
)

func (w *world) observe() *plan.Observed {
	obs := &plan.Observed{
		Inventories: map[schema.ProviderName]schema.Inventory{},
		Unreachable: map[schema.ProviderName]plan.Unreachable{},
		Assignments: maps.Clone(w.assignments),
		Hosts:       map[string][]plan.Host{},
	}
	for name, object := range w.damaged {
		if w.assignments[name].Object == object { // nothing was written there since
			obs.Assignments[name], obs.Damaged = plan.Assigned{Object: object}, map[string]string{name: "unexpected end of JSON"}
		}
	}
	if w.unreachable {
		obs.Unreachable[schema.ProviderLocal] = plan.Unreachable{Kind: schema.ErrorUnavailable, Text: "503 try again"}
	} else {
		all := w.inventory()
		if w.misreads != nil {
			all = w.misreads(all)
		}
		for _, name := range []schema.ProviderName{schema.ProviderLocal, schema.ProviderGCP} {
			inv := schema.Inventory{Slices: slices.DeleteFunc(slices.Clone(all.Slices), func(st schema.SliceStatus) bool {
				_, missing := w.unlisted[st.Spec.Zone]
				return st.Spec.Provider != name || missing
			})}
			if name == schema.ProviderGCP {
				inv.Unlisted, inv.Skipped = w.unlisted, all.Skipped
			}
			obs.Inventories[name] = inv
		}
	}
	w.confirm(obs)
	maps.DeleteFunc(w.silence, func(key hostKey, _ observed) bool {
		_, reported := w.reports[key]
		return !reported
	})
	for key, r := range w.reports {
		was, ok := w.silence[key]
		if !ok || was.seq != r.Seq {
			was = observed{seq: r.Seq, at: w.now}
			w.silence[key] = was
		}
		obs.Hosts[key.slice] = append(obs.Hosts[key.slice], plan.Host{HostReport: r, Heartbeat: plan.NewHeartbeat(-w.now.Sub(was.at))})
	}
	for name, hosts := range obs.Hosts {
		slices.SortFunc(hosts, func(a, b plan.Host) int { return a.Host - b.Host })
		obs.Hosts[name] = w.listed(name, hosts)
	}
	if w.unread {
		obs.Unread = map[string]bool{}
		for name := range obs.Hosts {
			obs.Unread[name] = true
		}
		clear(obs.Hosts)
	}
	return obs
}

// confirm reads the slices directly that may be doubted, and counts the looks of
// those that the last plan doubted.
func (w *world) confirm(obs *plan.Observed) {
	obs.Confirmations = map[string]plan.Confirmation{}
	counted := map[string]plan.Confirmation{}
	if w.last != nil {
		for _, doubt := range w.last.Doubts {
			c := w.doubted[doubt.Slice.Name]
			if c.Since.IsZero() {
				c.Since = w.now
			}
			c.Lists++
			counted[doubt.Slice.Name] = c
			obs.Confirmations[doubt.Slice.Name] = c
		}
	}
	w.doubted = counted
	if w.unreachable || w.unreadable {
		return
	}
	for _, s := range w.doc.Slices {
		if _, blind := w.unlisted[s.Spec.Zone]; !blind {
			w.read(obs, s.Spec.Name)
		}
	}
	for name := range counted {
		w.read(obs, name)
	}
}

// read is a direct read of one slice.
func (w *world) read(obs *plan.Observed, name string) {
	c := obs.Confirmations[name]
	c.ReadAt = w.now
	if s := w.slices[name]; s == nil {
		c.Answer = snapshot.AnswerGone
	} else {
		c.Answer, c.Status = snapshot.AnswerFound, w.statusOf(s)
	}
	obs.Confirmations[name] = c
}

// listed is the list of a slice's hosts, with the reports of before where nothing but
// heartbeats is new, as an observer has it.
func (w *world) listed(slice string, hosts []plan.Host) []plan.Host {
	same := func(a, b plan.Host) bool {
		a.Seq, a.At, a.Heartbeat = b.Seq, b.At, b.Heartbeat
		return reflect.DeepEqual(a, b)
	}
	old := w.lists[slice]
	if !slices.EqualFunc(old, hosts, same) {
		w.lists[slice] = hosts
		return hosts
	}
	heard := slices.Clone(old)
	for i := range hosts {
		heard[i].Heartbeat = hosts[i].Heartbeat
	}
	w.lists[slice] = heard
	return heard
}

func (w *world) inventory() schema.Inventory {
	var inv schema.Inventory
	for _, name := range slices.Sorted(maps.Keys(w.slices)) {
		s := w.slices[name]
		if isPacked(s) {
			continue
		}
		inv.Slices = append(inv.Slices, w.statusOf(s))
	}
	return inv
}

func (w *world) statusOf(s *simSlice) schema.SliceStatus {
	st := schema.SliceStatus{Spec: s.spec, Phase: s.phase, Reason: s.reason, CreatedAt: s.createdAt, Waiting: s.waiting, Cause: s.cause}
	for n, h := range s.hosts {
		if !h.agent && h.boot > 0 && s.phase != schema.SliceDead {
			st.Down = append(st.Down, n)
		}
	}
	return st
}

var (
	errStockout    = errors.New("there is no more capacity")
	errQuota       = errors.New("the quota is used up")
	errUnavailable = errors.New("503 try again")
)

func (w *world) carryOut(a plan.Action) error {
	name := a.Slice.Name
	switch a.Verb {
	case plan.CreateSlice, plan.RepairSlice:
		return w.create(*a.Slice)
	case plan.DeleteSlice:
		if w.unreachable {
			return errUnavailable
		}
		if s := w.slices[name]; s != nil && s.phase != schema.SliceDeleting {
			s.phase, s.changesAt = schema.SliceDeleting, w.now.Add(w.deleteTakes)
		}
	case plan.UpdateSlice:
		if s := w.slices[name]; s != nil {
			s.spec = *a.Slice
		}
	case plan.Assign:
		if w.assignments[name].Object != a.Object {
			return store.ErrConflict
		}
		w.generation++
		written := *a.Assignment
		written.Epoch = w.epoch
		w.assignments[name] = plan.Assigned{Assignment: written, Object: w.generation}
	case plan.ForgetSlice:
		delete(w.assignments, name)
		maps.DeleteFunc(w.reports, func(k hostKey, _ state.HostReport) bool { return k.slice == name })
	}
	return nil
}

func (w *world) create(spec schema.SliceSpec) error {
	if w.unreachable {
		return errUnavailable
	}
	s := w.slices[spec.Name]
	switch {
	case s != nil && s.spec != spec:
		return errors.New("another slice has that name")
	case s != nil:
		for _, h := range s.hosts {
			if !h.agent && h.boot > 0 {
				h.bootsAt = w.now.Add(w.bootTakes)
				h.boot = -h.boot // is booting
			}
		}
		return nil
	case w.shut[spec.Zone] != nil:
		return w.shut[spec.Zone]
	case w.refuses != nil && w.refuses(spec) != nil:
		return w.refuses(spec)
	case w.capacity > 0 && w.machines() >= w.capacity:
		return errStockout
	case w.quota > 0 && w.machines() >= w.quota:
		return errQuota
	}
	s = &simSlice{spec: spec, phase: schema.SliceCreating, createdAt: w.now, changesAt: w.now.Add(w.createTakes)}
	for n := range spec.Hosts { // hosts boot before their siblings, and before the cloud says so
		s.hosts = append(s.hosts, &simHost{bootsAt: w.now.Add(w.bootTakes * time.Duration(n+1))})
	}
	w.slices[spec.Name] = s
	return nil
}

// fold records what came of an action, as apply does.
func (w *world) fold(a plan.Action, err error) {
	var failure *capacity.Failure
	if err != nil {
		failure = &capacity.Failure{Kind: kindOf(err), Text: err.Error()}
	}
	w.doc = w.planner.Folded(w.doc, a, failure, w.now)
}

func kindOf(err error) schema.ErrorKind {
	switch {
	case errors.Is(err, errStockout):
		return schema.ErrorCapacity
	case errors.Is(err, errQuota):
		return schema.ErrorQuota
	case errors.Is(err, errTakenAgain):
		return schema.ErrorPreempted
	}
	return schema.ErrorUnavailable
}
