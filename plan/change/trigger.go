package change

import (
	"slices"
	"strings"

	"github.com/fray-ml/fray/schema"
	"github.com/fray-ml/fray/state"
)

// What replace_triggered_by names is known by a digest of what is desired of it,
// taken when a configuration is accepted. A record keeps the digests under which
// its job was carried out, so that a change is not forgotten before it is heeded,
// whatever happens in between. What is new among the triggers, or gone, or whose
// value is not known yet, triggers nothing. Nor does what a trigger has done to
// another job: a job that depends on that names the cause as well.

// replacedByHand stands, in a record, for the digest before a declaration triggered its own replacement.
const replacedByHand schema.Digest = "replaced"

// ReplaceTriggeredBy is the name of the lifecycle attribute.
const ReplaceTriggeredBy = "replace_triggered_by"

// Triggered reports whether what a job's replace_triggered_by names has changed
// since it was carried out. What has not run yet is not triggered.
func Triggered(want *schema.Job, cur *state.Job) bool {
	if cur.Attempt == 0 {
		return false
	}
	is, was := want.Lifecycle.Trigger, cur.Spec.Lifecycle.Trigger
	return is != "" && was != "" && is != was ||
		slices.ContainsFunc(want.Lifecycle.TriggeredBy, func(t schema.Trigger) bool { return pulled(t, cur.Spec.Lifecycle.TriggeredBy) })
}

// pulled reports whether a trigger differs from that on record.
func pulled(t schema.Trigger, recorded []schema.Trigger) bool {
	was, known := lastKnown(t, recorded)
	return known && t.Digest != "" && t.Digest != was.Digest
}

func lastKnown(t schema.Trigger, recorded []schema.Trigger) (schema.Trigger, bool) {
	at := slices.IndexFunc(recorded, func(r schema.Trigger) bool { return r.Addr == t.Addr && r.Path == t.Path && r.Digest != "" })
	if at < 0 {
		return t, false
	}
	return recorded[at], true
}

// InForce is the lifecycle of a recorded job from now on: that which is asked
// for, with the triggers on record where they are still to be heeded or the new
// ones are not known yet.
func InForce(want *schema.Job, cur *state.Job) schema.Lifecycle {
	l, was := want.Lifecycle, &cur.Spec.Lifecycle
	waits := Triggered(want, cur)
	if was.Trigger != "" && (waits || l.Trigger == "") {
		l.Trigger = was.Trigger
	}
	for i, t := range l.TriggeredBy {
		kept, known := lastKnown(t, was.TriggeredBy)
		if !known || kept == t || !waits && t.Digest != "" {
			continue
		}
		if &l.TriggeredBy[0] == &want.Lifecycle.TriggeredBy[0] {
			l.TriggeredBy = slices.Clone(l.TriggeredBy)
		}
		l.TriggeredBy[i] = kept
	}
	return l
}

// withTriggers fills in the triggers of a configuration: one for each instance
// that is named, with what is desired of it. Those that are filled in stay so: they
// are of jobs that were accepted before and are not to be touched now (--target).
func withTriggers(desired schema.Desired) schema.Desired {
	named := map[schema.Address]bool{}
	for i := range desired.Jobs {
		for _, t := range desired.Jobs[i].Lifecycle.TriggeredBy {
			named[t.Addr] = true
		}
	}
	if len(named) == 0 {
		return desired
	}
	f := filling{declarations: declarationsNamed(&desired, named), digests: map[schema.Trigger]schema.Digest{}}
	desired.Jobs = Changing(desired.Jobs, func(job *schema.Job) *schema.Job {
		if !slices.ContainsFunc(job.Lifecycle.TriggeredBy, func(t schema.Trigger) bool { return t.Digest == "" }) {
			return job
		}
		filled := *job
		filled.Lifecycle.TriggeredBy = f.filled(job)
		return &filled
	})
	return desired
}

// filling is the filling in of triggers; many jobs may name the same.
type filling struct {
	declarations map[schema.Address][]declaration
	digests      map[schema.Trigger]schema.Digest // by triggers without
}

