package change

import (
	"maps"
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// Accepted returns doc with another configuration, settled, and with the
// lifecycles of the one before remembered. It is where what is desired meets what
// is recorded: every later look at the document finds the same. doc is not
// changed; the revision is the caller's.
func Accepted(doc *state.Document, desired schema.Desired) *state.Document {
	next := doc.Clone()
	remember(next, &doc.Desired)
	next.Desired = Settled(desired, next)
	return next
}

// Settled returns a configuration as it is planned for: with the recorded values
// of all attributes that lifecycles ignore, and with their triggers filled in. The
// given one is not changed, and returned itself where there is nothing to do.
func Settled(desired schema.Desired, doc *state.Document) schema.Desired {
	return withTriggers(withIgnored(desired, doc))
}

// withIgnored takes over what ignore_changes names. What is not recorded yet is as
// declared.
func withIgnored(desired schema.Desired, doc *state.Document) schema.Desired {
	jobs := jobAttributes()
	reshaped := map[string]*schema.Reservation{}
	desired.Reservations = Changing(desired.Reservations, func(r *schema.Reservation) *schema.Reservation {
		cur := doc.Resources[r.Addr].Reservation
		if cur == nil || len(r.Lifecycle.Ignore) == 0 {
			return r
		}
		kept := *r
		keep(reservationAttributes(), r.Lifecycle.Ignore, &kept, cur)
		unmixEnds(&kept, cur)
		reshaped[r.Addr.Scoped()] = &kept
		return &kept
	})
	pools := desired.Reservations
	desired.Jobs = Changing(desired.Jobs, func(want *schema.Job) *schema.Job {
		var cur *state.Job
		if len(want.Lifecycle.Ignore) > 0 {
			cur = doc.Jobs[want.Addr]
		}
		if cur != nil {
			kept := *want
			keep(jobs, want.Lifecycle.Ignore, &kept, cur.Spec)
			unmix(&kept, cur.Spec)
			kept.Sensitive = schema.JoinTexts(kept.Sensitive, cur.Spec.Sensitive)
			want = drawing(&kept, want, pools)
		}
		if len(reshaped) == 0 {
			return want
		}
		if pool := reshaped[want.Resources.Reservation]; pool != nil {
			return Fitted(want, pool)
		}
		return want
	})
	return desired
}

// Changing replaces the items of a list that change gives another one for. The
// list itself is not written to.
func Changing[T any](list []T, change func(*T) *T) []T {
	out := list
	for i := range list {
		changed := change(&list[i])
		if changed == &list[i] {
			continue
		}
		if &out[0] == &list[0] {
			out = slices.Clone(list)
		}
		out[i] = *changed
	}
	return out
}

// attribute is what ignore_changes may name, by itself or by a block around it.
type attribute[T any] struct {
	path string // as in [AttrChange]
	// keyed: "path.KEY" is one of many; keep is given the key, "" for all.
	keyed bool
	// keep takes the value over. What want refers to is shared with others, and
	// so is replaced, never written to.
	keep func(want, recorded *T, key string)
}

// all stands for every attribute in ignore_changes.
const all = "all"

// keep takes over the recorded values of the attributes that paths name.
func keep[T any](attributes []attribute[T], paths []string, want, recorded *T) {
	for _, path := range paths {
		for i := range attributes {
			a := &attributes[i]
			switch key, within := strings.CutPrefix(path, a.path+"."); {
			case path == all, path == a.path, strings.HasPrefix(a.path, path+"."):
				a.keep(want, recorded, "")
			case within && a.keyed:
				a.keep(want, recorded, key)
			}
		}
	}
}

// JobAttributes are the paths that ignore_changes of a job may name, those of
// blocks and "all" included. What follows "environment.env.", "labels." and
// "resources.ports." is one key, see [IsJobAttribute].
func JobAttributes() []string { return pathsOf(jobAttributes()) }

// ReservationAttributes are the paths that ignore_changes of a reservation may name.
func ReservationAttributes() []string { return pathsOf(reservationAttributes()) }

// IsJobAttribute reports whether ignore_changes of a job may name a path.
func IsJobAttribute(path string) bool { return names(jobAttributes(), path) }

// IsReservationAttribute reports whether ignore_changes of a reservation may name a path.
func IsReservationAttribute(path string) bool { return names(reservationAttributes(), path) }

func pathsOf[T any](attributes []attribute[T]) []string {
	found := map[string]bool{all: true}
	for i := range attributes {
		path := attributes[i].path
		for ; path != ""; path = path[:max(0, strings.LastIndexByte(path, '.'))] {
			found[path] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func names[T any](attributes []attribute[T], path string) bool {
	return slices.Contains(pathsOf(attributes), path) || slices.ContainsFunc(attributes, func(a attribute[T]) bool {
		key, within := strings.CutPrefix(path, a.path+".")
		return a.keyed && within && key != ""
	})
}

// unmix has one kind of shape stand for all of it, where the kept part and the
// declared one are of different kinds.
func unmix(kept, recorded *schema.Job) {
	r, cur := &kept.Resources, &recorded.Resources
	machine := r.GPU != schema.GPU{} || r.CPU != 0 || r.Memory != 0 || r.Disk != 0 || r.MachineType != ""
	if r.TPU != "" && machine || isHalf(r.GPU) {
		r.TPU, r.GPU, r.CPU, r.Memory, r.Disk, r.MachineType = cur.TPU, cur.GPU, cur.CPU, cur.Memory, cur.Disk, cur.MachineType
	}
}

// unmixEnds is unmix for both ends of a reservation.
func unmixEnds(kept, recorded *schema.Reservation) {
	for _, end := range [][2]*schema.Capacity{{&kept.Min, &recorded.Min}, {&kept.Max, &recorded.Max}} {
		if c, cur := end[0], end[1]; c.TPU != "" && (c.GPU != schema.GPU{} || c.CPU != 0 || c.Memory != 0 || c.Disk != 0) || isHalf(c.GPU) {
			c.TPU, c.GPU, c.CPU, c.Memory, c.Disk = cur.TPU, cur.GPU, cur.CPU, cur.Memory, cur.Disk
		}
	}
}

// isHalf reports a type of GPUs whose number is of a declaration that has none.
func isHalf(g schema.GPU) bool { return g.Type != "" && g.Count == 0 }

// drawing sees to it that a job draws from a reservation that is there, and has
// its shape: that is never the job's own to keep.
func drawing(kept, declared *schema.Job, pools []schema.Reservation) *schema.Job {
	for _, name := range []string{kept.Resources.Reservation, declared.Resources.Reservation} {
		if name == "" {
			break
		}
		at := slices.IndexFunc(pools, func(r schema.Reservation) bool { return r.Addr.Scoped() == name })
		if at >= 0 {
			kept.Resources.Reservation = name
			return Fitted(kept, &pools[at])
		}
	}
	if kept.Resources.Reservation != "" { // gone, and the job has a shape of its own by now
		kept.Resources = declared.Resources
	}
	return kept
}

// Fitted is a job with the shape of the reservation that it draws from.
func Fitted(job *schema.Job, pool *schema.Reservation) *schema.Job {
	fit := *job
	r := &fit.Resources
	r.Provider, r.Preemptible = pool.Provider, pool.Preemptible
	r.MachineType = ""
	if r.Packed = r.Packed && pool.Max.TPU == "" && pool.Max.GPU.Count == 0; r.Packed {
		r.TPU, r.GPU = "", schema.GPU{} // its part of a machine is its own
		return &fit
	}
	r.TPU, r.GPU, r.CPU, r.Memory, r.Disk = pool.Max.TPU, pool.Max.GPU, pool.Max.CPU, pool.Max.Memory, pool.Max.Disk
	return &fit
}