func (f *filling) filled(job *schema.Job) []schema.Trigger {
	var filled []schema.Trigger
	seen := map[schema.Trigger]bool{}
	for _, t := range job.Lifecycle.TriggeredBy {
		if t.Digest != "" {
			filled = append(filled, t)
			continue
		}
		for _, declaration := range f.declarations[t.Addr] {
			key := schema.Trigger{Addr: declaration.addr, Path: t.Path}
			if declaration.addr == job.Addr || seen[key] { // nothing triggers itself
				continue
			}
			seen[key] = true
			digest, taken := f.digests[key]
			if !taken {
				digest = digestOfAttrs(declaration.attrs(), t.Path)
				f.digests[key] = digest
			}
			filled = append(filled, schema.Trigger{Addr: key.Addr, Path: key.Path, Digest: digest})
		}
	}
	return filled
}

// declaration is a job, reservation, namespace or group.
type declaration struct {
	addr  schema.Address
	attrs func() []Attr
}

// declarationsNamed finds, for each address that is named, what is declared there: the
// instances of a job, what is in a group.
func declarationsNamed(desired *schema.Desired, named map[schema.Address]bool) map[schema.Address][]declaration {
	found := map[schema.Address][]declaration{}
	add := func(t declaration) {
		for _, of := range []schema.Address{t.addr, t.addr.Base(), t.addr.GroupAddress()} {
			if named[of] && !slices.ContainsFunc(found[of], func(o declaration) bool { return o.addr == t.addr }) {
				found[of] = append(found[of], t)
			}
		}
	}
	resource := func(addr schema.Address, r state.Resource) {
		add(declaration{addr: addr, attrs: func() []Attr { return ResourceAttrs(r) }})
	}
	for i := range desired.Namespaces {
		resource(desired.Namespaces[i].Addr, state.Resource{Namespace: &desired.Namespaces[i]})
	}
	for i := range desired.Reservations {
		resource(desired.Reservations[i].Addr, state.Resource{Reservation: &desired.Reservations[i]})
	}
	for i := range desired.Groups {
		resource(desired.Groups[i].Addr, state.Resource{Group: &desired.Groups[i]})
	}
	for i := range desired.Notifications {
		resource(desired.Notifications[i].Addr, state.Resource{Notification: &desired.Notifications[i]})
	}
	for i := range desired.Jobs {
		job := &desired.Jobs[i]
		add(declaration{addr: job.Addr, attrs: func() []Attr { return JobAttrs(job) }})
	}
	return found
}

// digestOfAttrs is the digest of the attributes at a path, "" for all; it is "" as
// long as one of them is not known.
func digestOfAttrs(attrs []Attr, path string) schema.Digest {
	var text []string
	for i := range attrs {
		a := &attrs[i]
		if path != "" && a.path != path && !strings.HasPrefix(a.path, path+".") {
			continue
		}
		if a.unknown {
			return ""
		}
		text = append(text, a.path, string(a.value), a.token)
	}
	digest, err := schema.DigestOf(text)
	if err != nil {
		return "" // strings can be encoded
	}
	return digest
}

// Triggering returns the jobs that are replaced because one that they name is
// replaced by itself, in a document whose configuration is accepted, with the
// records that say so.
func Triggering(doc *state.Document, replaced func(schema.Address) bool) map[schema.Address]*state.Job {
	var found map[schema.Address]*state.Job
	for i := range doc.Desired.Jobs {
		want := &doc.Desired.Jobs[i]
		cur := doc.Jobs[want.Addr]
		if cur == nil || !slices.ContainsFunc(cur.Spec.Lifecycle.TriggeredBy, func(t schema.Trigger) bool { return t.Path == "" && replaced(t.Addr) }) {
			continue
		}
		l := cur.Spec.Lifecycle
		l.TriggeredBy = slices.Clone(l.TriggeredBy)
		for i := range l.TriggeredBy {
			if t := &l.TriggeredBy[i]; t.Path == "" && replaced(t.Addr) {
				t.Digest = replacedByHand
			}
		}
		if found == nil {
			found = map[schema.Address]*state.Job{}
		}
		found[want.Addr] = UnderLifecycle(cur, l)
	}
	return found
}
